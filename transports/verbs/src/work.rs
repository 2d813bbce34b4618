//! Work requests: what is posted, and what their ends mean.

use std::sync::Arc;

use ibverbs::{Local, MemoryRegion, Operation, Request};
use slab::Slab;

/// A registered buffer that a work request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub large: bool,
    pub index: u32,
}

/// What is done at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Write { address: u64, key: u32 },
    Read { address: u64, key: u32 },
    FetchAdd { address: u64, key: u32, add: u64 },
    CompareSwap { address: u64, key: u32, compare: u64, swap: u64 },
    Send,
}

/// What is to be done when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The caller's operation has ended.
    Report(u64),
    /// The caller's operation goes on with the next work request.
    Continue(u64),
    /// The bytes in the buffer are the caller's, at this address; then its operation has ended.
    Copy { context: u64, to: usize },
    /// The bytes in the buffer are the caller's, for the parts of the list; then its operation has ended.
    Scatter(u64),
    /// The 8 bytes in the buffer are the caller's.
    Value(u64),
    /// Everything before has arrived (`confirm`); where that was read to.
    Confirm(u8),
    /// Nothing: a message, or part of an operation that has failed already.
    Nothing,
}

/// A work request, posted or to be posted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub verb: Verb,
    pub then: Then,
    pub local: Local,
    /// The device copies the bytes when it is posted.
    pub inline: bool,
    /// The buffer that `local` is in, if it is one of ours.
    pub slot: Option<Slot>,
    /// What the port holds for it, by number.
    pub hold: Option<u32>,
}

/// What only some work requests have: parts of the caller's memory, and what keeps it registered.
#[derive(Debug)]
pub(crate) struct Hold {
    /// In place of [`Work::local`], of which only the length counts then. With [`Then::Scatter`] those that get the bytes that
    /// arrive in `local`. None: the memory is `local`.
    pub parts: Box<[Local]>,
    pub _regions: Vec<Arc<MemoryRegion>>,
}

impl Work {
    /// In a place that none has.
    pub const NOTHING: Self = Self {
        verb: Verb::Send,
        then: Then::Nothing,
        local: Local { address: 0, len: 0, key: 0 },
        inline: false,
        slot: None,
        hold: None,
    };

    /// The context of the caller's operation that it belongs to.
    pub fn context(&self) -> Option<u64> {
        match self.then {
            Then::Report(context) | Then::Continue(context) | Then::Value(context) => Some(context),
            Then::Copy { context, .. } | Then::Scatter(context) => Some(context),
            Then::Confirm(_) | Then::Nothing => None,
        }
    }

    /// Bytes that wait for company as long as it does.
    pub fn staged_bytes(&self) -> usize {
        match self.then {
            // Never waits.
            Then::Confirm(_) => 0,
            _ => self.local.len as usize,
        }
    }

    /// The context of the caller's operation, if its end is all that is to be reported.
    #[inline(always)]
    pub fn reports(&self) -> Option<u64> {
        match self.then {
            Then::Report(context) => Some(context),
            _ => None,
        }
    }

    /// The memory of this process: `local`, or parts of the caller's in place of it.
    pub fn parts<'a>(&'a self, holds: &'a Slab<Hold>) -> &'a [Local] {
        match self.hold.and_then(|hold| holds.get(hold as usize)) {
            Some(Hold { parts, .. }) if !parts.is_empty() && !matches!(self.then, Then::Scatter(_)) => parts,
            // A part of length zero means another one to some devices (ibv_post_send(3)).
            _ if self.local.len == 0 => &[],
            _ => std::slice::from_ref(&self.local),
        }
    }

    /// What is posted for it, with [`Work::parts`].
    #[inline(always)]
    pub fn request<'a>(&self, id: u64, signalled: bool, parts: &'a [Local]) -> Request<'a> {
        let operation = match self.verb {
            Verb::Write { address, key } => Operation::Write { address, key },
            Verb::Read { address, key } => Operation::Read { address, key },
            Verb::FetchAdd { address, key, add } => Operation::FetchAdd { address, key, add },
            Verb::CompareSwap { address, key, compare, swap } => {
                Operation::CompareSwap { address, key, compare, swap }
            }
            Verb::Send => Operation::Send,
        };
        Request {
            id,
            operation,
            parts,
            signalled,
            inline: self.inline,
            fence: false,
            solicited: self.verb == Verb::Send,
        }
    }
}

/// What a completion is of: its number's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The work request of this sequence number, to a peer.
    Work {
        peer: u32,
        sequence: u32,
    },
    /// A message arrived in this buffer.
    Message(u32),
    /// A datagram arrived in this buffer, or left it.
    DatagramIn(u32),
    DatagramOut(u32),
}

impl Identity {
    const TAG: u32 = 62;
    const PEER: u32 = 32;

    pub fn number(self) -> u64 {
        match self {
            Self::Work { peer, sequence } => u64::from(peer) << Self::PEER | u64::from(sequence),
            Self::Message(buffer) => 1 << Self::TAG | u64::from(buffer),
            Self::DatagramIn(buffer) => 2 << Self::TAG | u64::from(buffer),
            Self::DatagramOut(buffer) => 3 << Self::TAG | u64::from(buffer),
        }
    }

    pub fn of(number: u64) -> Self {
        let low = number as u32;
        match number >> Self::TAG {
            0 => Self::Work { peer: (number >> Self::PEER) as u32, sequence: low },
            1 => Self::Message(low),
            2 => Self::DatagramIn(low),
            _ => Self::DatagramOut(low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_meaning() {
        for identity in [
            Identity::Work { peer: 0, sequence: 0 },
            Identity::Work { peer: 0x3fff_ffff, sequence: u32::MAX },
            Identity::Message(7),
            Identity::DatagramIn(u32::MAX),
            Identity::DatagramOut(1),
        ] {
            assert_eq!(Identity::of(identity.number()), identity);
        }
    }
}
