//! Collectives that move the program's buffers. What is long is not sent: who has it shows it, and who needs it gets it to its final
//! place, so that no byte is copied twice. What is short is sent as in [`super::algorithms`].
//!
//! Each is a future, which is ready at once in the form that blocks; its other form is in [`super::later`]. What is short goes without
//! one in a call that blocks.

use super::exchange::{Exchange, Kind};
use super::raw::check_blocks;
use super::shown::{Given, LONG_IN_PAGES, Shown, give_root, offer_each, settle_all, settle_all_after};
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

/// The same in a blocking call, in the first round.
fn take_each_now(
    exchange: &Exchange<'_>,
    mut peers: impl Iterator<Item = usize>,
    parts: &mut [&mut [u8]],
) -> Result<()> {
    let mut result = Ok(());
    peers.try_for_each(|peer| goes_on(&mut result, take_now(exchange, peer, 0, parts[peer]).map(drop)))?;
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
    let place = (comm.rank(), 0);
    if is_short(data) {
        return pass_down_now(&exchange, place, data);
    }
    exchange.block(pass_down(&exchange, place, RawBuffer::lent(data)))
}

/// The root's bytes, which this rank is not, from the beginning of `data` on (`MPI_Bcast`).
///
/// # Errors
/// Those of all collectives; there are more bytes than `data` has room for.
pub fn broadcast_into(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<()> {
    broadcast_to(comm, root, data).map(drop)
}

/// The same, and how many there are.
pub(super) fn broadcast_to(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<usize> {
    let channel = comm.channel();
    channel.check_rank("broadcast", root)?;
    let exchange = Exchange::new(channel, Kind::Broadcast);
    let (place, parent) = place_below(&exchange, root);
    let came = Given::wait_now(&exchange, channel, (parent, 0), data)?;
    match came {
        Ok(len) if is_short(&data[..len]) => {
            pass_down_now(&exchange, (root, place), &data[..len]).map(|()| len)
        }
        came => exchange.block(pass_came(&exchange, (root, place), parent, came, RawBuffer::lent_mut(data))),
    }
}

/// The root's bytes, from above, and to those below.
pub(super) async fn pass_on(exchange: &Exchange<'_>, root: usize, data: RawBuffer) -> Result<()> {
    let (place, parent) = place_below(exchange, root);
    let came = Given::wait_at(exchange, exchange.channel(), (parent, 0), data).await?;
    pass_came(exchange, (root, place), parent, came, data).await.map(drop)
}

/// The place of this rank in the binomial tree below a root, and the rank above.
fn place_below(exchange: &Exchange<'_>, root: usize) -> (usize, usize) {
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    let above = if place == 0 { 0 } else { 1 << place.ilog2() };
    (place, (place - above + root) % size)
}

async fn pass_came(
    exchange: &Exchange<'_>,
    at: (usize, usize),
    parent: usize,
    came: std::result::Result<usize, Given<'_>>,
    data: RawBuffer,
) -> Result<usize> {
    let given = match came {
        Ok(len) => {
            pass_down(exchange, at, data.part(0, len).unwrap_or(data)).await?;
            return Ok(len);
        }
        Err(given) => given,
    };
    let (len, room) = (given.len(), data.len());
    if let Some(data) = data.part(0, len) {
        read_all(exchange, parent, given, data).await?;
        pass_down(exchange, at, data).await?;
        return Ok(len);
    }
    // The ranks below may have room for it.
    let wrong = exchange.other_length(parent, len, room);
    let mut all = Vec::new();
    if all.try_reserve_exact(len).is_ok() {
        all.resize(len, 0);
        let all = crate::Room::new(all);
        read_all(exchange, parent, given, all.raw()).await?;
        pass_down(exchange, at, all.raw()).await?;
        drop(all.take());
    }
    Err(wrong)
}

/// Those below a place, the next first.
fn below(exchange: &Exchange<'_>, (root, place): (usize, usize)) -> impl Iterator<Item = usize> + use<> {
    let (_, size) = exchange.place();
    let first = if place == 0 { 1 } else { 2usize << place.ilog2() };
    let distances = std::iter::successors(Some(first), |distance| distance.checked_mul(2));
    distances
        .take_while(move |distance| place + distance < size)
        .map(move |distance| (place + distance + root) % size)
}

/// Down a binomial tree, from this rank's place on.
pub(super) async fn pass_down(exchange: &Exchange<'_>, at: (usize, usize), data: RawBuffer) -> Result<()> {
    let mut shown = Shown::new(exchange.channel(), data.bytes());
    for peer in below(exchange, at) {
        exchange.wait(shown.offer(exchange, peer, 0)).await?;
    }
    exchange.wait(shown.settle(exchange)).await
}

/// The same in a blocking call, of what is always sent.
fn pass_down_now(exchange: &Exchange<'_>, at: (usize, usize), data: &[u8]) -> Result<()> {
    below(exchange, at).try_for_each(|peer| exchange.send_now(peer, 0, data))
}

/// Whether bytes are so few that they are always sent.
fn is_short(bytes: &[u8]) -> bool {
    bytes.len() < LONG_IN_PAGES
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

/// Every rank's bytes in its part, at every rank (`MPI_Allgatherv`, for long parts): this rank's are `own`, or there.
///
/// # Errors
/// Those of all collectives; a wrong number of parts, or one is longer than the others have room for.
pub fn allgather_into(comm: &Communicator, own: Option<&[u8]>, parts: &mut [&mut [u8]]) -> Result<()> {
    check_blocks(comm.channel(), "allgather", parts.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::Allgather);
    exchange.block(spread(&exchange, own.map(RawBuffer::lent), &lent_mut(parts), 0))
}

pub(super) async fn spread(
    exchange: &Exchange<'_>,
    own: Option<RawBuffer>,
    parts: &[RawBuffer],
    round: usize,
) -> Result<()> {
    let channel = exchange.channel();
    let place = parts[channel.rank];
    let mut shown = Shown::both_ways(channel, own.unwrap_or(place).bytes());
    for peer in others(channel) {
        exchange.wait(shown.offer(exchange, peer, round)).await?;
    }
    let copied = own.map_or(Ok(()), |own| copy_own(exchange, own.bytes(), place.bytes_mut()));
    let taken = take_each(exchange, others(channel), round, parts).await;
    shown.settle_after(exchange, taken.and(copied)).await
}

/// Block j of rank i becomes block i of rank j (`MPI_Alltoallv`).
///
/// # Errors
/// Those of all collectives; a wrong number of blocks, or one is longer than there is room for.
pub fn alltoall_into(comm: &Communicator, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<()> {
    check_blocks(comm.channel(), "alltoall", from.len())?;
    check_blocks(comm.channel(), "alltoall", to.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::Alltoall);
    if !from.iter().all(|block| is_short(block)) {
        return exchange.block(exchange_blocks(&exchange, &lent(from), &lent_mut(to)));
    }
    let copied = copy_own(&exchange, from[comm.rank()], to[comm.rank()]);
    others(comm.channel()).try_for_each(|peer| exchange.send_now(peer, 0, from[peer]))?;
    copied.and(take_each_now(&exchange, others_before(comm.channel()), to))
}

/// A rank's block for itself.
fn copy_own(exchange: &Exchange<'_>, from: &[u8], to: &mut [u8]) -> Result<()> {
    let (rank, room) = (exchange.place().0, to.len());
    let place = to.get_mut(..from.len()).ok_or_else(|| exchange.other_length(rank, from.len(), room))?;
    place.copy_from_slice(from);
    Ok(())
}

/// The blocks of one list to those of another one's, which are not the same memory.
pub(super) async fn exchange_blocks(
    exchange: &Exchange<'_>,
    from: &[RawBuffer],
    to: &[RawBuffer],
) -> Result<()> {
    let channel = exchange.channel();
    let copied = copy_own(exchange, from[channel.rank].bytes(), to[channel.rank].bytes_mut());
    let mut shown = Vec::new();
    for peer in others(channel) {
        if exchange.blocks() && is_short(from[peer].bytes()) {
            exchange.send_now(peer, 0, from[peer].bytes())?;
            continue;
        }
        let mut block = Shown::both_ways(channel, from[peer].bytes());
        exchange.wait(block.offer(exchange, peer, 0)).await?;
        shown.push(block);
    }
    let taken = copied.and(take_each(exchange, others_before(channel), 0, to).await);
    settle_all_after(exchange, shown, taken).await
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
    take_each_now(&exchange, others(channel), parts)
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
    let given = offer_each(exchange, 0, parts, Shown::new).await?;
    exchange.wait(settle_all(exchange, given)).await
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
