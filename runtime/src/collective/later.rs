//! The nonblocking forms of [`super::long`] and [`super::long_reductions`], of buffers that the program keeps until the request is complete.
//! All ranks call the same one of the two forms that a nonblocking collective has: these, or those of [`super::raw`], which move
//! vectors.

use super::exchange::{Exchange, Kind};
use super::long::{deal, exchange_blocks, others, pass_down, pass_on, spread, take, take_each};
use super::long_reductions::{self as reductions, Elements};
use super::raw::{Combine, check_blocks, started};
use super::shown::give_root;
use crate::comm::Channel;
use crate::{Communicator, RawBuffer, Request, Result};

/// Each: its arguments are checked, then it goes on without its caller.
macro_rules! later {
    ($($(#[$doc:meta])* $name:ident: $kind:ident ($($arg:ident: $ty:ty),*),
        check |$channel:ident| $check:expr, run |$exchange:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(comm: &Communicator $(, $arg: $ty)*) -> Request<()> {
            let $channel: &Channel = comm.channel();
            started!(comm, $kind, $check, |$exchange| $body.await)
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
