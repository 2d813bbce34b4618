//! Locks that many ranks want for a while: programs of one rank, each for a number of seconds. Run as threads of one
//! process by `locks.rs` here, as processes and on two hosts by the launcher's.

#![allow(clippy::unwrap_used, reason = "tests")]

mod abandoned;
mod mixed;
#[path = "../common/random.rs"]
mod random;

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use random::Random;
use transom::{Job, LockKind, Result, Window};

/// A rank's program for about a time.
pub type Program = fn(&Job, Duration) -> Result<()>;

/// Every program, by name.
pub const PROGRAMS: &[(&str, Program)] = &[
    ("fair_lock", fair_lock),
    ("mixed_locks", mixed::mixed_locks),
    ("abandoned_locks", abandoned::abandoned_locks),
];

/// Seconds that locks of all kinds are mixed for, over all transports.
pub fn soak() -> Duration {
    let seconds = std::env::var("TRANSOM_TEST_SOAK").map_or(10, |seconds| seconds.parse().unwrap());
    Duration::from_secs(seconds)
}

/// The program that the environment names, if it names one: then this process is a child, or a rank.
pub fn named() -> Option<impl Fn(&Job) -> Result<()>> {
    let name = std::env::var("TRANSOM_TEST_CONTENTION").ok()?;
    let time: f64 = std::env::var("TRANSOM_TEST_SECONDS").unwrap().parse().unwrap();
    let (_, program) = PROGRAMS.iter().find(|(known, _)| *known == name).unwrap();
    Some(move |job: &Job| program(job, Duration::from_secs_f64(time)))
}

/// Waits for a child for so long.
pub fn watch(mut child: Child, limit: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            let _ = child.wait();
            panic!("no end after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The window of [`fair_lock`]: how many turns there were, and how many ranks want one now.
const TURNS: usize = 0;
const CONTENDERS: usize = 1;

/// Everybody wants one exclusive lock all the time: all get it equally often.
fn fair_lock(job: &Job, time: Duration) -> Result<()> {
    for (name, window) in [("allocated", job.allocate::<u64>(2)?), ("created", job.create(vec![0u64; 2])?)] {
        let (turns, contended) = take_turns(job, &window, time)?;
        let (turns, contended) = (job.allgather(&[turns])?.concat(), job.allgather(&[contended])?.concat());
        let (least, most) = (*contended.iter().min().unwrap(), *contended.iter().max().unwrap());
        if job.rank() == 0 {
            println!("{}, {name}: {contended:?} in {time:?}", job.transport(job.size() - 1).unwrap().0);
            assert_eq!(window.local().get(TURNS)?, turns.iter().sum::<u64>(), "an update is lost");
        }
        assert!(least > 0, "not everybody came within {time:?}: {turns:?}");
        assert!(most as f64 <= most_unfair(job) * least as f64, "unfair: {contended:?}");
        window.free()?;
    }
    Ok(())
}

/// How many times as often as another a rank may get the lock. Nobody overtakes in the queue; but whoever leaves it needs
/// some time to join it again, and that differs between ranks of the target's node and others.
fn most_unfair(job: &Job) -> f64 {
    let transport = |rank| job.transport(rank).unwrap().0;
    if (0..job.size()).all(|rank| transport(rank) == transport(0)) { 1.5 } else { 3.0 }
}

/// How often this rank gets the lock of rank 0 in that time, and how many of those turns are from when all have come until
/// one goes: whoever a busy machine lets begin first has the lock for itself, thousands of times in a moment.
fn take_turns(job: &Job, window: &Window<u64>, time: Duration) -> Result<(u64, u64)> {
    let (mut turns, mut contended) = (0, 0);
    job.barrier()?;
    window.lock(LockKind::Exclusive, 0, |epoch| {
        epoch.put_value(0, CONTENDERS, epoch.get_value(0, CONTENDERS)? + 1)
    })?;
    let start = Instant::now();
    while start.elapsed() < time {
        window.lock(LockKind::Exclusive, 0, |epoch| {
            contended += u64::from(epoch.get_value(0, CONTENDERS)? == job.size() as u64);
            epoch.put_value(0, TURNS, epoch.get_value(0, TURNS)? + 1)
        })?;
        turns += 1;
    }
    window.lock(LockKind::Exclusive, 0, |epoch| {
        epoch.put_value(0, CONTENDERS, epoch.get_value(0, CONTENDERS)? - 1)
    })?;
    job.barrier()?;
    Ok((turns, contended))
}
