//! Edges to four neighbours of a grid that has no border, as stencils exchange them.

use transom::{Communicator, Epoch, Result};

use super::Measure;
use crate::area::Area;
use crate::kind::Kind;
use crate::operation::Sync;
use crate::repeat::{Once, Recorder, Repeat};
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// An exchange with up to four neighbours.
#[derive(Debug)]
pub struct Halo {
    head: Head,
    sync: Sync,
    /// Twice a slot for each direction: with notifications, a neighbour may be one exchange ahead.
    area: Area<u8>,
    /// Neighbours, with the direction in which they lie; never this rank itself.
    neighbours: Vec<(usize, usize)>,
    /// Those, each once.
    group: Vec<usize>,
    turn: usize,
}

impl Halo {
    /// Collective.
    ///
    /// # Errors
    /// No memory for a window.
    pub fn new(comm: &Communicator, head: Head, kind: Kind, sync: Sync) -> Result<Self> {
        let area = Area::new(comm, kind, 8 * head.bytes, head.bytes, 1)?;
        let neighbours = neighbours(comm.rank(), comm.size());
        let mut group: Vec<usize> = neighbours.iter().map(|(rank, _)| *rank).collect();
        group.sort_unstable();
        group.dedup();
        Ok(Self { head, sync, area, neighbours, group, turn: 0 })
    }

    /// What synchronises it, for the table.
    pub fn named(sync: Sync) -> &'static str {
        match sync {
            Sync::Flush => "notify",
            Sync::Fence => "fence",
            Sync::Lock | Sync::Pscw => "pscw",
        }
    }

    fn exchange(&self, turn: usize, repeat: &mut impl Repeat) -> Result<usize> {
        let mut turn = turn;
        let (window, group) = (&self.area.window, &self.group);
        match self.sync {
            Sync::Flush => window.lock_all(|epoch| {
                repeat.repeat(|| {
                    turn += 1;
                    self.put(turn, |target, at, direction| {
                        epoch.put_notify(target, at, &self.area.own, direction as u64)
                    })?;
                    epoch.flush_all()?;
                    // One of each direction: a neighbour that is ahead does not count for another.
                    let from = |(_, direction): &(usize, usize)| (*direction ^ 1) as u64;
                    self.neighbours.iter().try_for_each(|to| window.wait_notifications(from(to), 1))
                })
            })?,
            Sync::Fence => repeat.repeat(|| {
                turn += 1;
                window.fence(|epoch| self.put_all(turn, epoch))
            })?,
            Sync::Lock | Sync::Pscw => repeat.repeat(|| {
                turn += 1;
                window.expose(group, |_| window.start(group, |epoch| self.put_all(turn, epoch)))
            })?,
        }
        Ok(turn)
    }

    fn put_all<'a>(&'a self, turn: usize, epoch: &Epoch<'_, 'a, u8>) -> Result<()> {
        self.put(turn, |target, at, _| epoch.put(target, at, &self.area.own))
    }

    fn put(&self, turn: usize, mut put: impl FnMut(usize, usize, usize) -> Result<()>) -> Result<()> {
        self.neighbours.iter().try_for_each(|(target, direction)| {
            put(*target, self.area.at(*target, slot(turn, *direction) * self.head.bytes), *direction)
        })
    }
}

impl Measure for Halo {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        stage.job.barrier()?;
        self.turn = self.exchange(self.turn, recorder)?;
        Ok(stage.job.barrier()?)
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let mark = |rank: usize| (rank as u64 + seed) as u8 | 1;
        self.area.own.fill(mark(stage.job.rank()));
        self.area.local(|local| local.write(0, &vec![0; 8 * self.head.bytes]))?;
        stage.job.barrier()?;
        self.turn = self.exchange(self.turn, &mut Once)?;
        let mut holds = true;
        for (source, direction) in &self.neighbours {
            // What lies that way has sent it the other way.
            let at = slot(self.turn, direction ^ 1) * self.head.bytes;
            let mut edge = vec![0; self.head.bytes];
            self.area.local(|local| local.read(at, &mut edge))?;
            holds &= edge.iter().all(|byte| *byte == mark(*source));
        }
        Ok(Some(super::all(stage.job, holds)?))
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.area.free()?)
    }
}

/// Where the edge lies that was sent in a direction.
fn slot(turn: usize, direction: usize) -> usize {
    turn % 2 * 4 + direction
}

/// Left, right, above and below on the squarest grid, whose ends meet; opposite directions differ by one bit.
fn neighbours(rank: usize, size: usize) -> Vec<(usize, usize)> {
    let rows = (1..=size.isqrt()).rev().find(|rows| size.is_multiple_of(*rows)).unwrap_or(1);
    let columns = size / rows;
    let (row, column) = (rank / columns, rank % columns);
    let at = |row: usize, column: usize| row % rows * columns + column % columns;
    let around =
        [at(row, column + columns - 1), at(row, column + 1), at(row + rows - 1, column), at(row + 1, column)];
    around
        .into_iter()
        .enumerate()
        .map(|(direction, to)| (to, direction))
        .filter(|(to, _)| *to != rank)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_left_has_this_rank_right() {
        for size in 2..20 {
            for rank in 0..size {
                for (to, direction) in neighbours(rank, size) {
                    assert!(neighbours(to, size).contains(&(rank, direction ^ 1)), "{rank} of {size}");
                }
            }
        }
        assert_eq!(neighbours(0, 2), [(1, 0), (1, 1)]);
        assert_eq!(neighbours(0, 4), [(1, 0), (1, 1), (2, 2), (2, 3)]);
    }
}
