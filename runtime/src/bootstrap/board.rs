//! Cards on a board in memory: for jobs whose ranks are threads of one process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Bootstrap;
use crate::Result;
use crate::engine::House;

/// How often a waiting rank looks whether another has failed.
const LOOK: Duration = Duration::from_millis(20);

/// The board of one job.
#[derive(Debug)]
pub(crate) struct Board {
    size: usize,
    rounds: Mutex<Vec<Vec<Option<Vec<u8>>>>>,
    changed: Condvar,
    /// What the ranks share later.
    pub house: House,
}

impl Board {
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            size,
            rounds: Mutex::default(),
            changed: Condvar::new(),
            house: House {
                failure: Arc::default(),
                left: (0..size).map(|_| AtomicBool::new(false)).collect(),
            },
        })
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
            if let Some(error) = self.board.house.failure.get() {
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
