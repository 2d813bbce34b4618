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

    /// What is before and behind the rank in the key of a card's part.
    fn around_rank(round: u32, part: usize) -> (String, String) {
        (format!("transom-{round}-"), format!("-{part}"))
    }

    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().ok_or_else(|| Error::new(Class::Launch, "init", "PMI: finalized already"))
    }

    /// The cards of all ranks. The first part of each starts with the number of parts.
    fn cards(&mut self, round: u32) -> Result<Vec<Vec<u8>>> {
        let size = self.size;
        let missing = |rank| Error::new(Class::Launch, "init", format!("PMI: rank {rank} published no card"));
        let mut cards = vec![(1, String::new()); size];
        let mut part = 0;
        while cards.iter().any(|(parts, _)| *parts > part) {
            let (before, behind) = Self::around_rank(round, part);
            let values = self.client()?.get_each(&before, &behind, size as u32).map_err(failed)?;
            for (rank, (value, (parts, text))) in values.into_iter().zip(&mut cards).enumerate() {
                if *parts > part {
                    let value = value.ok_or_else(|| missing(rank))?;
                    let (count, more) = value.split_once(':').ok_or_else(|| missing(rank))?;
                    *parts = count.parse().map_err(|_| missing(rank))?;
                    text.push_str(more);
                }
            }
            part += 1;
        }
        let decoded = |(rank, (_, text))| hex::decode(text).map_err(|_| missing(rank));
        cards.into_iter().enumerate().map(decoded).collect()
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
            let (before, behind) = Self::around_rank(round, part);
            self.client()?.put(&format!("{before}{rank}{behind}"), &value).map_err(failed)?;
        }
        self.client()?.fence().map_err(failed)?;
        self.cards(round)
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
