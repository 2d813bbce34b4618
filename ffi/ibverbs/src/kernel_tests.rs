//! Folders as the kernel shows them.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn a_device_shows() {
    let sysfs = tempfile::tempdir().unwrap();
    let verbs = sysfs.path().join("class/infiniband_verbs");
    assert!(shows_devices(sysfs.path()), "no such files: it is not known");
    fs::create_dir(sysfs.path().join("class")).unwrap();
    assert!(!shows_devices(sysfs.path()), "no module");
    fs::create_dir(&verbs).unwrap();
    fs::write(verbs.join("abi_version"), "6").unwrap();
    assert!(!shows_devices(sysfs.path()), "the module, and no device");
    fs::create_dir(verbs.join("uverbs0")).unwrap();
    assert!(shows_devices(sysfs.path()));
}

#[test]
fn what_may_not_be_read_is_not_known() {
    let sysfs = tempfile::tempdir().unwrap();
    let verbs = sysfs.path().join("class/infiniband_verbs");
    fs::create_dir_all(&verbs).unwrap();
    fs::set_permissions(&verbs, PermissionsExt::from_mode(0o0)).unwrap();
    // Root may read all.
    if fs::read_dir(&verbs).is_err() {
        assert!(shows_devices(sysfs.path()));
    }
    fs::set_permissions(&verbs, PermissionsExt::from_mode(0o700)).unwrap();
}
