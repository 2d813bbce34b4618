//! The collectives themselves, on bytes: each once, in O(log P) rounds where that is possible.

use super::exchange::Exchange;
use super::long::others;
use super::shown::{Shown, give, offered, settle_all, taken};
use crate::Result;
use crate::protocol::dissemination::rounds;

/// `combine(left, right)` leaves `left op right` in `right`, as a function of `MPI_Op_create` does (MPI-4.1 §6.9.5).
pub type CombineRef<'a> = &'a (dyn Fn(&[u8], &mut [u8]) + Send + Sync);

/// Rounds of a broadcast come after those of a reduction in one collective.
pub(super) const DOWN: usize = 1 << 32;

/// Every rank waits for every other.
pub(super) async fn barrier(exchange: &Exchange<'_>) -> Result<()> {
    for (to, from, round) in rounds(exchange.place()) {
        exchange.send(to, round, &[]).await?;
        exchange.receive(from, round).await?;
    }
    Ok(())
}

/// The root's bytes at every rank, down a binomial tree.
pub(super) async fn broadcast(exchange: &Exchange<'_>, root: usize, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    let mut distance = 1;
    while distance <= place {
        distance *= 2;
    }
    if place > 0 {
        let parent = place - distance / 2;
        bytes = taken(exchange, (parent + root) % size, DOWN).await?;
    }
    let mut shown = Shown::new(exchange.channel(), &bytes);
    while place + distance < size {
        shown.offer(exchange, (place + distance + root) % size, DOWN).await?;
        distance *= 2;
    }
    shown.settle(exchange).await?;
    Ok(bytes)
}

/// Blocks of more bytes together are messages of their own: they are not copied once more.
pub(super) const TOGETHER: usize = 32 << 10;
/// The rounds of blocks that are messages of their own, behind those of all else.
const APART: usize = 1 << 33;

/// Gives several ranks' blocks: their lengths, then their bytes, in one message if these are few. The peer may still have to get
/// what is in the result.
async fn offer_blocks<'a>(
    exchange: &Exchange<'a>,
    peer: usize,
    round: usize,
    blocks: &'a [Vec<u8>],
) -> Result<Vec<Shown<'a>>> {
    if let [block] = blocks {
        return Ok(vec![offered(exchange, peer, round, block).await?]);
    }
    let bytes = blocks.iter().map(Vec::len).sum();
    let mut message = Vec::with_capacity(8 * blocks.len() + if bytes <= TOGETHER { bytes } else { 0 });
    blocks.iter().for_each(|block| message.extend_from_slice(&(block.len() as u64).to_le_bytes()));
    if bytes <= TOGETHER {
        blocks.iter().for_each(|block| message.extend_from_slice(block));
        exchange.send(peer, round, &message).await?;
        return Ok(Vec::new());
    }
    exchange.send(peer, round, &message).await?;
    let mut given = Vec::with_capacity(blocks.len());
    for (number, block) in blocks.iter().enumerate().filter(|(_, block)| !block.is_empty()) {
        given.push(offered(exchange, peer, round + (number + 1) * APART, block).await?);
    }
    Ok(given)
}

/// Receives so many ranks' blocks.
async fn receive_blocks(
    exchange: &Exchange<'_>,
    peer: usize,
    round: usize,
    count: usize,
) -> Result<Vec<Vec<u8>>> {
    if count == 1 {
        return Ok(vec![taken(exchange, peer, round).await?]);
    }
    let message = exchange.receive(peer, round).await?;
    let wrong = || exchange.malformed(peer, &"a wrong number of blocks");
    let (lengths, mut rest) = message.split_at_checked(8 * count).ok_or_else(wrong)?;
    let (lengths, _) = lengths.as_chunks::<8>();
    let mut blocks = Vec::with_capacity(count);
    for (number, length) in lengths.iter().enumerate() {
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| wrong())?;
        blocks.push(match rest.split_at_checked(length) {
            Some((block, others)) => {
                rest = others;
                block.to_vec()
            }
            None => taken(exchange, peer, round + (number + 1) * APART).await?,
        });
        if blocks.last().map(Vec::len) != Some(length) {
            return Err(wrong());
        }
    }
    Ok(blocks)
}

/// Every rank's bytes at every rank, after J. Bruck et al., 1997: round k doubles the blocks that a rank has.
pub(super) async fn allgather(exchange: &Exchange<'_>, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = exchange.place();
    let mut blocks = vec![own];
    while blocks.len() < size {
        let distance = blocks.len();
        let count = distance.min(size - distance);
        let given =
            offer_blocks(exchange, (rank + size - distance) % size, distance, &blocks[..count]).await?;
        let received = receive_blocks(exchange, (rank + distance) % size, distance, count).await?;
        settle_all(exchange, given).await?;
        blocks.extend(received);
    }
    // Block i is that of rank + i.
    blocks.rotate_right(rank);
    Ok(blocks)
}

/// Every rank's bytes at the root, up a binomial tree.
pub(super) async fn gather(
    exchange: &Exchange<'_>,
    root: usize,
    own: Vec<u8>,
) -> Result<Option<Vec<Vec<u8>>>> {
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    let mut blocks = vec![own];
    let mut distance = 1;
    while distance < size {
        if !place.is_multiple_of(2 * distance) {
            let given = offer_blocks(exchange, (place - distance + root) % size, distance, &blocks).await?;
            return settle_all(exchange, given).await.map(|()| None);
        }
        if place + distance < size {
            let from = (place + distance + root) % size;
            let count = distance.min(size - place - distance);
            blocks.extend(receive_blocks(exchange, from, distance, count).await?);
        }
        distance *= 2;
    }
    // Block i is that of root + i.
    blocks.rotate_right(root);
    Ok(Some(blocks))
}

/// A block of the root's for each rank, down a binomial tree.
pub(super) async fn scatter(
    exchange: &Exchange<'_>,
    root: usize,
    mut blocks: Vec<Vec<u8>>,
) -> Result<Vec<u8>> {
    let (rank, size) = exchange.place();
    let place = (rank + size - root) % size;
    // A rank at this place has the blocks of so many places, itself the first.
    let mut span = if place == 0 { size.next_power_of_two() } else { 1 << place.trailing_zeros() };
    if place == 0 {
        blocks.rotate_left(root);
    } else {
        let from = (place - span + root) % size;
        blocks = receive_blocks(exchange, from, DOWN, span.min(size - place)).await?;
    }
    let mut given = Vec::new();
    let mut rest = &blocks[..];
    while span > 1 {
        span /= 2;
        if let Some((own, theirs)) = rest.split_at_checked(span).filter(|(_, theirs)| !theirs.is_empty()) {
            given.extend(offer_blocks(exchange, (place + span + root) % size, DOWN, theirs).await?);
            rest = own;
        }
    }
    settle_all(exchange, given).await?;
    Ok(blocks.into_iter().next().unwrap_or_default())
}

/// Block j of rank i becomes block i of rank j, in pairs.
pub(super) async fn alltoall(exchange: &Exchange<'_>, mut blocks: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    let (rank, size) = exchange.place();
    let mut received = vec![Vec::new(); size];
    received[rank] = std::mem::take(&mut blocks[rank]);
    for distance in 1..size {
        let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
        let block = std::mem::take(&mut blocks[to]);
        let given = offered(exchange, to, distance, &block).await?;
        received[from] = taken(exchange, from, distance).await?;
        given.settle(exchange).await?;
    }
    Ok(received)
}

/// `left op right`, of the same length; `from` is the rank that sent one of them.
fn combined(
    exchange: &Exchange<'_>,
    combine: CombineRef<'_>,
    from: usize,
    left: &[u8],
    mut right: Vec<u8>,
) -> Result<Vec<u8>> {
    if left.len() != right.len() {
        return Err(exchange.other_length(from, left.len(), right.len()));
    }
    combine(left, &mut right);
    Ok(right)
}

/// Every rank's bytes combined in the order of ranks at rank 0, up a binomial tree.
async fn reduce_to_first(
    exchange: &Exchange<'_>,
    mut own: Vec<u8>,
    combine: CombineRef<'_>,
) -> Result<Option<Vec<u8>>> {
    let (rank, size) = exchange.place();
    let mut distance = 1;
    while distance < size {
        if !rank.is_multiple_of(2 * distance) {
            give(exchange, rank - distance, distance, &own).await?;
            return Ok(None);
        }
        if rank + distance < size {
            // Those to the right of what this rank has.
            let other = taken(exchange, rank + distance, distance).await?;
            own = combined(exchange, combine, rank + distance, &own, other)?;
        }
        distance *= 2;
    }
    Ok(Some(own))
}

/// Every rank's bytes combined in the order of ranks, at the root.
pub(super) async fn reduce(
    exchange: &Exchange<'_>,
    root: usize,
    own: Vec<u8>,
    combine: CombineRef<'_>,
) -> Result<Option<Vec<u8>>> {
    let (rank, _) = exchange.place();
    let result = reduce_to_first(exchange, own, combine).await?;
    if root == 0 {
        return Ok(result);
    }
    if let Some(result) = result {
        give(exchange, root, DOWN, &result).await?;
    }
    if rank == root { taken(exchange, 0, DOWN).await.map(Some) } else { Ok(None) }
}

/// Every rank's bytes combined in the order of ranks, at every rank: recursive doubling, which combines neighbouring ranges
/// of ranks. What exceeds a power of two is folded into neighbours first.
pub(super) async fn allreduce(
    exchange: &Exchange<'_>,
    mut own: Vec<u8>,
    combine: CombineRef<'_>,
) -> Result<Vec<u8>> {
    let (rank, size) = exchange.place();
    let power = 1 << size.ilog2();
    let folded = size - power;
    if rank < 2 * folded && rank % 2 == 1 {
        give(exchange, rank - 1, 0, &own).await?;
        let result = taken(exchange, rank - 1, DOWN).await?;
        let whole = result.len() == own.len();
        return if whole {
            Ok(result)
        } else {
            Err(exchange.other_length(rank - 1, result.len(), own.len()))
        };
    }
    if rank < 2 * folded {
        let right = taken(exchange, rank + 1, 0).await?;
        own = combined(exchange, combine, rank + 1, &own, right)?;
    }
    let place = if rank < 2 * folded { rank / 2 } else { rank - folded };
    let mut distance = 1;
    while distance < power {
        let other = place ^ distance;
        let peer = if other < folded { 2 * other } else { other + folded };
        let given = offered(exchange, peer, distance, &own).await?;
        let theirs = taken(exchange, peer, distance).await?;
        given.settle(exchange).await?;
        let (left, right) = if other < place { (theirs, own) } else { (own, theirs) };
        own = combined(exchange, combine, peer, &left, right)?;
        distance *= 2;
    }
    if rank < 2 * folded {
        give(exchange, rank + 1, DOWN, &own).await?;
    }
    Ok(own)
}

/// The bytes of this and all lower ranks combined in their order; and those of lower ranks only. After W. Hillis and
/// G. Steele, 1986.
pub(super) async fn scan(
    exchange: &Exchange<'_>,
    mut own: Vec<u8>,
    combine: CombineRef<'_>,
) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
    let (rank, size) = exchange.place();
    let mut before: Option<Vec<u8>> = None;
    let mut distance = 1;
    while distance < size {
        let mut given = Shown::new(exchange.channel(), &own);
        if rank + distance < size {
            given.offer(exchange, rank + distance, distance).await?;
        }
        let before_these = match rank.checked_sub(distance) {
            Some(from) => Some((from, taken(exchange, from, distance).await?)),
            None => None,
        };
        given.settle(exchange).await?;
        if let Some((from, left)) = before_these {
            own = combined(exchange, combine, from, &left, own)?;
            before = Some(match before {
                Some(right) => combined(exchange, combine, from, &left, right)?,
                None => left,
            });
        }
        distance *= 2;
    }
    Ok((own, before))
}

/// So many ranks, or fewer, give each other what they combine: a tree up and down would take longer.
pub const FEW_RANKS: usize = 8;

/// Every rank's bytes combined in the order of ranks, and of the result so many bytes for each rank.
pub(super) async fn reduce_scatter(
    exchange: &Exchange<'_>,
    own: Vec<u8>,
    lengths: Vec<usize>,
    combine: CombineRef<'_>,
) -> Result<Vec<u8>> {
    if exchange.place().1 <= FEW_RANKS {
        return combine_own(exchange, split(exchange, &own, &lengths)?, combine).await;
    }
    let blocks = match reduce_to_first(exchange, own, combine).await? {
        Some(result) => split(exchange, &result, &lengths)?.into_iter().map(<[u8]>::to_vec).collect(),
        None => Vec::new(),
    };
    scatter(exchange, 0, blocks).await
}

/// Blocks of these lengths.
fn split<'a>(exchange: &Exchange<'_>, mut data: &'a [u8], lengths: &[usize]) -> Result<Vec<&'a [u8]>> {
    let mut next = |length: &usize| {
        let (block, rest) = data.split_at_checked(*length)?;
        data = rest;
        Some(block)
    };
    let blocks: Option<Vec<_>> = lengths.iter().map(&mut next).collect();
    blocks.ok_or_else(|| exchange.malformed(0, &"the blocks are longer than the data"))
}

/// All ranks' blocks for this rank combined in the order of ranks; `blocks` are this rank's for each.
async fn combine_own(
    exchange: &Exchange<'_>,
    blocks: Vec<&[u8]>,
    combine: CombineRef<'_>,
) -> Result<Vec<u8>> {
    let (rank, size) = exchange.place();
    let mut given = Vec::with_capacity(size);
    for peer in others(exchange.channel()) {
        given.push(offered(exchange, peer, 0, blocks[peer]).await?);
    }
    let mut own: Option<Vec<u8>> = None;
    for of in 0..size {
        let next = if of == rank { blocks[rank].to_vec() } else { taken(exchange, of, 0).await? };
        own = Some(match own {
            Some(left) => combined(exchange, combine, of, &left, next)?,
            None => next,
        });
    }
    settle_all(exchange, given).await?;
    Ok(own.unwrap_or_default())
}
