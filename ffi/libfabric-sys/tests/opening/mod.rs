//! What is tested of every library that is opened at run time.

use std::env;
use std::fmt::Display;
use std::process::Command;

/// That an error says what to do: it has all these words.
pub fn assert_says(error: &impl Display, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text}");
    }
}

/// That the file is the one that `variable` names. The environment belongs to the process, so the question is put to
/// another one: `test`, which is to call this. There, a file is named that does not exist, and `is_missing` says so.
pub fn assert_named_by(variable: &str, test: &str, is_missing: impl FnOnce() -> bool) {
    const INNER: &str = "TRANSOM_TEST_INNER";
    if env::var_os(INNER).is_some() {
        assert!(is_missing());
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test])
        .env(INNER, "1")
        .env(variable, "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// What a test goes on with: the library, or nothing where it is not installed, unless `required` is set.
pub fn installed<L, E: Display>(opened: Result<L, E>, required: &str) -> Option<L> {
    match opened {
        Ok(library) => Some(library),
        Err(error) => {
            assert!(env::var_os(required).is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}
