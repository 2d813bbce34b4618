//! A key-value space in memory, for jobs whose ranks are threads of one process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::Bootstrap;
use crate::Result;
use crate::engine::JobStatus;

/// How often a waiting rank checks whether another has failed.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The key-value space of one job.
#[derive(Debug)]
pub(crate) struct KeyValueSpace {
    size: usize,
    rounds: Mutex<Vec<Vec<Option<Vec<u8>>>>>,
    changed: Condvar,
    /// The state of the job, which the ranks share later.
    pub status: JobStatus,
}

impl KeyValueSpace {
    pub fn new(size: usize) -> Arc<Self> {
        Arc::new(Self {
            size,
            rounds: Mutex::default(),
            changed: Condvar::new(),
            status: JobStatus {
                failure: Arc::default(),
                left: (0..size).map(|_| AtomicBool::new(false)).collect(),
            },
        })
    }
}

/// One rank's bootstrap.
#[derive(Debug)]
pub(crate) struct InProcess {
    pub space: Arc<KeyValueSpace>,
    pub rank: usize,
}

impl Bootstrap for InProcess {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.space.size
    }

    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>> {
        let round = round as usize;
        let mut rounds = self.space.rounds.lock();
        if rounds.len() <= round {
            rounds.resize(round + 1, vec![None; self.space.size]);
        }
        rounds[round][self.rank] = Some(card.to_vec());
        self.space.changed.notify_all();
        loop {
            if let Some(cards) = rounds[round].iter().cloned().collect() {
                return Ok(cards);
            }
            if let Some(error) = self.space.status.failure.get() {
                return Err(error.clone());
            }
            self.space.changed.wait_for(&mut rounds, CHECK_INTERVAL);
        }
    }

    fn finalize(&mut self) -> Result<()> {
        Ok(())
    }

    fn in_one_process(&self) -> bool {
        true
    }
}
