//! What the wrapper `mpiexec` makes of MPICH's and Open MPI's options, told by a `transom` that prints its arguments.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Output};

fn mpiexec(folder: &Path, args: &[&str]) -> Output {
    let (wrapper, transom) = (folder.join("mpiexec"), folder.join("transom"));
    if !transom.exists() {
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi/wrappers/mpiexec"), &wrapper)
            .unwrap();
        // By another process: no process that another thread is starting inherits it open for writing, which could not be executed.
        let write =
            r#"printf '#!/bin/sh\nfor word; do printf "%%s|" "$word"; done\n' >"$0" && chmod 755 "$0""#;
        assert!(Command::new("sh").args(["-c", write]).arg(&transom).status().unwrap().success());
    }
    Command::new("sh").arg(wrapper).args(args).output().unwrap()
}

#[test]
fn names_of_other_launchers() {
    let folder = tempfile::tempdir().unwrap();
    let table: &[(&[&str], &[&str])] = &[
        (&["-n", "4", "p", "-n", "x"], &["-n", "4", "p", "-n", "x"]),
        (&["--np", "4", "p"], &["-n", "4", "p"]),
        (&["-ppn", "2", "p"], &["-N", "2", "p"]),
        (&["-N", "2", "--hosts", "a,b", "p"], &["-N", "2", "--hosts", "a,b", "p"]),
        (&["--map-by", "ppr:3:node", "p"], &["-N", "3", "p"]),
        (&["--map-by=slot", "--oversubscribe", "p"], &["p"]),
        (&["-genv", "A", "it's 1 \"$B\"", "p"], &["-x", "A=it's 1 \"$B\"", "p"]),
        (&["-genvlist", "A,B", "p"], &["-x", "A", "-x", "B", "p"]),
        (&["-x", "A=1", "-x", "B", "p"], &["-x", "A=1", "-x", "B", "p"]),
        (&["--wd", "/a b", "p"], &["--wdir", "/a b", "p"]),
        (&["-wdir", "/a", "--stdin", "all", "p"], &["--wdir", "/a", "--stdin", "all", "p"]),
        (&["--output", "dir=/a,tag", "p"], &["--output-dir", "/a", "--tag", "p"]),
        (&["--output-filename", "o", "p"], &["--output-dir", "o", "p"]),
        (&["-l", "p"], &["--tag", "p"]),
        (&["--bind-to", "core", "p"], &["--bind", "core", "p"]),
        (&["-bind-to=none", "p"], &["--bind", "none", "p"]),
        (&["--map-by", "node", "p"], &["--map-by", "node", "p"]),
        (&["-rr", "p"], &["--map-by", "node", "p"]),
        (&["--bind-to", "package", "p"], &["--bind", "socket", "p"]),
        (
            &["--map-by", "numa", "-bind-to", "core", "--report-bindings", "p"],
            &["--map-by", "numa", "--bind", "core", "--report-bindings", "p"],
        ),
        (&["--timeout", "5", "-np", "2", "--", "-p"], &["--timeout", "5", "-n", "2", "-p"]),
        (&["-np", "2", "a", ":", "-np", "1", "b"], &["-n", "2", "a", ":", "-np", "1", "b"]),
        (
            &["-initial-errhandler", "mpi_errors_return", "p"],
            &["-x", "TRANSOM_INITIAL_ERRHANDLER=mpi_errors_return", "p"],
        ),
        (&["--with-ft", "ulfm", "p"], &["--on-failure", "notify", "p"]),
        (&["--with-ft=no", "p"], &["--on-failure", "end", "p"]),
        (&["-disable-auto-cleanup", "p"], &["--on-failure", "notify", "p"]),
        (&["p", "--mca", ""], &["p", "--mca", ""]),
    ];
    for (given, expected) in table {
        let output = mpiexec(folder.path(), given);
        let text = String::from_utf8(output.stdout).unwrap();
        let words: Vec<_> = text.strip_suffix('|').unwrap().split('|').collect();
        assert_eq!(words, [&["run"][..], expected].concat(), "{given:?}");
    }
}

#[test]
fn others_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let table: &[(&[&str], &str)] = &[
        (&["--mca", "btl", "tcp", "p"], "--mca: for Open MPI only"),
        (&["--bind-to", "l3cache", "p"], "--bind-to l3cache"),
        (&["--map-by", "l2cache", "p"], "--map-by l2cache"),
        (&["--rank-by", "core", "p"], "--rank-by"),
        (&["-genvnone", "p"], "-genvnone"),
        (&["--output", "xml", "p"], "--output xml"),
        (&["-launcher", "fork", "p"], "--rsh CMD"),
        (&["--with-ft", "maybe", "p"], "--with-ft maybe"),
        (&["-n"], "-n: its value is missing"),
        (&["-genv", "A"], "-genv: a variable and its value"),
    ];
    for (given, words) in table {
        let output = mpiexec(folder.path(), given);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{given:?}: {said}");
        assert!(said.contains(words) && output.stdout.is_empty(), "{given:?}: {said}");
    }
}
