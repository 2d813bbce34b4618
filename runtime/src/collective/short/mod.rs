//! Blocking collectives of short data, of which nothing is shown: the algorithms of the other form, message by message the
//! same, on the caller's memory. A rank whose data is laid out otherwise may carry out that one.
//!
//! Errors of all: those of all collectives.

mod blocks;
mod reductions;

use super::algorithms::{CombineRef, TOGETHER};
use super::exchange::{Exchange, Kind};
use super::long::take;
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
        take(exchange, exchange.channel(), from, round, &mut [])?;
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
    match take(exchange, exchange.channel(), peer, round, to)? {
        len if len == to.len() => Ok(()),
        len => Err(exchange.other_length(peer, len, to.len())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::raw;
    use super::*;

    /// Concatenates the letters of each element: they tell in which order ranks were combined.
    fn join(left: &[u8], right: &mut [u8]) {
        for (left, right) in left.chunks(8).zip(right.chunks_mut(8)) {
            let letters = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).unwrap_or(8);
            let (a, b) = (letters(left), letters(right));
            let joined = [&left[..a], &right[..b], &[0; 8]].concat();
            right.copy_from_slice(&joined[..8]);
        }
    }

    fn named(rank: usize) -> Vec<u8> {
        let mut data = vec![0; 24];
        data.iter_mut().step_by(8).for_each(|byte| *byte = b'a' + rank as u8);
        data
    }

    /// Each rank carries out its own form: its bit of `forms` says which.
    fn round(job: &crate::Communicator, root: usize, forms: usize) -> Result<()> {
        let (rank, size) = (job.rank(), job.size());
        let is_short = forms >> rank & 1 == 0;
        let combine: raw::Combine = Arc::new(join);
        let all_named: Vec<u8> = (0..size).flat_map(named).collect();
        let mut joined = vec![0; 24];
        (0..size).for_each(|of| joined.chunks_mut(8).for_each(|chunk| chunk[of] = b'a' + of as u8));

        let mut data = named(rank);
        let reduced = if is_short {
            reduce(job, root, &mut data, &join)?;
            (rank == root).then_some(data)
        } else {
            raw::reduce(job, root, data, combine.clone())?
        };
        assert_eq!(reduced, (rank == root).then(|| joined.clone()));

        let mut data = named(rank);
        if is_short {
            allreduce(job, &mut data, &join)?;
        } else {
            data = raw::allreduce(job, data, combine)?;
        }
        assert_eq!(data, joined);

        let mut all = vec![0; all_named.len()];
        if is_short {
            all[24 * rank..][..24].copy_from_slice(&named(rank));
            allgather(job, &mut all)?;
        } else {
            all = raw::allgather(job, named(rank))?.concat();
        }
        assert_eq!(all, all_named);

        let gathered = if is_short {
            let mut all = vec![0; all_named.len()];
            gather(job, root, &named(rank), (rank == root).then_some(&mut all[..]))?;
            (rank == root).then_some(all)
        } else {
            raw::gather(job, root, named(rank))?.map(|all| all.concat())
        };
        assert_eq!(gathered, (rank == root).then(|| all_named.clone()));

        let mut own = vec![0; 24];
        if is_short {
            scatter(job, root, (rank == root).then_some(&all_named[..]), &mut own)?;
        } else {
            let blocks = (rank == root).then(|| (0..size).map(named).collect());
            own = raw::scatter(job, root, blocks)?;
        }
        assert_eq!(own, named(rank));
        barrier(&Exchange::new(job.channel(), Kind::Barrier))
    }

    #[test]
    fn either_form_of_a_rank_goes_with_either_of_others() {
        for size in 1..=8 {
            let ended = crate::local(size, |job| {
                for forms in [0, usize::MAX, 0b0101_0101, 0b1011_0110, 0b0000_0001] {
                    (0..size).try_for_each(|root| round(&job, root, forms))?;
                }
                Ok(())
            });
            ended.unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let ended = crate::local(2, |job| {
            assert!(!fits(0, 2) && !fits(LONG_IN_PAGES, 2) && fits(8, 2) && !fits(8, TOGETHER));
            assert!(allgather(&job, &mut []).is_err());
            assert!(gather(&job, 0, &[1; 8], Some(&mut [0; 8])).is_err());
            assert!(gather(&job, 2, &[1; 8], None).is_err());
            assert!(scatter(&job, 0, Some(&[0; 24]), &mut [0; 8]).is_err());
            assert!(gather(&job, 0, &[], None).is_err() && scatter(&job, 0, None, &mut []).is_err());
            assert!(reduce(&job, 7, &mut [0; 8], &join).is_err());
            assert!(reduce(&job, 0, &mut vec![0; LONG_IN_PAGES], &join).is_err());
            assert!(allreduce(&job, &mut [], &join).is_err());
            job.barrier()
        });
        ended.unwrap();
    }

    #[test]
    fn other_lengths_are_told() {
        let ended = crate::local(2, |job| {
            let (mut block, rank) = ([0; 16], job.rank());
            let own = 8 << rank;
            let told = reduce(&job, 0, &mut block[..own], &join);
            assert_eq!(told.is_err(), rank == 0);
            let told = allreduce(&job, &mut block[..own], &join);
            assert!(told.unwrap_err().to_string().contains("all must have as many"));
            let mut all = [0; 32];
            assert!(allgather(&job, &mut all[..2 * own]).is_err());
            job.barrier()
        });
        ended.unwrap();
    }
}
