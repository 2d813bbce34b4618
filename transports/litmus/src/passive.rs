//! Does anything complete while the target makes no call?

use std::time::{Duration, Instant};

use transom_transport::{AtomicScope, NativeAtomic};

use crate::Effort;
use crate::pair::Pair;
use crate::side::{Started, Trouble};
use crate::target::Attended;
use crate::verdict::{Seen, Verdict};

/// How long the target makes no call.
const SILENCE: Duration = Duration::from_millis(100);

/// A put, a get and an atomic, each at a target that makes no call for 100 ms. Done once, whatever the effort.
pub fn passive(pair: &Pair, _effort: Effort) -> Verdict {
    let seen = look(pair).map(|(holds, evidence)| {
        Seen::judge(
            holds,
            evidence,
            "The target may compute: nothing waits for it.",
            "The target's CPU is needed. Transom has a progress thread for it, which sleeps until something comes; leave it \
             a core, or let ranks call the runtime now and then.",
        )
    });
    Verdict::new("silent target, 100 ms", false, seen)
}

fn look(pair: &Pair) -> Result<(bool, String), Trouble> {
    let buffer = Pair::buffer(8)?;
    let origin = &pair.origin;
    let mut words = Vec::new();
    let mut holds = true;
    let mut note = |name: &str, took: Option<Duration>| {
        holds &= took.is_some();
        words.push(match took {
            Some(took) => format!("{name} after {} µs", took.as_micros()),
            None => format!("{name} not"),
        });
    };
    if pair.has_access() {
        note("put", time(pair, || origin.start_put(&pair.remote, 64, &buffer, 8))?);
        note("get", time(pair, || origin.start_get(&pair.remote, 64, &buffer, 8))?);
    }
    if origin.scope(&pair.remote) != AtomicScope::None {
        let add = NativeAtomic::FetchAdd(1);
        note("fetch-and-add", time(pair, || origin.start_atomic(&pair.remote, 64, add))?);
    }
    if words.is_empty() {
        return Ok((false, "no put, get or atomic of its own".into()));
    }
    Ok((holds, words.join(", ")))
}

/// How long it takes; `None` if that is longer than the silence.
fn time(pair: &Pair, start: impl FnOnce() -> Result<Started, Trouble>) -> Result<Option<Duration>, Trouble> {
    let begin = Instant::now();
    let started = start()?;
    if pair.origin.wait_for(started, SILENCE)?.is_some() {
        return Ok(Some(begin.elapsed()));
    }
    Attended::run(pair, &|_| (), || pair.origin.wait(started))?;
    Ok(None)
}
