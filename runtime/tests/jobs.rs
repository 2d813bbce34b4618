//! The suite as jobs inside one process, of 1, 2, 3, 4 and 7 ranks, over each transport.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[path = "common/child.rs"]
mod child;
mod suite;

/// Numbers of ranks; with `TRANSOM_TEST_SHORT` (`ci/test.sh`) one.
fn ranks() -> &'static [usize] {
    if std::env::var_os("TRANSOM_TEST_SHORT").is_some() { &[3] } else { &[1, 2, 3, 4, 7] }
}

const LIMIT: Duration = Duration::from_secs(900);
/// Of emulated devices on an emulated machine.
const SLOW: Duration = Duration::from_secs(3600);

/// Runs every program that `wanted` names; if there is `TRANSOM_TEST_PROGRAM`, only those whose name has it in it.
fn run_all(ranks: &[usize], wanted: impl Fn(&str) -> bool) {
    let only = std::env::var("TRANSOM_TEST_PROGRAM").unwrap_or_default();
    let wanted = |name: &str| wanted(name) && name.contains(&only);
    for ranks in ranks {
        for (name, program) in suite::PROGRAMS.iter().filter(|(name, _)| wanted(name)) {
            let start = Instant::now();
            transom::local(*ranks, |job| program(&job))
                .unwrap_or_else(|e| panic!("{name} on {ranks} ranks: {e}"));
            eprintln!("{name}: {ranks} ranks, {:?}", start.elapsed());
        }
    }
}

#[test]
fn suite_over_shm() {
    child::run("shm", "suite_over_shm", LIMIT, || run_all(ranks(), |_| true));
}

#[test]
fn suite_over_ofi() {
    child::run("ofi", "suite_over_ofi", LIMIT, || run_all(ranks(), |_| true));
}

#[test]
fn suite_over_tcp() {
    child::run("tcp", "suite_over_tcp", LIMIT, || run_all(ranks(), |_| true));
}

#[test]
fn suite_over_verbs() {
    child::run("verbs", "suite_over_verbs", SLOW, || run_all(&[3], |_| true));
}

/// Programs that need no window: they run where no memory can be registered, too.
const WINDOWLESS: [&str; 11] = [
    "lengths_in_both_directions",
    "one_way",
    "order_is_kept",
    "probes",
    "synchronous_sends",
    "cancelled_and_truncated",
    "sends_that_are_taken_back",
    "thousands_outstanding",
    "awaited_messages",
    "receivers_that_compute",
    "senders_of_changing_habits",
];

/// Long messages of rank 0 then go as pieces.
fn without_registrations(transport: &str, test: &str, ranks: &[usize]) {
    let settings = [("TRANSOM_TRANSPORT", transport), ("TRANSOM_FAULT", "register:0")];
    child::run_with(&settings, test, LIMIT, || run_all(ranks, |name| WINDOWLESS.contains(&name)));
}

#[test]
fn messages_without_registrations_over_shm() {
    without_registrations("shm", "messages_without_registrations_over_shm", &[1, 3]);
}

#[test]
fn messages_without_registrations_over_ofi() {
    without_registrations("ofi", "messages_without_registrations_over_ofi", &[2]);
}

#[test]
fn messages_without_registrations_over_tcp() {
    without_registrations("tcp", "messages_without_registrations_over_tcp", &[2]);
}

#[test]
fn deadlines_name_what_is_awaited() {
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
    let settings = [("TRANSOM_DEADLINE", "3")];
    child::run_with(&settings, "deadlines_name_what_is_awaited", LIMIT, || {
        transom::local(3, program).unwrap();
    });
}

/// Blocking collectives and nonblocking ones do not match (MPI-4.1 §6.12): who waits in vain is told.
#[test]
fn a_collective_of_the_other_form_is_named() {
    let (started, told) = (&AtomicBool::new(false), &AtomicBool::new(false));
    let until = |flag: &AtomicBool| {
        while !flag.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let program = |job: transom::Job| {
        if job.rank() == 0 {
            until(started);
            let late = job.barrier().unwrap_err();
            assert_eq!(late.class(), transom::Class::Timeout);
            assert!(late.to_string().contains("it is in the nonblocking barrier"), "{late}");
            told.store(true, Ordering::Release);
            return job.ibarrier().wait();
        }
        let barrier = job.ibarrier();
        started.store(true, Ordering::Release);
        until(told);
        // What is under way meets its match, in both forms.
        barrier.wait()?;
        job.barrier()
    };
    child::run_with(&[("TRANSOM_DEADLINE", "3")], "a_collective_of_the_other_form_is_named", LIMIT, || {
        transom::local(2, program).unwrap();
    });
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

/// How often this process's progress threads have slept so far.
fn sleeps_of_progress_threads() -> u64 {
    let mut sleeps = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let read = |file: &str| std::fs::read_to_string(task.as_ref().unwrap().path().join(file)).unwrap();
        if read("comm").starts_with("transom-") {
            let status = read("status");
            let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sleeps += count.unwrap().trim().parse::<u64>().unwrap();
        }
    }
    sleeps
}

#[test]
fn callers_that_sleep_for_a_moment_do_not_wake_the_progress_thread() {
    // How long it leaves callers alone. Each time it may sleep for that, and then until a caller takes its place or wakes up.
    const NAP: Duration = Duration::from_micros(250);
    let program = |job: transom::Job| {
        job.barrier()?;
        let (before, start) = (sleeps_of_progress_threads(), Instant::now());
        for _ in 0..5000 {
            job.barrier()?;
        }
        if job.rank() == 0 {
            let (sleeps, time) = (sleeps_of_progress_threads() - before, start.elapsed());
            let most = 2 * 2 * (time.as_micros() / NAP.as_micros()) as u64 + 100;
            eprintln!("{sleeps} sleeps, at most {most}, in {time:?}");
            assert!(sleeps <= most, "{sleeps} sleeps in {time:?}");
        }
        job.barrier()
    };
    // Every wait sleeps.
    let settings = [("TRANSOM_TRANSPORT", "shm"), ("TRANSOM_SPIN", "0")];
    let test = "callers_that_sleep_for_a_moment_do_not_wake_the_progress_thread";
    child::run_with(&settings, test, LIMIT, || {
        transom::local(2, program).unwrap();
    });
}
