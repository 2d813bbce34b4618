//! Blocks of all ranks, one behind the other.

use std::iter::repeat_n;

use super::super::algorithms::DOWN;
use super::super::exchange::Exchange;
use super::take_whole;
use crate::Result;

/// Sends blocks of so many bytes each: their lengths before them, where they are several.
fn send_blocks(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    blocks: &[u8],
    lengths: impl ExactSizeIterator<Item = usize>,
) -> Result<()> {
    if lengths.len() == 1 {
        return exchange.send_now(peer, round, blocks);
    }
    let mut message = Vec::with_capacity(lengths.len() * size_of::<u64>() + blocks.len());
    message.extend(lengths.flat_map(|length| (length as u64).to_le_bytes()));
    message.extend_from_slice(blocks);
    exchange.send_now(peer, round, &message)
}

fn take_blocks(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    blocks: &mut [u8],
    lengths: impl ExactSizeIterator<Item = usize>,
) -> Result<()> {
    if lengths.len() == 1 {
        return take_whole(exchange, peer, round, blocks);
    }
    let head = lengths.len() * size_of::<u64>();
    let mut message = vec![0; head + blocks.len()];
    take_whole(exchange, peer, round, &mut message)?;
    let (theirs, bytes) = message.split_at(head);
    let (theirs, _) = theirs.as_chunks::<8>();
    let theirs = theirs.iter().map(|length| u64::from_le_bytes(*length));
    if let Some((theirs, own)) = theirs.zip(lengths).find(|(theirs, own)| *theirs != *own as u64) {
        return Err(exchange.other_length(peer, theirs as usize, own));
    }
    blocks.copy_from_slice(bytes);
    Ok(())
}

/// Every rank's block at every rank: block i is that of rank + i, and begins at `start(i)`; this rank's is there. After J. Bruck et
/// al., 1997.
fn spread(exchange: &Exchange<'_>, blocks: &mut [u8], start: impl Fn(usize) -> usize) -> Result<()> {
    let (rank, size) = exchange.place();
    let mut distance = 1;
    while distance < size {
        let count = distance.min(size - distance);
        let lengths = |first: usize| (first..first + count).map(|i| start(i + 1) - start(i));
        let to = (rank + size - distance) % size;
        send_blocks(exchange, to, distance, &blocks[..start(count)], lengths(0))?;
        let place = &mut blocks[start(distance)..start(distance + count)];
        take_blocks(exchange, (rank + distance) % size, distance, place, lengths(distance))?;
        distance *= 2;
    }
    Ok(())
}

/// Every rank's block at every rank, in the order of ranks: this rank's is there.
pub(super) fn allgather(exchange: &Exchange<'_>, all: &mut [u8]) -> Result<()> {
    let (rank, size) = exchange.place();
    let block = all.len() / size;
    if size == 2 {
        let (left, right) = all.split_at_mut(block);
        return swap(exchange, left, right);
    }
    let mut blocks = all.to_vec();
    blocks.rotate_left(rank * block);
    spread(exchange, &mut blocks, |i| i * block)?;
    blocks.rotate_right(rank * block);
    all.copy_from_slice(&blocks);
    Ok(())
}

/// The same of blocks that have their lengths and places.
pub(super) fn allgather_parts(exchange: &Exchange<'_>, parts: &mut [&mut [u8]]) -> Result<()> {
    let (rank, size) = exchange.place();
    if let [left, right] = parts {
        return swap(exchange, left, right);
    }
    let mut starts = Vec::with_capacity(size + 1);
    starts.push(0);
    (0..size).for_each(|i| starts.push(starts[i] + parts[(rank + i) % size].len()));
    let mut blocks = vec![0; starts[size]];
    blocks[..starts[1]].copy_from_slice(parts[rank]);
    spread(exchange, &mut blocks, |i| starts[i])?;
    for i in 1..size {
        parts[(rank + i) % size].copy_from_slice(&blocks[starts[i]..starts[i + 1]]);
    }
    Ok(())
}

/// The blocks of two ranks, at both.
fn swap(exchange: &Exchange<'_>, first: &mut [u8], second: &mut [u8]) -> Result<()> {
    let (rank, _) = exchange.place();
    let (own, theirs) = if rank == 0 { (first, second) } else { (second, first) };
    exchange.send_now(1 - rank, 1, own)?;
    take_whole(exchange, 1 - rank, 1, theirs)
}

/// Every rank's block at the root, which has room for `all` of them.
pub(super) fn gather(exchange: &Exchange<'_>, root: usize, own: &[u8], all: Option<&mut [u8]>) -> Result<()> {
    let ((rank, size), block) = (exchange.place(), own.len());
    let place = (rank + size - root) % size;
    let each = |bytes: usize| repeat_n(block, bytes / block);
    let mut blocks = own.to_vec();
    let mut distance = 1;
    while distance < size {
        if !place.is_multiple_of(2 * distance) {
            return send_blocks(
                exchange,
                (place - distance + root) % size,
                distance,
                &blocks,
                each(blocks.len()),
            );
        }
        if place + distance < size {
            let (start, count) = (blocks.len(), distance.min(size - place - distance));
            blocks.resize(start + count * block, 0);
            let from = (place + distance + root) % size;
            take_blocks(exchange, from, distance, &mut blocks[start..], each(count * block))?;
        }
        distance *= 2;
    }
    // Block i is that of root + i.
    blocks.rotate_right(root * block);
    if let Some(all) = all {
        all.copy_from_slice(&blocks);
    }
    Ok(())
}

/// A block for each rank, from the root, which has `all` of them.
pub(super) fn scatter(
    exchange: &Exchange<'_>,
    root: usize,
    all: Option<&[u8]>,
    own: &mut [u8],
) -> Result<()> {
    let ((rank, size), block) = (exchange.place(), own.len());
    let place = (rank + size - root) % size;
    let each = |bytes: usize| repeat_n(block, bytes / block);
    let mut span = if place == 0 { size.next_power_of_two() } else { 1 << place.trailing_zeros() };
    if span == 1 && place > 0 {
        return take_whole(exchange, (place - 1 + root) % size, DOWN, own);
    }
    let mut blocks = all.map_or_else(|| vec![0; span.min(size - place) * block], <[u8]>::to_vec);
    if place == 0 {
        blocks.rotate_left(root * block);
    } else {
        let lengths = each(blocks.len());
        take_blocks(exchange, (place - span + root) % size, DOWN, &mut blocks, lengths)?;
    }
    let mut rest = &blocks[..];
    while span > 1 {
        span /= 2;
        if let Some((kept, theirs)) =
            rest.split_at_checked(span * block).filter(|(_, theirs)| !theirs.is_empty())
        {
            send_blocks(exchange, (place + span + root) % size, DOWN, theirs, each(theirs.len()))?;
            rest = kept;
        }
    }
    own.copy_from_slice(&blocks[..block]);
    Ok(())
}
