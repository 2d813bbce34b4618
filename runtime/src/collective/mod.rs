//! Collectives (MPI-4.1 chapter 6): algorithms on bytes, and the methods of communicators that know types.

mod algorithms;
mod direct;
mod exchange;
mod later;
mod long;
mod long_reductions;
mod neighbours;
pub mod raw;
mod reductions;
pub mod short;
mod shown;
mod signalled;
mod typed;

use crate::comm::Channel;
use crate::{Communicator, Request, Result};
pub(crate) use exchange::{Exchange, Kind};
pub(crate) use signalled::{Signals, Step, pass};

/// Every rank waits for every other.
pub(crate) fn barrier_as(channel: &Channel, kind: Kind) -> Result<()> {
    short::barrier(&Exchange::new(channel, kind))
}

/// Every rank's bytes at every rank.
pub(crate) fn allgather_bytes(channel: &Channel, kind: Kind, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let exchange = Exchange::new(channel, kind);
    exchange.block(algorithms::allgather(&exchange, own))
}

/// The root's bytes at every rank.
pub(crate) fn broadcast_bytes(channel: &Channel, kind: Kind, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>> {
    let exchange = Exchange::new(channel, kind);
    exchange.block(algorithms::broadcast(&exchange, root, bytes))
}

/// The same, nonblocking.
pub(crate) fn start_broadcast(
    comm: &Communicator,
    kind: Kind,
    root: usize,
    bytes: Vec<u8>,
) -> Request<Vec<u8>> {
    let channel = comm.channel().clone();
    let sequence = channel.next_nonblocking();
    raw::start(comm, kind, async move {
        let exchange = Exchange::numbered(&channel, kind, sequence);
        algorithms::broadcast(&exchange, root, bytes).await
    })
}
