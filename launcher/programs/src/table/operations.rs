//! Finding, inserting and counting words, by one-sided operations only.

use transom::Result;

use super::record::write_record;
use super::{Access, GROW, Operator, Place, SLOT, TAKEN, entry, mask, owner, record_offset, tag_matches};

/// The kinds of operations, in the order of [`Operations`].
pub const KINDS: [&str; 5] =
    ["fetch_and_op", "fetch_and_op (no-op: atomic read)", "compare_and_swap", "get", "put"];

/// How many operations a rank made.
#[derive(Debug, Default, Clone, Copy)]
pub struct Operations {
    /// Counts, and room in heaps.
    pub add: u64,
    /// Entries.
    pub fetch: u64,
    /// Publications.
    pub swap: u64,
    /// Records, to be compared.
    pub get: u64,
    /// Records.
    pub put: u64,
}

impl Operations {
    /// As numbers, in the order of [`KINDS`].
    pub fn numbers(&self) -> [u64; KINDS.len()] {
        [self.add, self.fetch, self.swap, self.get, self.put]
    }
}

impl Operator<'_> {
    /// Where to count a word: where it is, or where this call inserts it. `None` if there is no room for it: then growth
    /// has been asked for.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn place(&mut self, open: &Access<'_, '_, '_>, hash: u64, word: &[u8]) -> Result<Option<Place>> {
        let owner = owner(hash, self.capacities.len());
        let mask = mask(self.capacities[owner]);
        let mut slot = hash as usize & mask;
        let mut written = None;
        write_record(self.record, word);
        loop {
            self.operations.fetch += 1;
            let mut found = open.slots.fetch(owner, slot * SLOT)?;
            if found == 0 {
                let Some(offset) = self.written(open, owner, &mut written)? else { return Ok(None) };
                self.operations.swap += 1;
                found = open.slots.compare_and_swap(owner, slot * SLOT, 0, entry(hash, offset))?;
                if found == 0 {
                    return Ok(Some(Place { owner, slot }));
                }
            }
            if tag_matches(found, hash) && self.is_at(open, owner, found)? {
                if let Some(offset) = written {
                    self.keep(owner, offset, self.record.len());
                }
                return Ok(Some(Place { owner, slot }));
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds to the count of a word.
    ///
    /// # Errors
    /// Those of the operation.
    #[inline]
    pub fn add(&mut self, open: &Access<'_, '_, '_>, place: Place, count: u64) -> Result<()> {
        self.operations.add += 1;
        open.slots.fetch_add(place.owner, place.slot * SLOT + 1, count).map(drop)
    }

    /// Whether some rank has asked for growth.
    ///
    /// # Errors
    /// None today.
    #[inline]
    pub fn growth_is_asked(&self) -> Result<bool> {
        Ok(self.local.get(GROW)? != 0)
    }

    /// Whether the record of an entry is that of the word looked for.
    fn is_at(&mut self, open: &Access<'_, '_, '_>, owner: usize, entry: u64) -> Result<bool> {
        let Some(offset) = record_offset(entry) else { return Ok(false) };
        let bytes = self.record.len();
        if bytes > self.capacities[owner] - offset {
            return Ok(false); // A shorter word, at the end of the heap.
        }
        self.compared.resize(bytes, 0);
        self.operations.get += 1;
        open.heap.read(owner, offset, self.compared)?;
        Ok(self.compared == self.record)
    }

    /// Where the record is in the owner's heap; puts it there the first time.
    fn written(
        &mut self,
        open: &Access<'_, '_, '_>,
        owner: usize,
        written: &mut Option<usize>,
    ) -> Result<Option<usize>> {
        if written.is_none() {
            let Some(offset) = self.room(open, owner)? else { return Ok(None) };
            self.operations.put += 1;
            open.heap.put_copy(owner, offset, self.record)?;
            open.heap.flush(owner)?;
            *written = Some(offset);
        }
        Ok(*written)
    }

    /// Room for the record in the owner's heap.
    fn room(&mut self, open: &Access<'_, '_, '_>, owner: usize) -> Result<Option<usize>> {
        let wanted = self.record.len();
        let (offset, bytes) = self.spare[owner];
        if bytes >= wanted {
            self.spare[owner] = (offset + wanted, bytes - wanted);
            return Ok(Some(offset));
        }
        self.operations.add += 1;
        let offset = open.control.fetch_add(owner, TAKEN, wanted as u64)?;
        let capacity = self.capacities[owner];
        match usize::try_from(offset) {
            Ok(offset) if offset <= capacity && wanted <= capacity - offset => Ok(Some(offset)),
            _ => self.ask_for_growth(open).map(|()| None),
        }
    }

    /// Room that was taken and is not used: the larger one is kept.
    fn keep(&mut self, owner: usize, offset: usize, bytes: usize) {
        if bytes > self.spare[owner].1 {
            self.spare[owner] = (offset, bytes);
        }
    }

    #[cold]
    fn ask_for_growth(&mut self, open: &Access<'_, '_, '_>) -> Result<()> {
        for rank in 0..self.capacities.len() {
            self.operations.add += 1;
            open.control.swap(rank, GROW, 1)?;
        }
        Ok(())
    }
}
