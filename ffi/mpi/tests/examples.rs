//! The programs to copy from, in four languages: each prints the same, whatever it is written in.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{LIMIT, prefix, source, succeed};

const RANKS: &str = "3";

/// The programs and what they print.
fn programs() -> Vec<(&'static str, &'static str)> {
    let text = include_str!("../examples/on-three-ranks.txt");
    let programs: Vec<_> = text.split("== ").skip(1).map(|part| part.split_once('\n').unwrap()).collect();
    assert_eq!(programs.len(), 5);
    programs
}

fn example(name: &str, extension: &str) -> PathBuf {
    source().join("examples").join(name).with_extension(extension)
}

/// Runs a program of several words.
fn check(prefix: &Path, transport: &str, program: &[&Path], expected: &str) {
    let mut job = Command::new(prefix.join("bin/transom"));
    job.args(["run", "-n", RANKS, "--timeout", LIMIT]).args(program).env("TRANSOM_TRANSPORT", transport);
    let output = succeed(&mut job);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{program:?} over {transport}");
}

/// Whether this machine has a program that a test needs.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").is_err(), "CI must have {program}");
    if !found {
        eprintln!("skipped: there is no {program}");
    }
    found
}

/// Compiles and runs the programs of a language over two transports.
fn compiled(compiler: &str, extension: &str, options: &[&str]) {
    let Some(prefix) = prefix() else { return };
    let folder = prefix.join(extension);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, expected) in programs() {
        let program = folder.join(name);
        let mut command = Command::new(prefix.join("bin").join(compiler));
        command.args(options).arg("-o").arg(&program).arg(example(name, extension));
        succeed(command.current_dir(&folder));
        for transport in ["shm", "tcp"] {
            check(prefix, transport, &[&program], expected);
        }
    }
}

#[test]
fn examples_in_c() {
    compiled("mpicc", "c", &["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
}

#[test]
fn examples_in_fortran() {
    if has("gfortran") {
        compiled("mpifort", "f90", &["-std=f2018", "-Wall", "-Wextra", "-Werror"]);
    }
}

#[test]
fn examples_in_rust() {
    let Some(prefix) = prefix() else { return };
    // target/PROFILE/deps/examples-…: `prefix` builds examples, too.
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap();
    for (name, expected) in programs() {
        check(prefix, "shm", &[&built.join("examples").join(name)], expected);
    }
}

/// A Python with mpi4py as it is published.
fn python() -> Option<PathBuf> {
    let output = Command::new(source().join("../../ci/mpi4py.sh")).output().unwrap();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(std::env::var("CI").is_err(), "CI must have mpi4py: {said}");
        eprintln!("skipped: there is no mpi4py, and it cannot be installed: {said}");
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end()))
}

#[test]
fn examples_in_python() {
    let (Some(prefix), Some(python)) = (prefix(), python()) else { return };
    for (name, expected) in programs() {
        check(prefix, "shm", &[&python, &example(name, "py")], expected);
    }
}

#[test]
fn windows_and_processes_of_python() {
    let (Some(prefix), Some(python)) = (prefix(), python()) else { return };
    check(prefix, "shm", &[&python, &source().join("tests/python/children.py")], &"all well\n".repeat(3));
}
