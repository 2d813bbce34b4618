//! Business cards through the key-value space of a PMI-1 server: the launcher's, Slurm's, MPICH's or Intel's.

use std::os::fd::OwnedFd;

use transom_pmi::{Answered, Client, Contribution};

use super::Bootstrap;
use crate::{Class, Error, Result};

/// Most bytes of a card in one value: hexadecimal, and short enough for every server (Slurm drops long lines).
const PART: usize = 240;

/// Why there is no agreement.
pub(crate) fn not_agreed(error: transom_pmi::Error) -> Error {
    Error::new(Class::Launch, "agree", format!("PMI: {error}"))
}

#[derive(Debug)]
pub(crate) struct Pmi {
    rank: usize,
    size: usize,
    /// Until the end of the job.
    client: Option<Client>,
}

fn failed(error: transom_pmi::Error) -> Error {
    Error::new(Class::Launch, "init", format!("PMI: {error}"))
}

impl Pmi {
    /// Connects to the server that the environment names, if it names one.
    pub fn from_env() -> Result<Option<Self>> {
        let client = Client::from_environment().map_err(failed)?;
        Ok(client.map(|client| Self {
            rank: client.rank() as usize,
            size: client.size() as usize,
            client: Some(client),
        }))
    }

    fn key(round: u32, rank: usize, part: usize) -> String {
        format!("transom-{round}-{rank}-{part}")
    }

    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().ok_or_else(|| Error::new(Class::Launch, "init", "PMI: finalized already"))
    }

    /// A peer's card. Its first part starts with the number of parts.
    fn card(&mut self, round: u32, rank: usize) -> Result<Vec<u8>> {
        let missing = || Error::new(Class::Launch, "init", format!("PMI: rank {rank} published no card"));
        let mut hexadecimal = String::new();
        let mut parts = 1;
        let mut part = 0;
        while part < parts {
            let value =
                self.client()?.get(&Self::key(round, rank, part)).map_err(failed)?.ok_or_else(missing)?;
            let (count, text) = value.split_once(':').ok_or_else(missing)?;
            parts = count.parse().map_err(|_| missing())?;
            hexadecimal.push_str(text);
            part += 1;
        }
        hex::decode(hexadecimal).map_err(|_| missing())
    }
}

impl Bootstrap for Pmi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>> {
        let rank = self.rank;
        let parts = card.len().div_ceil(PART).max(1);
        for part in 0..parts {
            let bytes = &card[part * PART..card.len().min((part + 1) * PART)];
            let value = format!("{parts}:{}", hex::encode(bytes));
            self.client()?.put(&Self::key(round, rank, part), &value).map_err(failed)?;
        }
        self.client()?.fence().map_err(failed)?;
        (0..self.size).map(|rank| self.card(round, rank)).collect()
    }

    fn barrier(&mut self, _round: u32) -> Result<()> {
        self.client()?.fence().map_err(failed)
    }

    fn finalize(&mut self) -> Result<()> {
        self.client.take().map_or(Ok(()), |client| client.finalize().map_err(failed))
    }

    fn program(&mut self) -> Result<u32> {
        Ok(self.client()?.program().map_err(failed)?.unwrap_or(0))
    }

    fn start_agreement(&mut self, own: Contribution<'_>, answered: Answered) -> Result<()> {
        self.client()?.start_agreement(own, answered).map_err(not_agreed)
    }

    fn take_agreements(&mut self) -> bool {
        self.client.as_mut().is_some_and(Client::take_agreements)
    }

    fn answers(&mut self) -> Result<OwnedFd> {
        self.client()?.answers().map_err(not_agreed)
    }

    fn abort(&mut self, code: i32) -> Result<()> {
        self.client
            .as_mut()
            .map_or(Ok(()), |client| client.abort(code))
            .map_err(|e| Error::new(Class::Launch, "abort", format!("PMI: {e}")))
    }
}
