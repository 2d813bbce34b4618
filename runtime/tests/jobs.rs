//! The suite as jobs inside one process, of 1, 2, 3, 4 and 7 ranks, over each transport.
//!
//! A transport is chosen by environment variable, which a test cannot change for itself: so each test runs this
//! executable again as a child, with a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;
use std::time::{Duration, Instant};

mod suite;

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];
const LIMIT: Duration = Duration::from_secs(240);
/// Programs that need no window: they run where no memory can be registered, too.
const WINDOWLESS: [&str; 8] = [
    "lengths_in_both_directions",
    "order_is_kept",
    "probes",
    "synchronous_sends",
    "cancelled_and_truncated",
    "thousands_outstanding",
    "awaited_messages",
    "receivers_that_compute",
];

/// Runs every program in this process; does nothing unless it is the child.
#[test]
fn child() {
    let Ok(ranks) = std::env::var("TRANSOM_TEST_RANKS") else { return };
    let ranks: usize = ranks.parse().unwrap();
    let windowless = std::env::var_os("TRANSOM_FAULT").is_some();
    for (name, program) in suite::PROGRAMS.iter().filter(|(name, _)| !windowless || WINDOWLESS.contains(name))
    {
        let start = Instant::now();
        transom::local(ranks, |job| program(&job)).unwrap_or_else(|e| panic!("{name} on {ranks} ranks: {e}"));
        println!("{name}: {ranks} ranks, {:?}", start.elapsed());
    }
}

fn run(transport: &str, ranks: &[usize], fault: Option<&str>) {
    for ranks in ranks {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .envs(fault.map(|fault| ("TRANSOM_FAULT", fault)))
            .args(["--exact", "child", "--nocapture"])
            .env("TRANSOM_TRANSPORT", transport)
            .env("TRANSOM_TEST_RANKS", ranks.to_string())
            .env("TRANSOM_DEADLINE", "60")
            .spawn()
            .unwrap();
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > LIMIT {
                child.kill().unwrap();
                panic!("{ranks} ranks over {transport}: no end after {LIMIT:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{ranks} ranks over {transport}: {status}");
    }
}

#[test]
fn suite_over_shm() {
    run("shm", &RANKS, None);
}

#[test]
fn suite_over_ofi() {
    run("ofi", &RANKS, None);
}

/// What a deadline of a second says; does nothing unless it is the child.
#[test]
fn late() {
    if std::env::var_os("TRANSOM_TEST_LATE").is_none() {
        return;
    }
    let program = |job: transom::Job| {
        let late = match job.rank() {
            0 => job.recv::<u8>(2, 7).map(drop).unwrap_err(),
            1 => job.ssend(0, 5, &[0u8]).unwrap_err(),
            _ => job.irecv::<u8>(transom::ANY_SOURCE, transom::ANY_TAG, 1).wait().map(drop).unwrap_err(),
        };
        let what = [
            "a message with tag 7 from rank 2",
            "rank 0 to receive a message with tag 5",
            "a message with any tag from any rank",
        ];
        assert_eq!(late.class(), transom::Class::Timeout);
        assert!(late.to_string().contains(what[job.rank()]), "{late}");
        job.barrier()
    };
    transom::local(3, program).unwrap();
}

#[test]
fn deadlines_name_what_is_awaited() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "late"]).env("TRANSOM_TEST_LATE", "1").env("TRANSOM_DEADLINE", "1");
    assert!(child.status().unwrap().success());
}

#[test]
fn messages_fail_when_a_peer_does() {
    for len in [1, 1 << 20] {
        let program = |job: transom::Job| match job.rank() {
            0 => job.recv::<u8>(2, 0).map(drop),
            1 => job.issend(2, 0, vec![0u8; len]).wait().map(drop),
            _ => Err(transom::Error::other("test", "gives up")),
        };
        let error = transom::local(3, program).unwrap_err();
        assert!(error.to_string().contains("gives up"), "{error}");
    }
}

/// Long messages of rank 0 then go as pieces.
#[test]
fn messages_without_registrations() {
    run("shm", &[1, 3], Some("register:0"));
    run("ofi", &[2], Some("register:0"));
}
