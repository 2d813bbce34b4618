//! The plate's size, and which rank has which rows.

use std::ops::Range;

/// A plate of so many cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plate {
    /// Cells in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Plate {
    /// Number of cells.
    pub fn cells(self) -> usize {
        self.width * self.height
    }

    /// Rows of a rank; none, if there are more ranks than rows and it is one of those left over.
    pub fn rows(self, rank: usize, ranks: usize) -> Range<usize> {
        let begin = |rank: usize| self.height * rank / ranks;
        begin(rank)..begin(rank + 1)
    }

    /// The rank that has a row: the last whose rows begin at or before it.
    pub fn owner(self, row: usize, ranks: usize) -> usize {
        ((row + 1) * ranks - 1) / self.height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_owner() {
        for height in [1, 2, 3, 10, 64, 1000] {
            for ranks in [1, 2, 3, 4, 7, 13, 64, 100] {
                let plate = Plate { width: 1, height };
                let rows = (0..ranks).flat_map(|rank| plate.rows(rank, ranks).map(move |row| (row, rank)));
                let rows: Vec<_> = rows.collect();
                assert_eq!(rows.len(), height);
                for (row, rank) in rows {
                    assert_eq!(plate.owner(row, ranks), rank, "row {row} of {height}, {ranks} ranks");
                }
            }
        }
    }
}
