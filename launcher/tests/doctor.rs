//! `transom doctor` tries what jobs rely on, here and where things are missing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::process::Command;

use common::{TRANSOM, output};
use serde_json::Value;

/// What `transom doctor` printed, and its exit code.
fn doctor(change: impl FnOnce(&mut Command)) -> (String, i32) {
    let mut command = Command::new(TRANSOM);
    command.arg("doctor").env("COLUMNS", "80").env_remove("TRANSOM_OFI_PROVIDER");
    change(&mut command);
    let out = output(&mut command);
    (String::from_utf8(out.stdout).unwrap(), out.status.code().unwrap())
}

/// Its lines of JSON.
fn lines(change: impl FnOnce(&mut Command)) -> (Vec<Value>, i32) {
    let (text, code) = doctor(|command| {
        command.args(["--json", "--rounds", "20"]);
        change(command);
    });
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), code)
}

/// Verdicts of a test, by subject.
fn verdicts<'a>(lines: &'a [Value], test: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == "verdict" && line["verdict"]["test"] == test).collect()
}

#[test]
fn a_healthy_host() {
    let (page, code) = doctor(|command| {
        command.args(["--rounds", "20"]);
    });
    assert_eq!(code, 0, "{page}");
    for words in
        ["Shared memory: allocated windows", "flush method", "delivery:", "locked memory", "open files"]
    {
        assert!(page.contains(words), "{words}:\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(page.trim_end().ends_with("was seen to hold."), "{page}");
}

#[test]
fn verbose_says_what_it_means() {
    let text = |flags: &[&str]| {
        let (page, _) = doctor(|command| {
            command.args(["--rounds", "5"]).args(flags);
        });
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let meaning = "counters and flushes end when they should";
    assert!(!text(&[]).contains(meaning) && text(&["--verbose"]).contains(meaning));
}

/// mpich#7830: a provider that was fine until an upgrade. It is tried, and known versions are named.
#[test]
fn complaint_08_the_provider_is_tried() {
    let (lines, code) = lines(|_| {});
    assert_eq!(code, 0, "{lines:#?}");
    assert!(verdicts(&lines, "delivery").iter().any(|line| line["subject"] == "tcp"), "{lines:#?}");
    if libfabric::Library::open().is_err() {
        assert!(lines.iter().any(|line| line["kind"] == "missing" && line["what"] == "libfabric"));
        return;
    }
    let tried = verdicts(&lines, "delivery");
    assert!(tried.iter().any(|line| line["subject"].as_str().unwrap().starts_with("ofi:")), "{lines:#?}");
    let limits = lines.iter().filter(|line| line["kind"] == "limit");
    let version = limits.clone().find(|line| line["limit"]["name"] == "libfabric's version");
    let version = version.unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(version["limit"]["here"].as_str().unwrap().contains('.'));
}

/// ompi#7982, libfabric#6169, #5601.
#[test]
fn complaint_20_21_completions_are_not_believed() {
    let (lines, _) = lines(|_| {});
    let subjects = lines.iter().filter(|line| line["kind"] == "flush-method").count();
    assert!(subjects >= 2, "{lines:#?}");
    for test in ["delivery", "delivery, 1 to 64 bytes", "delivery, silent target", "completions, counted"] {
        let found = verdicts(&lines, test);
        assert_eq!(found.len(), subjects, "{test}: {lines:#?}");
        assert!(found.iter().all(|line| line["verdict"]["outcome"] != "fails"), "{found:#?}");
    }
    for line in lines.iter().filter(|line| line["kind"] == "flush-method") {
        assert_eq!(line["method"], "delivery");
    }
}

/// libfabric#9739, ucx#6264.
#[test]
fn complaint_26_limits_are_named() {
    let (lines, _) = lines(|_| {});
    let limits: Vec<_> = lines.iter().filter(|line| line["kind"] == "limit").collect();
    for name in
        ["locked memory", "open files", "processes and threads", "address space", "memory for windows"]
    {
        let limit = limits.iter().find(|line| line["limit"]["name"] == name);
        let limit = limit.unwrap_or_else(|| panic!("{name}: {limits:#?}"));
        assert!(!limit["limit"]["advice"].as_str().unwrap().is_empty());
    }
}

#[test]
fn too_few_open_files_is_an_error_with_advice() {
    let script = format!("ulimit -n 40 && COLUMNS=100 exec {TRANSOM} doctor --rounds 5");
    let out = output(Command::new("sh").args(["-c", &script]));
    let page = String::from_utf8(out.stdout).unwrap();
    assert_eq!(out.status.code(), Some(1), "{page}");
    let row = page.lines().find(|line| line.trim_start().starts_with("open files"));
    assert!(row.is_some_and(|row| row.contains("40 (hard)") && row.contains("TOO LOW")), "{page}");
    assert!(page.contains("limits.conf"), "{page}");
}

#[test]
fn a_provider_that_is_not_there_fails() {
    let (page, code) = doctor(|command| {
        command.args(["--rounds", "5", "--provider", "carrier-pigeon"]);
    });
    assert_eq!(code, 1, "{page}");
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    if libfabric::Library::open().is_ok() {
        assert!(text.contains("libfabric: provider carrier-pigeon CANNOT BE USED"), "{page}");
    }
    assert!(text.contains("does not hold: see the words in capitals"), "{page}");
}

#[test]
fn without_libfabric_the_rest_is_examined() {
    let (lines, code) = lines(|command| {
        command.env("TRANSOM_LIBFABRIC", "/nonexistent");
    });
    assert_eq!(code, 0, "{lines:#?}");
    let missing = lines.iter().find(|line| line["kind"] == "missing" && line["what"] == "libfabric").unwrap();
    assert!(missing["why"].as_str().unwrap().contains("/nonexistent"));
    assert!(verdicts(&lines, "delivery").iter().any(|line| line["subject"] == "shm:own"));
    assert_eq!(lines.last().unwrap()["bad"], false);
}

#[test]
fn flags_that_make_no_sense() {
    for flags in [&["--rounds", "0"][..], &["--rounds", "many"], &["--ranks", "0"], &["moon"]] {
        let (_, code) = doctor(|command| {
            command.args(flags);
        });
        assert_eq!(code, 2, "{flags:?}");
    }
}
