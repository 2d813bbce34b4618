//! Which ranks of the job have died, as an agent tells those of its host: a list behind their pages.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::PAGE_BYTES;

/// The variable that says what the death of a rank means: `notify` where the others go on.
pub const ON_FAILURE: &str = "TRANSOM_ON_FAILURE";

const COUNT_BYTES: u64 = size_of::<u64>() as u64;
const RANK_BYTES: u64 = size_of::<u32>() as u64;

/// The list in a host's memory file: how many there are, then their ranks.
#[derive(Debug)]
pub struct Deaths<'a> {
    file: &'a File,
    start: u64,
}

impl<'a> Deaths<'a> {
    /// That of a host with so many ranks.
    pub fn new(file: &'a File, ranks: u32) -> Self {
        Self { file, start: u64::from(ranks) * PAGE_BYTES }
    }

    /// Bytes that it takes if so many ranks may die; none if none may.
    pub fn bytes(mortal: u32) -> u64 {
        if mortal == 0 { 0 } else { COUNT_BYTES + u64::from(mortal) * RANK_BYTES }
    }

    /// Adds a rank behind so many. Only the agent does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&self, count: u32, rank: u32) -> io::Result<()> {
        self.file.write_all_at(&rank.to_ne_bytes(), self.place(count))?;
        // Who reads the count finds the rank: it was written before.
        self.file.write_all_at(&(u64::from(count) + 1).to_ne_bytes(), self.start)
    }

    /// The ranks behind the first so many; none if the list cannot be read.
    pub fn behind(&self, known: u32) -> Vec<u32> {
        let mut count = [0; COUNT_BYTES as usize];
        if self.file.read_exact_at(&mut count, self.start).is_err() {
            return Vec::new();
        }
        let count = u32::try_from(u64::from_ne_bytes(count)).unwrap_or(known);
        (known..count).map_while(|at| self.rank(at)).collect()
    }

    fn rank(&self, at: u32) -> Option<u32> {
        let mut rank = [0; RANK_BYTES as usize];
        self.file.read_exact_at(&mut rank, self.place(at)).ok()?;
        Some(u32::from_ne_bytes(rank))
    }

    fn place(&self, at: u32) -> u64 {
        self.start + COUNT_BYTES + u64::from(at) * RANK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_are_listed_behind_the_pages() {
        let fd = nix::sys::memfd::memfd_create(c"test", nix::sys::memfd::MFdFlags::empty()).unwrap();
        let file = File::from(fd);
        assert!(Deaths::new(&file, 2).behind(0).is_empty(), "no room");
        file.set_len(2 * PAGE_BYTES + Deaths::bytes(3)).unwrap();
        let deaths = Deaths::new(&file, 2);
        assert!(deaths.behind(0).is_empty());
        deaths.add(0, 7).unwrap();
        deaths.add(1, 3).unwrap();
        assert_eq!((deaths.behind(0), deaths.behind(1), deaths.behind(2)), (vec![7, 3], vec![3], vec![]));
        // Whatever is there, no more is read than there is.
        file.write_all_at(&[0xff; 8], 2 * PAGE_BYTES).unwrap();
        assert!(deaths.behind(0).is_empty());
        file.write_all_at(&9u64.to_ne_bytes(), 2 * PAGE_BYTES).unwrap();
        assert_eq!(deaths.behind(1), [3, 0]);
    }
}
