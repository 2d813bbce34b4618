//! Blocking reductions of the program's buffers, for long data: each rank combines a part of all ranks' elements, in their order.

use std::cell::Cell;

use super::exchange::{Exchange, Kind};
use super::long::{each, others, spread, take};
use super::raw::Combine;
use super::shown::{Given, LONG, LONG_IN_PAGES, Shown, give_root};
use crate::comm::Channel;
use crate::{Communicator, Result};

/// So many bytes are combined at a time, which stay in the cache meanwhile.
const PIECE: usize = 256 << 10;

/// Of so many bytes, each of two ranks combines all: waiting once more costs more than that.
const WHOLE: usize = 512 << 10;

/// So many bytes of all ranks are combined where they have come to.
const TOGETHER: usize = 1 << 20;

thread_local! {
    /// Room for two pieces, or for what is combined together, kept since new memory costs as much as combining does.
    static BUFFERS: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Whether [`allreduce_into`] is the way for elements of so many bytes. All ranks find the same.
pub fn allreduce_is_long(comm: &Communicator, bytes: usize) -> bool {
    bytes >= if comm.size() == 2 { LONG_IN_PAGES } else { LONG }
}

/// Every rank's elements, of `unit` bytes, combined at every rank (`MPI_Allreduce`). Without `operands`, the results
/// replace this rank's.
///
/// # Errors
/// Those of all collectives; ranks give different lengths.
pub fn allreduce_into(
    comm: &Communicator,
    operands: Option<&[u8]>,
    results: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Allreduce);
    if channel.size == 2 && results.len() <= WHOLE {
        let replaced = if operands.is_none() { results.to_vec() } else { Vec::new() };
        let operands = operands.unwrap_or(&replaced);
        return combine_parts(&exchange, channel, &[operands; 2], Some(operands), results, unit, combine);
    }
    let mut parts = cut(results, channel.size, unit);
    combine_own(&exchange, channel, operands, &mut parts, unit, combine)?;
    spread(&exchange, channel, &mut parts, 1)
}

/// Every rank's elements combined at this rank, which is the root (`MPI_Reduce`). Without `operands`, the results replace
/// this rank's.
///
/// # Errors
/// As for [`allreduce_into`].
pub fn reduce_into(
    comm: &Communicator,
    operands: Option<&[u8]>,
    results: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let channel = comm.channel();
    let exchange = Exchange::new(channel, Kind::Reduce);
    let mut parts = cut(results, channel.size, unit);
    combine_own(&exchange, channel, operands, &mut parts, unit, combine)?;
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
    let parts = split(data, channel.size, unit);
    let mut own = vec![0; parts[channel.rank].len()];
    combine_parts(&exchange, channel, &parts, Some(parts[channel.rank]), &mut own, unit, combine)?;
    exchange.block(give_root(&exchange, root, 1, &own))
}

/// Every rank's elements for this one combined with its own, which are `operands`, or in `own`; `parts` are those for the
/// others (`MPI_Reduce_scatter`).
///
/// # Errors
/// As for [`allreduce_into`]; a wrong number of parts.
pub fn reduce_scatter_into(
    comm: &Communicator,
    parts: &[&[u8]],
    operands: Option<&[u8]>,
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let channel = comm.channel();
    super::raw::check_blocks(channel, "reduce_scatter", parts.len())?;
    let exchange = Exchange::new(channel, Kind::ReduceScatter);
    combine_parts(&exchange, channel, parts, operands, own, unit, combine)
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

/// The same of what is only read.
fn split(mut data: &[u8], parts: usize, unit: usize) -> Vec<&[u8]> {
    let mut all = Vec::with_capacity(parts);
    for len in lengths(data.len(), parts, unit) {
        let (part, rest) = data.split_at(len);
        all.push(part);
        data = rest;
    }
    all
}

/// Combines all ranks' elements of this rank's part of the results, while the others do so with theirs.
fn combine_own(
    exchange: &Exchange<'_>,
    channel: &Channel,
    operands: Option<&[u8]>,
    parts: &mut [&mut [u8]],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let own = std::mem::take(&mut parts[channel.rank]);
    let combined = match operands {
        Some(operands) => {
            let given = split(operands, channel.size, unit);
            combine_parts(exchange, channel, &given, Some(given[channel.rank]), own, unit, combine)
        }
        None => {
            let given: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
            combine_parts(exchange, channel, &given, None, own, unit, combine)
        }
    };
    parts[channel.rank] = own;
    combined
}

/// Gives the others their parts of this rank's elements, and combines theirs with its own.
fn combine_parts(
    exchange: &Exchange<'_>,
    channel: &Channel,
    parts: &[&[u8]],
    operands: Option<&[u8]>,
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let mut shown: Vec<Shown<'_>> = parts.iter().map(|part| Shown::both_ways(channel, part)).collect();
    others(channel).try_for_each(|peer| exchange.block(shown[peer].offer(exchange, peer, 0)))?;
    let combined = combine_part(exchange, channel, operands, own, unit, combine);
    shown.into_iter().fold(combined, |result, shown| shown.settle_after(exchange, result))
}

/// Combines all ranks' elements of a part.
fn combine_part(
    exchange: &Exchange<'_>,
    channel: &Channel,
    operands: Option<&[u8]>,
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    match own.len().checked_mul(channel.size) {
        Some(all) if channel.size > 1 && all <= TOGETHER => {
            combine_whole(exchange, channel, operands, own, combine)
        }
        _ => combine_in_pieces(exchange, channel, operands, own, unit, combine),
    }
}

/// Refuses operands of another length than the result.
fn check_operands(
    exchange: &Exchange<'_>,
    channel: &Channel,
    operands: Option<&[u8]>,
    len: usize,
) -> Result<()> {
    let other = operands.map(<[u8]>::len).filter(|operands| *operands != len);
    other.map_or(Ok(()), |operands| Err(exchange.other_length(channel.rank, operands, len)))
}

/// What is so short that there is room for all ranks' elements: they come to where they are combined.
fn combine_whole(
    exchange: &Exchange<'_>,
    channel: &Channel,
    operands: Option<&[u8]>,
    own: &mut [u8],
    combine: &Combine,
) -> Result<()> {
    let (rank, size, len) = (channel.rank, channel.size, own.len());
    let mut result = check_operands(exchange, channel, operands, len);
    let mut buffers = BUFFERS.take();
    buffers.0.resize(buffers.0.len().max(size * len), 0);
    // The last rank's come to the result, where they are combined with all before; this rank's are there, if nowhere else.
    let (rest, replaced) = buffers.0[..size * len].split_at_mut((size - 1) * len);
    let operands = match operands {
        Some(operands) => operands,
        None => {
            replaced.copy_from_slice(own);
            replaced
        }
    };
    let mut places: Vec<&mut [u8]> = rest.chunks_mut(len.max(1)).take(size - 1).collect();
    places.resize_with(size - 1, Default::default);
    places.push(own);
    let mut given = Vec::new();
    result = result.and(each(others(channel), |peer| {
        let came = match Given::wait_at(exchange, channel, (peer, 0), places[peer])? {
            Ok(came) => came,
            Err(from) => {
                let read = if from.len() == len { from.read(0, places[peer]) } else { Ok(()) };
                let came = from.len();
                given.push(from);
                read.map(|()| came)?
            }
        };
        if came == len { Ok(()) } else { Err(exchange.other_length(peer, came, len)) }
    }));
    if result.is_ok() {
        let mut combined: Option<&[u8]> = None;
        for (of, place) in places.into_iter().enumerate() {
            combined = Some(match combined {
                None if of == rank => operands,
                None => place,
                Some(left) => {
                    if of == rank {
                        place.copy_from_slice(operands);
                    }
                    combine(left, place);
                    place
                }
            });
        }
    }
    BUFFERS.set(buffers);
    given.into_iter().fold(result, |result, given| result.and(exchange.block(given.finish())))
}

/// The same in pieces, which are got one behind the other.
fn combine_in_pieces(
    exchange: &Exchange<'_>,
    channel: &Channel,
    operands: Option<&[u8]>,
    own: &mut [u8],
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let mut given: Vec<Option<Given<'_>>> = (0..channel.size).map(|_| None).collect();
    let mut result = each(others(channel), |peer| {
        let from = given[peer].insert(exchange.block(Given::wait(exchange, channel, (peer, 0)))?);
        if from.len() == own.len() { Ok(()) } else { Err(exchange.other_length(peer, from.len(), own.len())) }
    });
    result = result.and(check_operands(exchange, channel, operands, own.len()));
    if result.is_ok() {
        let piece = (PIECE / unit.max(1)).max(1) * unit.max(1);
        let mut buffers = BUFFERS.take();
        let most = piece.min(own.len()).max(buffers.0.len());
        buffers.0.resize(most, 0);
        buffers.1.resize(most, 0);
        let mut pieces = own.chunks_mut(piece).enumerate();
        result = pieces.try_for_each(|(number, own)| {
            let (at, len) = (number * piece, own.len());
            let replaced = &mut buffers.1[..len];
            let operands = match operands {
                Some(operands) => &operands[at..at + len],
                None => {
                    replaced.copy_from_slice(own);
                    replaced
                }
            };
            combine_piece(&given, at, operands, own, &mut buffers.0[..len], combine)
        });
        if most <= PIECE {
            BUFFERS.set(buffers);
        }
    }
    given.into_iter().flatten().fold(result, |result, given| result.and(exchange.block(given.finish())))
}

/// Combines all ranks' elements of a piece, in the order of ranks: what is given, and this rank's, which is not.
fn combine_piece(
    given: &[Option<Given<'_>>],
    at: usize,
    operands: &[u8],
    result: &mut [u8],
    spare: &mut [u8],
    combine: &Combine,
) -> Result<()> {
    // Each step leaves what is combined in the buffer that it does not find it in; the last one, in `result`.
    let (mut next, mut combined) = if given.len() % 2 == 1 { (result, spare) } else { (spare, result) };
    let own_first = given.len() > 1 && given[0].is_none();
    for (number, given) in given.iter().enumerate() {
        match given {
            Some(given) => given.read(at, next)?,
            None if own_first => (),
            None => next.copy_from_slice(operands),
        }
        match number {
            0 => (),
            1 if own_first => combine(operands, next),
            _ => combine(combined, next),
        }
        std::mem::swap(&mut next, &mut combined);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Bytes are subtracted, which tells in which order; the result replaces the operands, or not.
    #[test]
    fn any_number_of_ranks_combines_in_order() {
        let subtract: Combine = Arc::new(|left: &[u8], right: &mut [u8]| {
            left.iter().zip(right).for_each(|(left, right)| *right = left.wrapping_sub(*right));
        });
        for size in 1..=5 {
            let ended = crate::local(size, |job| {
                let operand = |rank: usize, i: usize| (i * 31 + rank * 7 + (i >> 8)) as u8;
                for len in [24_000, TOGETHER / size, 3 * TOGETHER / size] {
                    let own: Vec<u8> = (0..len).map(|i| operand(job.rank(), i)).collect();
                    let expected: Vec<u8> = (0..len)
                        .map(|i| {
                            (1..size).fold(operand(0, i), |left, rank| left.wrapping_sub(operand(rank, i)))
                        })
                        .collect();
                    let mut results = vec![0; len];
                    allreduce_into(&job, Some(&own), &mut results, 8, &subtract)?;
                    assert!(results == expected, "{len} bytes of {size} ranks");
                    results.copy_from_slice(&own);
                    allreduce_into(&job, None, &mut results, 8, &subtract)?;
                    assert!(results == expected, "{len} bytes of {size} ranks in place");
                }
                Ok(())
            });
            ended.unwrap();
        }
    }
}
