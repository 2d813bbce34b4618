//! Collectives and messages on bytes, for language bindings: any datatype, any operation. Programs use the methods of
//! [`Communicator`], which know types.
//!
//! Each collective comes in two forms: blocking, and nonblocking with an `i` before its name, whose result is a [`Request`]'s. They are
//! counted in the order of the calls (MPI-4.1 §6.12), each form by itself: all ranks call the same ones in the same order. Errors of all: a peer is
//! gone, calls another collective, or sends a wrong length; the deadline passes; a root or number of blocks is wrong.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub use super::later::{
    iallgather_into, iallreduce_into, ialltoall_into, ibroadcast_from, ibroadcast_into, igather_from,
    igather_into, ireduce_from, ireduce_into, ireduce_scatter_into, iscatter_from, iscatter_into,
};
pub use super::long::{
    LONG, allgather_into, alltoall_equal, alltoall_into, broadcast_from, broadcast_into, gather_from,
    gather_into, scatter_from, scatter_into,
};
pub use super::long_reductions::{
    allreduce_into, allreduce_is_long, reduce_from, reduce_into, reduce_scatter_into,
};
pub use super::short;
pub use crate::comm::{
    Completion, Part, Waiter, all_of, await_any_of, generalised_request, idup_sides, waiter,
};
pub use crate::message::partitioned::{PartitionedReceive, PartitionedSend};
pub use crate::message::raw::{
    SLOTS, SlotHold, SlotReceive, check_receive, check_send, imrecv, imrecv_into, irecv, irecv_into, isend,
    isend_from, recv, recv_into, recv_now, send, send_now,
};

use super::algorithms;
use super::exchange::{Exchange, Kind};
use super::neighbours::exchange_along;
use crate::comm::Channel;
use crate::engine::Promise;
use crate::{Class, Communicator, Error, Request, Result};

/// A reduction: `combine(left, right)` leaves `left op right` in `right`, where `left` is of lower ranks. This is what a
/// function of `MPI_Op_create` does with `invec` and `inoutvec`. It need not be commutative.
pub type Combine = Arc<dyn Fn(&[u8], &mut [u8]) + Send + Sync>;

/// One end of an edge of a topology (MPI-4.1 §8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The rank at the other end.
    pub rank: usize,
    /// Tells edges from one rank to another apart: both ends number them alike.
    pub number: usize,
}

/// Every rank waits for every other (`MPI_Barrier`).
///
/// # Errors
/// Those of all collectives.
pub fn barrier(comm: &Communicator) -> Result<()> {
    super::signalled::barrier(comm)
}

/// [`barrier`], nonblocking.
pub fn ibarrier(comm: &Communicator) -> Request<()> {
    let channel = comm.channel().clone();
    let sequence = channel.next_nonblocking();
    start(comm, Kind::Barrier, async move {
        algorithms::barrier(&Exchange::numbered(&channel, Kind::Barrier, sequence)).await
    })
}

/// Has the engine drive a collective.
pub(super) fn start<R: Send + 'static>(
    comm: &Communicator,
    kind: Kind,
    future: impl Future<Output = Result<R>> + Send + 'static,
) -> Request<R> {
    // In its place from here on: a future that awaits another one moves it first, which takes longer than some collectives.
    Request::of(comm.member(), Kind::name(kind as u8), driven(comm, kind, Box::pin(future)))
}

/// What becomes of a collective that the engine drives.
pub(super) fn driven<R: Send + 'static>(
    comm: &Communicator,
    kind: Kind,
    mut future: Pin<Box<impl Future<Output = Result<R>> + Send + 'static>>,
) -> Arc<Promise<R>> {
    let operation = Kind::name(kind as u8);
    let engine = comm.channel().engine.clone();
    let promise = Promise::new();
    let completed = promise.clone();
    let keeper = engine.clone();
    let task = std::future::poll_fn(move |context| {
        let polled = poll_unless_it_panics(operation, future.as_mut(), context);
        polled.map(|result| completed.complete(&keeper, result))
    });
    engine.start(promise.completed_by(), task);
    engine.wake();
    promise
}

/// A reduction is a function of the user's, which the progress thread may call: its panic is an error of the request, and
/// not the end of that thread. The future is not polled again after it.
fn poll_unless_it_panics<R>(
    operation: &'static str,
    future: Pin<&mut impl Future<Output = Result<R>>>,
    context: &mut Context<'_>,
) -> Poll<Result<R>> {
    catch_unwind(AssertUnwindSafe(|| future.poll(context))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref().copied()).unwrap_or("without a message");
        let message = format!("the reduction panicked: {said}. Other ranks may wait for this one");
        Poll::Ready(Err(Error::new(Class::Other, operation, message)))
    })
}

pub(super) fn check_blocks(channel: &Channel, operation: &'static str, blocks: usize) -> Result<()> {
    if blocks == channel.size {
        return Ok(());
    }
    let message = format!("{blocks} blocks for {} ranks: give one for each", channel.size);
    Err(channel.error(Class::Count, operation, message))
}

fn check_edges(channel: &Channel, operation: &'static str, to: &[Edge], from: &[Edge]) -> Result<()> {
    to.iter().chain(from).try_for_each(|edge| channel.check_rank(operation, edge.rank))
}

/// The request of a collective whose arguments were checked, and which goes on without its caller.
macro_rules! started {
    ($start:path, $comm:expr, $kind:ident, $checked:expr, |$exchange:ident| $body:expr) => {{
        let checked: Result<()> = $checked;
        if let Err(error) = checked {
            return Request::done($comm.member(), Kind::name(Kind::$kind as u8), Err(error));
        }
        let channel = $comm.channel().clone();
        let sequence = channel.next_nonblocking();
        $start($comm, Kind::$kind, async move {
            let exchange = Exchange::numbered(&channel, Kind::$kind, sequence);
            let $exchange = &exchange;
            $body
        })
    }};
}
pub(super) use started;

macro_rules! collectives {
    ($($(#[$doc:meta])* $name:ident, $start:ident: $kind:ident ($($arg:ident: $ty:ty),*) -> $out:ty,
        check $check:expr, run |$exchange:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// Those of all collectives.
        pub fn $name(comm: &Communicator $(, $arg: $ty)*) -> Result<$out> {
            let check: fn(&Channel $(, &$ty)*) -> Result<()> = $check;
            check(comm.channel() $(, &$arg)*)?;
            let exchange = Exchange::new(comm.channel(), Kind::$kind);
            let $exchange = &exchange;
            exchange.block(async { $body })
        }

        #[doc = concat!("[`", stringify!($name), "`], nonblocking.")]
        pub fn $start(comm: &Communicator $(, $arg: $ty)*) -> Request<$out> {
            let check: fn(&Channel $(, &$ty)*) -> Result<()> = $check;
            started!(start, comm, $kind, check(comm.channel() $(, &$arg)*), |$exchange| $body)
        }
    )*};
}

collectives! {
    /// The root's bytes at every rank (`MPI_Bcast`); what others give is ignored.
    broadcast, ibroadcast: Broadcast(root: usize, data: Vec<u8>) -> Vec<u8>,
    check |channel, root, _| channel.check_rank("broadcast", *root),
    run |exchange| algorithms::broadcast(exchange, root, data).await;

    /// Every rank's bytes at the root, by rank (`MPI_Gatherv`).
    gather, igather: Gather(root: usize, data: Vec<u8>) -> Option<Vec<Vec<u8>>>,
    check |channel, root, _| channel.check_rank("gather", *root),
    run |exchange| algorithms::gather(exchange, root, data).await;

    /// A block of the root's for each rank (`MPI_Scatterv`). Only the root gives blocks.
    scatter, iscatter: Scatter(root: usize, blocks: Option<Vec<Vec<u8>>>) -> Vec<u8>,
    check |channel, root, blocks| {
        channel.check_rank("scatter", *root)?;
        if *root != channel.rank {
            return Ok(());
        }
        check_blocks(channel, "scatter", blocks.as_ref().map_or(0, Vec::len))
    },
    run |exchange| algorithms::scatter(exchange, root, blocks.unwrap_or_default()).await;

    /// Every rank's bytes at every rank, by rank (`MPI_Allgatherv`).
    allgather, iallgather: Allgather(data: Vec<u8>) -> Vec<Vec<u8>>,
    check |_, _| Ok(()), run |exchange| algorithms::allgather(exchange, data).await;

    /// Block j of rank i becomes block i of rank j (`MPI_Alltoallv`).
    alltoall, ialltoall: Alltoall(blocks: Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    check |channel, blocks| check_blocks(channel, "alltoall", blocks.len()),
    run |exchange| algorithms::alltoall(exchange, blocks).await;

    /// The same block along every edge of `to`; the blocks that come along those of `from`
    /// (`MPI_Neighbor_allgatherv`).
    neighbour_allgather, ineighbour_allgather:
    NeighbourAllgather(to: Vec<Edge>, from: Vec<Edge>, data: Vec<u8>) -> Vec<Vec<u8>>,
    check |channel, to, from, _| check_edges(channel, "neighbour allgather", to, from),
    run |exchange| exchange_along(exchange, &to, &vec![&data[..]; to.len()], &from).await;

    /// A block along each edge of `to`; the blocks that come along those of `from` (`MPI_Neighbor_alltoallw`).
    neighbour_alltoall, ineighbour_alltoall:
    NeighbourAlltoall(to: Vec<Edge>, from: Vec<Edge>, blocks: Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    check |channel, to, from, blocks| {
        check_edges(channel, "neighbour alltoall", to, from)?;
        if blocks.len() == to.len() {
            return Ok(());
        }
        let message = format!("{} blocks for {} edges: give one for each", blocks.len(), to.len());
        Err(channel.error(Class::Count, "neighbour alltoall", message))
    },
    run |exchange| {
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        exchange_along(exchange, &to, &blocks, &from).await
    };

    /// Every rank's bytes combined in the order of ranks, at the root (`MPI_Reduce`).
    reduce, ireduce: Reduce(root: usize, data: Vec<u8>, combine: Combine) -> Option<Vec<u8>>,
    check |channel, root, _, _| channel.check_rank("reduce", *root),
    run |exchange| algorithms::reduce(exchange, root, data, &*combine).await;

    /// Every rank's bytes combined in the order of ranks, at every rank (`MPI_Allreduce`).
    allreduce, iallreduce: Allreduce(data: Vec<u8>, combine: Combine) -> Vec<u8>,
    check |_, _, _| Ok(()), run |exchange| algorithms::allreduce(exchange, data, &*combine).await;

    /// The bytes of this and all lower ranks combined in their order (`MPI_Scan`).
    scan, iscan: Scan(data: Vec<u8>, combine: Combine) -> Vec<u8>,
    check |_, _, _| Ok(()),
    run |exchange| algorithms::scan(exchange, data, &*combine).await.map(|(all, _)| all);

    /// The bytes of all lower ranks combined in their order (`MPI_Exscan`); none at rank 0.
    exscan, iexscan: Exscan(data: Vec<u8>, combine: Combine) -> Option<Vec<u8>>,
    check |_, _, _| Ok(()),
    run |exchange| algorithms::scan(exchange, data, &*combine).await.map(|(_, before)| before);

    /// Every rank's bytes combined in the order of ranks; each rank gets as many bytes of the result as `lengths` says
    /// (`MPI_Reduce_scatter`).
    reduce_scatter, ireduce_scatter:
    ReduceScatter(data: Vec<u8>, lengths: Vec<usize>, combine: Combine) -> Vec<u8>,
    check |channel, data, lengths, _| {
        check_blocks(channel, "reduce_scatter", lengths.len())?;
        if lengths.iter().try_fold(0usize, |sum, l| sum.checked_add(*l)) == Some(data.len()) {
            return Ok(());
        }
        let message = format!("the blocks do not add up to the {} bytes of data", data.len());
        Err(channel.error(Class::Count, "reduce_scatter", message))
    },
    run |exchange| algorithms::reduce_scatter(exchange, data, lengths, &*combine).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_that_panics_is_an_error_of_its_request() {
        let ended = crate::local(2, |job| {
            let combine: Combine = Arc::new(|_, _| panic!("no such sum"));
            let reduced = ireduce(&job, 0, vec![1; 8], combine).wait();
            if job.rank() == 0 {
                let error = reduced.err().ok_or_else(|| Error::new(Class::Other, "test", "no error"))?;
                assert!(error.to_string().contains("no such sum"), "{error}");
            }
            // The polling thread goes on, which may be the progress thread.
            job.ibarrier().wait()
        });
        ended.unwrap();
    }
}
