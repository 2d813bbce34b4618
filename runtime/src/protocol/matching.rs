//! Parts of collectives' data that have arrived, until the rank enters the collective that needs them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use transom_transport::Payload;

/// A hash of a few numbers, in as many multiplications. Keys are those of ranks that have the job's secret: no other
/// process can choose them so that they collide.
#[derive(Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.wrapping_add(number).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The upper bits depend on all of the input; tables look at the lower ones, too.
        self.0.rotate_left(26)
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Identifies one transfer of one collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Rank in the job that sends.
    pub source: usize,
    /// The communicator.
    pub context: u64,
    /// The collective's number in its communicator: all ranks count alike.
    pub sequence: u64,
    /// Round within the collective.
    pub round: u64,
}

#[derive(Debug)]
struct Transfer {
    /// With room for all of it; none where this rank has no memory for that.
    data: Option<Vec<u8>>,
    total: u64,
    received: u64,
}

impl Transfer {
    fn new(total: u64) -> Self {
        let room = |total| {
            let mut data = Vec::new();
            data.try_reserve_exact(total).is_ok().then_some(data)
        };
        Self { data: usize::try_from(total).ok().and_then(room), total, received: 0 }
    }

    /// Takes a part that ends before `total`.
    fn add(&mut self, start: u64, part: Payload<'_>) {
        self.received += part.len() as u64;
        let Some(data) = &mut self.data else { return };
        let start = start as usize;
        if data.len() == start {
            return part.append_to(data);
        }
        let end = start + part.len();
        if data.len() < end {
            data.resize(end, 0);
        }
        part.copy_to(&mut data[start..end]);
    }

    /// All of it: as long as was announced, even if parts came twice and others never.
    fn whole(self) -> Option<Vec<u8>> {
        let mut data = self.data?;
        data.resize(self.total as usize, 0);
        Some(data)
    }
}

/// Another rank is in another collective than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// The other rank, in the job.
    pub source: usize,
    /// The collective that it is in.
    pub collective: u8,
}

/// Why a transfer cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another rank is in another collective.
    Mismatch(Mismatch),
    /// This rank has no memory for so many bytes.
    NoMemory(u64),
}

/// Transfers by key, complete or growing.
#[derive(Debug, Default)]
pub struct Matching {
    transfers: Map<Key, Transfer>,
    /// For each collective under way, by communicator and number: which one it is, for the first rank that sent something.
    collectives: Map<(u64, u64), Mismatch>,
    /// For each communicator the last notice of a rank that waits in a collective whose ranks send no messages: the
    /// collective's number, and which one it is.
    waiting: Map<u64, (u64, Mismatch)>,
}

impl Matching {
    /// No memory holds more.
    const MAX: u64 = isize::MAX as u64;

    /// What partitioned messages have instead of a collective: they go without its number, which their keys have.
    pub const PARTITIONED: u8 = 22;

    /// A part arrived. False if it is malformed.
    pub fn arrived(&mut self, key: Key, collective: u8, total: u64, start: u64, part: Payload<'_>) -> bool {
        if total > Self::MAX || start.checked_add(part.len() as u64).is_none_or(|end| end > total) {
            return false;
        }
        if collective != Self::PARTITIONED {
            self.collectives
                .entry((key.context, key.sequence))
                .or_insert(Mismatch { source: key.source, collective });
        }
        let transfer = self.transfers.entry(key).or_insert_with(|| Transfer::new(total));
        if transfer.total != total {
            return false;
        }
        transfer.add(start, part);
        true
    }

    /// Takes a transfer that is complete, in a rank that is in `collective`.
    pub fn take(&mut self, key: Key, collective: u8) -> Result<Option<Vec<u8>>, Refusal> {
        let found = match self.collectives.get(&(key.context, key.sequence)) {
            Some(other) if other.collective != collective => return Err(Refusal::Mismatch(*other)),
            Some(_) => self.take_partition(key)?,
            None => None,
        };
        match self.waiting.get(&key.context) {
            Some((sequence, other))
                if found.is_none() && *sequence == key.sequence && other.collective != collective =>
            {
                Err(Refusal::Mismatch(*other))
            }
            _ => Ok(found),
        }
    }

    /// A rank waits in a collective for whose data no messages are sent.
    pub fn waits(&mut self, context: u64, sequence: u64, who: Mismatch) {
        self.waiting.insert(context, (sequence, who));
    }

    /// Forgets the ranks that wait in a communicator's collectives up to `sequence`: this rank has entered that one.
    /// Returns whether no other is known to wait.
    pub fn forget_waiting(&mut self, context: u64, sequence: u64) -> bool {
        if self.waiting.get(&context).is_some_and(|(waits, _)| *waits <= sequence) {
            self.waiting.remove(&context);
        }
        self.waiting.is_empty()
    }

    /// Takes a transfer that is complete, of a partitioned message.
    pub fn take_partition(&mut self, key: Key) -> Result<Option<Vec<u8>>, Refusal> {
        match self.transfers.get(&key) {
            Some(Transfer { data: None, total, .. }) => Err(Refusal::NoMemory(*total)),
            Some(transfer) if transfer.received >= transfer.total => {
                Ok(self.transfers.remove(&key).and_then(Transfer::whole))
            }
            _ => Ok(None),
        }
    }

    /// Takes the end of a transfer whose first `taken` bytes have not come here, once all behind them have: a vector of all, of which
    /// these are not.
    pub fn take_behind(&mut self, key: Key, taken: u64) -> Result<Option<Vec<u8>>, Refusal> {
        match self.transfers.get(&key) {
            Some(Transfer { data: None, total, .. }) => Err(Refusal::NoMemory(*total)),
            Some(transfer) if transfer.received.saturating_add(taken) >= transfer.total => {
                Ok(self.transfers.remove(&key).and_then(Transfer::whole))
            }
            _ => Ok(None),
        }
    }

    /// What a rank is known to be in, in another communicator.
    pub fn elsewhere(&self, source: usize, context: u64) -> Option<u8> {
        let messages = self.collectives.iter().map(|(key, other)| (key.0, other));
        let words = self.waiting.iter().map(|(context, (_, other))| (*context, other));
        let of_source = |(other_context, other): (u64, &Mismatch)| {
            (other_context != context && other.source == source).then_some(other.collective)
        };
        messages.chain(words).find_map(of_source)
    }

    /// What a rank is known to be in, in this communicator: the numbers and collectives.
    pub fn of_source(&self, source: usize, context: u64) -> impl Iterator<Item = (u64, u8)> {
        let own = move |(key, other): (&(u64, u64), &Mismatch)| {
            (key.0 == context && other.source == source).then_some((key.1, other.collective))
        };
        self.collectives.iter().filter_map(own)
    }

    /// This rank has completed a collective: all that others send in it has been taken. Returns whether none is known of others.
    pub fn finish(&mut self, context: u64, sequence: u64) -> bool {
        self.collectives.remove(&(context, sequence));
        self.collectives.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { source: 1, context: 6, sequence: 2, round: 0 };

    #[test]
    fn parts_behind_others_that_came_elsewhere() {
        let mut matching = Matching::default();
        assert_eq!(matching.take_behind(KEY, 2), Ok(None));
        assert!(matching.arrived(KEY, 3, 6, 2, b"cd".into()));
        assert_eq!((matching.take_behind(KEY, 2), matching.take(KEY, 3)), (Ok(None), Ok(None)));
        assert!(matching.arrived(KEY, 3, 6, 4, b"ef".into()));
        assert_eq!(matching.take_behind(KEY, 2), Ok(Some(b"\0\0cdef".to_vec())));
        assert_eq!(matching.take_behind(KEY, 2), Ok(None));
    }

    #[test]
    fn parts_make_a_whole() {
        let mut matching = Matching::default();
        assert!(matching.arrived(KEY, 3, 4, 2, b"cd".into()));
        assert_eq!(matching.take(KEY, 3), Ok(None));
        assert!(matching.arrived(KEY, 3, 4, 0, b"ab".into()));
        let elsewhere = Key { source: 5, round: 9, ..KEY };
        let other = Refusal::Mismatch(Mismatch { source: 1, collective: 3 });
        assert_eq!(matching.take(elsewhere, 4), Err(other));
        assert_eq!(matching.take(KEY, 3), Ok(Some(b"abcd".to_vec())));
        assert_eq!(matching.take(KEY, 3), Ok(None));
    }

    #[test]
    fn who_waits_without_messages_is_known() {
        let mut matching = Matching::default();
        let other = Mismatch { source: 1, collective: 5 };
        matching.waits(6, 2, other);
        let refusal = Err(Refusal::Mismatch(other));
        assert_eq!((matching.take(KEY, 5), matching.take(KEY, 6)), (Ok(None), refusal));
        assert_eq!(matching.take(Key { sequence: 3, ..KEY }, 6), Ok(None));
        assert_eq!((matching.elsewhere(1, 7), matching.elsewhere(1, 6)), (Some(5), None));
        assert!(!matching.forget_waiting(6, 1));
        assert!(matching.forget_waiting(6, 2));
        assert_eq!(matching.take(KEY, 6), Ok(None));
    }

    /// Nothing is touched of what has not arrived.
    #[test]
    fn transfers_have_any_length() {
        let mut matching = Matching::default();
        let total = (1 << 32) + 1;
        assert!(matching.arrived(KEY, 3, total, 0, b"a".into()));
        assert_eq!(matching.take(KEY, 3), Ok(None));
        // More than there is of addresses: the transfer cannot be, and its ranks are told so.
        let vast = Key { round: 1, ..KEY };
        assert!(matching.arrived(vast, 3, i64::MAX as u64, 0, b"a".into()));
        assert!(matching.arrived(vast, 3, i64::MAX as u64, 1, b"b".into()));
        assert_eq!(matching.take(vast, 3), Err(Refusal::NoMemory(i64::MAX as u64)));
    }

    #[test]
    fn parts_come_in_any_order() {
        let mut matching = Matching::default();
        for (start, part) in [(4, &b"ef"[..]), (0, b"ab"), (6, b"gh"), (2, b"cd")] {
            assert_eq!(matching.take(KEY, 3), Ok(None));
            assert!(matching.arrived(KEY, 3, 8, start, part.into()));
        }
        assert_eq!(matching.take(KEY, 3), Ok(Some(b"abcdefgh".to_vec())));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut matching = Matching::default();
        assert!(!matching.arrived(KEY, 3, u64::MAX, 0, b"".into()));
        assert!(!matching.arrived(KEY, 3, 4, u64::MAX, b"a".into()));
        assert!(!matching.arrived(KEY, 3, 4, 3, b"ab".into()));
        assert!(matching.arrived(KEY, 3, 4, 0, b"ab".into()));
        assert!(!matching.arrived(KEY, 3, 5, 2, b"ab".into()));
        assert!(matching.arrived(KEY, 3, 4, 0, b"ab".into()));
        assert_eq!(matching.take(KEY, 3), Ok(Some(b"ab\0\0".to_vec())));
    }
}
