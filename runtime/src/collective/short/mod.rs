//! Blocking collectives of short data, of which nothing is shown: the algorithms of the other form, message by message the
//! same, on the caller's memory. A rank whose data is laid out otherwise may carry out that one.
//!
//! Errors of all: those of all collectives.

mod blocks;
mod reductions;

use super::algorithms::TOGETHER;
pub use super::algorithms::{CombineRef, FEW_RANKS};
use super::exchange::{Exchange, Kind};
use super::long::take_now;
use super::raw::check_blocks;
use super::shown::LONG_IN_PAGES;
use crate::protocol::dissemination::rounds;
use crate::{Class, Communicator, Result};

/// Whether blocks of so many bytes, one for each of `size` ranks, are short, and not empty.
#[must_use]
pub fn fits(block: usize, size: usize) -> bool {
    (1..LONG_IN_PAGES).contains(&block) && block.checked_mul(size).is_some_and(|all| all <= TOGETHER)
}

/// Every rank waits for every other.
pub(in super::super) fn barrier(exchange: &Exchange<'_>) -> Result<()> {
    for (to, from, round) in rounds(exchange.place()) {
        exchange.send_now(to, round, &[])?;
        take_now(exchange, from, round, &mut [])?;
    }
    Ok(())
}

/// Refuses blocks of so many bytes that do not fit, and `all` if it has not one for each rank.
fn check(comm: &Communicator, operation: &'static str, block: usize, all: Option<&[u8]>) -> Result<()> {
    let (channel, size) = (comm.channel(), comm.size());
    if !fits(block, size) {
        let message = format!("blocks of {block} bytes for {size} ranks: these are not short");
        return Err(channel.error(Class::Count, operation, message));
    }
    let blocks = all.map(|all| if all.len().is_multiple_of(block) { all.len() / block } else { 0 });
    blocks.map_or(Ok(()), |blocks| check_blocks(channel, operation, blocks))
}

/// Every rank's block at every rank, in the order of ranks (`MPI_Allgather`): this rank's is in its place.
///
/// # Errors
/// Blocks that do not [fit](fits).
pub fn allgather(comm: &Communicator, all: &mut [u8]) -> Result<()> {
    check(comm, "allgather", all.len() / comm.size(), Some(all))?;
    blocks::allgather(&Exchange::new(comm.channel(), Kind::Allgather), all)
}

/// Every rank's block at the root, which has room for `all` of them, in the order of ranks (`MPI_Gather`).
///
/// # Errors
/// Blocks that do not [fit](fits), or the root has no room for.
pub fn gather(comm: &Communicator, root: usize, own: &[u8], all: Option<&mut [u8]>) -> Result<()> {
    comm.channel().check_rank("gather", root)?;
    check(comm, "gather", own.len(), all.as_deref())?;
    blocks::gather(&Exchange::new(comm.channel(), Kind::Gather), root, own, all)
}

/// A block for each rank, from the root, which has `all` of them (`MPI_Scatter`).
///
/// # Errors
/// Blocks that do not [fit](fits), or another number of them.
pub fn scatter(comm: &Communicator, root: usize, all: Option<&[u8]>, own: &mut [u8]) -> Result<()> {
    comm.channel().check_rank("scatter", root)?;
    check(comm, "scatter", own.len(), all)?;
    blocks::scatter(&Exchange::new(comm.channel(), Kind::Scatter), root, all, own)
}

/// Every rank's data combined in the order of ranks at the root, in the place of its own; others' is not of use any more
/// (`MPI_Reduce`).
///
/// # Errors
/// There is no such root; data that does not [fit](fits) alone.
pub fn reduce(comm: &Communicator, root: usize, data: &mut [u8], combine: CombineRef<'_>) -> Result<()> {
    comm.channel().check_rank("reduce", root)?;
    check_data(comm, "reduce", data)?;
    reductions::reduce(&Exchange::new(comm.channel(), Kind::Reduce), root, data, combine)
}

/// The same at every rank (`MPI_Allreduce`).
///
/// # Errors
/// Data that does not [fit](fits) alone.
pub fn allreduce(comm: &Communicator, data: &mut [u8], combine: CombineRef<'_>) -> Result<()> {
    check_data(comm, "allreduce", data)?;
    reductions::allreduce(&Exchange::new(comm.channel(), Kind::Allreduce), data, combine)
}

/// The data of this and all lower ranks combined in their order, in the place of this rank's (`MPI_Scan`).
///
/// # Errors
/// Data that does not [fit](fits) alone.
pub fn scan(comm: &Communicator, data: &mut [u8], combine: CombineRef<'_>) -> Result<()> {
    check_data(comm, "scan", data)?;
    reductions::scan(&Exchange::new(comm.channel(), Kind::Scan), data, combine)
}

/// The data of all lower ranks combined in their order, in `before`, which rank 0 leaves alone; `data` is not of use any more
/// (`MPI_Exscan`).
///
/// # Errors
/// Data that does not [fit](fits) alone, or has another length than `before`.
pub fn exscan(
    comm: &Communicator,
    data: &mut [u8],
    before: &mut [u8],
    combine: CombineRef<'_>,
) -> Result<()> {
    check_data(comm, "exscan", data)?;
    let exchange = Exchange::new(comm.channel(), Kind::Exscan);
    if data.len() != before.len() {
        return Err(exchange.other_length(comm.rank(), data.len(), before.len()));
    }
    reductions::exscan(&exchange, data, before, combine)
}

/// All ranks' parts for this one combined in the order of ranks; `parts` are this rank's for each (`MPI_Reduce_scatter`).
///
/// # Errors
/// Parts that do not [fit](parts_fit) so [few ranks](FEW_RANKS); not one for each rank; this rank's has another length than `result`.
pub fn reduce_scatter(
    comm: &Communicator,
    parts: &[&[u8]],
    result: &mut [u8],
    combine: CombineRef<'_>,
) -> Result<()> {
    check_parts(comm, "reduce_scatter", parts.iter().map(|part| part.len()))?;
    let exchange = Exchange::new(comm.channel(), Kind::ReduceScatter);
    let (rank, size) = (comm.rank(), comm.size());
    if size > FEW_RANKS {
        let message = format!("{size} ranks combine up a tree, not each with each");
        return Err(comm.channel().error(Class::Count, "reduce_scatter", message));
    }
    if parts[rank].len() != result.len() {
        return Err(exchange.other_length(rank, parts[rank].len(), result.len()));
    }
    reductions::reduce_scatter(&exchange, parts, result, combine)
}

/// Every rank's part at every rank: this rank's is in its place (`MPI_Allgatherv`).
///
/// # Errors
/// Parts that do not [fit](parts_fit), or not one for each rank.
pub fn allgather_parts(comm: &Communicator, parts: &mut [&mut [u8]]) -> Result<()> {
    check_parts(comm, "allgather", parts.iter().map(|part| part.len()))?;
    blocks::allgather_parts(&Exchange::new(comm.channel(), Kind::Allgather), parts)
}

/// Whether parts of so many bytes, of which some may be empty, are short.
#[must_use]
pub fn parts_fit(mut lengths: impl Iterator<Item = usize>) -> bool {
    let add = |sum: usize, length| (length < LONG_IN_PAGES).then_some(sum + length);
    lengths.try_fold(0, add).is_some_and(|all| all <= TOGETHER)
}

/// Refuses parts that are not short, or not one for each rank.
fn check_parts(
    comm: &Communicator,
    operation: &'static str,
    lengths: impl ExactSizeIterator<Item = usize> + Clone,
) -> Result<()> {
    check_blocks(comm.channel(), operation, lengths.len())?;
    if parts_fit(lengths.clone()) {
        return Ok(());
    }
    let message = format!("{} bytes in all: these are not short", lengths.sum::<usize>());
    Err(comm.channel().error(Class::Count, operation, message))
}

/// Refuses data that ranks of the other form might show.
fn check_data(comm: &Communicator, operation: &'static str, data: &[u8]) -> Result<()> {
    if fits(data.len(), 1) {
        return Ok(());
    }
    let message = format!("{} bytes of data: these are not short", data.len());
    Err(comm.channel().error(Class::Count, operation, message))
}

/// What a peer sends in this round, which is as long as `to`.
fn take_whole(exchange: &Exchange<'_>, peer: usize, round: usize, to: &mut [u8]) -> Result<()> {
    match take_now(exchange, peer, round, to)? {
        len if len == to.len() => Ok(()),
        len => Err(exchange.other_length(peer, len, to.len())),
    }
}

#[cfg(test)]
mod tests;
