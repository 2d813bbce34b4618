//! Opening the library: absence is an error value that says what to do.

use std::env;
use std::path::Path;
use std::process::Command;

use ibverbs_sys::{ENVIRONMENT_VARIABLE, Library, OpenError, RdmacmLibrary, SONAME};

#[test]
fn a_file_that_does_not_exist_is_an_error_that_says_what_to_do() {
    let error = Library::load(Path::new("/nonexistent/libibverbs.so.1")).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    let text = error.to_string();
    assert!(text.contains("/nonexistent/libibverbs.so.1"), "{text}");
    assert!(text.contains("apt install libibverbs1 ibverbs-providers"), "{text}");
    assert!(text.contains(ENVIRONMENT_VARIABLE), "{text}");
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

/// The environment belongs to the process, so the question is put to another one: this same test.
#[test]
fn the_environment_names_the_file() {
    const INNER: &str = "TRANSOM_TEST_INNER";
    if env::var_os(INNER).is_some() {
        assert!(matches!(Library::open(), Err(OpenError::Missing { .. })));
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "the_environment_names_the_file"])
        .env(INNER, "1")
        .env(ENVIRONMENT_VARIABLE, "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn an_installed_library_opens_once() {
    let library = match Library::open() {
        Ok(library) => library,
        Err(error) if env::var_os("TRANSOM_CI_REQUIRE_VERBS").is_none() => {
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
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
