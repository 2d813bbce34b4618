//! Which ranks may share memory: those whose host identity is the same.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// A number that is the same for two processes if they can share memory: same boot of the same kernel, same PID
/// namespace (for `/proc/PID`), same user, and same network namespace (so that namespaces can stand for hosts).
pub fn host_identity() -> u64 {
    let mut hasher = DefaultHasher::new();
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    for namespace in ["/proc/self/ns/pid", "/proc/self/ns/net"] {
        fs::metadata(namespace).map(|m| (m.dev(), m.ino())).unwrap_or_default().hash(&mut hasher);
    }
    nix::unistd::geteuid().as_raw().hash(&mut hasher);
    hasher.finish()
}
