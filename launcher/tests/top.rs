//! `transom top` and its metrics, of jobs that run.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::{Job, ROLE, TRANSOM, start, transom};
use transom::WindowOptions;

const WATCHDOG: Duration = Duration::from_secs(60);
/// What each rank does before it waits to be ended: of these the counters are known.
const PUTS: u64 = 1000;
const ADDS: u64 = 10;

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let code = transom::run(|job| -> transom::Result<()> {
        let gone = job.allocate::<u64>(8)?;
        let window = job.allocate_with::<u64>(8, &WindowOptions::default())?;
        let peer = (job.rank() + 1) % job.size();
        window.lock_all(|epoch| {
            for _ in 0..PUTS {
                epoch.put_value(peer, 0, 7)?;
            }
            epoch.flush(peer)
        })?;
        gone.lock_all(|epoch| (0..ADDS).try_for_each(|_| epoch.fetch_add(peer, 1, 1).map(drop)))?;
        gone.free()?;
        if role == "put" {
            window.lock_all(|epoch| {
                loop {
                    epoch.put_value(peer, 0, 7)?;
                    epoch.flush(peer)?;
                }
            })?;
        }
        if job.rank() == 0 {
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        job.barrier()
    });
    assert_eq!(format!("{code:?}"), format!("{:?}", std::process::ExitCode::SUCCESS));
}

fn job(role: &str, ranks: &str, transport: &str, explain: &str) -> Job {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = transom(&[&["-n", ranks][..], &own].concat());
    command.env(ROLE, role).env("TRANSOM_TRANSPORT", transport).env("TRANSOM_EXPLAIN", explain);
    start(&mut command)
}

/// Asks until the answer has these.
fn find(job: &Job, args: &[&str], wanted: &[&str]) -> String {
    let number = job.child.id().to_string();
    let end = Instant::now() + WATCHDOG;
    loop {
        let output =
            Command::new(TRANSOM).args(["top", &number]).args(args).env("COLUMNS", "150").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if wanted.iter().all(|words| plain.contains(words) || text.contains(words)) {
            return text;
        }
        assert!(Instant::now() < end, "{wanted:?} in: {text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What was counted is told exactly, of freed windows, too, and though the ranks are in no call, or in one that blocks.
#[test]
fn metrics_have_the_exact_counts() {
    for (transport, put, add) in [("shm", "direct", "cpu"), ("tcp", "tcp bounce", "tcp agent")] {
        let job = job("idle", "3", transport, "count");
        let number = job.child.id();
        let host = common::output(Command::new("uname").arg("-n"));
        let host = String::from_utf8(host.stdout).unwrap();
        let line = |name: &str, rank: u32, path: &str, value: u64| {
            format!(
                "transom_{name}_total{{job=\"{number}\",rank=\"{rank}\",host=\"{}\",path=\"{path}\"}} {value}\n",
                host.trim()
            )
        };
        let lines: Vec<String> = (0..3)
            .flat_map(|rank| {
                [
                    line("operations", rank, put, PUTS),
                    line("operation_bytes", rank, put, 8 * PUTS),
                    line("operations", rank, add, ADDS),
                    line("operation_bytes", rank, add, 8 * ADDS),
                ]
            })
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let text = find(&job, &["--metrics"], &lines);
        assert!(text.ends_with("# EOF\n"), "{text}");
        // The ranks are idle: nothing more is counted, and the page says what they do.
        let rows =
            ["0 0 %", "waits in barrier", &format!("{put} 0 0 3.00 k 24.0 k"), &format!("{add} 0 0 30 240")];
        find(&job, &["--once"], &rows);
        find(&job, &["--once", "--sort", "wait"], &["sleeps Operations"]);
    }
}

#[test]
fn rates_of_a_job_that_counts_and_of_one_that_does_not() {
    let counted = job("put", "2", "shm", "count");
    let end = Instant::now() + WATCHDOG;
    loop {
        let text = find(&counted, &["--once", "--ranks"], &["transports: shm at 2 ranks", "runs", "direct "]);
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let rate = plain.split("direct ").nth(1).and_then(|cells| cells.split(' ').next());
        if rate.is_some_and(|rate| rate != "0") {
            break;
        }
        assert!(Instant::now() < end, "{text}");
    }
    let plain = job("put", "2", "shm", "no");
    find(&plain, &[], &["not counted: start the job with TRANSOM_EXPLAIN=count", "runs"]);
}

#[test]
fn ranks_of_several_hosts_are_told_of_by_host() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = common::fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let mut command = transom(&["--rsh", &ssh, "--hosts", "h1:1,h2:17", "sleep", "100"]);
    let job = start(&mut command);
    find(&job, &[], &["18 ranks on 2 hosts", "h1 0 ", "h2 1-17 ", "17 sleep", "no rank has joined"]);
    find(&job, &["--ranks"], &["h2 17 0 % "]);
}

#[test]
fn a_job_that_is_not_there() {
    for args in [&["top", "1"][..], &["top", "--metrics", "1"]] {
        let output = Command::new(TRANSOM).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().contains("no job 1 of yours"));
    }
}
