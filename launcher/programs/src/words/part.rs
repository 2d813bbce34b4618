//! The words of a part of one file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes read behind a part, which mostly hold the end of its last word.
const TAIL: u64 = 64;

/// Bytes that can be read from any place.
pub trait Source {
    /// Reads some bytes at `offset`; none at the end.
    ///
    /// # Errors
    /// As the system says.
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Source for File {
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Source for &[u8] {
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Reads the words that begin in a part of a file, in chunks; memory for one chunk, or for the longest word.
#[derive(Debug)]
pub struct PartReader<S> {
    source: S,
    /// Words must begin before this.
    end: u64,
    /// Bytes of the file.
    len: u64,
    chunk: usize,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    base: u64,
    /// How much of the buffer is done.
    done: usize,
    /// What comes next belongs to the word of another part.
    foreign: bool,
}

impl<S: Source> PartReader<S> {
    /// The words that begin in `part` of a source of `len` bytes, which is read `chunk` bytes at a time.
    pub fn new(source: S, part: Range<u64>, len: u64, chunk: usize) -> Self {
        // The byte before tells whether the part begins inside a word.
        let base = part.start.saturating_sub(1);
        let foreign = part.start > 0;
        Self { source, end: part.end, len, chunk, buffer: Vec::new(), base, done: 0, foreign }
    }

    /// How far the file is done.
    pub fn position(&self) -> u64 {
        (self.base + self.done as u64).min(self.end)
    }

    /// Bytes of the buffer, as [`PartReader::advance`] found them.
    pub fn bytes(&self, word: Range<usize>) -> &[u8] {
        &self.buffer[word]
    }

    /// Finds the next word, which [`PartReader::bytes`] gives until the next call.
    ///
    /// # Errors
    /// The source cannot be read, or ends early.
    #[inline]
    pub fn advance(&mut self) -> io::Result<Option<Range<usize>>> {
        loop {
            if self.foreign {
                let rest = &self.buffer[self.done..];
                let letters = rest.iter().position(|b| !is_letter(*b));
                self.foreign = letters.is_none();
                self.done += letters.unwrap_or(rest.len());
            }
            let rest = &self.buffer[self.done..];
            let gap = if self.foreign { None } else { rest.iter().position(|b| is_letter(*b)) };
            self.done += gap.unwrap_or(rest.len());
            if self.base + self.done as u64 >= self.end {
                return Ok(None);
            }
            if gap.is_some() {
                return self.word().map(Some);
            }
            if self.more()? == 0 {
                return Ok(None);
            }
        }
    }

    /// The end of the word that begins at `done`.
    #[inline]
    fn word(&mut self) -> io::Result<Range<usize>> {
        let mut letters = 1;
        loop {
            let rest = &self.buffer[self.done + letters..];
            if let Some(more) = rest.iter().position(|b| !is_letter(*b)) {
                letters += more;
                break;
            }
            letters += rest.len();
            if self.more()? == 0 {
                break;
            }
        }
        let word = self.done..self.done + letters;
        self.done = word.end;
        Ok(word)
    }

    /// Reads more, behind what is not done.
    #[cold]
    fn more(&mut self) -> io::Result<usize> {
        self.base += self.done as u64;
        self.buffer.drain(..self.done);
        self.done = 0;
        let old = self.buffer.len();
        let offset = self.base + old as u64;
        // Behind the part only the rest of its last word is of interest.
        let ahead = self.end.saturating_sub(offset).saturating_add(TAIL).max(old as u64);
        let wanted = (self.chunk.max(old) as u64).min(ahead).min(self.len.saturating_sub(offset)) as usize;
        if wanted == 0 {
            return Ok(0);
        }
        self.buffer.resize(old + wanted, 0);
        let count = self.source.read_some(offset, &mut self.buffer[old..])?;
        self.buffer.truncate(old + count);
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read"));
        }
        self.buffer[old..].make_ascii_lowercase();
        Ok(count)
    }
}

/// Whether a byte, in lower case, is part of a word.
#[inline]
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &[u8], part: Range<u64>, chunk: usize) -> Vec<Vec<u8>> {
        let mut reader = PartReader::new(text, part, text.len() as u64, chunk);
        let mut words = Vec::new();
        while let Some(word) = reader.advance().unwrap() {
            words.push(reader.bytes(word).to_vec());
        }
        words
    }

    fn plainly(text: &[u8]) -> Vec<Vec<u8>> {
        let runs = text.split(|b| !b.is_ascii_alphabetic()).filter(|run| !run.is_empty());
        runs.map(<[u8]>::to_ascii_lowercase).collect()
    }

    proptest! {
        #[test]
        fn every_word_is_in_one_part(
            text in "[a-cA-C ,é]{0,40}",
            mut cuts in prop::collection::vec(0_u64..60, 0..6),
            chunk in 1_usize..9,
        ) {
            let text = text.as_bytes();
            let len = text.len() as u64;
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(len));
            cuts.extend([0, len]);
            cuts.sort_unstable();
            let parts = cuts.windows(2).flat_map(|cut| words(text, cut[0]..cut[1], chunk));
            prop_assert_eq!(parts.collect::<Vec<_>>(), plainly(text));
        }
    }

    #[test]
    fn a_word_longer_than_chunks() {
        let text = [b"--".as_slice(), &vec![b'Q'; 100_000], b"-x"].concat();
        let found = words(&text, 0..text.len() as u64, 64);
        assert_eq!(found, [vec![b'q'; 100_000], b"x".to_vec()]);
        assert_eq!(words(&text, 3..text.len() as u64, 64), [b"x"]);
        assert!(words(&text, 3..100_000, 64).is_empty());
    }

    #[test]
    fn a_source_that_became_shorter() {
        let mut reader = PartReader::new(b"ab ".as_slice(), 0..10, 10, 4);
        assert!(reader.advance().unwrap().is_some());
        assert_eq!(reader.advance().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
