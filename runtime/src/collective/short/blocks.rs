//! Blocks of all ranks, one behind the other.

use super::super::algorithms::DOWN;
use super::super::exchange::Exchange;
use super::take_whole;
use crate::Result;

/// Sends blocks of so many bytes: their lengths before them, where they are several.
fn send_blocks(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    blocks: &[u8],
    block: usize,
) -> Result<()> {
    if blocks.len() == block {
        return exchange.send_now(peer, round, blocks);
    }
    let count = blocks.len() / block;
    let mut message = Vec::with_capacity(count * size_of::<u64>() + blocks.len());
    message.extend((0..count).flat_map(|_| (block as u64).to_le_bytes()));
    message.extend_from_slice(blocks);
    exchange.send_now(peer, round, &message)
}

fn take_blocks(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    blocks: &mut [u8],
    block: usize,
) -> Result<()> {
    if blocks.len() == block {
        return take_whole(exchange, peer, round, blocks);
    }
    let lengths = blocks.len() / block * size_of::<u64>();
    let mut message = vec![0; lengths + blocks.len()];
    take_whole(exchange, peer, round, &mut message)?;
    let (lengths, bytes) = message.split_at(lengths);
    let (lengths, _) = lengths.as_chunks::<8>();
    let own = (block as u64).to_le_bytes();
    if let Some(other) = lengths.iter().find(|length| **length != own) {
        return Err(exchange.other_length(peer, u64::from_le_bytes(*other) as usize, block));
    }
    blocks.copy_from_slice(bytes);
    Ok(())
}

/// Every rank's block at every rank, in the order of ranks: this rank's is there.
pub(super) fn allgather(exchange: &Exchange<'_>, all: &mut [u8]) -> Result<()> {
    let (rank, size) = exchange.place();
    let block = all.len() / size;
    if size == 2 {
        let (left, right) = all.split_at_mut(block);
        let (own, theirs) = if rank == 0 { (left, right) } else { (right, left) };
        exchange.send_now(1 - rank, 1, own)?;
        return take_whole(exchange, 1 - rank, 1, theirs);
    }
    // Block i is that of rank + i.
    let mut blocks = all.to_vec();
    blocks.rotate_left(rank * block);
    let mut distance = 1;
    while distance < size {
        let bytes = distance.min(size - distance) * block;
        send_blocks(exchange, (rank + size - distance) % size, distance, &blocks[..bytes], block)?;
        let place = &mut blocks[distance * block..][..bytes];
        take_blocks(exchange, (rank + distance) % size, distance, place, block)?;
        distance *= 2;
    }
    blocks.rotate_right(rank * block);
    all.copy_from_slice(&blocks);
    Ok(())
}

/// Every rank's block at the root, which has room for `all` of them.
pub(super) fn gather(exchange: &Exchange<'_>, root: usize, own: &[u8], all: Option<&mut [u8]>) -> Result<()> {
    let ((rank, size), block) = (exchange.place(), own.len());
    let place = (rank + size - root) % size;
    let mut blocks = own.to_vec();
    let mut distance = 1;
    while distance < size {
        if !place.is_multiple_of(2 * distance) {
            return send_blocks(exchange, (place - distance + root) % size, distance, &blocks, block);
        }
        if place + distance < size {
            let (start, count) = (blocks.len(), distance.min(size - place - distance));
            blocks.resize(start + count * block, 0);
            let from = (place + distance + root) % size;
            take_blocks(exchange, from, distance, &mut blocks[start..], block)?;
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
    let mut span = if place == 0 { size.next_power_of_two() } else { 1 << place.trailing_zeros() };
    if span == 1 && place > 0 {
        return take_whole(exchange, (place - 1 + root) % size, DOWN, own);
    }
    let mut blocks = all.map_or_else(|| vec![0; span.min(size - place) * block], <[u8]>::to_vec);
    if place == 0 {
        blocks.rotate_left(root * block);
    } else {
        take_blocks(exchange, (place - span + root) % size, DOWN, &mut blocks, block)?;
    }
    let mut rest = &blocks[..];
    while span > 1 {
        span /= 2;
        if let Some((kept, theirs)) =
            rest.split_at_checked(span * block).filter(|(_, theirs)| !theirs.is_empty())
        {
            send_blocks(exchange, (place + span + root) % size, DOWN, theirs, block)?;
            rest = kept;
        }
    }
    own.copy_from_slice(&blocks[..block]);
    Ok(())
}
