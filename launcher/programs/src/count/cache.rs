//! Where the words are that this rank has met, so that a repeated word costs no search.

use hashbrown::HashTable;
use transom::Result;

use crate::table::{Access, Operator, Place, hash};

/// Bytes of words and places that a rank remembers. When there are more, it forgets them all.
const LIMIT: usize = 128 << 20;

/// Whether a word could be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// It is.
    Yes,
    /// The table must grow.
    NoRoom,
}

#[derive(Debug)]
struct Known {
    hash: u64,
    word: Box<[u8]>,
    place: Place,
    /// Occurrences that are not in the table yet.
    pending: u32,
}

/// Places of words.
#[derive(Debug)]
pub struct Cache {
    known: HashTable<Known>,
    bytes: usize,
    /// How many occurrences one operation counts, by owner.
    limits: Vec<u32>,
}

impl Cache {
    /// Knows nothing. `limits` says how many occurrences of a word one operation counts, by owner.
    pub fn new(limits: Vec<u32>) -> Self {
        Self { known: HashTable::new(), bytes: 0, limits }
    }

    /// Counts a word.
    ///
    /// # Errors
    /// Those of the operations.
    #[inline]
    pub fn count(
        &mut self,
        operator: &mut Operator<'_>,
        open: &Access<'_, '_, '_>,
        word: &[u8],
    ) -> Result<Counted> {
        let hash = hash(word);
        let Some(known) = self.known.find_mut(hash, |known| known.hash == hash && *known.word == *word)
        else {
            return self.first(operator, open, hash, word);
        };
        known.pending += 1;
        if known.pending >= self.limits[known.place.owner] {
            let count = std::mem::take(&mut known.pending);
            operator.add(open, known.place, count.into())?;
        }
        Ok(Counted::Yes)
    }

    /// Counts a word that is not known.
    fn first(
        &mut self,
        operator: &mut Operator<'_>,
        open: &Access<'_, '_, '_>,
        hash: u64,
        word: &[u8],
    ) -> Result<Counted> {
        let Some(place) = operator.place(open, hash, word)? else { return Ok(Counted::NoRoom) };
        if self.bytes > LIMIT {
            self.clear(operator, open)?;
        }
        let mut pending = 1;
        if pending >= self.limits[place.owner] {
            operator.add(open, place, 1)?;
            pending = 0;
        }
        self.bytes += word.len() + 2 * size_of::<Known>();
        self.known.insert_unique(hash, Known { hash, word: word.into(), place, pending }, |known| known.hash);
        Ok(Counted::Yes)
    }

    /// Counts what is pending, and forgets all places.
    ///
    /// # Errors
    /// Those of the operations.
    pub fn clear(&mut self, operator: &mut Operator<'_>, open: &Access<'_, '_, '_>) -> Result<()> {
        for known in self.known.drain().filter(|known| known.pending > 0) {
            operator.add(open, known.place, known.pending.into())?;
        }
        self.bytes = 0;
        Ok(())
    }
}
