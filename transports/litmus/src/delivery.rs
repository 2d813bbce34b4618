//! Is what a completion reports in the target's memory?

use std::time::{Duration, Instant};

use crate::Effort;
use crate::pair::Pair;
use crate::side::Trouble;
use crate::stamp;
use crate::target::Attended;
use crate::verdict::{Seen, Verdict};

const SIZES: [usize; 3] = [8, 4 << 10, 1 << 20];
/// Sizes that transports write into the work request, or inject.
const SMALL: [usize; 10] = [1, 2, 3, 4, 8, 16, 31, 32, 63, 64];
/// How long a put may take at a target that makes no call.
const TIMEOUT: Duration = Duration::from_millis(100);

const EARLY: &str = "Completions come before the data: a flush would return too early. Use another provider, or an update of \
                     this one, or what `flush method` says.";

/// What rounds of one size have shown.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    rounds: u64,
    late: u64,
}

/// After a put's completion the bytes are in the target's memory. The target makes progress.
pub fn delivery(pair: &Pair, effort: Effort) -> Verdict {
    let seen = Attended::run(pair, &|_| (), || look(pair, effort, &SIZES));
    Verdict::new("delivery", true, seen)
}

/// The same for puts of a few bytes, which transports inject.
pub fn inline(pair: &Pair, effort: Effort) -> Verdict {
    let seen = Attended::run(pair, &|_| (), || look(pair, effort, &SMALL));
    Verdict::new("delivery, 1 to 64 bytes", true, seen)
}

/// The same while the target makes no call.
pub fn delivery_passive(pair: &Pair, effort: Effort) -> Verdict {
    let seen = looks_alone(pair).and_then(|alone| {
        if !alone {
            return Ok(Seen::not_applicable(
                format!("no completion within {} ms of silence", TIMEOUT.as_millis()),
                "Puts need the target's progress, which Transom's progress thread makes.",
            ));
        }
        look(pair, effort, &SIZES)
    });
    Verdict::new("delivery, silent target", true, seen)
}

/// Whether a put completes while the target makes no call.
fn looks_alone(pair: &Pair) -> Result<bool, Trouble> {
    if !pair.has_access() {
        return Ok(true);
    }
    let buffer = Pair::buffer(8)?;
    let put = pair.origin.start_put(&pair.remote, 0, &buffer, 8)?;
    if pair.origin.wait_for(put, TIMEOUT)?.is_some() {
        return Ok(true);
    }
    Attended::run(pair, &|_| (), || pair.origin.wait(put))?;
    Ok(false)
}

fn look(pair: &Pair, effort: Effort, sizes: &[usize]) -> Result<Seen, Trouble> {
    if !pair.has_access() {
        return Ok(Seen::not_applicable("no puts", "Windows are reached by messages."));
    }
    let time = effort.time / sizes.len() as u32;
    let mut tallies = Vec::new();
    for size in sizes {
        tallies.push((*size, rounds(pair, *size, Effort { time, ..effort })?));
    }
    let late: u64 = tallies.iter().map(|(_, tally)| tally.late).sum();
    let words =
        tallies.iter().map(|(size, tally)| format!("{} {}/{}", name(*size), tally.late, tally.rounds));
    let evidence = format!("late: {}", words.collect::<Vec<_>>().join(", "));
    Ok(Seen::judge(
        late == 0,
        evidence,
        "A completed put is visible at the target: flush waits for it.",
        EARLY,
    ))
}

fn rounds(pair: &Pair, size: usize, effort: Effort) -> Result<Tally, Trouble> {
    let buffer = Pair::buffer(size)?;
    let mut tally = Tally::default();
    let begin = Instant::now();
    while tally.rounds == 0 || (tally.rounds < effort.rounds && begin.elapsed() < effort.time) {
        let expected = stamp::bytes(tally.rounds, size);
        buffer.copy_in(0, &expected)?;
        pair.origin.wait(pair.origin.start_put(&pair.remote, 0, &buffer, size)?)?;
        tally.rounds += 1;
        tally.late += u64::from(!stamp::is_there(&pair.memory, 0, &expected)?);
    }
    Ok(tally)
}

/// A size, for people.
pub(crate) fn name(size: usize) -> String {
    match size {
        size if size >= 1 << 20 => format!("{} MiB", size >> 20),
        size if size >= 1 << 10 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}
