//! The commands alone, without a launcher: output, errors and exit codes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

const WORDCOUNT: &str = env!("CARGO_BIN_EXE_wordcount");
const HEAT: &str = env!("CARGO_BIN_EXE_heat");

fn run(program: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output: Output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Runs what must fail, with nothing on standard output and a message that says `says` once.
fn refused(program: &str, arguments: &[&str], code: i32, says: &str) {
    let (status, out, err) = run(program, arguments);
    assert_eq!(status, Some(code), "{arguments:?}: {err}");
    assert_eq!(out, "", "{arguments:?}");
    assert_eq!(err.matches(says).count(), 1, "{arguments:?}: {err}");
}

#[test]
fn tsv() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("text");
    std::fs::write(&file, "b a C a b d7d\n").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(run(WORDCOUNT, &["--tsv", file]), (Some(0), "2\ta\n2\tb\n2\td\n1\tc\n".into(), String::new()));
    assert_eq!(run(WORDCOUNT, &["--tsv", "--top", "1", file]).1, "2\ta\n");
    let (code, table, err) = run(WORDCOUNT, &[file]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    for part in ["7 words, 4 different, in 1 file of 14 bytes", "1 rank (", "28.57 %", "compare_and_swap"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn wordcount_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    let missing = missing.to_str().unwrap();
    refused(WORDCOUNT, &[], 2, "Usage: wordcount");
    refused(WORDCOUNT, &["--combine", "0", missing], 2, "0 is not in 1..");
    refused(WORDCOUNT, &["--top", "x", missing], 2, "invalid value 'x'");
    refused(WORDCOUNT, &[missing], 1, missing);
    refused(WORDCOUNT, &[dir.path().to_str().unwrap()], 1, "it is a directory");
    refused(WORDCOUNT, &["/dev/null"], 1, "it is no regular file");
}

#[test]
fn help_and_version() {
    for program in [WORDCOUNT, HEAT] {
        for flag in ["--help", "--version"] {
            let (code, out, err) = run(program, &[flag]);
            assert_eq!((code, err.as_str()), (Some(0), ""));
            assert!(!out.is_empty());
        }
    }
}

#[test]
fn a_reader_that_goes_away() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/data/GPL-3.txt");
    let mut child = Command::new(WORDCOUNT)
        .arg("--tsv")
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn heat_draws() {
    let dir = tempfile::tempdir().unwrap();
    let (picture, field) = (dir.path().join("a.png"), dir.path().join("a.raw"));
    let arguments = ["30", "20", "10", "-o", picture.to_str().unwrap(), "--field", field.to_str().unwrap()];
    let (code, out, err) = run(HEAT, &arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("30x20 cells, 10 steps, 1 rank: ") && out.lines().count() == 1, "{out}");
    let decoded = image_size(&std::fs::read(picture).unwrap());
    assert_eq!(decoded, (30, 20));
    assert_eq!(std::fs::read(field).unwrap().len(), 30 * 20 * 8);
}

/// Width and height out of a PNG's header.
fn image_size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!(&png[1..4], b"PNG");
    (number(16), number(20))
}

#[test]
fn heat_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let picture = dir.path().join("a.png");
    let picture = picture.to_str().unwrap();
    let nowhere = dir.path().join("missing/a.png");
    let nowhere = nowhere.to_str().unwrap();
    refused(HEAT, &[], 2, "Usage: heat");
    refused(HEAT, &["0", "5", "5", "-o", picture], 2, "invalid value '0'");
    refused(HEAT, &["5", "70000", "5", "-o", picture], 2, "invalid value '70000'");
    refused(HEAT, &["5", "5", "-1", "-o", picture], 2, "invalid value '-1'");
    refused(HEAT, &["5", "5", "5"], 2, "arguments were not provided");
    refused(HEAT, &["5", "5", "5", "-o", nowhere], 1, nowhere);
    refused(HEAT, &["5", "5", "5", "-o", dir.path().to_str().unwrap()], 1, "cannot write");
    refused(HEAT, &["5", "5", "5", "-o", picture, "--field", nowhere], 1, nowhere);
    refused(HEAT, &["5", "5", "5", "-o", picture, "--field", picture], 1, "same file");
}
