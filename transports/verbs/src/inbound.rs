//! Queue pairs that peers have asked for, to post on. This rank never does: it only answers their connection requests.

use ibverbs::{Access, Path, QueuePair, VerbsError};

use crate::connect::{MIN_NOT_READY, queue_pair};
use crate::datagrams::path_to;
use crate::device::PORT;
use crate::port::Port;
use crate::wire::{Address, Hello};

/// A queue pair that a peer posts on.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub queue_pair: QueuePair,
    /// The peer's count of its requests.
    pub attempt: u32,
    /// Number of the first packet.
    pub sequence: u32,
}

impl Port {
    /// The partner of a peer's queue pair, made if this request is a new one. `None`: the request is older than another.
    pub fn partner(
        &mut self,
        peer: usize,
        address: &Address,
        hello: &Hello,
    ) -> Result<Option<&Inbound>, VerbsError> {
        match self.inbound.get(&peer).map(|inbound| inbound.attempt.wrapping_sub(hello.attempt).cast_signed())
        {
            Some(0) => return Ok(self.inbound.get(&peer)),
            Some(newer) if newer > 0 => return Ok(None),
            _ => {}
        }
        let queue_pair = queue_pair(self, 0)?;
        // Reads and atomics must be answered; what regions allow says the rest.
        let access = Access::REMOTE_READ | Access::REMOTE_WRITE | self.atomic_access;
        queue_pair.initialise(PORT, access)?;
        let sequence = hello.sequence;
        let path: Path = path_to(self, address, (hello.number, sequence), MIN_NOT_READY);
        queue_pair.ready_to_receive(&path)?;
        let inbound = Inbound { queue_pair, attempt: hello.attempt, sequence };
        if let Some(old) = self.inbound.insert(peer, inbound) {
            // Its last messages may be in the completion queue: they came before this request.
            self.retired.push(old.queue_pair);
        }
        Ok(self.inbound.get(&peer))
    }
}
