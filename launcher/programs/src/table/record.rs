//! Records of words in a heap: the length in 4 bytes, the word, and zeros up to the next multiple of [`RECORD`].

use std::ops::Range;

const LENGTH: usize = 4;

/// Records begin at multiples of this, and take at least as much.
pub const RECORD: usize = 16;

/// Bytes of the record of a word of `len` bytes.
pub fn record_bytes(len: usize) -> usize {
    (LENGTH + len).next_multiple_of(RECORD)
}

/// Makes the record of a word. Words of 4 GiB do not come here: see [`crate::count`].
pub(super) fn write_record(record: &mut Vec<u8>, word: &[u8]) {
    record.clear();
    record.extend_from_slice(&(word.len() as u32).to_le_bytes());
    record.extend_from_slice(word);
    record.resize(record_bytes(word.len()), 0);
}

/// Where the word of the record at `offset` is in a heap, if the record is whole.
pub fn record_text(heap: &[u8], offset: usize) -> Option<Range<usize>> {
    let begin = offset.checked_add(LENGTH)?;
    let length = heap.get(offset..begin)?.try_into().ok()?;
    let end = begin.checked_add(u32::from_le_bytes(length) as usize)?;
    (end <= heap.len()).then_some(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let mut record = Vec::new();
        for (len, bytes) in [(1, 16), (12, 16), (13, 32), (1 << 20, (1 << 20) + 16)] {
            let word = vec![b'w'; len];
            write_record(&mut record, &word);
            assert_eq!((record.len(), record_bytes(len)), (bytes, bytes));
            assert_eq!(record_text(&record, 0), Some(4..4 + len));
            assert_eq!(record_text(&record[..len], 0), None);
        }
        assert_eq!(record_text(&record, usize::MAX), None);
    }
}
