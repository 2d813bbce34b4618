//! Messages to one target that its agent applies, and how many of them are known to be applied.
//!
//! Messages to one target are applied in the order in which they are sent: when it confirms one, all before that are
//! applied, too. A message that finds everything before it confirmed asks for its confirmation itself, so who flushes after
//! a single one asks for nothing; of many in a row only the first asks, and the flush once more.

use super::sync::{AtomicU64, Mutex, Ordering};

/// Messages that are sent and counted together, at most.
pub(crate) const SEVERAL: usize = 4;

/// Numbers of messages, from 1 on. They go on when the state is another target's, so a confirmation that comes late confirms
/// nothing that was sent since.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Held while a message is sent and counted: the order of numbers is that of messages.
    order: Mutex<()>,
    sent: AtomicU64,
    /// The last that the target has been asked to confirm.
    asked: AtomicU64,
    /// The last that is known to be applied.
    confirmed: AtomicU64,
}

impl Sent {
    /// Sends one more by `post`, which is told by what number the target is to confirm it, if it is: never unless `may_ask`.
    pub fn send<E>(&self, may_ask: bool, post: impl FnOnce(Option<u64>) -> Result<(), E>) -> Result<(), E> {
        self.send_several(1, may_ask, post)
    }

    /// The same of so many, [`SEVERAL`] at most: the target is to confirm the last of them, if any.
    pub fn send_several<E>(
        &self,
        count: u64,
        may_ask: bool,
        post: impl FnOnce(Option<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        let _order = self.order.lock();
        let before = self.all();
        let number = before + count;
        let asks = (may_ask && self.confirmed() == before).then_some(number);
        post(asks)?;
        if asks.is_some() {
            self.asked.store(number, Ordering::Release);
        }
        self.sent.store(number, Ordering::Release);
        Ok(())
    }

    /// The number that is confirmed when all that was sent is, if not all is. Asks the target for that by `post`, unless it has
    /// been asked.
    #[inline]
    pub fn ask<E>(&self, post: impl FnOnce(u64) -> Result<(), E>) -> Result<Option<u64>, E> {
        let Some(number) = self.unconfirmed() else { return Ok(None) };
        if self.asked.load(Ordering::Acquire) < number {
            let _order = self.order.lock();
            let last = self.all();
            if self.asked.load(Ordering::Acquire) < number {
                post(last)?;
                self.asked.store(last, Ordering::Release);
            }
        }
        Ok(Some(number))
    }

    /// How many have been sent.
    pub fn all(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    /// How many have been sent, if not all are confirmed.
    #[inline]
    pub fn unconfirmed(&self) -> Option<u64> {
        let sent = self.all();
        (sent != self.confirmed()).then_some(sent)
    }

    fn confirmed(&self) -> u64 {
        self.confirmed.load(Ordering::Acquire)
    }

    /// Whether the messages up to that number are applied.
    pub fn is_confirmed(&self, number: u64) -> bool {
        self.confirmed() >= number
    }

    /// The messages up to that number are applied. Whether one of them was not known to be: not if the number is wrong.
    pub fn confirm(&self, number: u64) -> bool {
        // The answer to messages may come before these are counted.
        let sendable = number <= self.all() + SEVERAL as u64;
        sendable && self.confirmed.fetch_max(number, Ordering::AcqRel) < number
    }
}
