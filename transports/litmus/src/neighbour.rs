//! May an atomic of 8 bytes stand for one of fewer? Only if it leaves alone what others store to the rest of the word.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use transom_transport::{NativeAtomic, TransportResult};

use crate::Effort;
use crate::atomics::{UNPROMISED, add, with_atomics};
use crate::pair::Pair;
use crate::side::Trouble;
use crate::target::{Attended, Stop};
use crate::verdict::{Outcome, Seen, Verdict};

/// The word, of which the lower half in memory is the neighbour's.
const WORD: usize = 0;
/// Adds 1 to the upper half in memory.
const UPPER: u64 = if cfg!(target_endian = "little") { 1 << 32 } else { 1 };

/// Passes of an empty loop between a store and the look whether it lasts.
const MOMENTS: u32 = 16;

/// How the upper half is updated.
#[derive(Debug, Clone, Copy)]
enum Update {
    Add,
    /// As an operation that the device does not have is done: read, compute, compare-and-swap until it succeeds.
    Swap,
}

/// Who stores to the lower half.
#[derive(Debug, Clone, Copy)]
enum Neighbour {
    Cpu,
    /// Another origin, by puts of 4 bytes.
    Put,
}

/// Atomics of the device on a word of 8 bytes, of which others store to 4: are stores lost?
pub fn neighbour(pair: &Pair, effort: Effort) -> Verdict {
    let scope = pair.origin.scope(&pair.remote);
    let seen = with_atomics(pair, scope, || {
        if pair.remote.direct.is_some() {
            return Ok(Seen::not_applicable("mapped memory", "Elements have CPU atomics of their own size."));
        }
        let mut words = Vec::new();
        let mut total = 0;
        for (update, who, name) in [
            (Update::Add, Neighbour::Cpu, "CPU stores beside adds"),
            (Update::Swap, Neighbour::Cpu, "CPU stores beside compare-and-swaps"),
            (Update::Add, Neighbour::Put, "puts beside adds"),
        ] {
            let (stores, lost) = meet(pair, update, who, effort)?;
            total += lost;
            words.push(format!("{lost} of {stores} {name}"));
        }
        let evidence = format!("lost: {}", words.join(", "));
        let bad = "An atomic of 8 bytes undoes what others store beside an element of fewer. So Transom uses the device for \
                   aligned elements of 8 bytes only; smaller ones are updated by the target's agent.";
        if total == 0 {
            return Ok(Seen::not_applicable(evidence, UNPROMISED));
        }
        Ok(Seen { outcome: Outcome::Fails, evidence, meaning: bad.into() })
    });
    Verdict::new("neighbours of elements", false, seen)
}

/// Stores to the lower half, and how many of them were undone by updates of the upper half.
fn meet(pair: &Pair, update: Update, who: Neighbour, effort: Effort) -> Result<(u64, u64), Trouble> {
    pair.memory.word64(WORD)?.store(0, Ordering::SeqCst);
    let stop = AtomicBool::new(false);
    let (stores, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let stop_at_end = Stop(&stop);
        let storing = scope.spawn(|| match who {
            Neighbour::Cpu => cpu_stores(pair, &stop, &stores, &lost).map_err(Trouble::from),
            Neighbour::Put => puts(pair, &stop, &stores, &lost),
        });
        let updating = || updates(pair, update, effort);
        let updated = match who {
            Neighbour::Cpu => Attended::run(pair, &|_| (), updating),
            // The thread that puts polls the target.
            Neighbour::Put => updating(),
        };
        drop(stop_at_end);
        let stored = storing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        updated.and(stored)
    })?;
    Ok((stores.into_inner(), lost.into_inner()))
}

fn updates(pair: &Pair, update: Update, effort: Effort) -> Result<(), Trouble> {
    if let Update::Add = update {
        return add(&pair.origin, &pair.remote, UPPER, effort).map(drop);
    }
    let begin = Instant::now();
    let (mut expected, mut round) = (0_u64, 0);
    while round == 0 || (round < effort.rounds && begin.elapsed() < effort.time) {
        let swap = expected.wrapping_add(UPPER);
        let operation = NativeAtomic::CompareSwap { compare: expected, swap };
        expected = pair.origin.wait(pair.origin.start_atomic(&pair.remote, WORD, operation)?)?;
        round += 1;
    }
    Ok(())
}

/// Only this thread stores to the lower half: a value that is not the last one was brought back by an update.
fn cpu_stores(pair: &Pair, stop: &AtomicBool, stores: &AtomicU64, lost: &AtomicU64) -> TransportResult<()> {
    let half = pair.memory.word32(WORD)?;
    let mut last = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            last = last.wrapping_add(1);
            half.store(last, Ordering::Release);
            stores.fetch_add(1, Ordering::Relaxed);
            // Time for an update to bring an old value back; without it the next store would hide that.
            for moment in 0..MOMENTS {
                std::hint::black_box(moment);
            }
            lost.fetch_add(u64::from(half.load(Ordering::Acquire) != last), Ordering::Relaxed);
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn puts(pair: &Pair, stop: &AtomicBool, stores: &AtomicU64, lost: &AtomicU64) -> Result<(), Trouble> {
    let half = pair.memory.word32(WORD)?;
    let buffer = Pair::buffer(4)?;
    let mut last = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        last = last.wrapping_add(1);
        buffer.word32(0)?.store(last, Ordering::Relaxed);
        match &pair.own {
            Some(own) => pair.target.wait(pair.target.start_put(own, WORD, &buffer, 4)?)?,
            None => return Ok(()),
        };
        stores.fetch_add(1, Ordering::Relaxed);
        lost.fetch_add(u64::from(half.load(Ordering::Acquire) != last), Ordering::Relaxed);
    }
    // Updates that still are under way need the target's progress.
    Ok(())
}
