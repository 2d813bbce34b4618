//! Updates of random words of a table that all ranks hold: the RandomAccess benchmark of HPC Challenge, by accumulates.

use std::ops::Range;

use transom::{Bxor, Job, Window};

use super::Measure;
use crate::operation::WORD;
use crate::repeat::{Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Updates before a flush: what the benchmark's rules allow to look ahead.
pub const BATCH: usize = 1024;
/// Bytes of each rank's part of the table, if nothing else is asked for.
pub const TABLE: usize = 512 << 10;
/// Words that are copied from and to the table at once.
const CHUNK: usize = 1 << 16;
/// Its primitive polynomial over GF(2), and the period of what that generates.
const POLYNOMIAL: u64 = 7;
const PERIOD: i64 = 1_317_624_576_693_539_401;

/// The table, and where this rank is in the stream of random numbers.
#[derive(Debug)]
pub struct RandomAccess {
    head: Head,
    window: Window<u64>,
    /// Words of the table at each rank, as the logarithm to the base of two.
    log_words: u32,
    /// The next number.
    state: u64,
    /// Batches since the table was as at first.
    batches: u64,
}

impl RandomAccess {
    /// A table whose words are their own places, of so many bytes at each rank, or the power of two below. Collective.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(job: &Job, head: Head, bytes: usize) -> transom::Result<Self> {
        let log_words = (bytes / WORD).max(1).ilog2();
        let window = job.allocate(1 << log_words)?;
        let own = places(job.rank(), log_words);
        for (at, place) in own.clone().step_by(CHUNK).enumerate() {
            let chunk: Vec<u64> = (place..own.end.min(place + CHUNK as u64)).collect();
            window.local().write(at * CHUNK, &chunk)?;
        }
        job.barrier()?;
        Ok(Self { head, window, log_words, state: start(job.rank()), batches: 0 })
    }

    fn batch(&mut self) -> transom::Result<()> {
        let (log_words, words) = (self.log_words, 1 << self.log_words);
        let all = self.head.ranks as u64 * words;
        let state = &mut self.state;
        self.batches += 1;
        self.window.lock_all(|epoch| {
            for _ in 0..BATCH {
                *state = next(*state);
                let place = *state % all;
                let (rank, word) = ((place >> log_words) as usize, (place & (words - 1)) as usize);
                epoch.accumulate(rank, word, Bxor, &[*state])?;
            }
            epoch.flush_all()
        })
    }
}

impl Measure for RandomAccess {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        stage.job.barrier()?;
        recorder.repeat(|| self.batch())?;
        Ok(stage.job.barrier()?)
    }

    /// The same updates again undo themselves, each of them: atomics lose none, so that the 1 % that the benchmark's rules
    /// tolerate are not needed.
    fn validate(&mut self, stage: &mut Stage<'_>, _: u64) -> anyhow::Result<Option<bool>> {
        self.state = start(stage.job.rank());
        let batches = std::mem::take(&mut self.batches);
        (0..batches).try_for_each(|_| self.batch())?;
        (self.state, self.batches) = (start(stage.job.rank()), 0);
        stage.job.barrier()?;
        let local = self.window.local();
        let mut chunk = vec![0; CHUNK.min(1 << self.log_words)];
        let mut places = places(stage.job.rank(), self.log_words);
        let mut holds = true;
        for at in (0..1 << self.log_words).step_by(CHUNK) {
            local.read(at, &mut chunk)?;
            holds &= chunk.iter().all(|word| places.next() == Some(*word));
        }
        Ok(Some(super::all(stage.job, holds)?))
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.window.free()?)
    }
}

/// What the words of a rank's part are at first: their places in the table.
fn places(rank: usize, log_words: u32) -> Range<u64> {
    let first = (rank as u64) << log_words;
    first..first + (1 << log_words)
}

fn next(state: u64) -> u64 {
    state << 1 ^ if state.cast_signed() < 0 { POLYNOMIAL } else { 0 }
}

/// A place in the stream for each rank, far from the others.
fn start(rank: usize) -> u64 {
    nth(rank as i64 * (1 << 40))
}

/// The number at a place of the stream, in steps of its logarithm: multiplication by powers of x, modulo the polynomial.
fn nth(place: i64) -> u64 {
    let place = place.rem_euclid(PERIOD);
    let mut powers = [0_u64; 64];
    let mut power = 1;
    for slot in &mut powers {
        *slot = power;
        power = next(next(power));
    }
    if place == 0 {
        return 1;
    }
    let mut state = 2_u64;
    for bit in (0..63 - place.leading_zeros()).rev() {
        state = (0..64).filter(|i| state >> i & 1 == 1).fold(0, |sum, i| sum ^ powers[i]);
        if place >> bit & 1 == 1 {
            state = next(state);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_steps() {
        let mut state = 1;
        for place in 0..1000 {
            assert_eq!(nth(place), state, "{place}");
            state = next(state);
        }
        assert_eq!(nth(PERIOD), 1);
    }
}
