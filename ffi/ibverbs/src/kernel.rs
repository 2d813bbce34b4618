//! Whether there may be devices, as the kernel's files tell it, without libibverbs.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

use ibverbs_sys::ENVIRONMENT_VARIABLE;

/// Whether libibverbs may find devices here: for who would open it for nothing else, since to load it takes a good part of what a small
/// program takes to start. Where that cannot be known the answer is yes.
pub fn may_have_devices() -> bool {
    // Another library may have devices of its own.
    if env::var_os(ENVIRONMENT_VARIABLE).is_some() {
        return true;
    }
    // Libibverbs takes the same variable.
    shows_devices(&env::var_os("SYSFS_PATH").map_or("/sys".into(), PathBuf::from))
}

/// Whether a system's files show devices for programs (the kernel's module ib_uverbs).
fn shows_devices(sysfs: &Path) -> bool {
    let classes = sysfs.join("class");
    match fs::read_dir(classes.join("infiniband_verbs")) {
        Ok(mut entries) => entries.any(|entry| {
            entry.map_or(true, |entry| entry.file_name().as_encoded_bytes().starts_with(b"uverbs"))
        }),
        // Without such files, as in some containers, the kernel may tell of devices by other ways.
        Err(error) => error.kind() != ErrorKind::NotFound || !classes.exists(),
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
