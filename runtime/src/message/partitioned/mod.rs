//! Partitioned messages (MPI-4.1 chapter 4): a message whose parts are sent as they become ready, again and again.
//!
//! A sender and a receiver find each other by the order in which they are made, for each pair of ranks and tag (§4.2.1): both
//! count, and nothing is agreed on. Every partition of every round travels by itself under a key of its own, and waits at the
//! receiver until it is looked for; before the first round the sender says how it cuts the message. The receiver may cut it in
//! another way.

mod receive;
mod send;

pub use receive::PartitionedReceive;
pub use send::PartitionedSend;

use std::sync::Arc;

use super::check_tag;
use crate::collective::{Exchange, Kind};
use crate::comm::Channel;
use crate::protocol::matching::Key;
use crate::{Class, Communicator, NULL_RANK, Result};

/// The round, so to speak, in which the sender says how it cuts.
const CUT_ROUND: u64 = u64::MAX;

/// The receiver keeps a place for each partition that the sender says there will be.
const MOST_PARTITIONS: usize = 1 << 24;

/// How a sender cuts its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    partitions: usize,
    /// Bytes of each.
    bytes: usize,
}

impl Cut {
    fn is_possible(self) -> bool {
        self.partitions <= MOST_PARTITIONS && self.partitions.checked_mul(self.bytes).is_some()
    }

    fn to_bytes(self) -> [u8; 16] {
        let words = (self.partitions as u128) << 64 | self.bytes as u128;
        words.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let words = u128::from_le_bytes(bytes.try_into().ok()?);
        let cut = Self { partitions: (words >> 64) as usize, bytes: words as u64 as usize };
        cut.is_possible().then_some(cut)
    }
}

/// What both ends of a message know of it.
#[derive(Debug, Clone)]
struct End {
    channel: Arc<Channel>,
    /// The other rank.
    peer: usize,
    /// Keeps it apart from all others of the two ranks.
    sequence: u64,
}

impl End {
    /// The next message between this rank and `peer` with a tag; none with the null rank.
    fn new(
        comm: &Communicator,
        operation: &'static str,
        (peer, tag): (usize, i32),
        sends: bool,
    ) -> Result<Option<Self>> {
        let channel = comm.channel();
        check_tag(channel, operation, tag)?;
        if peer == NULL_RANK {
            return Ok(None);
        }
        channel.check_rank(operation, peer)?;
        let number = channel.next_partitioned(sends, peer, tag);
        // Collectives count from 0, and never get there.
        let sequence = 1 << 63 | u64::from(tag.cast_unsigned()) << 32 | u64::from(number);
        Ok(Some(Self { channel: channel.clone(), peer, sequence }))
    }

    fn is_own(&self) -> bool {
        self.peer == self.channel.rank
    }

    fn key(&self, source: usize, round: u64) -> Key {
        let source = self.channel.job_rank(source);
        Key { source, context: self.channel.context, sequence: self.sequence, round }
    }

    /// What the peer has sent under a round's number, if all of it is there.
    fn take(&self, round: u64) -> Result<Option<Vec<u8>>> {
        let taken = self.channel.engine.matching.lock().take_partition(self.key(self.peer, round));
        taken.map_err(|refusal| {
            Exchange::numbered(&self.channel, Kind::Partitioned, self.sequence).refused(self.peer, refusal)
        })
    }

    /// Sends to the peer.
    async fn send(&self, round: u64, bytes: &[u8]) -> Result<()> {
        if !self.is_own() {
            let exchange = Exchange::numbered(&self.channel, Kind::Partitioned, self.sequence);
            return exchange.send(self.peer, round as usize, bytes).await;
        }
        let (key, total) = (self.key(self.peer, round), bytes.len() as u64);
        let kind = Kind::Partitioned as u8;
        if self.channel.engine.matching.lock().arrived(key, kind, total, 0, bytes.into()) {
            return Ok(());
        }
        let message = format!("{total} bytes as one partition are too many");
        Err(self.channel.error(Class::Count, "partitioned send", message))
    }
}

/// The number of a partition in a round of a message.
fn numbered(round: u32, partition: usize) -> u64 {
    u64::from(round) << 32 | partition as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_survives_its_travel() {
        let cut = Cut { partitions: 7, bytes: 1 << 40 };
        assert_eq!(Cut::of_bytes(&cut.to_bytes()), Some(cut));
        for partitions in [MOST_PARTITIONS + 1, 1 << 32, usize::MAX] {
            assert_eq!(Cut::of_bytes(&Cut { partitions, bytes: 1 }.to_bytes()), None);
        }
        assert_eq!(Cut::of_bytes(&Cut { partitions: 2, bytes: usize::MAX }.to_bytes()), None);
        assert_eq!(Cut::of_bytes(&[0; 15]), None);
    }

    #[test]
    fn partitions_arrive_in_any_order_and_number() {
        crate::local(2, |job| {
            if job.rank() == 0 {
                let send = PartitionedSend::new(&job, 1, 5, 4, 3)?;
                for round in 0..3u8 {
                    let request = send.start();
                    assert!(send.ready(4, Vec::new()).is_err());
                    for partition in [2, 0, 3, 1] {
                        assert!(!request.is_done());
                        send.ready(partition, vec![round * 10 + partition as u8; 3])?;
                    }
                    assert!(send.ready(1, vec![0; 3]).is_err());
                    request.wait()?;
                }
            } else {
                let receive = PartitionedReceive::new(&job, 0, 5)?;
                for round in 0..3u8 {
                    let request = receive.start();
                    while !receive.has_arrived(2, 3, 4)? {}
                    // Of the sender's partitions, one byte of the third and all of the last.
                    let expected = [2, 3, 3, 3].map(|partition| round * 10 + partition);
                    assert_eq!(receive.partition(2, 4), expected);
                    request.wait()?;
                    assert_eq!(receive.partition(0, 4), [0, 0, 0, 1].map(|partition| round * 10 + partition));
                    assert_eq!(receive.total(), 12);
                }
            }
            job.barrier()
        })
        .unwrap();
    }
}
