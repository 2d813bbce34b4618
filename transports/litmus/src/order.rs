//! What a later operation says about an earlier one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use transom_transport::{Span, TransportResult};

use crate::Effort;
use crate::delivery::name;
use crate::pair::{Pair, TARGET};
use crate::side::Trouble;
use crate::stamp;
use crate::target::{Attended, Stop};
use crate::verdict::{Seen, Verdict};

/// Where the flag is, and where the data begins.
const FLAG: usize = 0;
const DATA: usize = 4096;
const SIZES: [usize; 3] = [8, 4 << 10, 64 << 10];
/// Bytes of a message that says that a put was posted before it.
const NOTE: usize = 64;

/// Late data, by size.
#[derive(Debug, Default)]
struct Late {
    rounds: AtomicU64,
    late: [AtomicU64; SIZES.len()],
}

impl Late {
    /// The target looks at what the round has put.
    fn look(&self, memory: &Span, round: u64) -> TransportResult<()> {
        let which = round as usize % SIZES.len();
        let there = stamp::is_there(memory, DATA, &stamp::bytes(round, SIZES[which]))?;
        self.late[which].fetch_add(u64::from(!there), Ordering::Relaxed);
        self.rounds.store(round, Ordering::Release);
        Ok(())
    }

    fn total(&self) -> u64 {
        self.late.iter().map(|late| late.load(Ordering::Relaxed)).sum()
    }

    /// Nothing was late, or something was: each with its meaning.
    fn judge(&self, good: &'static str, bad: &'static str) -> Seen {
        Seen::judge(self.total() == 0, self.words(), good, bad)
    }

    fn words(&self) -> String {
        let rounds = self.rounds.load(Ordering::Relaxed);
        let late = SIZES.iter().zip(&self.late);
        let late = late.map(|(size, late)| format!("{} {}", name(*size), late.load(Ordering::Relaxed)));
        format!("{rounds} rounds, missing: {}", late.collect::<Vec<_>>().join(", "))
    }
}

/// A put, then a put of a flag, without waiting between: a reader that sees the flag sees the data.
pub fn order(pair: &Pair, effort: Effort) -> Verdict {
    let seen = not_without_access(pair, || {
        let late = Late::default();
        pair.memory.word64(FLAG)?.store(0, Ordering::Release);
        let flag = Pair::buffer(8)?;
        let stop = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let stop_at_end = Stop(&stop);
            let watcher = scope.spawn(|| watch(pair, &late, &stop));
            let result = Attended::run(pair, &|_| (), || {
                rounds(pair, effort, |round, put| {
                    flag.word64(0)?.store(round, Ordering::Relaxed);
                    let raised = pair.origin.start_put(&pair.remote, FLAG, &flag, 8)?;
                    pair.origin.wait(put)?;
                    pair.origin.wait(raised)?;
                    let seen = || late.rounds.load(Ordering::Acquire) >= round || watcher.is_finished();
                    pair.origin.until("the flag", seen)
                })
            });
            drop(stop_at_end);
            watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            result
        });
        result?;
        Ok(Seen::judge(
            late.total() == 0,
            late.words(),
            "Puts to one target arrive in order. Transom does not need it: it waits for completions.",
            "Puts overtake each other. Transom does not mind: it waits for completions. Programs that poll a flag \
             without a flush before it would fail here.",
        ))
    });
    Verdict::new("put after put", false, seen)
}

/// The target's CPU, looking at the flag.
fn watch(pair: &Pair, late: &Late, stop: &AtomicBool) -> TransportResult<()> {
    let flag = pair.memory.word64(FLAG)?;
    let (mut last, mut looks) = (0, 0_u32);
    while !stop.load(Ordering::Relaxed) {
        let round = flag.load(Ordering::Acquire);
        if round != last {
            late.look(&pair.memory, round)?;
            last = round;
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(256) {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// A put, then a message, without waiting between: a receiver that takes the message sees the data.
pub fn message_after_put(pair: &Pair, effort: Effort) -> Verdict {
    let seen = not_without_access(pair, || {
        let late = Late::default();
        let failed = Mutex::new(None);
        let sink = |message: &[u8]| {
            let round = message.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            if let Err(error) = late.look(&pair.memory, round) {
                *failed.lock() = Some(error);
            }
        };
        Attended::run(pair, &sink, || {
            rounds(pair, effort, |round, put| {
                let mut note = [0; NOTE];
                note[..8].copy_from_slice(&round.to_ne_bytes());
                pair.origin.send(TARGET, &note)?;
                pair.origin.wait(put)?;
                pair.origin.until("the message", || late.rounds.load(Ordering::Acquire) >= round)
            })
        })?;
        if let Some(error) = failed.into_inner() {
            return Err(error.into());
        }
        Ok(late.judge(
            "A message does not overtake a put: an acknowledged message could stand for a flush.",
            "Messages overtake puts. Transom does not mind: it sends what speaks of a put after its completion.",
        ))
    });
    Verdict::new("message after put", false, seen)
}

/// A put, then a get of its last bytes, without waiting between: once the get has ended the data is there.
pub fn read_back(pair: &Pair, effort: Effort) -> Verdict {
    let seen = not_without_access(pair, || {
        let late = Late::default();
        let back = Pair::buffer(8)?;
        Attended::run(pair, &|_| (), || {
            rounds(pair, effort, |round, put| {
                let size = SIZES[round as usize % SIZES.len()];
                let get = pair.origin.start_get(&pair.remote, DATA + size - 8, &back, 8)?;
                pair.origin.wait(get)?;
                late.look(&pair.memory, round)?;
                pair.origin.wait(put).map(drop)
            })
        })?;
        Ok(late.judge(
            "A get that follows a put finds it done: reading back could stand for a flush.",
            "A get overtakes the put before it. Transom does not mind: it waits for completions.",
        ))
    });
    Verdict::new("get after put", false, seen)
}

fn not_without_access(pair: &Pair, test: impl FnOnce() -> Result<Seen, Trouble>) -> Result<Seen, Trouble> {
    match pair.has_access() {
        true => test(),
        false => Ok(Seen::not_applicable("no puts", "Windows are reached by messages.")),
    }
}

/// Posts the data of one round after the other, and hands each to `next`, which must wait for its end.
fn rounds(
    pair: &Pair,
    effort: Effort,
    next: impl Fn(u64, crate::side::Started) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let data = Pair::buffer(SIZES[SIZES.len() - 1])?;
    let begin = Instant::now();
    for round in 1..=effort.rounds.max(SIZES.len() as u64) {
        if round > SIZES.len() as u64 && begin.elapsed() > effort.time {
            break;
        }
        let size = SIZES[round as usize % SIZES.len()];
        data.copy_in(0, &stamp::bytes(round, size))?;
        next(round, pair.origin.start_put(&pair.remote, DATA, &data, size)?)?;
    }
    Ok(())
}
