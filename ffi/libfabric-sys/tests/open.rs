//! Opening the library: absence is an error value that says what to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod opening;

use std::path::Path;

use libfabric_sys::{API_VERSION, ENVIRONMENT_VARIABLE, Library, OpenError};
use opening::{assert_named_by, assert_says, installed};

#[test]
fn a_file_that_does_not_exist_is_an_error_that_says_what_to_do() {
    let error = Library::load(Path::new("/nonexistent/libfabric.so.1")).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    assert_says(&error, &["/nonexistent/libfabric.so.1", "apt install libfabric1", ENVIRONMENT_VARIABLE]);
}

#[test]
fn another_library_is_refused_by_the_function_it_lacks() {
    let error = Library::load(Path::new("libc.so.6")).unwrap_err();
    assert!(matches!(error, OpenError::Symbol { symbol: "fi_version", .. }), "{error}");
}

#[test]
fn the_environment_names_the_file() {
    let is_missing = || matches!(Library::open(), Err(OpenError::Missing { .. }));
    assert_named_by(ENVIRONMENT_VARIABLE, "the_environment_names_the_file", is_missing);
}

#[test]
fn an_installed_library_opens_once() {
    let Some(library) = installed(Library::open(), "TRANSOM_CI_REQUIRE_OFI") else { return };
    assert!(library.version() >= API_VERSION);
    assert!(!library.error_text(11).is_empty());
    assert_eq!(library.error_text(11), library.error_text(-11));
    assert!(std::ptr::eq(library, Library::open().unwrap()));
}
