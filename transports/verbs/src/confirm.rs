//! What an acknowledgement says on InfiniBand, asked by reads: for iWARP, where a completed write or message has only left
//! this side, and where a message that finds no receive breaks the connection.
//!
//! A batch with puts or messages ends with a read of 4 bytes, and only that completes. It comes back after everything before
//! it has arrived (RFC 5040 §5.5). What it reads is a count that the target keeps for this rank, of receives that it has
//! given back (`mailboxes`): so this rank knows how many messages it may send.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ibverbs::{BATCH, Local};

use crate::pool::Pool;
use crate::port::Port;
use crate::wire::Grant;
use crate::work::{Then, Verb, Work};

/// Such reads under way at a peer at once.
pub(crate) const READS: usize = 4;
/// How long to wait before looking again whether the peer has given receives back: at first, and at most.
const PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// What is known of the target of a connection.
#[derive(Debug)]
pub(crate) struct Confirm {
    /// Where its count is, and the key.
    address: u64,
    key: u32,
    /// The count, when it was last read.
    count: u32,
    /// How many more messages the target has receives for.
    room: u32,
    /// Where reads arrive, and which of these are free.
    sinks: [Local; READS],
    free: [bool; READS],
    /// When to look again for receives, if there were none.
    again: Option<Instant>,
    pause: Duration,
}

impl Confirm {
    /// A connection to a peer that has granted this. Reads arrive in buffers of the pool, from `first` on.
    pub fn new(grant: &Grant, pool: &Pool, first: usize) -> Box<Self> {
        Box::new(Self {
            address: grant.address,
            key: grant.key,
            count: grant.count,
            room: grant.receives,
            sinks: std::array::from_fn(|i| pool.local((first + i) as u32, size_of::<u32>())),
            free: [true; READS],
            again: None,
            pause: PAUSE,
        })
    }

    /// A read has come back: everything before it has arrived.
    pub fn confirmed(&mut self, sink: u8) {
        let sink = usize::from(sink) % READS;
        // SAFETY: a buffer of the pool that the port keeps, aligned; the device has given it back.
        let count = unsafe { AtomicU32::from_ptr(self.sinks[sink].address as *mut u32) };
        let count = count.load(Ordering::Acquire);
        self.room = self.room.wrapping_add(count.wrapping_sub(self.count));
        self.count = count;
        self.free[sink] = true;
        if self.room > 0 {
            (self.again, self.pause) = (None, PAUSE);
        }
    }

    /// A work request that reads the count.
    fn read(&mut self) -> Option<Work> {
        let sink = self.free.iter().position(|free| *free)?;
        self.free[sink] = false;
        Some(Work {
            verb: Verb::Read { address: self.address, key: self.key },
            then: Then::Confirm(sink as u8),
            local: self.sinks[sink],
            inline: false,
            slot: None,
            _region: None,
            list: None,
        })
    }

    /// Whether to look for receives now that there are none.
    fn is_time(&mut self) -> bool {
        let now = Instant::now();
        let due = self.again.is_none_or(|again| now >= again);
        if due {
            self.again = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        due
    }

    /// How many of the works behind `posted` may be posted now, of `most` for which there is room. A read that confirms them
    /// is put behind them if they need one, and counted.
    pub fn batch(&mut self, works: &mut VecDeque<Work>, posted: usize, most: usize) -> usize {
        // One is left for the read.
        let most = most.min(BATCH).saturating_sub(1);
        let (mut count, mut messages, mut needed) = (0, 0, false);
        for work in works.range(posted..).take(most) {
            let is_message = work.verb == Verb::Send;
            if is_message && messages == self.room {
                break;
            }
            messages += u32::from(is_message);
            needed |= is_message || matches!(work.verb, Verb::Write { .. });
            count += 1;
        }
        let starved = count == 0 && most > 0 && posted == 0;
        if starved && !self.is_time() {
            return 0;
        }
        if !needed && !starved {
            return count;
        }
        let Some(read) = self.read() else { return 0 };
        self.room -= messages;
        works.insert(posted + count, read);
        count + 1
    }
}

impl Port {
    /// When to look again whether peers have given receives back that messages wait for.
    pub fn receives_again(&self) -> Option<Instant> {
        self.mailboxes.as_ref()?;
        let again = |peer: &usize| self.links[*peer].as_ref()?.confirm.as_ref()?.again;
        self.dirty.iter().filter_map(again).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirm(room: u32) -> Confirm {
        let local = Local { address: 0, len: 4, key: 7 };
        let free = [true; READS];
        Confirm {
            address: 64,
            key: 9,
            count: 0,
            room,
            sinks: [local; READS],
            free,
            again: None,
            pause: PAUSE,
        }
    }

    fn works(verbs: &[Verb]) -> VecDeque<Work> {
        let local = Local { address: 0, len: 8, key: 0 };
        let work = |verb| Work {
            verb,
            then: Then::Nothing,
            local,
            inline: true,
            slot: None,
            _region: None,
            list: None,
        };
        verbs.iter().copied().map(work).collect()
    }

    const WRITE: Verb = Verb::Write { address: 0, key: 1 };
    const READ: Verb = Verb::Read { address: 0, key: 1 };
    const CONFIRM: Verb = Verb::Read { address: 64, key: 9 };

    fn verbs(works: &VecDeque<Work>) -> Vec<Verb> {
        works.iter().map(|work| work.verb).collect()
    }

    #[test]
    fn batches_with_puts_or_messages_end_with_a_read() {
        let (mut confirm, mut works) = (confirm(2), works(&[WRITE, Verb::Send, Verb::Send, Verb::Send]));
        // The third message has no receive.
        assert_eq!(confirm.batch(&mut works, 0, 16), 4);
        assert_eq!(verbs(&works), [WRITE, Verb::Send, Verb::Send, CONFIRM, Verb::Send]);
        // Nothing is known before the read is back.
        assert_eq!(confirm.batch(&mut works, 4, 16), 0);
    }

    #[test]
    fn reads_confirm_themselves() {
        let (mut confirm, mut works) = (confirm(0), works(&[READ, READ, WRITE]));
        assert_eq!(confirm.batch(&mut works, 0, 3), 2);
        assert_eq!(verbs(&works), [READ, READ, WRITE]);
        assert_eq!(confirm.batch(&mut works, 2, 1), 0, "no room for a write and its read");
        assert_eq!(confirm.batch(&mut works, 2, 2), 2);
        assert_eq!(verbs(&works), [READ, READ, WRITE, CONFIRM]);
    }

    #[test]
    fn without_receives_the_count_is_read_now_and_then() {
        let (mut confirm, mut works) = (confirm(0), works(&[Verb::Send]));
        assert_eq!(confirm.batch(&mut works, 0, 2), 1);
        assert_eq!(verbs(&works), [CONFIRM, Verb::Send]);
        works.pop_front();
        assert_eq!(confirm.batch(&mut works, 0, 2), 0, "too early");
        std::thread::sleep(PAUSE);
        assert_eq!(confirm.batch(&mut works, 0, 2), 1);
    }
}
