//! Bytes that tell which round wrote them.

use transom_transport::{Span, TransportResult};

/// Words after which the bytes of a round repeat themselves.
const PERIOD: usize = 256;

/// The word that round `round` writes at word `index`; neighbouring rounds differ in every byte.
fn word(round: u64, index: usize) -> u64 {
    let byte = (round % 251 + 1) as u8;
    u64::from_ne_bytes([byte; 8]) ^ index as u64
}

/// The first `len` bytes of a round.
pub(crate) fn bytes(round: u64, len: usize) -> Vec<u8> {
    let words = len.div_ceil(8).min(PERIOD);
    let period: Vec<u8> = (0..words).flat_map(|index| word(round, index).to_ne_bytes()).collect();
    let mut bytes = period.repeat(len.div_ceil(8 * PERIOD));
    bytes.truncate(len);
    bytes
}

/// Whether `len` bytes at `offset` are those of the round. Looks at the last byte first, which is the likeliest to be missing,
/// then at the first, then at all.
pub(crate) fn is_there(memory: &Span, offset: usize, expected: &[u8]) -> TransportResult<bool> {
    let Some(last) = expected.len().checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    for at in [last, 0] {
        memory.copy_out(offset + at, &mut byte)?;
        if byte[0] != expected[at] {
            return Ok(false);
        }
    }
    let mut seen = vec![0; expected.len()];
    memory.copy_out(offset, &mut seen)?;
    Ok(seen == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_differ_in_every_byte() {
        for round in 0..600 {
            let (one, next) = (bytes(round, 4099), bytes(round + 1, 4099));
            assert!(one.iter().zip(&next).all(|(a, b)| a != b), "{round}");
        }
    }

    #[test]
    fn a_missing_byte_is_seen() {
        let memory = Span::anonymous(4096).unwrap();
        let expected = bytes(7, 100);
        memory.copy_in(8, &expected).unwrap();
        assert!(is_there(&memory, 8, &expected).unwrap());
        for at in [0, 50, 99] {
            memory.copy_in(8 + at, &[!expected[at]]).unwrap();
            assert!(!is_there(&memory, 8, &expected).unwrap(), "{at}");
            memory.copy_in(8 + at, &expected[at..=at]).unwrap();
        }
    }
}
