//! Counting words: each rank its part of the input, all in one table.

mod cache;
mod collect;

use std::time::{Duration, Instant};

use transom::{Job, Sum};

pub use collect::Counts;

use crate::failure::Failure;
use crate::progress::{Counter, Progress};
use crate::table::{Access, KINDS, Operator, Table};
use crate::words::{Input, Words};
use cache::{Cache, Counted};

/// Words between looks at the table's flag.
const LOOK: u32 = 64;

/// Bytes of input that a rank does between its reports of progress.
const REPORT: u64 = 64 << 10;

/// Bytes of the first heaps: enough for the words of most texts of that many bytes; the heaps grow when they are not.
const HEAP_MIN: u64 = 64 << 10;
const HEAP_MAX: u64 = 256 << 20;

/// How to count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Occurrences of a word that are counted by one fetch_and_op; by default 1 at ranks whose memory is mapped, and
    /// [`FAR_COMBINE`] at others.
    pub combine: Option<u32>,
    /// Bytes of each rank's first heap, instead of an estimate.
    pub heap: Option<usize>,
    /// Whether rank 0 shows progress on its standard error.
    pub progress: bool,
}

/// Occurrences that are counted by one operation over a network, where it takes a round trip.
pub const FAR_COMBINE: u32 = 64;

/// What rank 0 knows of a run.
#[derive(Debug)]
pub struct Run {
    /// The words and their counts.
    pub counts: Counts,
    /// Of the counting, from when all ranks began until all had ended.
    pub time: Duration,
    /// One-sided operations of all ranks in that time, by the kinds in [`KINDS`].
    pub operations: [u64; KINDS.len()],
}

/// Counts the words of `input`; rank 0 gets the result. Collective.
///
/// # Errors
/// A file cannot be read to its end; no memory; errors of the runtime.
pub fn count(job: &Job, input: &Input, options: Options) -> Result<Option<Run>, Failure> {
    let estimate = (input.bytes() / 4 / job.size() as u64).clamp(HEAP_MIN, HEAP_MAX) as usize;
    let mut table = Table::new(job, options.heap.unwrap_or(estimate))?;
    let mut worker = Worker {
        words: Words::new(input, job.rank(), job.size()),
        cache: Cache::new(limits(job, options.combine)),
        waiting: None,
        counted: 0,
    };
    let counter = Counter::new(job, REPORT)?;
    let shown = (options.progress && job.rank() == 0).then(|| Progress::bytes(input.bytes()));
    job.barrier()?;
    let begin = Instant::now();
    counter.shown_by(shown, || worker.rounds(job, &mut table, &counter))?;
    let time = begin.elapsed();
    counter.free()?;
    finish(job, table, worker.counted, time)
}

/// Collects what was counted.
fn finish(job: &Job, table: Table, counted: u64, time: Duration) -> Result<Option<Run>, Failure> {
    let sums = job.allreduce(Sum, &table.operations.numbers())?;
    let words = job.allreduce(Sum, &[counted])?[0];
    let counts = (job.rank() == 0).then(|| Counts::collect(job, &table)).transpose()?;
    job.barrier()?;
    table.free()?;
    let Some(counts) = counts else { return Ok(None) };
    counts.check(words)?;
    let mut operations = [0; KINDS.len()];
    operations.copy_from_slice(&sums);
    Ok(Some(Run { counts, time, operations }))
}

/// How many occurrences to combine for words of each rank.
fn limits(job: &Job, combine: Option<u32>) -> Vec<u32> {
    let near = |rank| rank == job.rank() || job.transport(rank).is_some_and(|(name, _)| name == "shm");
    let usual = |rank| if near(rank) { 1 } else { FAR_COMBINE };
    (0..job.size()).map(|rank| combine.unwrap_or_else(|| usual(rank))).collect()
}

/// One rank's counting.
struct Worker<'i> {
    words: Words<'i>,
    cache: Cache,
    /// The word that there was no room for.
    waiting: Option<Vec<u8>>,
    counted: u64,
}

impl Worker<'_> {
    /// Counts until all ranks' parts are finished.
    fn rounds(&mut self, job: &Job, table: &mut Table, counter: &Counter) -> Result<(), Failure> {
        loop {
            let finished = table.open(|operator, open| Ok(self.round(operator, open, counter)))??;
            if !table.grow(job, !finished)? {
                return Ok(());
            }
        }
    }

    /// Counts until the part is finished, which it returns, or the table must grow.
    fn round(
        &mut self,
        operator: &mut Operator<'_>,
        open: &Access<'_, '_, '_>,
        counter: &Counter,
    ) -> Result<bool, Failure> {
        if let Some(word) = self.waiting.take()
            && self.cache.count(operator, open, &word)? == Counted::NoRoom
        {
            self.waiting = Some(word);
        }
        let mut finished = false;
        while !finished && self.waiting.is_none() && !operator.growth_is_asked()? {
            finished = self.some(operator, open)?;
            counter.report(self.words.consumed(), finished)?;
        }
        self.cache.clear(operator, open)?;
        Ok(finished)
    }

    /// Counts some words; returns whether they were the last.
    fn some(&mut self, operator: &mut Operator<'_>, open: &Access<'_, '_, '_>) -> Result<bool, Failure> {
        for _ in 0..LOOK {
            let Some(word) = self.words.next_word()? else { return Ok(true) };
            self.counted += 1;
            if u32::try_from(word.len()).is_err() {
                return Err(Failure::Here("a word of 4 GiB or more: this is no text".into()));
            }
            if self.cache.count(operator, open, word)? == Counted::NoRoom {
                self.waiting = Some(word.to_vec());
                break;
            }
        }
        Ok(false)
    }
}
