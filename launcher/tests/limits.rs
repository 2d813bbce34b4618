//! Jobs whose ranks have little address space, by a limit or under valgrind: all of them, or only one, which then maps the others'
//! memory in part.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::process::{Command, Output};

use transom::{Class, Job, Result};

/// Address space of a limited rank, in MiB; without it `rank_program` is an empty test.
const LIMIT: &str = "TRANSOM_TEST_LIMIT";
/// Bytes of the job's largest window that is made, and of one that no limited rank has room for.
const LARGE: usize = 24 << 20;
const TOO_LARGE: usize = 1 << 30;
/// Windows that are open at once.
const WINDOWS: usize = 70;

#[test]
fn rank_program() {
    let Ok(limit) = std::env::var(LIMIT) else { return };
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    let windows: Vec<_> = (0..WINDOWS).map(|_| job.allocate::<u64>(16).unwrap()).collect();
    for window in &windows {
        exchange(&job, window, 16).unwrap();
    }
    let large = job.allocate::<u64>(LARGE / 8).unwrap();
    exchange(&job, &large, LARGE / 8).unwrap();
    if limit != "0" {
        let error = job.allocate::<u64>(TOO_LARGE / 8).unwrap_err();
        assert_eq!(error.class(), Class::NoMemory, "{error}");
        let expected = format!("the limit on address space is {limit} MiB (ulimit -v): raise it");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    large.free().unwrap();
    windows.into_iter().for_each(|window| window.free().unwrap());
    println!("RANK {} was well", job.rank());
    job.finalize().unwrap();
}

/// A fence, post and complete, locks and atomics, at both ends of the memory of all ranks.
fn exchange(job: &Job, window: &transom::Window<u64>, elements: usize) -> Result<()> {
    let (right, rank) = ((job.rank() + 1) % job.size(), job.rank() as u64);
    window.fence(|epoch| epoch.put_value(right, elements - 1, 100 + rank))?;
    window.lock_all(|epoch| {
        assert_eq!(epoch.get_value(right, elements - 1)?, 100 + rank);
        for target in 0..job.size() {
            epoch.fetch_add(target, 0, 1)?;
        }
        Ok(())
    })?;
    window.fence(|_| Ok(()))?;
    window.lock_all(|epoch| {
        assert_eq!(epoch.get_value(right, 0)?, job.size() as u64);
        Ok(())
    })?;
    job.barrier()
}

/// A job of three ranks, of which those that `limited`, a test of the shell, holds for run as `how` says.
fn job(limited: &str, how: &str, limit: usize) -> Output {
    let script = format!("if {limited}; then {how}; fi; exec \"$@\"");
    let mut launcher = common::transom(&["-n", "3", "--timeout", "120", "sh", "-c", &script, "sh"]);
    launcher
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(LIMIT, limit.to_string())
        .env("TRANSOM_TRANSPORT", "shm")
        .env("TRANSOM_DEADLINE", "60")
        .env_remove("TRANSOM_HEAP")
        .output()
        .unwrap()
}

fn check(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert_eq!(stdout.matches("was well").count(), 3, "{stdout}\n{stderr}");
}

#[test]
fn address_space_is_limited_for_all() {
    check(&job("true", "ulimit -v 409600", 400));
}

#[test]
fn address_space_is_limited_for_one_rank() {
    check(&job("[ $PMI_RANK = 1 ]", "ulimit -v 409600", 400));
}

#[test]
fn one_rank_is_run_by_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must have valgrind");
        eprintln!("skipped: there is no valgrind");
        return;
    }
    check(&job("[ $PMI_RANK = 1 ]", "exec valgrind --quiet --error-exitcode=9 \"$@\"", 0));
}
