//! A cache line that goes from one core to the other and back: the limit of whatever needs both ranks on one node.

use std::time::{Duration, Instant};

use transom::{Communicator, Result, Window};

/// Places of the two words, on lines of their own.
const PING: usize = 16;
const PONG: usize = 32;
/// Polls before the core is yielded, maybe to the other rank.
const POLLS: u32 = 1000;

/// Two words in mapped memory of rank 1.
#[derive(Debug)]
pub struct CacheLine {
    words: Window<u64>,
    round: u64,
}

impl CacheLine {
    /// Collective.
    pub fn new(pair: &Communicator) -> Result<Self> {
        Ok(Self { words: pair.allocate(64)?, round: 0 })
    }

    /// `count` round trips; to be called by both ranks.
    pub fn sample(&mut self, origin: bool, count: u64) -> anyhow::Result<Duration> {
        let first = self.round + 1;
        self.round += count + 1; // one more to meet
        if !origin {
            let words = self.words.local();
            for round in first..=self.round {
                wait(|| Ok(words.get(PING)? == round))?;
                words.set(PONG, round)?;
            }
            return Ok(Duration::ZERO);
        }
        let time = self.words.lock_all(|epoch| {
            let mut start = Instant::now();
            for round in first..=self.round {
                epoch.put_value(1, PING, round)?;
                wait(|| Ok(epoch.get_value(1, PONG)? == round))?;
                if round == first {
                    start = Instant::now();
                }
            }
            Ok(start.elapsed())
        })?;
        Ok(time)
    }

    /// Collective.
    pub fn free(self) -> Result<()> {
        self.words.free()
    }
}

fn wait(mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
    let mut polls = 0u32;
    while !ready()? {
        polls += 1;
        if polls.is_multiple_of(POLLS) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
    Ok(())
}
