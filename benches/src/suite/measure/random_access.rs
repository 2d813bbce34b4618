//! Updates of random words of a table that all ranks hold: the RandomAccess benchmark of HPC Challenge, by accumulates.

use transom::{Bxor, Job, Window};

use super::Measure;
use crate::repeat::{Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Words of the table at each rank.
const WORDS: u64 = 1 << 16;
/// Updates before a flush: what the benchmark's rules allow to look ahead.
pub const BATCH: usize = 1024;
/// Its primitive polynomial over GF(2), and the period of what that generates.
const POLYNOMIAL: u64 = 7;
const PERIOD: i64 = 1_317_624_576_693_539_401;

/// The table, and where this rank is in the stream of random numbers.
#[derive(Debug)]
pub struct RandomAccess {
    head: Head,
    window: Window<u64>,
    /// The next number.
    state: u64,
    /// Batches since the table was as at first.
    batches: u64,
}

impl RandomAccess {
    /// A table whose words are their own places. Collective.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(job: &Job, head: Head) -> transom::Result<Self> {
        let window = job.allocate(WORDS as usize)?;
        let first = job.rank() as u64 * WORDS;
        window.local().write(0, &(first..first + WORDS).collect::<Vec<u64>>())?;
        job.barrier()?;
        Ok(Self { head, window, state: start(job.rank()), batches: 0 })
    }

    fn batch(&mut self) -> transom::Result<()> {
        let ranks = self.head.ranks as u64;
        let state = &mut self.state;
        self.batches += 1;
        self.window.lock_all(|epoch| {
            for _ in 0..BATCH {
                *state = next(*state);
                let place = *state % (ranks * WORDS);
                epoch.accumulate((place / WORDS) as usize, (place % WORDS) as usize, Bxor, &[*state])?;
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
        let first = stage.job.rank() as u64 * WORDS;
        let holds = self.window.local().to_vec()?.into_iter().eq(first..first + WORDS);
        Ok(Some(super::all(stage.job, holds)?))
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.window.free()?)
    }
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
