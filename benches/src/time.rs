//! Times of repeated calls.

use std::time::{Duration, Instant};

use transom::Result;

/// How long `count` calls take, after one that is not counted.
pub(crate) fn timed(count: u64, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    call()?;
    let start = Instant::now();
    for _ in 0..count {
        call()?;
    }
    Ok(start.elapsed())
}
