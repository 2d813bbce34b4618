//! Does each operation complete exactly once?

use std::time::{Duration, Instant};

use crate::Effort;
use crate::pair::Pair;
use crate::side::{Side, Trouble};
use crate::target::Attended;
use crate::verdict::{Seen, Verdict};

/// Operations under way at a time.
const DEPTH: usize = 128;
const BYTES: usize = 8;
/// How long to look for completions that come too often.
const AFTERMATH: Duration = Duration::from_millis(5);

/// Puts and gets by turns, many at a time; each completes, none twice.
pub fn count_audit(pair: &Pair, effort: Effort) -> Verdict {
    let seen = if pair.has_access() {
        Attended::run(pair, &|_| (), || audit(pair, effort))
    } else {
        Ok(Seen::not_applicable("no puts", "Windows are reached by messages."))
    };
    Verdict::new("completions, counted", true, seen)
}

fn audit(pair: &Pair, effort: Effort) -> Result<Seen, Trouble> {
    let origin = &pair.origin;
    let (before, strays_before) = origin.unbalanced();
    let buffers: Vec<_> = (0..DEPTH).map(|_| Pair::buffer(BYTES)).collect::<Result<_, _>>()?;
    let (posted, under_way) = origin.pipelined(effort, DEPTH, |posted| {
        let slot = posted as usize % DEPTH;
        let start = if posted.is_multiple_of(2) { Side::start_put } else { Side::start_get };
        start(origin, &pair.remote, slot * BYTES, &buffers[slot], BYTES)
    })?;
    let mut missing = 0;
    for started in under_way {
        match origin.wait(started) {
            Ok(_) => {}
            Err(Trouble::Lost { .. }) => {
                missing = origin.unbalanced().0 - before;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let aftermath = Instant::now();
    while aftermath.elapsed() < AFTERMATH {
        origin.poll()?;
    }
    let double = origin.unbalanced().1 - strays_before;
    Ok(Seen::judge(
        missing == 0 && double == 0,
        format!("{posted} operations, {missing} without completion, {double} completions too many"),
        "Each operation completes once: counters and flushes end when they should.",
        "Completions are lost or doubled: flushes would hang, or end too early. Use another provider, or an update.",
    ))
}
