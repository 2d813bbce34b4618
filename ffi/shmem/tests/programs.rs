//! C programs, one for each family of calls, compiled by `oshcc` and run as jobs over shared memory and networks. What they check is in
//! `tests/c`; they need a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "what the other tests use")]
mod common;

use std::process::{Command, Stdio};

use common::{compile, has, job, prefix, succeed, text};

const BOTH: [&str; 2] = ["shm", "tcp"];

/// `name: PROGRAM, PEs, transports;` makes a test of each program.
macro_rules! programs {
    ($($name:ident: $program:literal, $pes:expr, $transports:expr;)*) => { $(
        #[test]
        fn $name() {
            let Some(prefix) = prefix() else { return };
            if $program.ends_with(".cpp") && !has("c++") {
                return;
            }
            common::run(prefix, &compile(prefix, $program), &$pes, &$transports);
        }
    )* };
}

programs! {
    the_seed_program: "seed.c", [1, 4], ["shm", "tcp", "ofi"];
    every_type: "typed.c", [1, 2, 4], BOTH;
    waiting_locks_teams_and_collectives: "sync.c", [1, 3, 4], BOTH;
    symmetric_memory: "memory.c", [1, 3], BOTH;
    additions_of_1_6: "additions.c", [1, 2, 3], ["shm", "tcp", "ofi"];
    order: "order.c", [1, 2, 3], ["shm", "tcp", "ofi"];
    contexts: "contexts.c", [2, 3], ["shm", "tcp", "ofi"];
    threads: "threads.c", [2], BOTH;
    a_profiler: "profile.c", [2], ["shm"];
    any_type_in_cpp: "generic.cpp", [2], ["shm"];
}

/// A program without a launcher is a job of one PE.
#[test]
fn alone() {
    let Some(prefix) = prefix() else { return };
    let output = succeed(&mut Command::new(compile(prefix, "seed.c")));
    assert!(text(&output.stdout).contains("all well with 1"));
}

/// How a job ended: its exit code, what it said, and what of errors.
fn ended(program: &str, argument: &[&str], transport: &str, debug: bool) -> Option<(i32, String, String)> {
    let prefix = prefix()?;
    let mut job = job(prefix, &compile(prefix, program), 3, transport);
    job.args(argument).stdin(Stdio::null());
    if debug {
        job.env("SHMEM_DEBUG", "1");
    }
    let output = job.output().unwrap();
    Some((output.status.code().unwrap(), text(&output.stdout), text(&output.stderr)))
}

#[test]
fn all_ways_to_end() {
    let ways: [(&[&str], i32, &str); 9] = [
        (&["finalize"], 0, ""),
        (&["return"], 0, ""),
        (&["exit"], 0, ""),
        (&["early"], 0, ""),
        (&["late"], 0, ""),
        (&["global_exit"], 7, "aborted the job with code 7"),
        (&["global_exit", "0"], 0, "aborted the job with code 0"),
        (&["dies"], 134, "was killed by signal 6"),
        (&["fails"], 5, "exited with code 5"),
    ];
    for transport in BOTH {
        for (way, code, expected) in ways {
            let Some((found, said, wrong)) = ended("ends.c", way, transport, false) else { return };
            assert_eq!(found, code, "{way:?} over {transport}: {said}{wrong}");
            assert!(wrong.contains(expected), "{way:?} over {transport}: {wrong}");
            if expected.is_empty() {
                let pes = if way == ["early"] { 2 } else { 3 };
                assert_eq!(
                    said.lines().filter(|line| line.ends_with("ends")).count(),
                    pes,
                    "{way:?}: {said}"
                );
                assert_eq!(wrong, "", "{way:?} over {transport}");
            }
        }
    }
}

/// Each wrong call ends the job with a message that names the call, the PE, and what is wrong.
#[test]
fn wrong_calls() {
    let cases = [
        ("address", "shmem_long_p", "are not symmetric"),
        ("get", "shmem_long_get: 16 bytes at 0x", "are not symmetric"),
        ("null", "shmem_putmem: 8 bytes at 0x0, for PE", "are not symmetric"),
        ("atomic", "shmem_long_atomic_add", "are not symmetric"),
        ("misaligned", "shmem_long_atomic_add", "no multiple of 8"),
        ("beyond", "shmem_putmem: 1099511627776 bytes", "are not symmetric"),
        ("endless", "shmem_long_put", "cannot be in memory"),
        ("pe", "shmem_long_put", "PE 3 does not exist: there are 3"),
        ("negative pe", "shmem_long_g", "PE -1 does not exist: there are 3"),
        ("stride", "shmem_long_iput", "distances are those of blocks at least"),
        ("freed twice", "shmem_free", "it was freed before"),
        ("freed elsewhere", "shmem_free", "no block of the symmetric heap begins at"),
        ("unequal", "shmem_malloc", "all PEs ask for the same"),
        ("comparison", "shmem_long_wait_until", "a comparison of 99"),
        ("context", "shmem_ctx_quiet", "is no context"),
        ("active set", "shmem_barrier", "an active set of 4 PEs"),
        ("root", "shmem_long_broadcast", "PE_root is 3"),
        ("signal", "shmem_long_put_signal", "a signal operation of 9"),
        ("too early", "shmem_barrier_all", "before shmem_init"),
        ("too late", "shmem_barrier_all", "after shmem_finalize"),
        ("twice", "shmem_init", "called twice"),
    ];
    for (what, call, why) in cases {
        let Some((code, said, wrong)) = ended("wrong.c", &[what], "shm", false) else { return };
        assert!(code != 0 && said.is_empty(), "{what}: {said}{wrong}");
        assert!(wrong.contains(call) && wrong.contains(why), "{what}: {wrong}");
        let outside = what.starts_with("too");
        assert!(outside || wrong.contains("transom: PE "), "{what}: {wrong}");
    }
    // What only SHMEM_DEBUG finds; without it the access is one of the symmetric heap like others.
    for (debug, code) in [(true, 1), (false, 0)] {
        let Some((found, _, wrong)) = ended("wrong.c", &["freed"], "shm", debug) else { return };
        assert_eq!(found, code, "{wrong}");
        assert_eq!(wrong.contains("shmem_long_p: 8 bytes at 0x"), debug, "{wrong}");
        assert_eq!(wrong.contains("not in a block that is in use"), debug, "{wrong}");
    }
}

#[test]
fn variables() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "seed.c");
    let run = |name: &str, value: &str| {
        let output = job(prefix, &program, 2, "shm").env(name, value).stdin(Stdio::null()).output().unwrap();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    };
    let (well, said) = run("SHMEM_VERSION", "1");
    assert!(well && said.contains("OpenSHMEM 1.5"), "{said}");
    let (well, said) = run("SMA_INFO", "1");
    assert!(well && said.contains("SHMEM_SYMMETRIC_SIZE") && said.contains("SHMEM_DEBUG"), "{said}");
    let (well, said) = run("SHMEM_SYMMETRIC_SIZE", "much");
    assert!(!well && said.contains("SHMEM_SYMMETRIC_SIZE is \"much\""), "{said}");
    // No room for the program's arrays: its own check fails.
    let (well, said) = run("SHMEM_SYMMETRIC_SIZE", "1k");
    assert!(!well && said.contains("target && source && words"), "{said}");
    assert!(run("SHMEM_SYMMETRIC_SIZE", "0.5m").0);
}
