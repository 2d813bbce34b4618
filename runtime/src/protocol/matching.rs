//! Parts of collectives' data that have arrived, until the rank comes to the collective that needs them.

use std::collections::HashMap;

/// Identifies one transfer of one collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Rank that sends.
    pub source: usize,
    /// The collective's number: all ranks count alike.
    pub sequence: u64,
    /// Round within the collective.
    pub round: u64,
}

#[derive(Debug)]
struct Transfer {
    collective: u8,
    data: Vec<u8>,
    received: usize,
}

/// Transfers by key, complete or growing.
#[derive(Debug, Default)]
pub struct Matching(HashMap<Key, Transfer>);

impl Matching {
    /// Largest transfer that a peer may announce: protects against a malformed length.
    pub const MAX: u64 = 1 << 32;

    /// A part arrived. False if it makes no sense.
    pub fn arrived(&mut self, key: Key, collective: u8, total: u64, start: u64, part: &[u8]) -> bool {
        if total > Self::MAX || start.checked_add(part.len() as u64).is_none_or(|end| end > total) {
            return false;
        }
        let transfer = self.0.entry(key).or_insert_with(|| Transfer {
            collective,
            data: vec![0; total as usize],
            received: 0,
        });
        if transfer.data.len() as u64 != total || transfer.collective != collective {
            return false;
        }
        transfer.data[start as usize..start as usize + part.len()].copy_from_slice(part);
        transfer.received += part.len();
        true
    }

    /// Takes a transfer that is complete. `Err` names the collective that the source is in, if it is another.
    pub fn take(&mut self, key: Key, collective: u8) -> Result<Option<Vec<u8>>, u8> {
        match self.0.get(&key) {
            Some(transfer) if transfer.collective != collective => Err(transfer.collective),
            Some(transfer) if transfer.received >= transfer.data.len() => {
                Ok(self.0.remove(&key).map(|transfer| transfer.data))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { source: 1, sequence: 2, round: 0 };

    #[test]
    fn parts_make_a_whole() {
        let mut matching = Matching::default();
        assert!(matching.arrived(KEY, 3, 4, 2, b"cd"));
        assert_eq!(matching.take(KEY, 3), Ok(None));
        assert!(matching.arrived(KEY, 3, 4, 0, b"ab"));
        assert_eq!(matching.take(KEY, 4), Err(3));
        assert_eq!(matching.take(KEY, 3), Ok(Some(b"abcd".to_vec())));
        assert_eq!(matching.take(KEY, 3), Ok(None));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut matching = Matching::default();
        assert!(!matching.arrived(KEY, 3, u64::MAX, 0, b""));
        assert!(!matching.arrived(KEY, 3, 4, u64::MAX, b"a"));
        assert!(!matching.arrived(KEY, 3, 4, 3, b"ab"));
        assert!(matching.arrived(KEY, 3, 4, 0, b"ab"));
        assert!(!matching.arrived(KEY, 3, 5, 2, b"ab"));
    }
}
