//! Without libibverbs, every way in is an error that names the package.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Output};

use ibverbs::{Context, device_names};

const CHILD: &str = "TRANSOM_TEST_WITHOUT_LIBIBVERBS";

/// The library stays open and the environment belongs to the process: so the one to look at is another, this test again.
#[test]
fn a_missing_library_is_an_error() {
    if env::var_os(CHILD).is_some() {
        return every_way_in_is_an_error();
    }
    let folder = env::temp_dir().join(format!("transom-no-ibverbs-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("libibverbs.so.1"), "not a library").unwrap();
    // What the dynamic linker finds under that name; a file that the user names; a library, but of other functions.
    let damaged = again("LD_LIBRARY_PATH", folder.as_os_str());
    let absent = again("TRANSOM_IBVERBS", folder.join("absent").as_os_str());
    let another = again("TRANSOM_IBVERBS", OsStr::new("libc.so.6"));
    fs::remove_dir_all(&folder).unwrap();
    for output in [damaged, absent, another] {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}

fn again(variable: &str, value: &OsStr) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_missing_library_is_an_error"])
        .env_remove("TRANSOM_IBVERBS")
        .env(variable, value)
        .env(CHILD, "1")
        .output()
        .unwrap()
}

fn every_way_in_is_an_error() {
    let another = env::var_os("TRANSOM_IBVERBS").is_some_and(|name| name == "libc.so.6");
    let wanted = if another { "libc.so.6 is not a usable libibverbs" } else { "apt install libibverbs1" };
    for error in [device_names().unwrap_err(), Context::open("mlx5_0").unwrap_err()] {
        assert!(error.is_no_library() && !error.is_no_device(), "{error:?}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
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
