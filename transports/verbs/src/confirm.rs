//! What an acknowledgement says on InfiniBand, asked by reads: for iWARP, where a completed write or message has only left
//! this side, and where a message that finds no receive breaks the connection.
//!
//! A batch with puts or messages ends with a read of 4 bytes, and only that completes. It comes back after everything before
//! it has arrived (RFC 5040 §5.5). What it reads is a count that the target keeps for this rank, of receives that it has
//! given back (`peer_receives`): so this rank knows how many messages it may send.
//!
//! A new connection is tried by such a read before it is used. Soft-iWARP does not look at what arrives between its answer to
//! the request for a connection and the moment when it makes the socket the queue pair's (`siw_accept` and
//! `siw_cm_llp_data_ready` in Linux' siw_cm.c), not before more arrives. So the read is repeated until one comes back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ibverbs::{BATCH, Local};

use crate::pool::Pool;
use crate::port::Port;
use crate::wire::Grant;
use crate::work::{Then, Verb, Work};
use crate::works::Works;

/// Such reads under way at a peer at once.
pub(crate) const READS: usize = 4;
/// How long to wait before looking again whether the peer has given receives back: at first, and at most.
const PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);
/// How long to wait for the first read of a connection before the second; before the next four times as long.
const FIRST_READ: Duration = Duration::from_millis(20);

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
    /// Whether a read has come back.
    tried: bool,
    /// When to read again: whether there are receives, if there were none, or because no read has come back yet.
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
            tried: false,
            again: None,
            pause: FIRST_READ,
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
        if self.room > 0 || !self.tried {
            (self.tried, self.again, self.pause) = (true, None, PAUSE);
        }
    }

    /// Whether no read of the connection has come back, and none will.
    pub fn is_in_vain(&self) -> bool {
        let waits = |again| Instant::now() < again;
        !self.tried && !self.free.contains(&true) && !self.again.is_some_and(waits)
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
            hold: None,
        })
    }

    /// Whether to read the count now, with nothing else.
    fn is_time(&mut self) -> bool {
        let now = Instant::now();
        let due = self.again.is_none_or(|again| now >= again) && self.free.contains(&true);
        if due {
            self.again = Some(now + self.pause);
            self.pause = if self.tried { (self.pause * 2).min(LONGEST_PAUSE) } else { self.pause * 4 };
        }
        due
    }

    /// How many of the works behind `posted` may be posted now, of `most` for which there is room. A read that confirms them
    /// is put behind them if they need one, and counted.
    pub fn batch(&mut self, works: &mut Works, posted: usize, most: usize) -> usize {
        if !self.tried {
            return self.try_first(works, posted, most);
        }
        // One is left for the read.
        let most = most.min(BATCH).saturating_sub(1);
        let (mut count, mut messages, mut needed) = (0, 0, false);
        for work in works.from(posted).take(most) {
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

    /// [`Confirm::batch`] before a read has come back.
    fn try_first(&mut self, works: &mut Works, posted: usize, most: usize) -> usize {
        if most == 0 || !self.is_time() {
            return 0;
        }
        let Some(read) = self.read() else { return 0 };
        works.insert(posted, read);
        1
    }
}

impl Port {
    /// When to look again whether peers have given receives back that messages wait for.
    pub fn receives_again(&self) -> Option<Instant> {
        self.peer_receives.as_ref()?;
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
            tried: true,
            again: None,
            pause: PAUSE,
        }
    }

    fn works(verbs: &[Verb]) -> Works {
        let local = Local { address: 0, len: 8, key: 0 };
        let work = |verb| Work { verb, then: Then::Nothing, local, inline: true, slot: None, hold: None };
        let mut works = Works::default();
        verbs.iter().copied().map(work).for_each(|work| works.push(work));
        works
    }

    const WRITE: Verb = Verb::Write { address: 0, key: 1 };
    const READ: Verb = Verb::Read { address: 0, key: 1 };
    const CONFIRM: Verb = Verb::Read { address: 64, key: 9 };

    fn verbs(works: &Works) -> Vec<Verb> {
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
    fn a_read_comes_back_before_anything_else_is_posted() {
        let counts: [u64; READS] = [0; READS];
        let (mut confirm, mut works) = (confirm(1), works(&[Verb::Send]));
        (confirm.tried, confirm.pause) = (false, FIRST_READ);
        for (sink, count) in confirm.sinks.iter_mut().zip(&counts) {
            sink.address = std::ptr::from_ref(count) as u64;
        }
        assert_eq!(confirm.batch(&mut works, 0, 16), 1);
        assert_eq!(confirm.batch(&mut works, 1, 16), 0, "too early");
        std::thread::sleep(FIRST_READ);
        assert_eq!(confirm.batch(&mut works, 1, 16), 1);
        assert_eq!(verbs(&works), [CONFIRM, CONFIRM, Verb::Send]);
        assert!(!confirm.is_in_vain());
        works.pop();
        confirm.confirmed(0);
        assert_eq!(confirm.batch(&mut works, 1, 16), 2);
        assert_eq!(verbs(&works), [CONFIRM, Verb::Send, CONFIRM]);
    }

    #[test]
    fn in_vain_is_when_no_read_is_left() {
        let (mut confirm, mut works) = (confirm(1), works(&[Verb::Send]));
        (confirm.tried, confirm.pause) = (false, Duration::ZERO);
        for posted in 0..READS {
            assert!(!confirm.is_in_vain());
            assert_eq!(confirm.batch(&mut works, posted, 16), 1);
        }
        assert_eq!(confirm.batch(&mut works, READS, 16), 0);
        assert!(confirm.is_in_vain());
    }

    #[test]
    fn without_receives_the_count_is_read_now_and_then() {
        let (mut confirm, mut works) = (confirm(0), works(&[Verb::Send]));
        assert_eq!(confirm.batch(&mut works, 0, 2), 1);
        assert_eq!(verbs(&works), [CONFIRM, Verb::Send]);
        works.pop();
        assert_eq!(confirm.batch(&mut works, 0, 2), 0, "too early");
        std::thread::sleep(PAUSE);
        assert_eq!(confirm.batch(&mut works, 0, 2), 1);
    }
}
