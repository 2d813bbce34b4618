//! Words of files: who reads which part, and where words begin and end.
//!
//! A word is a maximal run of ASCII letters, in lower case. The files' bytes are divided among the ranks evenly,
//! whatever the number of files; a word belongs to the part that its first letter lies in. Reading goes on past the end
//! of a part to the end of its last word, and skips what is left of the word before, so that each word is read by one
//! rank exactly.

mod input;
mod part;

use std::fs::File;

pub use input::Input;
pub use part::{PartReader, Source};

use crate::failure::Failure;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// The words of one rank's part of the input.
#[derive(Debug)]
pub struct Words<'i> {
    input: &'i Input,
    /// What is left of the rank's part, in bytes of all files together.
    part: std::ops::Range<u64>,
    /// The file that is being read, and how far into it the part begins.
    file: usize,
    reader: Option<(PartReader<File>, u64)>,
    /// Bytes of files that were read to their end.
    finished: u64,
}

impl<'i> Words<'i> {
    /// The words of rank `rank` of `size`.
    pub fn new(input: &'i Input, rank: usize, size: usize) -> Self {
        let part = input.part(rank, size);
        let file = input.file_at(part.start);
        Self { input, part, file, reader: None, finished: 0 }
    }

    /// The next word, in lower case.
    ///
    /// # Errors
    /// A file cannot be read any more, or became shorter.
    pub fn next_word(&mut self) -> Result<Option<&[u8]>, Failure> {
        // In two steps, since a borrow that is returned from a loop would last for all of it.
        while let Some(index) = self.open()? {
            let Some((reader, _)) = &mut self.reader else { break };
            let word = reader.advance().map_err(|e| self.input.failure(index, &e))?;
            if let Some(word) = word {
                return Ok(self.reader.as_ref().map(|(reader, _)| reader.bytes(word)));
            }
            self.close();
        }
        Ok(None)
    }

    /// How many bytes of the part are done.
    pub fn consumed(&self) -> u64 {
        self.finished
            + self.reader.as_ref().map_or(0, |(reader, begin)| reader.position().saturating_sub(*begin))
    }

    /// Opens the next file of the part, if none is open.
    fn open(&mut self) -> Result<Option<usize>, Failure> {
        if self.reader.is_some() {
            return Ok(Some(self.file));
        }
        while self.part.start < self.part.end {
            let range = self.input.range(self.file);
            let end = range.end.min(self.part.end);
            if end > self.part.start {
                let (from, to) = (self.part.start - range.start, end - range.start);
                let file = self.input.open(self.file)?;
                self.reader = Some((PartReader::new(file, from..to, range.end - range.start, CHUNK), from));
                return Ok(Some(self.file));
            }
            self.file += 1;
        }
        Ok(None)
    }

    /// The part's bytes in the open file are done.
    fn close(&mut self) {
        self.reader = None;
        let end = self.input.range(self.file).end.min(self.part.end);
        self.finished += end - self.part.start;
        self.part.start = end;
        self.file += 1;
    }
}
