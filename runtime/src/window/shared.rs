//! Memory that all ranks of a window map as one range (`MPI_Win_allocate_shared`, MPI-4.1 §12.2.3), whatever transport
//! leads from one to the other.

use transom_transport::{RegionKey, Span, TransportError, TransportResult};

use super::create::{failed, refuse_if_asked};
use super::options::Hints;
use super::plan::Proposal;
use crate::collective::Kind;
use crate::engine::Engine;
use crate::{Class, Communicator, Error, Result};

/// Rank 0 allocates all, the others map it. Returns every rank's part as mapped here, and what pages they have, if any were asked for.
/// Collective.
pub(super) fn make(
    comm: &Communicator,
    operation: &'static str,
    proposals: &[Proposal],
    hints: &Hints,
) -> Result<(Vec<Span>, Option<String>)> {
    let member = comm.member();
    let (parts, total) = layout(proposals, hints);
    // The first of them keeps the memory until all have mapped it; after that the mappings hold it.
    let mut first = None;
    let card: std::result::Result<Option<Offer>, (bool, String)> = if comm.rank() == 0 {
        let made = refuse_if_asked(member, total).and_then(|()| allocate(&member.engine, total));
        made.map(|(all, card)| {
            let pages = hints.pages.apply(&all);
            first = Some(all);
            Some((card, pages))
        })
        .map_err(|e| (e.class() == Class::NoMemory, e.to_string()))
    } else {
        Ok(None)
    };
    let (card, pages) = match comm.exchange(Kind::Window, &card)?.swap_remove(0) {
        Ok(card) => card.unwrap_or_else(|| (Ok(Vec::new()), None)),
        Err((no_memory, reason)) => {
            let class = if no_memory { Class::NoMemory } else { Class::System };
            return Err(Error::new(class, operation, format!("rank 0: {reason}")));
        }
    };
    let mapped: std::result::Result<Span, String> = match &first {
        Some(all) => Ok(all.clone()),
        None => map(&member.engine, comm.channel().job_rank(0), card).map_err(|e| e.to_string()),
    };
    let outcomes: Vec<Option<String>> = comm.exchange(Kind::Window, &mapped.as_ref().err().cloned())?;
    if let Some((rank, reason)) = outcomes.into_iter().enumerate().find_map(|(r, o)| Some((r, o?))) {
        let message = format!(
            "rank {rank} cannot share memory with rank 0: {reason}. Make the window over ranks of one host (split_shared)"
        );
        return Err(Error::new(Class::RmaShared, operation, message));
    }
    let all = mapped.map_err(|reason| Error::new(Class::RmaShared, operation, reason))?;
    let parts = parts.into_iter().map(|(start, bytes)| all.part(start, bytes).map_err(failed));
    Ok((parts.collect::<Result<_>>()?, pages))
}

/// The card of [`transom_shm::allocate_shared`], or a key of the transport's.
type Card = std::result::Result<Vec<u8>, Vec<u8>>;

/// A card, and what pages the memory has, if any were asked for.
type Offer = (Card, Option<String>);

/// By the transport, where there is shared memory as such: it knows how peers come to it.
fn allocate(engine: &Engine, bytes: usize) -> Result<(Span, Card)> {
    let Some(shm) = engine.routes.shared_memory() else {
        return transom_shm::allocate_shared(bytes).map(|(all, card)| (all, Ok(card))).map_err(failed);
    };
    // Reserved: the others' parts are in use until they have freed the window, too.
    let all = if bytes == 0 { None } else { shm.reserve(bytes, 0).map_err(failed)? };
    let all = all.unwrap_or_else(Span::empty);
    let key = shm.register(&all).map_err(failed)?.key();
    Ok((all, Err(key.0)))
}

fn map(engine: &Engine, owner: usize, card: Card) -> TransportResult<Span> {
    let unreachable = || {
        let reason = "it is on another host, or in a container that shares no memory with this one";
        TransportError::Peer { peer: owner, reason: reason.into() }
    };
    match card {
        Ok(card) => transom_shm::map_shared(owner, &card),
        Err(_) if !engine.routes.shares_memory(owner) => Err(unreachable()),
        Err(key) => engine.routes.to(owner).attach(owner, &RegionKey(key))?.direct.ok_or_else(unreachable),
    }
}

/// Start and length of every rank's part, and the length of all.
fn layout(proposals: &[Proposal], hints: &Hints) -> (Vec<(usize, usize)>, usize) {
    const PAGE: usize = 4096;
    let mut end = 0usize;
    let parts = proposals
        .iter()
        .map(|proposal| {
            let start = if hints.noncontiguous { end.next_multiple_of(PAGE) } else { end };
            end = start.saturating_add(proposal.bytes());
            (start, proposal.bytes())
        })
        .collect();
    (parts, end)
}
