//! Reductions of the program's buffers, for long data: each rank combines a part of all ranks' elements, in their order. Each is a future
//! as those of [`super::long`].

use std::cell::Cell;

use super::exchange::{Exchange, Kind};
use super::long::{goes_on, lent, others, spread, take_each};
use super::raw::{Combine, check_blocks};
use super::shown::{Given, LONG, LONG_IN_PAGES, Shown, give_root, offer_each, settle_all_after, settled};
use crate::{Class, Communicator, RawBuffer, Result, Room};

/// So many bytes are combined at a time, which stay in the cache meanwhile.
const PIECE: usize = 256 << 10;

/// Of so many bytes, each of two ranks combines all: waiting once more costs more than that.
const WHOLE: usize = 512 << 10;

/// So many bytes of all ranks are combined where they have come to; those of one other rank, which are few enough to be sent, in any case.
const TOGETHER: usize = 1 << 20;

thread_local! {
    /// Room for two pieces, or for what is combined together, kept since new memory costs as much as combining does.
    static BUFFERS: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// Whether [`allreduce_into`] is the way for elements of so many bytes. All ranks find the same.
pub fn allreduce_is_long(comm: &Communicator, bytes: usize) -> bool {
    bytes >= if comm.size() == 2 { LONG_IN_PAGES } else { LONG }
}

/// Elements of all ranks, and where their results come to.
pub(super) struct Elements<'a> {
    /// This rank's; without them they are where the results will be.
    pub operands: Option<RawBuffer>,
    /// For whoever has some.
    pub results: RawBuffer,
    /// Bytes of an element.
    pub unit: usize,
    pub combine: &'a Combine,
}

impl<'a> Elements<'a> {
    fn lent(operands: Option<&[u8]>, results: &mut [u8], unit: usize, combine: &'a Combine) -> Self {
        let operands = operands.map(RawBuffer::lent);
        Self { operands, results: RawBuffer::lent_mut(results), unit, combine }
    }

    /// The part of one rank, of which there are as many parts.
    fn part(&self, operands: Option<RawBuffer>, results: RawBuffer) -> Elements<'a> {
        Elements { operands, results, ..*self }
    }
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
    let exchange = Exchange::new(comm.channel(), Kind::Allreduce);
    exchange.block(allreduce(&exchange, &Elements::lent(operands, results, unit, combine)))
}

pub(super) async fn allreduce(exchange: &Exchange<'_>, elements: &Elements<'_>) -> Result<()> {
    let (rank, size) = exchange.place();
    let (operands, results) = (elements.operands, elements.results);
    if size == 2 && results.len() <= WHOLE {
        let replaced = operands.is_none().then(|| Room::new(results.bytes().to_vec()));
        let given = operands.or_else(|| replaced.as_ref().map(Room::raw)).unwrap_or(results);
        combine_parts(exchange, &[given; 2], &elements.part(Some(given), results)).await?;
        drop(replaced.map(Room::take));
        return Ok(());
    }
    let parts = cut(results, size, elements.unit);
    combine_own(exchange, &parts, parts[rank], elements).await?;
    spread(exchange, None, &parts, 1).await
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
    let exchange = Exchange::new(comm.channel(), Kind::Reduce);
    exchange.block(reduce(&exchange, &Elements::lent(operands, results, unit, combine)))
}

/// At the root. Of two ranks it combines all: that costs less than to get its other part, too.
pub(super) async fn reduce(exchange: &Exchange<'_>, elements: &Elements<'_>) -> Result<()> {
    let (rank, size) = exchange.place();
    if size == 2 {
        return combine_part(exchange, elements).await;
    }
    let parts = cut(elements.results, size, elements.unit);
    combine_own(exchange, &parts, parts[rank], elements).await?;
    take_each(exchange, others(exchange.channel()), 1, &parts).await
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
    comm.channel().check_rank("reduce", root)?;
    let exchange = Exchange::new(comm.channel(), Kind::Reduce);
    exchange.block(reduce_for(&exchange, root, RawBuffer::lent(data), unit, combine))
}

/// At the others.
pub(super) async fn reduce_for(
    exchange: &Exchange<'_>,
    root: usize,
    data: RawBuffer,
    unit: usize,
    combine: &Combine,
) -> Result<()> {
    let (rank, size) = exchange.place();
    if size == 2 {
        let shown = Shown::both_ways(exchange.channel(), data.bytes());
        return exchange.wait(settled(exchange, root, 0, shown)).await;
    }
    let parts = cut(data, size, unit);
    let own = Room::new(vec![0; parts[rank].len()]);
    let elements = Elements { operands: Some(parts[rank]), results: own.raw(), unit, combine };
    combine_parts(exchange, &parts, &elements).await?;
    exchange.wait(give_root(exchange, root, 1, own.raw().bytes())).await?;
    drop(own.take());
    Ok(())
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
    check_blocks(comm.channel(), "reduce_scatter", parts.len())?;
    let exchange = Exchange::new(comm.channel(), Kind::ReduceScatter);
    let elements = Elements::lent(operands, own, unit, combine);
    exchange.block(combine_parts(&exchange, &lent(parts), &elements))
}

/// Parts of whole elements, as even as can be; the last has what is no element.
fn cut(data: RawBuffer, parts: usize, unit: usize) -> Vec<RawBuffer> {
    let units = data.len() / unit.max(1);
    let first = |part: usize| match part == parts {
        true => data.len(),
        false => (units / parts * part + (units % parts).min(part)) * unit,
    };
    let part = |part: usize| data.part(first(part), first(part + 1) - first(part));
    (0..parts).filter_map(part).collect()
}

/// Combines all ranks' elements of this rank's part of the results, while the others do so with theirs.
async fn combine_own(
    exchange: &Exchange<'_>,
    results: &[RawBuffer],
    own: RawBuffer,
    elements: &Elements<'_>,
) -> Result<()> {
    let (rank, size) = exchange.place();
    match elements.operands.map(|operands| cut(operands, size, elements.unit)) {
        Some(given) => combine_parts(exchange, &given, &elements.part(Some(given[rank]), own)).await,
        None => combine_parts(exchange, results, &elements.part(None, own)).await,
    }
}

/// Gives the others their parts of this rank's elements, and combines theirs with its own.
pub(super) async fn combine_parts(
    exchange: &Exchange<'_>,
    parts: &[RawBuffer],
    elements: &Elements<'_>,
) -> Result<()> {
    let given = offer_each(exchange, 0, parts, Shown::both_ways).await?;
    let combined = combine_part(exchange, elements).await;
    settle_all_after(exchange, given, combined).await
}

/// Combines all ranks' elements of a part.
async fn combine_part(exchange: &Exchange<'_>, elements: &Elements<'_>) -> Result<()> {
    let (rank, size) = exchange.place();
    let len = elements.results.len();
    let other = elements.operands.map(RawBuffer::len).filter(|operands| *operands != len);
    let checked = other.map_or(Ok(()), |operands| Err(exchange.other_length(rank, operands, len)));
    // What one other rank sends comes to its place, if there is one.
    let is_sent = || {
        let shown = Shown::both_ways(exchange.channel(), elements.results.bytes());
        size == 2 && !shown.is_for(1 - rank)
    };
    match len.checked_mul(size) {
        Some(all) if size > 1 && (all <= TOGETHER || is_sent()) => {
            combine_whole(exchange, elements, checked).await
        }
        _ => combine_in_pieces(exchange, elements, checked).await,
    }
}

/// What is so short that there is room for all ranks' elements: they come to where they are combined.
async fn combine_whole(
    exchange: &Exchange<'_>,
    elements: &Elements<'_>,
    mut result: Result<()>,
) -> Result<()> {
    let (rank, size) = exchange.place();
    let (own, len) = (elements.results, elements.results.len());
    let (mut rest, spare) = BUFFERS.take();
    rest.resize(rest.len().max(size * len), 0);
    let rest = Room::new(rest);
    let room = |of: usize| rest.raw().part(of * len, len).unwrap_or(own);
    // The last rank's come to the result, where they are combined with all before; this rank's are there, if nowhere else.
    let place = |of: usize| if of + 1 == size { own } else { room(of) };
    let operands = elements.operands.unwrap_or_else(|| {
        let replaced = room(size - 1);
        replaced.bytes_mut().copy_from_slice(own.bytes());
        replaced
    });
    let mut given = Vec::new();
    for peer in others(exchange.channel()) {
        let came = bring(exchange, peer, place(peer), &mut given).await;
        if let Err(error) = goes_on(&mut result, came) {
            result = Err(error);
            break;
        }
    }
    if result.is_ok() {
        let mut combined: Option<RawBuffer> = None;
        for of in 0..size {
            combined = Some(match combined {
                None if of == rank => operands,
                None => place(of),
                Some(left) => {
                    if of == rank {
                        place(of).bytes_mut().copy_from_slice(operands.bytes());
                    }
                    (elements.combine)(left.bytes(), place(of).bytes_mut());
                    place(of)
                }
            });
        }
    }
    // Where a peer has failed, its elements may still be under way.
    if result.as_ref().err().is_none_or(|error| error.class() == Class::Count) {
        BUFFERS.set((rest.take(), spare));
    }
    for given in given {
        result = result.and(exchange.wait(given.finish()).await);
    }
    result
}

/// Has a peer's elements come to a place; what it shows is read then.
async fn bring<'a>(
    exchange: &'a Exchange<'a>,
    peer: usize,
    place: RawBuffer,
    given: &mut Vec<Given<'a>>,
) -> Result<()> {
    let (came, read) = match Given::wait_at(exchange, exchange.channel(), (peer, 0), place).await? {
        Ok(came) => (came, Ok(())),
        Err(from) => {
            let came = from.len();
            let read = if came == place.len() { from.read(0, place).await } else { Ok(()) };
            given.push(from);
            (came, read)
        }
    };
    read?;
    if came == place.len() { Ok(()) } else { Err(exchange.other_length(peer, came, place.len())) }
}

/// The same in pieces, which are got one behind the other.
async fn combine_in_pieces(
    exchange: &Exchange<'_>,
    elements: &Elements<'_>,
    mut result: Result<()>,
) -> Result<()> {
    let (channel, own) = (exchange.channel(), elements.results);
    let mut given: Vec<Option<Given<'_>>> = (0..channel.size).map(|_| None).collect();
    for peer in others(channel) {
        let from = match exchange.wait(Given::wait(exchange, channel, (peer, 0))).await {
            Ok(from) => given[peer].insert(from),
            Err(error) => {
                result = Err(error);
                break;
            }
        };
        if from.len() != own.len() {
            result = Err(exchange.other_length(peer, from.len(), own.len()));
        }
    }
    if result.is_ok() {
        result = combine_given(&given, elements).await;
    }
    for given in given.into_iter().flatten() {
        result = result.and(exchange.wait(given.finish()).await);
    }
    result
}

/// Piece by piece: what is given, and this rank's, which is not.
async fn combine_given(given: &[Option<Given<'_>>], elements: &Elements<'_>) -> Result<()> {
    let (own, unit) = (elements.results, elements.unit.max(1));
    let piece = (PIECE / unit).max(1) * unit;
    let (mut spare, mut replaced) = BUFFERS.take();
    let most = piece.min(own.len()).max(spare.len());
    spare.resize(most, 0);
    replaced.resize(most, 0);
    let (spare, replaced) = (Room::new(spare), Room::new(replaced));
    for at in (0..own.len()).step_by(piece) {
        let len = piece.min(own.len() - at);
        let of = |all: RawBuffer, at: usize| all.part(at, len).unwrap_or(own);
        let result = of(own, at);
        let operands = match elements.operands {
            Some(operands) => of(operands, at),
            None => {
                let replaced = of(replaced.raw(), 0);
                replaced.bytes_mut().copy_from_slice(result.bytes());
                replaced
            }
        };
        combine_piece(given, (at, operands), (result, of(spare.raw(), 0)), elements.combine).await?;
    }
    let buffers = (spare.take(), replaced.take());
    if most <= PIECE {
        BUFFERS.set(buffers);
    }
    Ok(())
}

/// Combines all ranks' elements of a piece, in the order of ranks.
async fn combine_piece(
    given: &[Option<Given<'_>>],
    (at, operands): (usize, RawBuffer),
    (result, spare): (RawBuffer, RawBuffer),
    combine: &Combine,
) -> Result<()> {
    // Each step leaves what is combined in the buffer that it does not find it in; the last one, in `result`.
    let (mut next, mut combined) = if given.len() % 2 == 1 { (result, spare) } else { (spare, result) };
    let own_first = given.len() > 1 && given[0].is_none();
    for (number, given) in given.iter().enumerate() {
        match given {
            Some(given) => given.read(at, next).await?,
            None if own_first => (),
            None => next.bytes_mut().copy_from_slice(operands.bytes()),
        }
        match number {
            0 => (),
            1 if own_first => combine(operands.bytes(), next.bytes_mut()),
            _ => combine(combined.bytes(), next.bytes_mut()),
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
