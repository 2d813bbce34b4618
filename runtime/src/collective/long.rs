//! Blocking collectives that move the program's buffers. What is long is not sent: who has it shows it, and who needs it gets it to its final
//! place, so that no byte is copied twice. What is short is sent as in [`super::algorithms`].

use super::exchange::{Exchange, Kind};
use super::shown::{Given, LONG_IN_PAGES, Shown, give_root};
use crate::comm::Channel;
use crate::{Class, Communicator, Result};

pub use super::shown::LONG;

/// Takes what a peer gives in this round: so many bytes, which may be less than there is room for.
pub(super) fn take(
    exchange: &Exchange<'_>,
    channel: &Channel,
    peer: usize,
    round: usize,
    to: &mut [u8],
) -> Result<usize> {
    let given = match Given::wait_at(exchange, channel, (peer, round), to)? {
        Ok(len) => return Ok(len),
        Err(given) => given,
    };
    let (len, room) = (given.len(), to.len());
    let read = match to.get_mut(..len) {
        Some(place) => given.read(0, place),
        None => Err(exchange.other_length(peer, len, room)),
    };
    exchange.block(given.finish())?;
    read.map(|()| len)
}

/// Does something for each peer. After an error of lengths, which is the program's, too, for the others wait for this rank's answers.
pub(super) fn each(
    mut peers: impl Iterator<Item = usize>,
    mut act: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut result = Ok(());
    peers.try_for_each(|peer| match act(peer) {
        Err(error) if error.class() == Class::Count => {
            result = Err(error);
            Ok(())
        }
        other => other,
    })?;
    result
}

/// This rank's bytes at every other (`MPI_Bcast`, at the root).
///
/// # Errors
/// Those of all collectives.
pub fn broadcast_from(comm: &Communicator, data: &[u8]) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Broadcast);
    pass_down(&exchange, channel, (channel.rank, 0), data)
}

/// The root's bytes, which this rank is not, from the beginning of `data` on (`MPI_Bcast`).
///
/// # Errors
/// Those of all collectives; there are more bytes than `data` has room for.
pub fn broadcast_into(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<()> {
    let channel = comm.channel();
    channel.check_rank("broadcast", root)?;
    let exchange = Exchange::new(channel, Kind::Broadcast);
    let place = (channel.rank + channel.size - root) % channel.size;
    let above = if place == 0 { 0 } else { 1 << place.ilog2() };
    let parent = (place - above + root) % channel.size;
    let given = match Given::wait_at(&exchange, channel, (parent, 0), data)? {
        Ok(len) => return pass_down(&exchange, channel, (root, place), &data[..len]),
        Err(given) => given,
    };
    let (len, room) = (given.len(), data.len());
    if let Some(data) = data.get_mut(..len) {
        let read = given.read(0, data);
        exchange.block(given.finish())?;
        read?;
        return pass_down(&exchange, channel, (root, place), data);
    }
    // The ranks below may have room for it.
    let wrong = exchange.other_length(parent, len, room);
    let mut all = Vec::new();
    if all.try_reserve_exact(len).is_ok() {
        all.resize(len, 0);
        let read = given.read(0, &mut all);
        exchange.block(given.finish())?;
        read?;
        pass_down(&exchange, channel, (root, place), &all)?;
    }
    Err(wrong)
}

/// Down a binomial tree, from this rank's place on.
fn pass_down(
    exchange: &Exchange<'_>,
    channel: &Channel,
    (root, place): (usize, usize),
    data: &[u8],
) -> Result<()> {
    let below = |distance: usize| (place + distance + root) % channel.size;
    let mut distance = if place == 0 { 1 } else { 2 << place.ilog2() };
    if data.len() < LONG_IN_PAGES {
        while place + distance < channel.size {
            exchange.send_now(below(distance), 0, data)?;
            distance *= 2;
        }
        return Ok(());
    }
    let mut shown = Shown::new(channel, data);
    while place + distance < channel.size {
        exchange.block(shown.offer(exchange, below(distance), 0))?;
        distance *= 2;
    }
    exchange.block(shown.settle(exchange))
}

/// Other ranks, the next first.
pub(super) fn others(channel: &Channel) -> impl Iterator<Item = usize> {
    let (rank, size) = (channel.rank, channel.size);
    (1..size).map(move |distance| (rank + distance) % size)
}

/// Every rank's bytes in its part, at every rank: this rank's are there (`MPI_Allgatherv`, for long parts).
///
/// # Errors
/// Those of all collectives; a wrong number of parts, or one is longer than the others have room for.
pub fn allgather_into(comm: &Communicator, parts: &mut [&mut [u8]]) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "allgather", parts.len())?;
    let exchange = Exchange::new(channel, Kind::Allgather);
    spread(&exchange, channel, parts, 0)
}

pub(super) fn spread(
    exchange: &Exchange<'_>,
    channel: &Channel,
    parts: &mut [&mut [u8]],
    round: usize,
) -> Result<()> {
    let own = std::mem::take(&mut parts[channel.rank]);
    let mut shown = Shown::both_ways(channel, own);
    others(channel).try_for_each(|peer| exchange.block(shown.offer(exchange, peer, round)))?;
    let taken = each(others(channel), |peer| take(exchange, channel, peer, round, parts[peer]).map(drop));
    shown.settle_after(exchange, taken)?;
    parts[channel.rank] = own;
    Ok(())
}

/// Block j of rank i becomes block i of rank j (`MPI_Alltoallv`).
///
/// # Errors
/// Those of all collectives; a wrong number of blocks, or one is longer than there is room for.
pub fn alltoall_into(comm: &Communicator, from: &[&[u8]], to: &mut [&mut [u8]]) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "alltoall", from.len())?;
    super::raw::check_blocks(channel, "alltoall", to.len())?;
    exchange_blocks(&Exchange::new(channel, Kind::Alltoall), channel, from, to)
}

fn exchange_blocks(
    exchange: &Exchange<'_>,
    channel: &Channel,
    from: &[&[u8]],
    to: &mut [&mut [u8]],
) -> Result<()> {
    let (own, room) = (from[channel.rank], to[channel.rank].len());
    let copied = match to[channel.rank].get_mut(..own.len()) {
        Some(place) => {
            place.copy_from_slice(own);
            Ok(())
        }
        None => Err(exchange.other_length(channel.rank, own.len(), room)),
    };
    let mut shown = Vec::new();
    others(channel).try_for_each(|peer| {
        if from[peer].len() < LONG_IN_PAGES {
            return exchange.send_now(peer, 0, from[peer]);
        }
        shown.push(Shown::both_ways(channel, from[peer]));
        shown.last_mut().map_or(Ok(()), |block| exchange.block(block.offer(exchange, peer, 0)))
    })?;
    // From those before this rank, for whom it is the next.
    let before = (1..channel.size).map(|distance| (channel.rank + channel.size - distance) % channel.size);
    let taken = each(before, |peer| take(exchange, channel, peer, 0, to[peer]).map(drop));
    shown.into_iter().fold(copied.and(taken), |result, shown| shown.settle_after(exchange, result))
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
        let from: Vec<&[u8]> = from.chunks(block).collect();
        return exchange_blocks(&exchange, channel, &from, &mut to.chunks_mut(block).collect::<Vec<_>>());
    }
    let part = |of: usize| of * block..(of + 1) * block;
    to[part(rank)].copy_from_slice(&from[part(rank)]);
    others(channel).try_for_each(|peer| exchange.send_now(peer, 0, &from[part(peer)]))?;
    let before = (1..size).map(|distance| (rank + size - distance) % size);
    each(before, |peer| take(&exchange, channel, peer, 0, &mut to[part(peer)]).map(drop))
}

/// Every rank's bytes in its part, at this rank, which is the root: its own are there (`MPI_Gatherv`).
///
/// # Errors
/// Those of all collectives; a wrong number of parts, or one has no room for what its rank gives.
pub fn gather_into(comm: &Communicator, parts: &mut [&mut [u8]]) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "gather", parts.len())?;
    let exchange = Exchange::new(channel, Kind::Gather);
    each(others(channel), |peer| take(&exchange, channel, peer, 0, parts[peer]).map(drop))
}

/// This rank's bytes for the root, which it is not (`MPI_Gatherv`).
///
/// # Errors
/// Those of all collectives.
pub fn gather_from(comm: &Communicator, root: usize, data: &[u8]) -> Result<()> {
    let channel = comm.channel();
    channel.check_rank("gather", root)?;
    let exchange = Exchange::new(channel, Kind::Gather);
    exchange.block(give_root(&exchange, root, 0, data))
}

/// A part for every rank, from this one, which is the root (`MPI_Scatterv`).
///
/// # Errors
/// Those of all collectives; a wrong number of parts.
pub fn scatter_from(comm: &Communicator, parts: &[&[u8]]) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "scatter", parts.len())?;
    let exchange = Exchange::new(channel, Kind::Scatter);
    let mut shown: Vec<Shown<'_>> = parts.iter().map(|part| Shown::new(channel, part)).collect();
    others(channel).try_for_each(|peer| exchange.block(shown[peer].offer(&exchange, peer, 0)))?;
    shown.into_iter().try_for_each(|shown| exchange.block(shown.settle(&exchange)))
}

/// This rank's part of the root's, which it is not, from the beginning of `data` on (`MPI_Scatterv`).
///
/// # Errors
/// Those of all collectives; there are more bytes than `data` has room for.
pub fn scatter_into(comm: &Communicator, root: usize, data: &mut [u8]) -> Result<()> {
    let channel = comm.channel();
    channel.check_rank("scatter", root)?;
    let exchange = Exchange::new(channel, Kind::Scatter);
    take(&exchange, channel, root, 0, data).map(drop)
}
