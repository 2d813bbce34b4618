//! Bootstrap: ranks exchange business cards (addresses and keys) through PMI-1, through PMIx or, in one process, a key-value
//! space in memory; a job of one rank needs none.

mod in_process;
mod pmi;
mod pmix;
mod stranded;

use std::os::fd::OwnedFd;

use transom_pmi::{Answered, Contribution};

use crate::{Class, Error, Result};
pub(crate) use in_process::{InProcess, KeyValueSpace};
pub(crate) use pmi::{Pmi, not_agreed};
pub(crate) use pmix::Pmix;

/// The exchange of business cards at start-up.
pub(crate) trait Bootstrap: Send + std::fmt::Debug {
    /// This process's rank.
    fn rank(&self) -> usize;
    /// Ranks in the job.
    fn size(&self) -> usize;
    /// Publishes this rank's card of a round and returns every rank's: an allgather. Collective.
    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Waits until every rank has come to this round. Collective.
    fn barrier(&mut self, round: u32) -> Result<()> {
        self.exchange(round, &[]).map(drop)
    }
    /// This rank is done, in good order.
    fn finalize(&mut self) -> Result<()>;
    /// Asks the launcher to end the job with that exit code. Returns at once.
    fn abort(&mut self, _code: i32) -> Result<()> {
        Ok(())
    }
    /// Which of the programs that were started together this is, from 0 on.
    fn program(&mut self) -> Result<u32> {
        Ok(0)
    }
    /// Contributes to an agreement of ranks of which some may have ended. `answered` is told of it by whoever hears of it, in a call here.
    fn start_agreement(&mut self, _own: Contribution<'_>, _answered: Answered) -> Result<()> {
        Err(Error::new(Class::Launch, "agree", "only `transom run` lets ranks agree that outlive others"))
    }
    /// Tells of those agreements that are there. Says whether others are under way.
    fn take_agreements(&mut self) -> bool {
        false
    }
    /// What can be read when there may be an agreement.
    fn answers(&mut self) -> Result<OwnedFd> {
        Err(Error::new(Class::Launch, "agree", "there is no launcher"))
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

/// The bootstrap that the environment asks for. PMI-1 comes first: it needs no library, and a launcher that offers it means it.
pub(crate) fn from_env() -> Result<Box<dyn Bootstrap>> {
    if let Some(pmi) = Pmi::from_env()? {
        return Ok(Box::new(pmi));
    }
    if let Some(pmix) = Pmix::from_env()? {
        return Ok(Box::new(pmix));
    }
    stranded::check(|name| std::env::var_os(name))?;
    Ok(Box::new(Alone))
}
