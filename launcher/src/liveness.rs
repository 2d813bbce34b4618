//! Whether the other end of a channel is alive: both ends send something now and then, and take note of what comes.

use std::time::Duration;

use tokio::time::Instant;

/// Signs of life that are sent within the time that the other end may be silent.
const SIGNS: u32 = 4;

/// What is known of the other end.
#[derive(Debug, Clone, Copy)]
pub struct Liveness {
    /// Between two signs of life; zero: none are sent or expected.
    interval: Duration,
    /// How long it may be silent.
    limit: Duration,
    heard: Instant,
    next: Instant,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing yet.
    Early,
    /// Send a sign of life.
    Say,
    /// The other end has been silent for too long.
    Silent,
}

impl Liveness {
    /// Of an end that was heard just now; `limit`: how long it may be silent, or zero.
    pub fn new(limit: Duration, now: Instant) -> Self {
        Self { interval: limit / SIGNS, limit, heard: now, next: now }
    }

    /// Of one that may be silent for so many times as long.
    pub fn patient(self, times: u32) -> Self {
        Self { limit: self.limit * times, ..self }
    }

    /// Something came.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When to look next.
    pub fn next(&self) -> Option<Instant> {
        (!self.interval.is_zero()).then_some(self.next)
    }

    /// Looks.
    pub fn look(&mut self, now: Instant) -> Look {
        if self.interval.is_zero() || now < self.next {
            return Look::Early;
        }
        if now - self.next > self.interval {
            // This process was stopped, or its host was: what came meanwhile is yet to be read.
            self.heard = now;
        }
        self.next = now + self.interval;
        if now - self.heard > self.limit { Look::Silent } else { Look::Say }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(8);

    #[test]
    fn silence_is_noticed_in_time() {
        let start = Instant::now();
        let mut liveness = Liveness::new(LIMIT, start);
        let looks: Vec<_> =
            (0..=10).map(|second| liveness.look(start + Duration::from_secs(second))).collect();
        assert_eq!(looks.iter().filter(|look| **look == Look::Say).count(), 5, "{looks:?}");
        assert_eq!(looks.iter().position(|look| *look == Look::Silent), Some(10), "{looks:?}");
    }

    #[test]
    fn who_was_stopped_blames_nobody() {
        let start = Instant::now();
        let mut liveness = Liveness::new(LIMIT, start);
        assert_eq!(liveness.look(start), Look::Say);
        let later = start + Duration::from_secs(1000);
        assert_eq!(liveness.look(later), Look::Say);
        liveness.heard(later);
        assert_eq!(liveness.look(later + Duration::from_secs(2)), Look::Say);
    }

    #[test]
    fn without_a_limit_nothing_is_sent() {
        let mut liveness = Liveness::new(Duration::ZERO, Instant::now());
        assert_eq!((liveness.next(), liveness.look(Instant::now() + LIMIT)), (None, Look::Early));
    }
}
