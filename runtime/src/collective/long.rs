//! Collectives that move the program's buffers. What is long is not sent: who has it shows it, and who needs it gets it to its final
//! place, so that no byte is copied twice. What is short is sent as in [`super::algorithms`].
//!
//! Each is here once, as a future that is ready at once in the form that blocks; its other form is in [`super::later`].

use super::exchange::{Exchange, Kind};
use super::raw::check_blocks;
use super::shown::{Given, LONG_IN_PAGES, Shown, give_root};
use crate::comm::Channel;
use crate::{Class, Communicator, RawBuffer, Result};

pub use super::shown::LONG;

/// Takes what a peer gives in this round: so many bytes, which may be less than there is room for.
pub(super) async fn take(exchange: &Exchange<'_>, peer: usize, round: usize, to: RawBuffer) -> Result<usize> {
    match Given::wait_at(exchange, exchange.channel(), (peer, round), to).await? {
        Ok(len) => Ok(len),
        Err(given) => read_all(exchange, peer, given, to).await,
    }
}

/// The same in a blocking call.
pub(super) fn take_now(exchange: &Exchange<'_>, peer: usize, round: usize, to: &mut [u8]) -> Result<usize> {
    match Given::wait_now(exchange, exchange.channel(), (peer, round), to)? {
        Ok(len) => Ok(len),
        Err(given) => exchange.block(read_all(exchange, peer, given, RawBuffer::lent_mut(to))),
    }
}

async fn read_all(exchange: &Exchange<'_>, peer: usize, given: Given<'_>, to: RawBuffer) -> Result<usize> {
    let (len, room) = (given.len(), to.len());
    let read = match to.part(0, len) {
        Some(place) => given.read(0, place).await,
        None => Err(exchange.other_length(peer, len, room)),
    };
    exchange.wait(given.finish()).await?;
    read.map(|()| len)
}

/// Takes what peers give in this round, each to its part.
pub(super) async fn take_each(
    exchange: &Exchange<'_>,
    peers: impl Iterator<Item = usize>,
    round: usize,
    parts: &[RawBuffer],
) -> Result<()> {
    let mut result = Ok(());
    for peer in peers {
        let taken = take(exchange, peer, round, parts[peer]).await;
        goes_on(&mut result, taken.map(drop))?;
    }
    result
}

/// After an error of lengths, which is the program's, too, for the others wait for this rank's answers.
pub(super) fn goes_on(result: &mut Result<()>, next: Result<()>) -> Result<()> {
    match next {
        Err(error) if error.class() == Class::Count => {
            *result = Err(error);
            Ok(())
        }
        next => next,
    }
}

/// This rank's bytes at every other (`MPI_Bcast`, at the root).
///
/// # Errors
/// Those of all collectives.
pub fn broadcast_from(comm: &Communicator, data: &[u8]) -> Result<()> {
    let exchange = Exchange::new(comm.channel(), Kind::Broadcast);
    exchange.block(pass_down(&exchange, (comm.rank(), 0), RawBuffer::lent(data)))
}

/// The root's bytes, which this rank is not, from the beginning of `data` on (`MPI_Bcast`).
///
/// # Errors
/// Those of all collectives; there are more bytes than `data` has room for.
pub fn broadcast_into(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<()> {
    comm.channel().check_rank("broadcast", root)?;
    let exchange = Exchange::new(comm.channel(), Kind::Broadcast);
    exchange.block(pass_on(&exchange, root, RawBuffer::lent_mut(data)))
}

/// The root's bytes, from above, and to those below.
pub(super) async fn pass_on(exchange: &Exchange<'_>, root: usize, data: RawBuffer) -> Result<()> {
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    let above = if place == 0 { 0 } else { 1 << place.ilog2() };
    let parent = (place - above + root) % size;
    let given = match Given::wait_at(exchange, exchange.channel(), (parent, 0), data).await? {
        Ok(len) => return pass_down(exchange, (root, place), data.part(0, len).unwrap_or(data)).await,
        Err(given) => given,
    };
    let (len, room) = (given.len(), data.len());
    if let Some(data) = data.part(0, len) {
        read_all(exchange, parent, given, data).await?;
        return pass_down(exchange, (root, place), data).await;
    }
    // The ranks below may have room for it.
    let wrong = exchange.other_length(parent, len, room);
    let mut all = Vec::new();
    if all.try_reserve_exact(len).is_ok() {
        all.resize(len, 0);
        let all = crate::Room::new(all);
        read_all(exchange, parent, given, all.raw()).await?;
        pass_down(exchange, (root, place), all.raw()).await?;
        drop(all.take());
    }
    Err(wrong)
}

/// Down a binomial tree, from this rank's place on.
pub(super) async fn pass_down(
    exchange: &Exchange<'_>,
    (root, place): (usize, usize),
    data: RawBuffer,
) -> Result<()> {
    let (_, size) = exchange.place();
    let below = |distance: usize| (place + distance + root) % size;
    let mut distance = if place == 0 { 1 } else { 2 << place.ilog2() };
    let mut shown = Shown::new(exchange.channel(), data.bytes());
    while place + distance < size {
        give(exchange, &mut shown, below(distance), 0).await?;
        distance *= 2;
    }
    exchange.wait(shown.settle(exchange)).await
}

/// Gives a peer bytes in this round, which it may still have to get: what is short goes without a future.
async fn give(exchange: &Exchange<'_>, shown: &mut Shown<'_>, peer: usize, round: usize) -> Result<()> {
    match shown.short() {
        Some(bytes) if exchange.blocks() => exchange.send_now(peer, round, bytes),
        _ => exchange.wait(shown.offer(exchange, peer, round)).await,
    }
}

/// Other ranks, the next first.
pub(super) fn others(channel: &Channel) -> impl Iterator<Item = usize> + use<> {
    let (rank, size) = (channel.rank, channel.size);
    (1..size).map(move |distance| (rank + distance) % size)
}

/// Other ranks, for whom this one is the next, the one after that, and so on.
fn others_before(channel: &Channel) -> impl Iterator<Item = usize> + use<> {
    let (rank, size) = (channel.rank, channel.size);
    (1..size).map(move |distance| (rank + size - distance) % size)
}

pub(super) fn lent(parts: &[&[u8]]) -> Vec<RawBuffer> {
    parts.iter().map(|part| RawBuffer::lent(part)).collect()
}

fn lent_mut(parts: &mut [&mut [u8]]) -> Vec<RawBuffer> {
    parts.iter_mut().map(|part| RawBuffer::lent_mut(part)).collect()
}

/// Every rank's bytes in its part, at every rank: this rank's are there (`MPI_Allgatherv`, for long parts).
///
/// # Errors
/// Those of all collectives; a wrong number of parts, or one is longer than the others have room for.
pub fn allgather_into(comm: &Communicator, parts: &mut [&mut [u8]]) -> Result<()> {
    check_blocks(comm.channel(), "allgather", parts.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::Allgather);
    exchange.block(spread(&exchange, &lent_mut(parts), 0))
}

pub(super) async fn spread(exchange: &Exchange<'_>, parts: &[RawBuffer], round: usize) -> Result<()> {
    let channel = exchange.channel();
    let mut shown = Shown::both_ways(channel, parts[channel.rank].bytes());
    for peer in others(channel) {
        exchange.wait(shown.offer(exchange, peer, round)).await?;
    }
    let taken = take_each(exchange, others(channel), round, parts).await;
    shown.settle_after(exchange, taken).await
}

/// Block j of rank i becomes block i of rank j (`MPI_Alltoallv`).
///
/// # Errors
/// Those of all collectives; a wrong number of blocks, or one is longer than there is room for.
pub fn alltoall_into(comm: &Communicator, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<()> {
    check_blocks(comm.channel(), "alltoall", from.len())?;
    check_blocks(comm.channel(), "alltoall", to.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::Alltoall);
    exchange.block(exchange_blocks(&exchange, &lent(from), &lent_mut(to)))
}

/// The blocks of one list to those of another one's, which are not the same memory.
pub(super) async fn exchange_blocks(
    exchange: &Exchange<'_>,
    from: &[RawBuffer],
    to: &[RawBuffer],
) -> Result<()> {
    let channel = exchange.channel();
    let (own, room) = (from[channel.rank], to[channel.rank]);
    let copied = match room.part(0, own.len()) {
        Some(place) => {
            place.bytes_mut().copy_from_slice(own.bytes());
            Ok(())
        }
        None => Err(exchange.other_length(channel.rank, own.len(), room.len())),
    };
    let mut shown = Vec::new();
    for peer in others(channel) {
        let mut block = Shown::both_ways(channel, from[peer].bytes());
        give(exchange, &mut block, peer, 0).await?;
        if block.is_told() {
            shown.push(block);
        }
    }
    let mut result = copied.and(take_each(exchange, others_before(channel), 0, to).await);
    for block in shown {
        result = block.settle_after(exchange, result).await;
    }
    result
}

/// [`alltoall_into`] of blocks of one length (`MPI_Alltoall`): one for each rank, one behind the other.
///
/// # Errors
/// Those of all collectives; a wrong number of bytes.
pub fn alltoall_equal(comm: &Communicator, from: &[u8], to: &mut [u8]) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Alltoall);
    let (rank, size) = (channel.rank, channel.size);
    let block = from.len() / size;
    if from.len() != to.len() || block * size != from.len() {
        return Err(exchange.other_length(rank, from.len(), to.len()));
    }
    if block >= LONG_IN_PAGES {
        let (from, to) = (RawBuffer::lent(from), RawBuffer::lent_mut(to));
        let blocks = |all: RawBuffer| -> Vec<RawBuffer> {
            (0..size).filter_map(|of| all.part(of * block, block)).collect()
        };
        return exchange.block(exchange_blocks(&exchange, &blocks(from), &blocks(to)));
    }
    let part = |of: usize| of * block..(of + 1) * block;
    to[part(rank)].copy_from_slice(&from[part(rank)]);
    others(channel).try_for_each(|peer| exchange.send_now(peer, 0, &from[part(peer)]))?;
    let mut result = Ok(());
    for peer in others_before(channel) {
        goes_on(&mut result, take_now(&exchange, peer, 0, &mut to[part(peer)]).map(drop))?;
    }
    result
}

/// Every rank's bytes in its part, at this rank, which is the root: its own are there (`MPI_Gatherv`).
///
/// # Errors
/// Those of all collectives; a wrong number of parts, or one has no room for what its rank gives.
pub fn gather_into(comm: &Communicator, parts: &mut [&mut [u8]]) -> Result<()> {
    let channel = comm.channel();
    check_blocks(channel, "gather", parts.len())?;
    let exchange = Exchange::new(channel, Kind::Gather);
    exchange.block(take_each(&exchange, others(channel), 0, &lent_mut(parts)))
}

/// This rank's bytes for the root, which it is not (`MPI_Gatherv`).
///
/// # Errors
/// Those of all collectives.
pub fn gather_from(comm: &Communicator, root: usize, data: &[u8]) -> Result<()> {
    comm.channel().check_rank("gather", root)?;
    let exchange = Exchange::new(comm.channel(), Kind::Gather);
    exchange.block(give_root(&exchange, root, 0, data))
}

/// A part for every rank, from this one, which is the root (`MPI_Scatterv`).
///
/// # Errors
/// Those of all collectives; a wrong number of parts.
pub fn scatter_from(comm: &Communicator, parts: &[&[u8]]) -> Result<()> {
    check_blocks(comm.channel(), "scatter", parts.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::Scatter);
    exchange.block(deal(&exchange, &lent(parts)))
}

/// To each other rank its part.
pub(super) async fn deal(exchange: &Exchange<'_>, parts: &[RawBuffer]) -> Result<()> {
    let channel = exchange.channel();
    let mut given = Vec::with_capacity(parts.len());
    for peer in others(channel) {
        let mut shown = Shown::new(channel, parts[peer].bytes());
        exchange.wait(shown.offer(exchange, peer, 0)).await?;
        given.push(shown);
    }
    for shown in given {
        exchange.wait(shown.settle(exchange)).await?;
    }
    Ok(())
}

/// This rank's part of the root's, which it is not, from the beginning of `data` on (`MPI_Scatterv`).
///
/// # Errors
/// Those of all collectives; there are more bytes than `data` has room for.
pub fn scatter_into(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<()> {
    comm.channel().check_rank("scatter", root)?;
    let exchange = Exchange::new(comm.channel(), Kind::Scatter);
    take_now(&exchange, root, 0, data).map(drop)
}
