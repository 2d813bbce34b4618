//! Without libibverbs, every way in is an error that names the package.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::env;
use std::fs;
use std::process::Command;

use ibverbs::{Context, device_names};

const CHILD: &str = "TRANSOM_TEST_WITHOUT_LIBIBVERBS";

/// The library is opened when a process starts: so the process to look at is this one again, which finds a file of that
/// name that is no library.
#[test]
fn a_missing_library_is_an_error() {
    if env::var_os(CHILD).is_some() {
        for error in [device_names().unwrap_err(), Context::open("mlx5_0").unwrap_err()] {
            assert!(error.is_no_library() && !error.is_no_device(), "{error:?}");
            assert!(error.to_string().contains("apt install libibverbs1"), "{error}");
        }
        return;
    }
    let folder = env::temp_dir().join(format!("transom-no-ibverbs-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("libibverbs.so.1"), "not a library").unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_missing_library_is_an_error"])
        .env("LD_LIBRARY_PATH", &folder)
        .env(CHILD, "1")
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// With it, there are devices, or the error says that there are none.
#[test]
fn devices_or_a_reason() {
    match device_names() {
        Ok(names) => {
            let error = Context::open("no such device").unwrap_err();
            assert!(error.is_no_device() && error.to_string().contains(&names[0]), "{error}");
        }
        Err(error) => assert!(error.is_no_device() || error.is_no_library(), "{error:?}"),
    }
}
