//! The nonblocking forms of [`super::long`] and [`super::long_reductions`], of buffers that the program keeps until the request is complete.
//! All ranks call the same one of the two forms that a nonblocking collective has: these, or those of [`super::raw`], which move
//! vectors.

use std::future::Future;
use std::sync::Arc;
use std::task::Waker;

use super::exchange::{Exchange, Kind};
use super::long::{deal, exchange_blocks, others, pass_down, pass_on, spread, take, take_each};
use super::long_reductions::{self as reductions, Elements};
use super::raw::{Combine, check_blocks, driven, started};
use super::shown::give_root;
use crate::comm::{Awaited, Channel};
use crate::engine::{Engine, Promise};
use crate::waits::Awaits;
use crate::{Communicator, RawBuffer, Request, Result};

/// The result of a collective that uses buffers of the program's: where its wait ends before it does, it leaves them alone.
struct Lent {
    result: (Arc<Promise<()>>, &'static str),
    engine: Arc<Engine>,
}

impl Awaited<()> for Lent {
    fn is_done(&self) -> bool {
        self.result.is_done()
    }

    fn take(&self) -> Option<Result<()>> {
        self.result.take()
    }

    fn register(&self, waker: &Waker) -> bool {
        self.result.register(waker)
    }

    fn leave(&self) {
        if !self.is_done() {
            self.engine.abandon(self.result.0.completed_by());
        }
    }

    fn what(&self) -> Awaits {
        self.result.what()
    }
}

/// Has the engine drive a collective of buffers that are lent to it.
fn start(
    comm: &Communicator,
    kind: Kind,
    future: impl Future<Output = Result<()>> + Send + 'static,
) -> Request<()> {
    let (operation, engine) = (Kind::name(kind as u8), comm.channel().engine.clone());
    let result = (driven(comm, kind, Box::pin(future)), operation);
    Request::new(comm.member(), operation, Lent { result, engine })
}

/// Each: its arguments are checked, then it goes on without its caller.
macro_rules! later {
    ($($(#[$doc:meta])* $name:ident: $kind:ident ($($arg:ident: $ty:ty),*),
        check |$channel:ident| $check:expr, run |$exchange:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(comm: &Communicator $(, $arg: $ty)*) -> Request<()> {
            let $channel: &Channel = comm.channel();
            started!(start, comm, $kind, $check, |$exchange| $body.await)
        }
    )*};
}

later! {
    /// [`broadcast_from`](super::raw::broadcast_from), nonblocking.
    ibroadcast_from: Broadcast(data: RawBuffer),
    check |_channel| Ok(()), run |exchange| pass_down(exchange, (exchange.place().0, 0), data);

    /// [`broadcast_into`](super::raw::broadcast_into), nonblocking.
    ibroadcast_into: Broadcast(root: usize, data: RawBuffer),
    check |channel| channel.check_rank("broadcast", root), run |exchange| pass_on(exchange, root, data);

    /// [`allgather_into`](super::raw::allgather_into), nonblocking.
    iallgather_into: Allgather(own: Option<RawBuffer>, parts: Vec<RawBuffer>),
    check |channel| check_blocks(channel, "allgather", parts.len()),
    run |exchange| spread(exchange, own, &parts, 0);

    /// [`alltoall_into`](super::raw::alltoall_into), nonblocking.
    ialltoall_into: Alltoall(from: Vec<RawBuffer>, to: Vec<RawBuffer>),
    check |channel| {
        check_blocks(channel, "alltoall", from.len()).and(check_blocks(channel, "alltoall", to.len()))
    },
    run |exchange| exchange_blocks(exchange, &from, &to);

    /// [`gather_into`](super::raw::gather_into), nonblocking.
    igather_into: Gather(parts: Vec<RawBuffer>),
    check |channel| check_blocks(channel, "gather", parts.len()),
    run |exchange| take_each(exchange, others(exchange.channel()), 0, &parts);

    /// [`gather_from`](super::raw::gather_from), nonblocking.
    igather_from: Gather(root: usize, data: RawBuffer),
    check |channel| channel.check_rank("gather", root),
    run |exchange| give_root(exchange, root, 0, data.bytes());

    /// [`scatter_from`](super::raw::scatter_from), nonblocking.
    iscatter_from: Scatter(parts: Vec<RawBuffer>),
    check |channel| check_blocks(channel, "scatter", parts.len()), run |exchange| deal(exchange, &parts);

    /// [`scatter_into`](super::raw::scatter_into), nonblocking.
    iscatter_into: Scatter(root: usize, data: RawBuffer),
    check |channel| channel.check_rank("scatter", root),
    run |exchange| async { take(exchange, root, 0, data).await.map(drop) };

    /// [`allreduce_into`](super::raw::allreduce_into), nonblocking.
    iallreduce_into: Allreduce(operands: Option<RawBuffer>, results: RawBuffer, unit: usize, combine: Combine),
    check |_channel| Ok(()),
    run |exchange| async {
        let elements = Elements { operands, results, unit, combine: &combine };
        reductions::allreduce(exchange, &elements).await
    };

    /// [`reduce_into`](super::raw::reduce_into), nonblocking.
    ireduce_into: Reduce(operands: Option<RawBuffer>, results: RawBuffer, unit: usize, combine: Combine),
    check |_channel| Ok(()),
    run |exchange| async {
        let elements = Elements { operands, results, unit, combine: &combine };
        reductions::reduce(exchange, &elements).await
    };

    /// [`reduce_from`](super::raw::reduce_from), nonblocking.
    ireduce_from: Reduce(root: usize, data: RawBuffer, unit: usize, combine: Combine),
    check |channel| channel.check_rank("reduce", root),
    run |exchange| reductions::reduce_for(exchange, root, data, unit, &combine);

    /// [`reduce_scatter_into`](super::raw::reduce_scatter_into), nonblocking.
    ireduce_scatter_into: ReduceScatter(
        parts: Vec<RawBuffer>, operands: Option<RawBuffer>, own: RawBuffer, unit: usize, combine: Combine),
    check |channel| check_blocks(channel, "reduce_scatter", parts.len()),
    run |exchange| async {
        let elements = Elements { operands, results: own, unit, combine: &combine };
        reductions::combine_parts(exchange, &parts, &elements).await
    };
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Who does not wait any more has its memory back, whenever the others come.
    #[test]
    fn a_request_that_is_given_up_leaves_the_buffers_alone() -> Result<()> {
        for len in [8, 100_000] {
            crate::local(2, |job| {
                let combine: Combine = Arc::new(|left, right| {
                    right.iter_mut().zip(left).for_each(|(right, left)| *right += left);
                });
                let mut data = vec![1; len];
                if job.rank() == 0 {
                    drop(iallreduce_into(&job, None, RawBuffer::lent_mut(&mut data), 1, combine));
                    data.fill(9);
                    job.barrier()?;
                } else {
                    job.barrier()?;
                    let late = iallreduce_into(&job, None, RawBuffer::lent_mut(&mut data), 1, combine);
                    let begin = Instant::now();
                    // What is short has been sent.
                    while late.test().is_none() && begin.elapsed() < Duration::from_millis(100) {}
                }
                // Both make progress until the other has come.
                job.barrier()?;
                assert!(job.rank() == 1 || data.iter().all(|byte| *byte == 9));
                Ok(())
            })?;
        }
        Ok(())
    }
}
