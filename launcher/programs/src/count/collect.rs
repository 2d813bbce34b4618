//! The table's contents, read by one rank from the others' windows.

use std::cmp::Reverse;

use transom::{Job, Result};

use crate::failure::Failure;
use crate::table::{Table, record_offset, record_text, slots_in};

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// All words and their counts, by falling count, then by word.
#[derive(Debug)]
pub struct Counts {
    /// Each rank's records.
    heaps: Vec<Vec<u8>>,
    /// Count, and where the word is: rank, begin, end.
    found: Vec<(u64, usize, usize, usize)>,
}

impl Counts {
    /// Reads all of the table, while no rank writes to it.
    pub(super) fn collect(job: &Job, table: &Table) -> Result<Self> {
        let mut counts = Self { heaps: Vec::new(), found: Vec::new() };
        for rank in 0..job.size() {
            let heap = records(table, rank)?;
            counts.read_slots(table, rank, &heap)?;
            counts.heaps.push(heap);
        }
        let Self { heaps, found } = &mut counts;
        found.sort_unstable_by_key(|&(count, rank, begin, end)| (Reverse(count), &heaps[rank][begin..end]));
        Ok(counts)
    }

    fn read_slots(&mut self, table: &Table, rank: usize, heap: &[u8]) -> Result<()> {
        let len = table.slots.len_at(rank).unwrap_or(0);
        let mut buffer = vec![0; len.min(CHUNK / size_of::<u64>())];
        for begin in (0..len).step_by(buffer.len().max(1)) {
            let part = (len - begin).min(buffer.len());
            table.slots.lock_all(|slots| slots.read(rank, begin, &mut buffer[..part]))?;
            for (entry, count) in slots_in(&buffer[..part]) {
                let text = record_offset(entry).and_then(|offset| record_text(heap, offset));
                self.found.extend(text.map(|text| (count, rank, text.start, text.end)));
            }
        }
        Ok(())
    }

    /// The words, with their counts.
    pub fn words(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.found.iter().map(|&(count, rank, begin, end)| (&self.heaps[rank][begin..end], count))
    }

    /// Number of different words.
    pub fn distinct(&self) -> usize {
        self.found.len()
    }

    /// Number of words.
    pub fn total(&self) -> u64 {
        self.found.iter().map(|(count, ..)| count).sum()
    }

    /// Whether all words that the ranks read were counted.
    pub(super) fn check(&self, read: u64) -> std::result::Result<(), Failure> {
        let counted = self.total();
        if counted == read {
            return Ok(());
        }
        Err(Failure::Here(format!("the ranks read {read} words, but the table has {counted}: this is a bug")))
    }
}

/// The part of a rank's heap that records are in.
fn records(table: &Table, rank: usize) -> Result<Vec<u8>> {
    let mut heap = vec![0; table.taken_at(rank)?];
    table.heap.lock_all(|epoch| {
        heap.chunks_mut(CHUNK).enumerate().try_for_each(|(i, part)| epoch.read(rank, i * CHUNK, part))
    })?;
    Ok(heap)
}
