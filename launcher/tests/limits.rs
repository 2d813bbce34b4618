//! Jobs whose ranks have little address space, by a limit or under valgrind, or may have no large files: all of them, or only one,
//! which then maps the others' memory in part. What a core dump has of windows. (`ci/limits.sh` tries all limits.)
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
    job_over("shm", limited, how, limit)
}

fn job_over(transports: &str, limited: &str, how: &str, limit: usize) -> Output {
    let script = format!("if {limited}; then {how}; fi; exec \"$@\"");
    let mut launcher = common::transom(&["-n", "3", "--timeout", "120", "sh", "-c", &script, "sh"]);
    launcher
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(LIMIT, limit.to_string())
        .env("TRANSOM_TRANSPORT", transports)
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

/// The largest window is in no file then: peers reach it by copies through the kernel.
#[test]
fn files_are_limited_for_all() {
    check(&job("true", "ulimit -f 20480", 0));
}

#[test]
fn files_are_limited_for_one_rank() {
    check(&job("[ $PMI_RANK = 1 ]", "ulimit -f 20480", 0));
}

/// Not even the control block is: the ranks talk by TCP.
#[test]
fn files_may_have_nothing() {
    check(&job_over("shm,tcp", "true", "ulimit -f 0", 0));
}

/// Where memory runs out the kernel ends a rank, and not who says that it did: but where whoever runs this is the first to go, or never is.
#[test]
fn ranks_are_ended_before_agents() {
    let ended = common::run_sh(2, &[], "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj | xargs");
    let scores = |line: &str| line.split(' ').map(|score| score.parse().unwrap()).collect::<Vec<i32>>();
    let all: Vec<_> = ended.stdout.lines().map(scores).collect();
    assert!(
        all.len() == 2 && all.iter().all(|two| two[0] > two[1] || two[1].abs() == 1000),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}

/// More windows than have lines in what is mapped of a control block at first; and of peers' heaps no more than is used.
#[test]
fn many_windows_program() {
    if std::env::var_os("TRANSOM_TEST_MANY").is_none() {
        return;
    }
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    let windows: Vec<_> = (0..600).map(|_| job.allocate::<u64>(16).unwrap()).collect();
    for window in [&windows[0], &windows[255], &windows[256], &windows[599]] {
        for _ in 0..3 {
            window.fence(|epoch| epoch.fetch_add((job.rank() + 1) % job.size(), 0, 1).map(drop)).unwrap();
        }
    }
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let bytes = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some(number(end)? - number(start)?)
    };
    let mut of_heaps: Vec<usize> =
        maps.lines().filter(|line| line.contains("memfd:transom-heap")).filter_map(bytes).collect();
    of_heaps.sort_unstable();
    // The largest part is this rank's own, unused.
    let own = of_heaps.pop().unwrap();
    let all: usize = maps.lines().filter(|line| line.contains("memfd:transom-")).filter_map(bytes).sum();
    let (peers, others) = (of_heaps.iter().sum::<usize>(), all - own);
    assert!(peers <= 64 << 20, "{peers} bytes of peers' heaps are mapped\n{maps}");
    assert!(others < 512 << 20, "{others} bytes are mapped\n{maps}");
    windows.into_iter().for_each(|window| window.free().unwrap());
    println!("RANK {} was well", job.rank());
    job.finalize().unwrap();
}

#[test]
fn of_peers_is_mapped_what_is_used() {
    let output = common::transom(&["-n", "3", "--timeout", "60"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "many_windows_program", "--nocapture", "--test-threads=1"])
        .env("TRANSOM_TEST_MANY", "1")
        .env("TRANSOM_TRANSPORT", "shm")
        .output()
        .unwrap();
    check(&output);
}

/// Of a job's window, as text that is in no program.
fn marker(rank: usize) -> [u8; 32] {
    std::array::from_fn(|index| b'a' + ((index * 7 + rank * 3) % 26) as u8)
}

#[test]
fn aborting_program() {
    if std::env::var_os("TRANSOM_TEST_ABORT").is_none() {
        return;
    }
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    let window = job.allocate::<u8>(4 << 20).unwrap();
    let left = (job.rank() + job.size() - 1) % job.size();
    let text = marker(left);
    window.fence(|epoch| epoch.put(left, 1 << 20, &text)).unwrap();
    job.barrier().unwrap();
    if job.rank() == 1 {
        std::process::abort();
    }
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// It has this rank's windows, and neither what is the runtime's nor the memory of peers.
#[test]
fn a_core_dump_is_small_and_has_the_ranks_window() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.contains(['|', '/']) {
        eprintln!("skipped: core dumps go elsewhere here (kernel.core_pattern is {pattern:?})");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = common::transom(&[
        "-n",
        "3",
        "--timeout",
        "60",
        "sh",
        "-c",
        "ulimit -c unlimited; exec \"$@\"",
        "sh",
    ])
    .arg(std::env::current_exe().unwrap())
    .args(["--exact", "aborting_program", "--nocapture", "--test-threads=1"])
    .env("TRANSOM_TEST_ABORT", "1")
    .env("TRANSOM_TRANSPORT", "shm")
    .current_dir(folder.path())
    .output()
    .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("rank 1 (pid "), "{stderr}");
    if !stderr.contains("core dumped") {
        assert!(std::env::var("CI").is_err(), "CI must be able to dump cores: {stderr}");
        eprintln!("skipped: no core is dumped here");
        return;
    }
    let core = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let dump = std::fs::read(core).unwrap();
    let has = |rank| dump.windows(32).any(|bytes| bytes == marker(rank));
    assert!(has(1), "the window of the rank is missing");
    assert!(dump.len() < 48 << 20, "{} bytes", dump.len());
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
