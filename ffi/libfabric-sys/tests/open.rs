//! Opening the library: absence is an error value that says what to do.

use std::env;
use std::path::Path;
use std::process::Command;

use libfabric_sys::{API_VERSION, ENVIRONMENT_VARIABLE, Library, OpenError};

#[test]
fn a_file_that_does_not_exist_is_an_error_that_says_what_to_do() {
    let error = Library::load(Path::new("/nonexistent/libfabric.so.1")).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    let text = error.to_string();
    assert!(text.contains("/nonexistent/libfabric.so.1"), "{text}");
    assert!(text.contains("apt install libfabric1"), "{text}");
    assert!(text.contains(ENVIRONMENT_VARIABLE), "{text}");
}

#[test]
fn another_library_is_refused_by_the_function_it_lacks() {
    let error = Library::load(Path::new("libc.so.6")).unwrap_err();
    assert!(matches!(error, OpenError::Symbol { symbol: "fi_version", .. }), "{error}");
}

/// The environment belongs to the process, so the question is put to another one: this same test.
#[test]
fn the_environment_names_the_file() {
    const INNER: &str = "TRANSOM_TEST_INNER";
    if env::var_os(INNER).is_some() {
        assert!(matches!(Library::open(), Err(OpenError::Missing { .. })));
        return;
    }
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_environment_names_the_file"])
        .env(INNER, "1")
        .env(ENVIRONMENT_VARIABLE, "/nonexistent")
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn an_installed_library_opens_once() {
    let library = match Library::open() {
        Ok(library) => library,
        Err(error) if env::var_os("TRANSOM_CI_REQUIRE_OFI").is_none() => {
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert!(library.version() >= API_VERSION);
    assert!(!library.error_text(11).is_empty());
    assert_eq!(library.error_text(11), library.error_text(-11));
    assert!(std::ptr::eq(library, Library::open().unwrap()));
}
