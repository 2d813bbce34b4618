//! What devices the kernel shows (sysfs(5)): for who would open a library to ask it for devices and nothing else. To load libibverbs
//! takes a good part of what a small program takes to start; to load libfabric with what it needs can take a hundred times as much.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A class of devices, as sysfs names it, and what the names of those in it begin with.
pub type Class = (&'static str, &'static str);

/// Whether the kernel shows a device of any of these classes. Where that cannot be known the answer is yes.
pub fn may_be_there(classes: &[Class]) -> bool {
    // Libibverbs takes the same variable.
    may_be_in(&env::var_os("SYSFS_PATH").map_or("/sys".into(), PathBuf::from), classes)
}

fn may_be_in(sysfs: &Path, classes: &[Class]) -> bool {
    let all = sysfs.join("class");
    let shows = |(class, prefix): &Class| match fs::read_dir(all.join(class)) {
        Ok(mut entries) => entries.any(|entry| {
            entry.map_or(true, |entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()))
        }),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    // Without such files, as in some containers, the kernel may tell of devices by other ways.
    classes.iter().any(shows) || !all.exists()
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
