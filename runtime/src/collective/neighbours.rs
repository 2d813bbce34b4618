//! Exchange along the edges of a topology (MPI-4.1 §8.6), on bytes.

use super::exchange::Exchange;
use super::raw::Edge;
use super::shown::{offered, settle_all, taken};
use crate::Result;

/// Block i along edge i of `to`; the blocks that come along the edges of `from`.
pub(super) async fn exchange_along(
    exchange: &Exchange<'_>,
    to: &[Edge],
    blocks: &[&[u8]],
    from: &[Edge],
) -> Result<Vec<Vec<u8>>> {
    let (rank, _) = exchange.place();
    let mut given = Vec::with_capacity(to.len());
    for (edge, block) in to.iter().zip(blocks).filter(|(edge, _)| edge.rank != rank) {
        given.push(offered(exchange, edge.rank, edge.number, block).await?);
    }
    let own = |edge: &Edge| to.iter().position(|other| other == edge).map(|place| blocks[place].to_vec());
    let mut received = Vec::with_capacity(from.len());
    for edge in from {
        received.push(match edge.rank == rank {
            true => own(edge).ok_or_else(|| exchange.malformed(rank, &"an edge has one end only"))?,
            false => taken(exchange, edge.rank, edge.number).await?,
        });
    }
    settle_all(exchange, given).await?;
    Ok(received)
}
