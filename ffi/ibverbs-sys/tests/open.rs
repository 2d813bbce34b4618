//! Opening the library: absence is an error value that says what to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../../libfabric-sys/tests/opening/mod.rs"]
mod opening;

use std::env;
use std::path::Path;

use ibverbs_sys::{ENVIRONMENT_VARIABLE, Library, OpenError, RdmacmLibrary, SONAME};
use opening::{assert_named_by, assert_says, installed};

#[test]
fn a_file_that_does_not_exist_is_an_error_that_says_what_to_do() {
    let error = Library::load(Path::new("/nonexistent/libibverbs.so.1")).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    assert_says(
        &error,
        &["/nonexistent/libibverbs.so.1", "apt install libibverbs1 ibverbs-providers", ENVIRONMENT_VARIABLE],
    );
}

#[test]
fn another_library_is_refused_by_the_function_it_lacks() {
    let error = Library::load(Path::new("libc.so.6")).unwrap_err();
    assert!(
        matches!(&error, OpenError::Symbol { symbol: "ibv_get_device_list", path, .. } if path == Path::new("libc.so.6")),
        "{error}"
    );
}

#[test]
fn so_it_is_with_librdmacm() {
    let text = RdmacmLibrary::load(Path::new("/nonexistent/librdmacm.so.1")).unwrap_err().to_string();
    assert!(text.contains("apt install librdmacm1") && text.contains("TRANSOM_RDMACM"), "{text}");
    let text = RdmacmLibrary::load(Path::new("libc.so.6")).unwrap_err().to_string();
    assert!(
        text.contains("libc.so.6 is not a usable librdmacm: it has no rdma_create_event_channel"),
        "{text}"
    );
}

#[test]
fn the_environment_names_the_file() {
    let is_missing = || matches!(Library::open(), Err(OpenError::Missing { .. }));
    assert_named_by(ENVIRONMENT_VARIABLE, "the_environment_names_the_file", is_missing);
}

#[test]
fn an_installed_library_opens_once() {
    let Some(library) = installed(Library::open(), "TRANSOM_CI_REQUIRE_VERBS") else { return };
    assert!(std::ptr::eq(library, Library::open().unwrap()));
    if env::var_os(ENVIRONMENT_VARIABLE).is_none() {
        assert_eq!(library.path(), Path::new(SONAME));
    }
    let mut count = -1;
    // SAFETY: ibv_get_device_list(3): room for the count; the list is freed once.
    unsafe {
        let list = (library.ibv_get_device_list)(&mut count);
        if !list.is_null() {
            assert!(count >= 0);
            (library.ibv_free_device_list)(list);
        }
    }
}
