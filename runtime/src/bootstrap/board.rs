//! Cards on a board in memory: for jobs whose ranks are threads of one process.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Bootstrap;
use crate::{Error, Result};

/// How often a waiting rank looks whether another has failed.
const LOOK: Duration = Duration::from_millis(20);

/// The board of one job.
#[derive(Debug)]
pub(crate) struct Board {
    size: usize,
    rounds: Mutex<Vec<Vec<Option<Vec<u8>>>>>,
    changed: Condvar,
    /// The first failure of any rank.
    pub failure: Arc<OnceLock<Error>>,
}

impl Board {
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self { size, rounds: Mutex::default(), changed: Condvar::new(), failure: Arc::default() })
    }
}

/// One rank's place at the board.
#[derive(Debug)]
pub(crate) struct OnBoard {
    pub board: Arc<Board>,
    pub rank: usize,
}

impl Bootstrap for OnBoard {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.size
    }

    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>> {
        let round = round as usize;
        let mut rounds = self.board.rounds.lock();
        if rounds.len() <= round {
            rounds.resize(round + 1, vec![None; self.board.size]);
        }
        rounds[round][self.rank] = Some(card.to_vec());
        self.board.changed.notify_all();
        loop {
            if let Some(cards) = rounds[round].iter().cloned().collect() {
                return Ok(cards);
            }
            if let Some(error) = self.board.failure.get() {
                return Err(error.clone());
            }
            self.board.changed.wait_for(&mut rounds, LOOK);
        }
    }

    fn finalize(&mut self) -> Result<()> {
        Ok(())
    }

    fn in_one_process(&self) -> bool {
        true
    }
}
