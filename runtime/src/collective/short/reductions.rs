//! Data of all ranks, combined.

use smallvec::SmallVec;

use super::super::algorithms::{CombineRef, DOWN};
use super::super::exchange::Exchange;
use super::super::long::others;
use super::take_whole;
use crate::Result;

/// Room for what is taken, without an allocation where that is little.
fn room(len: usize) -> SmallVec<[u8; 256]> {
    SmallVec::from_elem(0, len)
}

/// Two buffers of one length: this rank's data, and what it takes.
struct Buffers<'a> {
    own: &'a mut [u8],
    theirs: &'a mut [u8],
}

impl Buffers<'_> {
    /// Combines what was taken from ranks above, or below, with this rank's.
    fn combine(&mut self, combine: CombineRef<'_>, above: bool) {
        if above {
            combine(self.own, self.theirs);
            std::mem::swap(&mut self.own, &mut self.theirs);
        } else {
            combine(self.theirs, self.own);
        }
    }
}

/// Calls `work` with the data and a buffer like it; then the data is where it was.
fn with_buffers(data: &mut [u8], work: impl FnOnce(&mut Buffers<'_>) -> Result<()>) -> Result<()> {
    let mut spare = room(data.len());
    let start = data.as_ptr();
    let mut buffers = Buffers { own: data, theirs: &mut spare };
    work(&mut buffers)?;
    let Buffers { own, theirs } = buffers;
    if own.as_ptr() != start {
        theirs.copy_from_slice(own);
    }
    Ok(())
}

/// Every rank's data combined in the order of ranks at the root, in the place of its own; others' is not of use any more.
pub(super) fn reduce(
    exchange: &Exchange<'_>,
    root: usize,
    data: &mut [u8],
    combine: CombineRef<'_>,
) -> Result<()> {
    let (rank, size) = exchange.place();
    let combined = |buffers: &mut Buffers<'_>| {
        let mut distance = 1;
        while distance < size {
            if !rank.is_multiple_of(2 * distance) {
                return exchange.send_now(rank - distance, distance, buffers.own);
            }
            if rank + distance < size {
                take_whole(exchange, rank + distance, distance, buffers.theirs)?;
                buffers.combine(combine, true);
            }
            distance *= 2;
        }
        if root == 0 { Ok(()) } else { exchange.send_now(root, DOWN, buffers.own) }
    };
    if rank % 2 == 1 {
        exchange.send_now(rank - 1, 1, data)?;
    } else {
        with_buffers(data, combined)?;
    }
    if rank == root && root > 0 { take_whole(exchange, 0, DOWN, data) } else { Ok(()) }
}

/// The same at every rank.
pub(super) fn allreduce(exchange: &Exchange<'_>, data: &mut [u8], combine: CombineRef<'_>) -> Result<()> {
    let (rank, size) = exchange.place();
    let power = 1 << size.ilog2();
    let folded = size - power;
    if rank < 2 * folded && rank % 2 == 1 {
        exchange.send_now(rank - 1, 0, data)?;
        return take_whole(exchange, rank - 1, DOWN, data);
    }
    with_buffers(data, |buffers| {
        if rank < 2 * folded {
            take_whole(exchange, rank + 1, 0, buffers.theirs)?;
            buffers.combine(combine, true);
        }
        let place = if rank < 2 * folded { rank / 2 } else { rank - folded };
        let mut distance = 1;
        while distance < power {
            let other = place ^ distance;
            let peer = if other < folded { 2 * other } else { other + folded };
            exchange.send_now(peer, distance, buffers.own)?;
            take_whole(exchange, peer, distance, buffers.theirs)?;
            buffers.combine(combine, other > place);
            distance *= 2;
        }
        if rank < 2 * folded { exchange.send_now(rank + 1, DOWN, buffers.own) } else { Ok(()) }
    })
}

/// Sends `data` to ranks above, further each time, and has `take` make use of what comes from those below, and of its distance.
fn pass_up(
    exchange: &Exchange<'_>,
    data: &mut [u8],
    mut take: impl FnMut(&[u8], &mut [u8], usize),
) -> Result<()> {
    let (rank, size) = exchange.place();
    let mut left = room(data.len());
    let mut distance = 1;
    while distance < size {
        if rank + distance < size {
            exchange.send_now(rank + distance, distance, data)?;
        }
        if rank >= distance {
            take_whole(exchange, rank - distance, distance, &mut left)?;
            take(&left, data, distance);
        }
        distance *= 2;
    }
    Ok(())
}

/// The data of this and all lower ranks, combined in their order.
pub(super) fn scan(exchange: &Exchange<'_>, data: &mut [u8], combine: CombineRef<'_>) -> Result<()> {
    pass_up(exchange, data, |left, data, _| combine(left, data))
}

/// The data of all lower ranks, combined in their order, in `before`, which rank 0 leaves alone; `data` is not of use any more.
pub(super) fn exscan(
    exchange: &Exchange<'_>,
    data: &mut [u8],
    before: &mut [u8],
    combine: CombineRef<'_>,
) -> Result<()> {
    let (rank, size) = exchange.place();
    pass_up(exchange, data, |left, data, distance| {
        if distance == 1 {
            before.copy_from_slice(left);
        } else {
            combine(left, before);
        }
        // Of use to ranks above.
        if rank + 2 * distance < size {
            combine(left, data);
        }
    })
}

/// All ranks' parts for this rank, combined in the order of ranks; `parts` are this rank's for each.
pub(super) fn reduce_scatter(
    exchange: &Exchange<'_>,
    parts: &[&[u8]],
    result: &mut [u8],
    combine: CombineRef<'_>,
) -> Result<()> {
    let (rank, size) = exchange.place();
    others(exchange.channel()).try_for_each(|peer| exchange.send_now(peer, 0, parts[peer]))?;
    // Each step leaves what is combined in the buffer that it does not find it in; the last one, in the result.
    let mut spare = room(result.len());
    let (mut next, mut combined) = (result, &mut spare[..]);
    if size.is_multiple_of(2) {
        std::mem::swap(&mut next, &mut combined);
    }
    for of in 0..size {
        if of == rank {
            next.copy_from_slice(parts[rank]);
        } else {
            take_whole(exchange, of, 0, next)?;
        }
        if of > 0 {
            combine(combined, next);
        }
        std::mem::swap(&mut next, &mut combined);
    }
    Ok(())
}
