//! Collectives, as far as the runtime needs them: in O(log P) rounds of messages.

mod exchange;

use exchange::Exchange;
pub(crate) use exchange::Kind;

use zerocopy::IntoBytes;

use crate::comm::Channel;
use crate::protocol::dissemination::disseminate;
use crate::{Class, Communicator, Element, Number, Operation, Result};

/// Every rank waits for every other.
pub(crate) fn barrier_as(channel: &Channel, kind: Kind) -> Result<()> {
    let exchange = Exchange::new(channel, kind);
    let (rank, size) = exchange.place();
    disseminate(
        (rank, size),
        |peer, round| exchange.send(peer, round, &[]),
        |peer, round| exchange.receive(peer, round).map(drop),
    )
}

/// Everybody's bytes at everybody, after J. Bruck et al., 1997: round k doubles the blocks that a rank has.
pub(crate) fn allgather_bytes(channel: &Channel, kind: Kind, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let exchange = Exchange::new(channel, kind);
    let (rank, size) = exchange.place();
    let mut blocks = vec![own];
    while blocks.len() < size {
        let distance = blocks.len();
        let count = distance.min(size - distance);
        let message = postcard::to_stdvec(&blocks[..count]).map_err(|e| exchange.malformed(rank, &e))?;
        exchange.send((rank + size - distance) % size, distance, &message)?;
        let from = (rank + distance) % size;
        let message = exchange.receive(from, distance)?;
        let more: Vec<Vec<u8>> = postcard::from_bytes(&message).map_err(|e| exchange.malformed(from, &e))?;
        if more.len() != count {
            return Err(exchange.malformed(from, &"a wrong number of blocks"));
        }
        blocks.extend(more);
    }
    // Block i is that of rank + i.
    blocks.rotate_right(rank);
    Ok(blocks)
}

/// The root's bytes at everybody, down a binomial tree.
pub(crate) fn broadcast_bytes(channel: &Channel, kind: Kind, root: usize, bytes: &mut Vec<u8>) -> Result<()> {
    let exchange = Exchange::new(channel, kind);
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    let mut distance = 1;
    while distance <= place {
        distance *= 2;
    }
    if place > 0 {
        let parent = place - distance / 2;
        *bytes = exchange.receive((parent + root) % size, 0)?;
    }
    while place + distance < size {
        exchange.send((place + distance + root) % size, 0, bytes)?;
        distance *= 2;
    }
    Ok(())
}

impl Communicator {
    /// Waits until every rank has called it (`MPI_Barrier`, MPI-4.1 §6.3). Collective.
    ///
    /// # Errors
    /// A peer is gone or calls another collective; the deadline passes.
    pub fn barrier(&self) -> Result<()> {
        barrier_as(self.channel(), Kind::Barrier)
    }

    /// Copies `data` of rank `root` to `data` of every rank (`MPI_Bcast`, §6.4). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; `root` is not a rank; lengths differ.
    pub fn broadcast<T: Element>(&self, root: usize, data: &mut [T]) -> Result<()> {
        let channel = self.channel();
        channel.check_rank("broadcast", root)?;
        let mut bytes = data.as_bytes().to_vec();
        broadcast_bytes(channel, Kind::Broadcast, root, &mut bytes)?;
        if bytes.len() != size_of_val(data) {
            let message =
                format!("rank {root} sends {} bytes, here is room for {}", bytes.len(), size_of_val(data));
            return Err(channel.error(Class::Count, "broadcast", message));
        }
        data.as_mut_bytes().copy_from_slice(&bytes);
        Ok(())
    }

    /// Everybody's `data`, by rank (`MPI_Allgatherv`, §6.7). Lengths may differ. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    pub fn allgather<T: Element>(&self, data: &[T]) -> Result<Vec<Vec<T>>> {
        let channel = self.channel();
        let blocks = allgather_bytes(channel, Kind::Allgather, data.as_bytes().to_vec())?;
        blocks
            .into_iter()
            .enumerate()
            .map(|(from, block)| elements(channel, "allgather", from, &block))
            .collect()
    }

    /// `op` over everybody's `data`, element by element, in an order that depends on the number of ranks only
    /// (`MPI_Allreduce`, §6.9.6). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`]; lengths differ.
    pub fn allreduce<T: Number, O: Operation<T>>(&self, _op: O, data: &[T]) -> Result<Vec<T>> {
        let channel = self.channel();
        let (rank, size) = (channel.rank, channel.size);
        let exchange = Exchange::new(channel, Kind::Allreduce);
        let mut sum = data.to_vec();
        let mut distance = 1;
        // Up a binomial tree to rank 0, then down again.
        while distance < size {
            if rank % (2 * distance) != 0 {
                exchange.send(rank - distance, distance, sum.as_bytes())?;
                break;
            }
            if rank + distance < size {
                let from = rank + distance;
                let other: Vec<T> = elements(channel, "allreduce", from, &exchange.receive(from, distance)?)?;
                if other.len() != sum.len() {
                    let message =
                        format!("rank {from} has {} elements, rank {rank} {}", other.len(), sum.len());
                    return Err(channel.error(Class::Count, "allreduce", message));
                }
                for (sum, other) in sum.iter_mut().zip(other) {
                    *sum = T::reduce(O::OP, *sum, other);
                }
            }
            distance *= 2;
        }
        let mut bytes = sum.as_bytes().to_vec();
        broadcast_bytes(channel, Kind::Allreduce, 0, &mut bytes)?;
        elements(channel, "allreduce", 0, &bytes)
    }
}

fn elements<T: Element>(
    channel: &Channel,
    operation: &'static str,
    from: usize,
    bytes: &[u8],
) -> Result<Vec<T>> {
    if !bytes.len().is_multiple_of(size_of::<T>().max(1)) {
        let message =
            format!("rank {from} sent {} bytes, not whole elements of {}", bytes.len(), size_of::<T>());
        return Err(channel.error(Class::Type, operation, message));
    }
    let mut elements = vec![T::new_zeroed(); bytes.len() / size_of::<T>().max(1)];
    elements.as_mut_bytes().copy_from_slice(bytes);
    Ok(elements)
}
