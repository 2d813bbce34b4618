//! Programs of C in which a rank dies and the others go on, over shared memory, TCP and libfabric. What they check is in `tests/c/failures.c`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{compile, lacks_libfabric, prefix, source, succeed};

/// Seconds after which a job hangs.
const LIMIT: &str = "60";
const KILLED: i32 = 137;
const PROC_FAILED: i32 = 101;

/// Runs a program of `failures.c`; its exit code, what it printed, sorted, and what it said.
fn job(
    prefix: &Path,
    program: &str,
    transport: &str,
    options: &[&str],
) -> (Option<i32>, Vec<String>, String) {
    let executable = compile(prefix, "failures", |prefix| Command::new(prefix.join("bin/mpicc")));
    let mut job = Command::new(prefix.join("bin/transom"));
    job.args(["run", "-n", "4", "--timeout", LIMIT]).args(options).arg(executable).arg(program);
    job.env("TRANSOM_TRANSPORT", transport).env("TRANSOM_DEADLINE", "30").env_remove("SLURM_JOB_ID");
    let output = job.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    (output.status.code(), lines, text(&output.stderr))
}

/// Rank 1 dies, the others come to the end.
fn survived(program: &str) {
    let Some(prefix) = prefix() else { return };
    for transport in ["shm", "tcp", "ofi"] {
        let (code, lines, said) = job(prefix, program, transport, &["--on-failure", "notify"]);
        if lacks_libfabric(transport, &said) {
            continue;
        }
        assert_eq!(lines, ["SURVIVED 0", "SURVIVED 2", "SURVIVED 3"], "{program} over {transport}: {said}");
        assert_eq!(code, Some(KILLED), "{program} over {transport}: {said}");
    }
}

/// `name;` makes a test of each program.
macro_rules! programs {
    ($($name:ident;)*) => { $(
        #[test]
        fn $name() {
            survived(stringify!($name));
        }
    )* };
}

programs! {
    collectives;
    long_collectives;
    messages;
    half_sent;
    any_source;
    any_source_and_on;
    agree;
    agree_meanwhile;
    agree_in_threads;
    revoke_and_die;
    windows;
}

/// Nobody dies: whatever a death means in this job.
fn all_come_to_the_end(program: &str, transport: &str) {
    let Some(prefix) = prefix() else { return };
    for options in [&[][..], &["--on-failure", "notify"]] {
        let (code, lines, said) = job(prefix, program, transport, options);
        let all = ["SURVIVED 0", "SURVIVED 1", "SURVIVED 2", "SURVIVED 3"];
        assert_eq!(lines, all, "{program}, {options:?} over {transport}: {said}");
        assert_eq!(code, Some(0), "{program}, {options:?} over {transport}: {said}");
    }
}

#[test]
fn revoke() {
    for transport in ["shm", "tcp"] {
        all_come_to_the_end("revoke", transport);
    }
}

#[test]
fn revoke_long_messages() {
    for _ in 0..4 {
        for transport in ["shm", "tcp"] {
            all_come_to_the_end("revoke_long_messages", transport);
        }
    }
}

/// The end of the job needs no communicator of the program's, and what was sent last arrives.
#[test]
fn revoke_and_end() {
    let Some(prefix) = prefix() else { return };
    for options in [&[][..], &["--on-failure", "notify"]] {
        for _ in 0..10 {
            let (code, lines, said) = job(prefix, "revoke_and_end", "tcp", options);
            assert_eq!((code, lines.len(), &*said), (Some(0), 4, ""), "{options:?}");
        }
    }
}

/// Who has not asked for errors to be returned ends the job.
#[test]
fn fatal() {
    let Some(prefix) = prefix() else { return };
    for transport in ["shm", "tcp"] {
        let (code, lines, said) = job(prefix, "fatal", transport, &["--on-failure", "notify"]);
        assert!(lines.is_empty() && said.contains("[MPIX_ERR_PROC_FAILED]"), "over {transport}: {said}");
        assert_eq!(code, Some(PROC_FAILED), "over {transport}: {said}");
    }
}

/// The program to copy from: whoever dies, the field is what one rank makes of it.
#[test]
fn a_field_is_restored_from_a_neighbours_window() {
    let Some(prefix) = prefix() else { return };
    let program = prefix.join("survivors");
    let mut compiler = Command::new(prefix.join("bin/mpicc"));
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o"]).arg(&program);
    succeed(compiler.arg(source().join("examples/survivors.c")));
    let whole = "after 200 steps the plate has 19482.649347, exactly as by one rank\n";
    for (transport, ranks) in [("shm", 4), ("tcp", 4), ("shm", 2), ("tcp", 3)] {
        for victim in [0, 1, ranks - 1, ranks] {
            let mut job = Command::new(prefix.join("bin/transom"));
            job.args(["run", "-n", &ranks.to_string(), "--timeout", LIMIT, "--on-failure", "notify"]);
            job.arg(&program)
                .arg(victim.to_string())
                .env("TRANSOM_TRANSPORT", transport)
                .env_remove("SLURM_JOB_ID");
            let output = job.stdin(Stdio::null()).output().unwrap();
            let [printed, said] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
            let (code, first) = match victim < ranks {
                true => (KILLED, format!("{} of {ranks} ranks go on from step 80\n", ranks - 1)),
                false => (0, String::new()),
            };
            assert_eq!(printed, first + whole, "rank {victim} of {ranks} over {transport}: {said}");
            assert_eq!(output.status.code(), Some(code), "rank {victim} of {ranks} over {transport}: {said}");
        }
    }
}
