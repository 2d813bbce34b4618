//! A hash table of words, spread over the windows of all ranks. No rank serves another: all is done by puts, gets and
//! atomics of the rank that counts.
//!
//! A word's hash chooses the rank that holds it (its owner) and a slot there; collisions go to the next slot. Slots are
//! of two integers: the *entry*, which is 0 or refers to the word's record in the owner's heap and repeats 16 bits of the
//! hash, and the count. To insert a word, a rank takes room in the heap by fetch_and_op, puts the record, and publishes
//! it by compare_and_swap of the entry from 0. A rank that loses this race finds the winner's record in the slot: if it
//! is the same word, that is the place to count, and the room is kept for another word.
//!
//! A heap holds half as many records as there are slots, so that searches end and stay short. When a heap is full, the
//! rank that found it raises every rank's flag, all come to [`Table::grow`], and go on where they were.

mod grow;
mod operations;
mod record;

use transom::{Job, Result, Window};

pub use operations::{KINDS, Operations};
pub use record::{RECORD, record_bytes, record_text};

/// Words of the control window: how much of this rank's heap is taken, and whether a rank asks for growth.
const TAKEN: usize = 0;
const GROW: usize = 1;
const CONTROL: usize = 2;

/// Integers of a slot, and slots for each possible record of the heap.
const SLOT: usize = 2;
const SLOTS_PER_RECORD: usize = 2;

/// Bits of an entry that refer to the heap, in records; the others are the tag.
const PLACE_BITS: u32 = 48;

/// Where a word is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The rank that holds it.
    pub owner: usize,
    slot: usize,
}

/// The windows of the table, and what this rank remembers of them.
#[derive(Debug)]
pub struct Table {
    control: Window<u64>,
    /// Entries and counts.
    pub slots: Window<u64>,
    /// Records.
    pub heap: Window<u8>,
    /// Bytes of each rank's heap.
    capacities: Vec<usize>,
    /// Room in each rank's heap that this rank took and did not use: offset and bytes.
    spare: Vec<(usize, usize)>,
    /// One-sided operations of this rank.
    pub operations: Operations,
    record: Vec<u8>,
    compared: Vec<u8>,
}

/// The table's windows, open for access.
pub struct Access<'a, 'w, 'env> {
    control: &'a transom::Epoch<'w, 'env, u64>,
    slots: &'a transom::Epoch<'w, 'env, u64>,
    heap: &'a transom::Epoch<'w, 'env, u8>,
}

impl Table {
    /// A table whose heaps have `bytes` bytes on each rank at first. Collective.
    ///
    /// # Errors
    /// No memory.
    pub fn new(job: &Job, bytes: usize) -> Result<Self> {
        let control = job.allocate(CONTROL)?;
        let bytes = bytes.max(RECORD).next_power_of_two();
        let (slots, heap) = windows(job, bytes)?;
        let capacities = capacities(job, &heap);
        let spare = vec![(0, 0); job.size()];
        let operations = Operations::default();
        let (record, compared) = (Vec::new(), Vec::new());
        Ok(Self { control, slots, heap, capacities, spare, operations, record, compared })
    }

    /// Opens the table.
    ///
    /// # Errors
    /// Those of `body`, and of operations that could not be completed.
    pub fn open<R>(
        &mut self,
        body: impl FnOnce(&mut Operator<'_>, &Access<'_, '_, '_>) -> Result<R>,
    ) -> Result<R> {
        let Self { control, slots, heap, capacities, spare, operations, record, compared } = self;
        let local = control.local();
        let mut operator = Operator { local, capacities, spare, operations, record, compared };
        control.lock_all(|control| {
            slots
                .lock_all(|slots| heap.lock_all(|heap| body(&mut operator, &Access { control, slots, heap })))
        })
    }

    /// Frees the windows. Collective.
    ///
    /// # Errors
    /// As [`Window::free`].
    pub fn free(self) -> Result<()> {
        self.slots.free()?;
        self.heap.free()?;
        self.control.free()
    }

    /// Bytes of a rank's heap that records may be in.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn taken_at(&self, rank: usize) -> Result<usize> {
        let asked = self.control.lock_all(|control| control.fetch(rank, TAKEN))?;
        Ok((asked as usize).min(self.capacities[rank]))
    }
}

/// Slots and heap of one size. Collective.
fn windows(job: &Job, heap_bytes: usize) -> Result<(Window<u64>, Window<u8>)> {
    let slots = heap_bytes / RECORD * SLOTS_PER_RECORD;
    Ok((job.allocate(slots * SLOT)?, job.allocate(heap_bytes)?))
}

fn capacities(job: &Job, heap: &Window<u8>) -> Vec<usize> {
    (0..job.size()).map(|rank| heap.len_at(rank).unwrap_or(0)).collect()
}

/// The operations on an open table.
#[derive(Debug)]
pub struct Operator<'t> {
    local: transom::Local<'t, u64>,
    capacities: &'t [usize],
    spare: &'t mut [(usize, usize)],
    operations: &'t mut Operations,
    record: &'t mut Vec<u8>,
    compared: &'t mut Vec<u8>,
}

/// The hash that places a word.
pub fn hash(word: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(word)
}

/// The rank that owns a hash. (The slot there comes from the lowest bits, the tag from the highest.)
fn owner(hash: u64, ranks: usize) -> usize {
    (hash >> 24) as u32 as usize % ranks
}

fn mask(capacity: usize) -> usize {
    capacity / RECORD * SLOTS_PER_RECORD - 1
}

/// The entry for a record at `offset` of the heap. Not 0.
fn entry(hash: u64, offset: usize) -> u64 {
    (hash >> PLACE_BITS << PLACE_BITS) | (offset / RECORD + 1) as u64
}

/// Whether an entry may be for this hash.
fn tag_matches(entry: u64, hash: u64) -> bool {
    (entry ^ hash) >> PLACE_BITS == 0
}

/// Where an entry's record is; `None` if there is none.
pub fn record_offset(entry: u64) -> Option<usize> {
    let number = entry & ((1 << PLACE_BITS) - 1);
    (number > 0).then(|| (number - 1) as usize * RECORD)
}

/// Entry and count of each slot in what was read of a window of slots.
pub fn slots_in(integers: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    integers.chunks_exact(SLOT).map(|slot| (slot[0], slot[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries() {
        for (hash, offset) in [(0, 0), (u64::MAX, 5 * RECORD), (hash(b"word"), 1 << 40)] {
            let entry = entry(hash, offset);
            assert_ne!(entry, 0);
            assert!(tag_matches(entry, hash) && !tag_matches(entry, hash ^ (1 << 60)));
            assert_eq!(record_offset(entry), Some(offset));
        }
        assert_eq!(record_offset(0), None);
    }
}
