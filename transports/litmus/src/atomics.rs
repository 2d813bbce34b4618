//! What the device's atomics exclude: each other, and the CPU's?

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use transom_transport::{AtomicScope, NativeAtomic, Remote};

use crate::Effort;
use crate::pair::Pair;
use crate::side::{Side, Trouble};
use crate::target::{Attended, Stop};
use crate::verdict::{Seen, Verdict};

/// Where the word is: on a cache line of its own.
const WORD: usize = 0;
/// Atomics under way at a time.
const DEPTH: usize = 16;
/// Threads of the target's: a device that is software shares a core with one of them, and needs another to collide with.
const ADDERS: usize = 2;
/// The CPU's atomics between two looks at whether to stop.
const BURST: u64 = 4096;

const NONE: &str = "There are no atomics of the device; the target's agent does them with the CPU's.";
/// Of what was not seen to fail, and may.
pub(crate) const UNPROMISED: &str =
    "None was lost in this look, but nothing promises it: Transom does not rely on it.";
const BY_CPU: &str = "Mapped memory is updated by the CPU's own atomics.";

/// Fetch-and-adds of the device against those of the target's CPU, on one word.
pub fn against_cpu(pair: &Pair, effort: Effort) -> Verdict {
    let scope = pair.origin.scope(&pair.remote);
    // A collision is rare: it needs a long look.
    let effort = Effort { time: effort.time * 4, ..effort };
    let seen = with_atomics(pair, scope, || {
        let (device, cpu) = Attended::run(pair, &|_| (), || meet_cpu(pair, effort))?;
        let found = pair.memory.word64(WORD)?.load(Ordering::Acquire);
        let lost = (device + cpu).saturating_sub(found);
        let evidence =
            format!("{device} adds of the origin, {cpu} of the CPU, {lost} lost ({})", claim(scope));
        let exact = found == device + cpu;
        if scope == AtomicScope::Device && exact {
            return Ok(Seen::not_applicable(evidence, UNPROMISED));
        }
        let bad = match scope {
            AtomicScope::System => {
                "The device claims to exclude the CPU and does not: set TRANSOM_TRANSPORT to leave it out, and report it."
            }
            _ => {
                "As it says: device and CPU lose each other's updates. In a window all ranks, the owner included, take the \
                 device's atomics for a word, or none does."
            }
        };
        Ok(Seen::judge(exact, evidence, "Device and CPU may update one word.", bad))
    });
    Verdict::new("atomics against the CPU", scope == AtomicScope::System, seen)
}

fn meet_cpu(pair: &Pair, effort: Effort) -> Result<(u64, u64), Trouble> {
    let word = pair.memory.word64(WORD)?;
    word.store(0, Ordering::SeqCst);
    let stop = AtomicBool::new(false);
    let cpu = AtomicU64::new(0);
    let device = std::thread::scope(|scope| {
        let stop_at_end = Stop(&stop);
        for _ in 0..ADDERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Close together: an update is lost in the moment between the device's load and its store.
                    for _ in 0..BURST {
                        word.fetch_add(1, Ordering::AcqRel);
                    }
                    cpu.fetch_add(BURST, Ordering::Relaxed);
                    std::thread::yield_now();
                }
            });
        }
        let device = pair
            .origin
            .until("a thread of the target's", || cpu.load(Ordering::Relaxed) > 0)
            .and_then(|()| add(&pair.origin, &pair.remote, 1, effort));
        drop(stop_at_end);
        device
    })?;
    Ok((device, cpu.into_inner()))
}

/// Fetch-and-adds of two origins, the target itself being one, on one word: exact.
pub fn against_device(pair: &Pair, effort: Effort) -> Verdict {
    let scope = pair.origin.scope(&pair.remote);
    let seen = with_atomics(pair, scope, || {
        pair.memory.word64(WORD)?.store(0, Ordering::SeqCst);
        let start = Barrier::new(2);
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                start.wait();
                // Its polling is the target's progress.
                pair.own.as_ref().map_or(Ok(0), |own| add(&pair.target, own, 1, effort))
            });
            start.wait();
            let one = add(&pair.origin, &pair.remote, 1, effort);
            (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let (one, other) = (one?, other?);
        let found = pair.memory.word64(WORD)?.load(Ordering::Acquire);
        let evidence = format!("{one} + {other} adds of two origins, sum {found}");
        let good = "Atomics of all origins are exact.";
        let bad = "The device loses updates: its atomics cannot be used. Update its firmware or driver, and report it.";
        Ok(Seen::judge(found == one + other, evidence, good, bad))
    });
    Verdict::new("atomics of two origins", true, seen)
}

/// Fetch-and-adds, several at a time; how many were done.
pub(crate) fn add(side: &Side, remote: &Remote, operand: u64, effort: Effort) -> Result<u64, Trouble> {
    let post = |_| side.start_atomic(remote, WORD, NativeAtomic::FetchAdd(operand));
    let (posted, under_way) = side.pipelined(effort, DEPTH, post)?;
    for started in under_way {
        side.wait(started)?;
    }
    Ok(posted)
}

pub(crate) fn with_atomics(
    pair: &Pair,
    scope: AtomicScope,
    test: impl FnOnce() -> Result<Seen, Trouble>,
) -> Result<Seen, Trouble> {
    if scope == AtomicScope::None {
        return Ok(Seen::not_applicable("no atomics of its own", NONE));
    }
    let mut seen = test()?;
    if pair.remote.direct.is_some() {
        seen.meaning = format!("{BY_CPU} {}", seen.meaning).into();
    }
    Ok(seen)
}

/// What the transport says of such updates.
fn claim(scope: AtomicScope) -> &'static str {
    match scope {
        AtomicScope::System => "promised: none",
        AtomicScope::Device | AtomicScope::None => "nothing promised",
    }
}
