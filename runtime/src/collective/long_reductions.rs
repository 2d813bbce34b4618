//! Blocking reductions of the program's buffers, for long data: each rank combines a part of all ranks' elements, in their order.

use std::cell::Cell;

use super::exchange::{Exchange, Kind};
use super::long::{each, give, others, spread, take};
use super::raw::Combine;
use super::shown::{Given, Shown};
use crate::comm::Channel;
use crate::{Communicator, Result};

/// So many bytes are combined at a time, which stay in the cache meanwhile.
const PIECE: usize = 256 << 10;

thread_local! {
    /// Room for two pieces, kept since new memory costs as much as combining does.
    static BUFFERS: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Every rank's elements, of `unit` bytes, combined at every rank (`MPI_Allreduce`).
///
/// # Errors
/// Those of all collectives; ranks give different lengths.
pub fn allreduce_into(comm: &Communicator, data: &mut [u8], unit: usize, combine: &Combine) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Allreduce);
    let mut parts = cut(data, channel.size, unit);
    let own = std::mem::take(&mut parts[channel.rank]);
    combine_own(&exchange, channel, &given(&parts), own, unit, combine)?;
    parts[channel.rank] = own;
    spread(&exchange, channel, &mut parts, 1)
}

/// Every rank's elements combined at this rank, which is the root, where its own are (`MPI_Reduce`).
///
/// # Errors
/// As for [`allreduce_into`].
pub fn reduce_into(comm: &Communicator, data: &mut [u8], unit: usize, combine: &Combine) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Reduce);
    let mut parts = cut(data, channel.size, unit);
    let own = std::mem::take(&mut parts[channel.rank]);
    combine_own(&exchange, channel, &given(&parts), own, unit, combine)?;
    each(others(channel), |peer| take(&exchange, channel, peer, 1, parts[peer]).map(drop))
}

/// This rank's elements for the root, which it is not (`MPI_Reduce`).
///
/// # Errors
/// As for [`allreduce_into`].
pub fn reduce_from(
    comm: &Communicator,
    root: usize,
    data: &[u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let channel = comm.channel();
    channel.check_rank("reduce", root)?;
    let exchange = Exchange::new(channel, Kind::Reduce);
    let mut parts = Vec::new();
    let mut rest = data;
    for len in lengths(data.len(), channel.size, unit) {
        let (part, after) = rest.split_at(len);
        parts.push(part);
        rest = after;
    }
    let mut own = std::mem::take(&mut parts[channel.rank]).to_vec();
    combine_own(&exchange, channel, &parts, &mut own, unit, combine)?;
    give(&exchange, channel, root, 1, &own)
}

/// Every rank's elements for this one combined with its own, which are in `own`; `parts` are those for the others
/// (`MPI_Reduce_scatter`).
///
/// # Errors
/// As for [`allreduce_into`]; a wrong number of parts.
pub fn reduce_scatter_into(
    comm: &Communicator,
    parts: &[&[u8]],
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "reduce_scatter", parts.len())?;
    let exchange = Exchange::new(channel, Kind::ReduceScatter);
    combine_own(&exchange, channel, parts, own, unit, combine)
}

/// Bytes of parts of whole elements, as even as can be; the last has what is no element.
fn lengths(bytes: usize, parts: usize, unit: usize) -> impl Iterator<Item = usize> {
    let units = bytes / unit.max(1);
    let first = move |part: usize| match part == parts {
        true => bytes,
        false => (units / parts * part + (units % parts).min(part)) * unit,
    };
    (0..parts).map(move |part| first(part + 1) - first(part))
}

/// Parts of whole elements.
fn cut(mut data: &mut [u8], parts: usize, unit: usize) -> Vec<&mut [u8]> {
    let mut all = Vec::with_capacity(parts);
    for len in lengths(data.len(), parts, unit) {
        let (part, rest) = data.split_at_mut(len);
        all.push(part);
        data = rest;
    }
    all
}

fn given<'a>(parts: &'a [&mut [u8]]) -> Vec<&'a [u8]> {
    parts.iter().map(|part| &**part).collect()
}

/// Gives the others their parts of this rank's elements, and combines theirs with its own.
fn combine_own(
    exchange: &Exchange<'_>,
    channel: &Channel,
    parts: &[&[u8]],
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let shown: Vec<Shown<'_>> = parts.iter().map(|part| Shown::new(channel, part)).collect();
    others(channel).try_for_each(|peer| shown[peer].offer(exchange, peer, 0, 0..parts[peer].len()))?;
    let combined = combine_part(exchange, channel, own, unit, combine);
    shown.into_iter().fold(combined, |result, shown| shown.settle_after(exchange, result))
}

/// Combines all ranks' elements of a part into this rank's.
fn combine_part(
    exchange: &Exchange<'_>,
    channel: &Channel,
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let mut given: Vec<Option<Given<'_>>> = (0..channel.size).map(|_| None).collect();
    let mut result = each(others(channel), |peer| {
        let from = given[peer].insert(Given::wait(exchange, channel, (peer, 0))?);
        if from.len() == own.len() { Ok(()) } else { Err(exchange.other_length(peer, from.len(), own.len())) }
    });
    if result.is_ok() {
        let piece = (PIECE / unit.max(1)).max(1) * unit.max(1);
        let mut buffers = BUFFERS.take();
        let most = piece.min(own.len()).max(buffers.0.len());
        buffers.0.resize(most, 0);
        buffers.1.resize(most, 0);
        let mut pieces = own.chunks_mut(piece).enumerate();
        result = pieces
            .try_for_each(|(number, own)| combine_piece(&given, number * piece, own, &mut buffers, combine));
        if most <= PIECE {
            BUFFERS.set(buffers);
        }
    }
    given.into_iter().flatten().fold(result, |result, given| result.and(given.finish()))
}

/// Where the elements of a piece are that are combined so far.
enum Combined {
    Nowhere,
    InBuffer,
    InPlace,
}

/// Combines all ranks' elements of a piece, in the order of ranks, into this rank's, which has none that are given.
fn combine_piece(
    given: &[Option<Given<'_>>],
    at: usize,
    own: &mut [u8],
    (left, right): &mut (Vec<u8>, Vec<u8>),
    combine: &Combine,
) -> Result<()> {
    let len = own.len();
    let mut combined = Combined::Nowhere;
    for given in given {
        let Some(given) = given else {
            if let Combined::InBuffer = combined {
                combine(&left[..len], own);
            }
            combined = Combined::InPlace;
            continue;
        };
        given.read(at, &mut right[..len])?;
        match combined {
            Combined::Nowhere => (),
            Combined::InBuffer => combine(&left[..len], &mut right[..len]),
            Combined::InPlace => combine(own, &mut right[..len]),
        }
        std::mem::swap(left, right);
        combined = Combined::InBuffer;
    }
    if let Combined::InBuffer = combined {
        own.copy_from_slice(&left[..len]);
    }
    Ok(())
}
