//! Folders as the kernel shows them.

use std::os::unix::fs::PermissionsExt;

use super::*;

const CLASSES: [Class; 2] = [("infiniband_verbs", "uverbs"), ("cxi", "")];

#[test]
fn a_device_shows() {
    let sysfs = tempfile::tempdir().unwrap();
    let verbs = sysfs.path().join("class/infiniband_verbs");
    assert!(may_be_in(sysfs.path(), &CLASSES), "no such files: it is not known");
    fs::create_dir(sysfs.path().join("class")).unwrap();
    assert!(!may_be_in(sysfs.path(), &CLASSES), "no module");
    fs::create_dir(&verbs).unwrap();
    fs::write(verbs.join("abi_version"), "6").unwrap();
    assert!(!may_be_in(sysfs.path(), &CLASSES), "the module, and no device");
    fs::create_dir(verbs.join("uverbs0")).unwrap();
    assert!(may_be_in(sysfs.path(), &CLASSES));
    assert!(!may_be_in(sysfs.path(), &CLASSES[1..]), "of another class");
    fs::create_dir_all(sysfs.path().join("class/cxi/cxi0")).unwrap();
    assert!(may_be_in(sysfs.path(), &CLASSES[1..]));
}

#[test]
fn what_may_not_be_read_is_not_known() {
    let sysfs = tempfile::tempdir().unwrap();
    let cxi = sysfs.path().join("class/cxi");
    fs::create_dir_all(&cxi).unwrap();
    fs::set_permissions(&cxi, PermissionsExt::from_mode(0o0)).unwrap();
    // Root may read all.
    if fs::read_dir(&cxi).is_err() {
        assert!(may_be_in(sysfs.path(), &CLASSES));
    }
    fs::set_permissions(&cxi, PermissionsExt::from_mode(0o700)).unwrap();
}
