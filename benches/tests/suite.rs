//! All of `bench --quick` as a job inside this process, over shared memory and TCP, and its program with what it refuses. No time is
//! asserted.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use clap::Parser;
use transom_benches::report::Unit;
use transom_benches::suite::catalogue::ENTRIES;
use transom_benches::suite::files::{self, FORMAT, VERSION};
use transom_benches::suite::row::{Bound, Head, Machine, Report, Row};
use transom_benches::suite::{self, Options};

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

/// The exit code, and what rank 0 prints.
fn run(ranks: usize, arguments: &[&str]) -> (u8, String) {
    let options = Options::parse_from([&["bench"], arguments].concat());
    let rank = |job| {
        let mut out = Vec::new();
        let code = suite::run(&job, &options, &mut out).map_err(|e| format!("{e:#}"));
        Ok((code, String::from_utf8(out).unwrap()))
    };
    let mut results = transom::local(ranks, rank).unwrap();
    let codes: Vec<u8> = results.iter().map(|(code, _)| code.clone().unwrap()).collect();
    assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
    assert!(results[1..].iter().all(|(_, out)| out.is_empty()));
    (codes[0], results.swap_remove(0).1)
}

#[test]
fn every_measurement_runs_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [json, html] = ["a.json", "a.html"].map(|name| folder.path().join(name));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let (code, csv) = run(2, &[&["--quick", "--csv", "--validate"], &files[..]].concat());
    assert_eq!(code, 0, "{csv}");
    let columns = csv.lines().next().unwrap().matches(',').count();
    assert!(csv.lines().all(|line| line.matches(',').count() >= columns), "{csv}");
    // No launcher is beside this program: start-up is measured by a test of Slurm's batch scripts.
    for entry in ENTRIES.iter().filter(|entry| entry.name != "start-up") {
        assert!(
            csv.lines().any(|line| line.starts_with(&format!("{},", entry.name))),
            "{}: {csv}",
            entry.name
        );
    }
    assert!(!csv.contains("wrong") && csv.contains("right"), "{csv}");
    let report = files::read(&json).unwrap();
    assert!(report.complete && report.rows.iter().all(|row| !row.sorted().is_empty()));
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("<svg") && page.contains("put-latency") && !page.contains("http"));
}

#[test]
fn over_tcp() {
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["every_measurement_runs_to_its_end", "--exact"]).env("TRANSOM_TRANSPORT", "tcp");
    let output = own.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn windows_and_synchronisation_of_all_kinds() {
    for kind in ["created", "shared", "dynamic"] {
        let (code, table) = run(2, &["--quick", "latency", "halo-exchange", "window", "--window", kind]);
        assert!(code == 0 && table.contains("right") && !table.contains("WRONG"), "{kind}: {table}");
    }
    for sync in ["lock", "fence", "pscw"] {
        let names = ["latency", "bandwidth", "halo-exchange", "--sizes", "8,4K"];
        let (code, table) = run(2, &[&["--quick", "--sync", sync], &names[..]].concat());
        assert!(code == 0 && !table.contains("WRONG"), "{sync}: {table}");
    }
}

#[test]
fn more_ranks_have_more_rows() {
    let (code, csv) =
        run(4, &["--quick", "--csv", "fence", "matrix", "put-rate", "application", "contention"]);
    let rows = |name: &str| csv.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((code, rows("fence,"), rows("matrix-latency,"), rows("put-rate,")), (0, 3, 12, 1), "{csv}");
    assert!(!csv.contains("wrong"), "{csv}");
    // Without a name, an odd number of ranks has no message rates; with one it is refused, as are too many pairs.
    assert_eq!(run(3, &["put-rate"]).0, 2);
    assert_eq!(run(3, &["put-rate", "--quick", "--pairs", "1"]).0, 0);
    assert_eq!(run(3, &["flush", "--pairs", "2"]).0, 2);
}

#[test]
fn choices() {
    let quick = ["--quick", "--csv", "put-latency"];
    let (_, csv) = run(2, &[&quick[..], &["--sizes", "8", "--iterations", "6", "--cache", "dirty"]].concat());
    let fields: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(fields[14], "6", "{csv}");
    let (code, table) = run(2, &["--time-limit", "0.000001", "put-latency", "--quick"]);
    assert!(code == 0 && table.contains("not to its end"), "{table}");
    assert!(run(2, &["--list"]).1.contains("put-latency"));
}

/// What the program says without a launcher, and its exit code.
fn program(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(BENCH).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_cannot_be_done_is_refused() {
    for (arguments, says) in [
        (&["put-latncy"][..], "put-latency"),
        (&["put-latency"], "transom run -n 2 bench"),
        (&["--sizes", "0"], "0 bytes"),
        (&["--sizes", "8M", "--window-size", "4M"], "do not fit"),
        (&["--sizes", "2G"], "longest"),
        (&["--window", "glass"], "glass"),
        (&["--network", "tcp"], "required"),
        (&["--network", "tcp", "--iterations", "3"], "cannot be used with"),
        (&["--transom", "/usr", "--iterations", "3"], "cannot be used with"),
        (&["--from", "/nonexistent.json"], "no such file"),
        (&["--from", "/dev/null"], "not a file of bench"),
    ] {
        let (code, out, err) = program(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert_eq!(err.matches(says).count(), 1, "{arguments:?}: {err}");
    }
    assert_eq!(program(&["--help"]).0, 0);
}

/// A file of a put that takes `time`, with a little noise.
fn write(path: &Path, name: &str, time: f64) {
    let [group, window, sync] = ["latency", "allocated", "flush"].map(str::to_owned);
    let head =
        Head { name: name.into(), group, window, sync, bytes: 8, ranks: 2, pair: None, unit: Unit::Time };
    let round = |i: u32| vec![time * (1.0 + 0.001 * f64::from(i * 7 % 10)); 9];
    let limit = Some(Bound { name: "store".into(), times: vec![1.0; 10] });
    let row = Row { rounds: (0..10).map(round).collect(), limit, ..Row::new(head, None) };
    let report = Report {
        format: FORMAT.into(),
        version: VERSION,
        began: 0,
        seconds: 1.0,
        complete: true,
        starts: 10,
        machine: Machine::default(),
        settings: BTreeMap::new(),
        rows: vec![row],
    };
    std::fs::write(path, serde_json::to_string(&report).unwrap()).unwrap();
}

#[test]
fn verdicts_and_their_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, row, time) in [
        ("old", "put-latency", 100.0),
        ("same", "put-latency", 100.5),
        ("slow", "put-latency", 110.0),
        ("other", "flush", 1.0),
    ] {
        write(&path(name), row, time);
    }
    let compare = |new: &str, old: &str| {
        program(&["--from", path(new).to_str().unwrap(), "--compare", path(old).to_str().unwrap()])
    };
    for (new, old, code, says) in [
        ("same", "old", 0, "no change"),
        ("slow", "old", 1, "slower"),
        ("old", "slow", 0, "faster"),
        ("other", "old", 2, ""),
        ("old", "missing", 2, ""),
    ] {
        let (ended, out, err) = compare(new, old);
        assert!(ended == code && out.contains(says), "{new} {old}: {ended} {out} {err}");
        assert_eq!(err.is_empty(), code < 2, "{err}");
    }
}

#[test]
fn no_space_for_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    write(&old, "put-latency", 100.0);
    // A limit on the size of files stands for a full disk: what was there before stays.
    let page = folder.path().join("page.html");
    std::fs::write(&page, "before").unwrap();
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", BENCH, "--from"]).arg(&old).arg("--html").arg(&page);
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write"), "{output:?}");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
