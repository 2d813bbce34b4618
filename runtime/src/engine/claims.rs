//! Who copies which part of a message that both ends copy: the receiver claims parts from the first on, the sender from the last on,
//! until they meet. Two words in memory that both map.

use super::sync::{AtomicU64, Ordering};

/// The claims of one message: what is claimed, and what the sender has put of it.
///
/// The first word is the number of the use, how many parts the sender has claimed, and how many the receiver, in 32, 16 and 16 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claims<'a> {
    claimed: &'a AtomicU64,
    put: &'a AtomicU64,
}

/// What has become of the parts that the sender has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theirs {
    /// It puts one.
    UnderWay,
    /// They are where they belong.
    Put,
    /// It could not put one: the receiver is to get these last parts itself, so many.
    Failed(u64),
}

const SENDER: u64 = 1 << 16;
const COUNT: u64 = SENDER - 1;
const FAILED: u64 = 1 << 63;

impl<'a> Claims<'a> {
    /// Most parts of a message.
    pub const MOST: usize = COUNT as usize;

    /// The claims in two words.
    pub fn new(claimed: &'a AtomicU64, put: &'a AtomicU64) -> Self {
        Self { claimed, put }
    }

    /// The receiver opens them for a message: the use of that number. Who claims for another one finds nothing.
    pub fn open(self, number: u32) {
        self.put.store(0, Ordering::Relaxed);
        self.claimed.store(u64::from(number) << 32, Ordering::Release);
    }

    /// The receiver claims the first of so many parts that nobody has claimed.
    pub fn first(self, parts: u64) -> Option<u64> {
        let now = self.claim(1, |now| mine(now) + theirs(now) < parts)?;
        Some(mine(now))
    }

    /// The sender claims the last one, for the use of that number.
    pub fn last(self, number: u32, parts: u64) -> Option<u64> {
        let open = |now| now >> 32 == u64::from(number) && mine(now) + theirs(now) < parts;
        let now = self.claim(SENDER, open)?;
        Some(parts - 1 - theirs(now))
    }

    /// Adds to the claims if they are so; returns what was there.
    fn claim(self, more: u64, may: impl Fn(u64) -> bool) -> Option<u64> {
        let next = |now| may(now).then_some(now + more);
        self.claimed.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).ok()
    }

    /// The sender has put a part that it has claimed; or it could not, and claims no more.
    pub fn end_put(self, succeeded: bool) {
        if succeeded {
            self.put.fetch_add(1, Ordering::Release);
        } else {
            self.put.fetch_or(FAILED, Ordering::Release);
        }
    }

    /// What has become of the sender's parts, once all are claimed.
    pub fn theirs(self) -> Theirs {
        let (put, claimed) = (self.put.load(Ordering::Acquire), theirs(self.claimed.load(Ordering::Acquire)));
        match put {
            put if put & FAILED != 0 => Theirs::Failed(claimed),
            put if put == claimed => Theirs::Put,
            _ => Theirs::UnderWay,
        }
    }

    /// How many parts the sender has claimed.
    #[cfg(test)]
    pub fn of_sender(self) -> u64 {
        theirs(self.claimed.load(Ordering::Acquire))
    }

    /// The receiver ends this use: nothing can be claimed any more. Whether the sender puts no part now.
    pub fn close(self) -> bool {
        // As if the receiver had claimed all.
        let now = self.claimed.fetch_or(COUNT, Ordering::AcqRel);
        let put = self.put.load(Ordering::Acquire);
        put & FAILED != 0 || put == theirs(now)
    }
}

fn mine(claimed: u64) -> u64 {
    claimed & COUNT
}

fn theirs(claimed: u64) -> u64 {
    claimed >> 16 & COUNT
}
