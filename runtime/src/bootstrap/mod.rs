//! How ranks find each other before they can talk: by PMI-1, by a board in one process, or not at all (one rank).

mod board;
mod pmi;

use crate::Result;
pub(crate) use board::{Board, OnBoard};
pub(crate) use pmi::Pmi;

/// The exchange of cards at start-up.
pub(crate) trait Bootstrap: Send + std::fmt::Debug {
    /// This process's rank.
    fn rank(&self) -> usize;
    /// Ranks in the job.
    fn size(&self) -> usize;
    /// Publishes this rank's card of a round and returns everybody's. Collective.
    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// This rank is done, in good order.
    fn finalize(&mut self) -> Result<()>;
    /// Asks whoever started the job to end it with that exit code. Returns at once.
    fn abort(&mut self, _code: i32) -> Result<()> {
        Ok(())
    }
    /// Whether all ranks are in this process.
    fn in_one_process(&self) -> bool {
        false
    }
}

/// A job of one rank.
#[derive(Debug)]
pub(crate) struct Alone;

impl Bootstrap for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&mut self, _round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![card.to_vec()])
    }

    fn finalize(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The bootstrap that the environment asks for.
pub(crate) fn from_env() -> Result<Box<dyn Bootstrap>> {
    Ok(match Pmi::from_env()? {
        Some(pmi) => Box::new(pmi),
        None => Box::new(Alone),
    })
}
