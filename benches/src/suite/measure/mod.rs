//! The measurements.

mod attach;
mod bidirectional;
mod call;
mod collective;
mod contention;
mod cycle;
mod exchange;
mod halo;
mod matrix;
mod message;
mod overlap;
mod pair;
mod plan;
mod random_access;
mod start_up;
mod threads;

use transom::Communicator;

use super::row::Head;
use super::stage::Stage;
use crate::limit::Beside;
use crate::operation::Operation;
use crate::repeat::{Once, Recorder};
use crate::windows::Windows;

pub use plan::{LINK, RATE, plan};

/// How the samples of ranks that measured together become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// The slowest rank's time is that of all.
    Slowest,
    /// Each did what it could in a given time: their rates add up.
    Together,
}

/// How finely something can be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Grain {
    /// As many repetitions in a sample as the clock needs.
    Repeated,
    /// One repetition a sample, which sees to its own length.
    Single,
}

/// One row's measurement. All ranks of the job have it, and call the same methods in the same order.
pub trait Measure {
    /// What the row is about.
    fn head(&self) -> Head;

    /// What the limit is chosen by, between rank 0 and rank 1.
    fn compared(&self) -> Option<Operation> {
        None
    }

    /// What rank 1 does meanwhile.
    fn beside(&self) -> Beside {
        Beside::Nothing
    }

    /// How samples of ranks become one.
    fn combine(&self) -> Combine {
        Combine::Slowest
    }

    /// How finely it can be measured.
    fn grain(&self) -> Grain {
        Grain::Repeated
    }

    /// What part of the usual time a round has.
    fn share(&self) -> f64 {
        1.0
    }

    /// Records the samples of a round, at the ranks that measure. Collective.
    ///
    /// # Errors
    /// Those of the operations.
    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()>;

    /// Whether the operations move the right data; none if they move none. `seed` is never the same. Collective.
    ///
    /// # Errors
    /// Those of the operations.
    fn validate(&mut self, _stage: &mut Stage<'_>, _seed: u64) -> anyhow::Result<Option<bool>> {
        Ok(None)
    }

    /// Frees what it has. Collective.
    ///
    /// # Errors
    /// Those of freeing a window.
    fn end(self: Box<Self>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Carries out an operation once, with data of its own, and looks at both ends. Collective over the windows' ranks.
fn check(
    comm: &Communicator,
    windows: &mut Windows,
    operation: Operation,
    (origin, target): (usize, usize),
    seed: u64,
) -> transom::Result<bool> {
    let role = [(origin, true), (target, false)].into_iter().find(|(rank, _)| *rank == comm.rank());
    let is_origin = role.map(|(_, is_origin)| is_origin);
    if let Some(is_origin) = is_origin {
        windows.prepare(operation, seed, is_origin)?;
    }
    comm.barrier()?;
    match is_origin {
        Some(true) => windows.act(operation, target, &mut Once)?,
        Some(false) => windows.take_part(operation, origin, &mut Once)?,
        None => {}
    }
    comm.barrier()?;
    let holds = is_origin.map_or(Ok(true), |is_origin| windows.holds(operation, seed, is_origin))?;
    all(comm, holds)
}

/// Whether it is so at all ranks. Collective.
fn all(comm: &Communicator, own: bool) -> transom::Result<bool> {
    Ok(comm.allreduce(transom::Min, &[u64::from(own)])? == [1])
}
