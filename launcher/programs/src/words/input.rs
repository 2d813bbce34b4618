//! The files to be read, and how their bytes are divided.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use transom::Job;

use crate::failure::{Failure, agree, io_message};

/// Files that every rank can read, of the same sizes everywhere.
#[derive(Debug)]
pub struct Input {
    paths: Vec<PathBuf>,
    /// Where each file begins, in bytes of all files together; one more for the end of the last.
    begins: Vec<u64>,
}

impl Input {
    /// Looks whether all ranks see the same files. Collective.
    ///
    /// # Errors
    /// Some rank cannot read some file, or sees one of another size: the same error on every rank.
    pub fn agree(job: &Job, paths: Vec<PathBuf>) -> Result<Self, Failure> {
        let sizes: Result<Vec<u64>, String> = paths.iter().map(|path| readable_size(path)).collect();
        let sizes = agree(job, sizes)?;
        let mut first = sizes.clone();
        job.broadcast(0, &mut first)?;
        agree(job, same_sizes(&paths, &first, &sizes))?;
        let mut begins = vec![0];
        for size in sizes {
            let end = begins.last().copied().unwrap_or(0_u64).checked_add(size);
            begins.push(end.ok_or_else(|| Failure::Agreed("the files are too large together".into()))?);
        }
        Ok(Self { paths, begins })
    }

    /// Number of files.
    pub fn files(&self) -> usize {
        self.paths.len()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.begins.last().copied().unwrap_or(0)
    }

    /// The bytes that belong to rank `rank` of `size`.
    pub(super) fn part(&self, rank: usize, size: usize) -> Range<u64> {
        let at = |rank: usize| (u128::from(self.bytes()) * rank as u128 / size as u128) as u64;
        at(rank)..at(rank + 1)
    }

    /// The first file that ends after `byte`.
    pub(super) fn file_at(&self, byte: u64) -> usize {
        self.begins.partition_point(|begin| *begin <= byte).saturating_sub(1)
    }

    /// The bytes of a file, among those of all files.
    pub(super) fn range(&self, file: usize) -> Range<u64> {
        let at = |i: usize| self.begins.get(i).copied().unwrap_or_else(|| self.bytes());
        at(file)..at(file + 1)
    }

    pub(super) fn open(&self, file: usize) -> Result<File, Failure> {
        File::open(&self.paths[file]).map_err(|e| self.failure(file, &e))
    }

    #[cold]
    pub(super) fn failure(&self, file: usize, error: &io::Error) -> Failure {
        Failure::io("read", &self.paths[file], error)
    }
}

/// The size of a file that can be read.
fn readable_size(path: &Path) -> Result<u64, String> {
    let failed = |e: io::Error| io_message("read", path, &e);
    // Asked before the file is opened, since the opening of a named pipe waits for a writer.
    let data = std::fs::metadata(path).map_err(failed)?;
    if data.is_dir() {
        return Err(format!("cannot read {}: it is a directory", path.display()));
    }
    if !data.is_file() {
        return Err(format!(
            "cannot read {}: it is no regular file, and ranks read parts of files",
            path.display()
        ));
    }
    File::open(path).and_then(|file| file.metadata()).map(|data| data.len()).map_err(failed)
}

fn same_sizes(paths: &[PathBuf], first: &[u64], own: &[u64]) -> Result<(), String> {
    let mut both = paths.iter().zip(first.iter().zip(own));
    both.find(|(_, (first, own))| first != own).map_or(Ok(()), |(path, (first, own))| {
        Err(format!(
            "{} has {first} bytes on rank 0 and {own} elsewhere: all hosts must have the same files",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_bytes_once() {
        let input = Input { paths: vec![PathBuf::new(); 5], begins: vec![0, 0, 7, 7, 107, 107] };
        for size in [1, 2, 3, 7, 200] {
            let parts: Vec<_> = (0..size).map(|rank| input.part(rank, size)).collect();
            assert_eq!((parts[0].start, parts[size - 1].end), (0, 107));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
        for (byte, file) in [(0, 1), (6, 1), (7, 3), (106, 3)] {
            assert_eq!(input.file_at(byte), file);
            assert!(input.range(file).contains(&byte));
        }
    }
}
