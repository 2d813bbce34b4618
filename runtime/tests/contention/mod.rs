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

/// The window of [`fair_lock`]: how many turns there were, how many ranks want one now, who had the last, and how
/// many ranks have had one while all wanted one.
const TURNS: usize = 0;
const CONTENDERS: usize = 1;
const LAST: usize = 2;
const HAVE_COME: usize = 3;

/// How long it may take until all have, on a machine that others keep busy.
const LONGEST: Duration = Duration::from_secs(40);

/// A machine that stops the thread that hears the others leaves the lock's own rank thousands of turns in a row: they say nothing of
/// the lock if it happens a few times.
const MOST_OF_A_ROW: u64 = 16;

/// What a rank saw of its turns.
#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    all: u64,
    /// From when all have come until one goes: whoever a busy machine lets begin first has the lock for itself, thousands of times in
    /// a moment.
    contended: u64,
    /// Of these, turns after another's.
    taken_over: u64,
    /// Of these, turns after its own, but of each row of them the first [`MOST_OF_A_ROW`] only.
    again: u64,
}

/// Everybody wants one exclusive lock all the time: all get it, and who had it waits behind those who want it.
///
/// How often each gets it says little of the lock: that is as often as the system lets it run. One that can be overtaken goes to
/// whoever runs, again and again. Here nobody gets it twice in a row unless all others are between giving it back and asking for it.
fn fair_lock(job: &Job, time: Duration) -> Result<()> {
    for (name, window) in [("allocated", job.allocate::<u64>(4)?), ("created", job.create(vec![0u64; 4])?)] {
        let turns = take_turns(job, &window, time)?;
        let of_all = |own: u64| job.allgather(&[own]).map(|all| all.concat());
        let (all, contended) = (of_all(turns.all)?, of_all(turns.contended)?);
        let taken_over: u64 = of_all(turns.taken_over)?.iter().sum();
        let again: u64 = of_all(turns.again)?.iter().sum();
        if job.rank() == 0 {
            let transport = job.transport(job.size() - 1).unwrap().0;
            println!(
                "{transport}, {name}: {contended:?} in {time:?}, {taken_over} after another's, {again} after the own"
            );
            assert_eq!(window.local().get(TURNS)?, all.iter().sum::<u64>(), "an update is lost");
        }
        assert!(!contended.contains(&0), "not everybody came within {LONGEST:?}: {all:?}");
        assert!(
            2 * again <= taken_over,
            "{taken_over} turns after another's, {again} after the own: {contended:?}"
        );
        window.free()?;
    }
    Ok(())
}

/// This rank's turns with the lock of rank 0 in that time, and until everybody has come.
fn take_turns(job: &Job, window: &Window<u64>, time: Duration) -> Result<Turns> {
    let (mut turns, own) = (Turns::default(), job.rank() as u64);
    let mut row = 0;
    job.barrier()?;
    window.lock(LockKind::Exclusive, 0, |epoch| {
        epoch.put_value(0, CONTENDERS, epoch.get_value(0, CONTENDERS)? + 1)
    })?;
    let (start, mut have_come) = (Instant::now(), 0);
    while start.elapsed() < time || (have_come < job.size() as u64 && start.elapsed() < LONGEST) {
        window.lock(LockKind::Exclusive, 0, |epoch| {
            if epoch.get_value(0, CONTENDERS)? == job.size() as u64 {
                turns.contended += 1;
                if turns.contended == 1 {
                    epoch.put_value(0, HAVE_COME, epoch.get_value(0, HAVE_COME)? + 1)?;
                }
                row = if epoch.get_value(0, LAST)? == own { row + 1 } else { 0 };
                turns.taken_over += u64::from(row == 0);
                turns.again += u64::from((1..=MOST_OF_A_ROW).contains(&row));
            }
            have_come = epoch.get_value(0, HAVE_COME)?;
            epoch.put_value(0, LAST, own)?;
            epoch.put_value(0, TURNS, epoch.get_value(0, TURNS)? + 1)
        })?;
        turns.all += 1;
    }
    window.lock(LockKind::Exclusive, 0, |epoch| {
        epoch.put_value(0, CONTENDERS, epoch.get_value(0, CONTENDERS)? - 1)
    })?;
    job.barrier()?;
    Ok(turns)
}
