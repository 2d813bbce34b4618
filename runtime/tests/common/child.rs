//! A transport is chosen by environment variable, which a test cannot change for itself: so each test runs its executable
//! again as a child, which runs that test only, with a time limit.

#[path = "verbs.rs"]
mod verbs;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set in a child.
const CHILD: &str = "TRANSOM_TEST_CHILD";
/// Exit status of a child that has run its test to the end: 0 would also mean that it found no test of that name.
const DONE: i32 = 42;

/// What tests over libfabric run over instead.
const NETWORK: &str = "TRANSOM_TEST_NETWORK";

/// Runs `body` in a child over `transport`, as the test named `test`. Whatever blocks there ends with an error, at last by
/// the child's end after `limit`.
pub fn run(transport: &str, test: &str, limit: Duration, body: impl FnOnce()) {
    run_with(&[("TRANSOM_TRANSPORT", transport)], test, limit, body);
}

/// [`run`] with any settings.
pub fn run_with(settings: &[(&str, &str)], test: &str, limit: Duration, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        body();
        std::process::exit(DONE);
    }
    let network = std::env::var(NETWORK).ok();
    let mut settings = settings.to_vec();
    for (name, value) in &mut settings {
        if let ("TRANSOM_TRANSPORT", "ofi", Some(network)) = (*name, *value, &network) {
            *value = network;
        }
    }
    let mut devices = None;
    if settings.contains(&("TRANSOM_TRANSPORT", "verbs")) {
        devices = verbs::devices();
        if devices.is_none() {
            return;
        }
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .env(CHILD, "yes")
        .env("TRANSOM_DEADLINE", "60")
        .envs(settings)
        .envs(devices.map(|devices| ("TRANSOM_VERBS_DEVICE", devices)))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            panic!("{test}: no end after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status.code(), Some(DONE), "{test}: {status}");
}
