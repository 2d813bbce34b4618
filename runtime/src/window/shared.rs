//! Memory that all ranks of a window map as one range (`MPI_Win_allocate_shared`, MPI-4.1 §12.2.3), whatever transport
//! leads from one to the other.

use transom_transport::Span;

use super::create::{failed, refuse_if_asked};
use super::options::Hints;
use super::plan::Proposal;
use crate::collective::Kind;
use crate::{Class, Communicator, Error, Result};

/// Rank 0 allocates all, the others map it. Returns every rank's part as mapped here. Collective.
pub(super) fn make(
    comm: &Communicator,
    operation: &'static str,
    proposals: &[Proposal],
    hints: &Hints,
) -> Result<Vec<Span>> {
    let member = comm.member();
    let (parts, total) = layout(proposals, hints);
    // The first of them keeps the memory until all have mapped it; after that the mappings hold it.
    let mut first = None;
    let card: std::result::Result<Option<Vec<u8>>, (bool, String)> = if comm.rank() == 0 {
        let made =
            refuse_if_asked(member, total).and_then(|()| transom_shm::allocate_shared(total).map_err(failed));
        made.map(|(all, card)| {
            first = Some(all);
            Some(card)
        })
        .map_err(|e| (e.class() == Class::NoMemory, e.to_string()))
    } else {
        Ok(None)
    };
    let card = match comm.exchange(Kind::Window, &card)?.swap_remove(0) {
        Ok(card) => card.unwrap_or_default(),
        Err((no_memory, reason)) => {
            let class = if no_memory { Class::NoMemory } else { Class::System };
            return Err(Error::new(class, operation, format!("rank 0: {reason}")));
        }
    };
    let mapped: std::result::Result<Span, String> = match &first {
        Some(all) => Ok(all.clone()),
        None => transom_shm::map_shared(comm.channel().job_rank(0), &card).map_err(|e| e.to_string()),
    };
    let outcomes: Vec<Option<String>> = comm.exchange(Kind::Window, &mapped.as_ref().err().cloned())?;
    if let Some((rank, reason)) = outcomes.into_iter().enumerate().find_map(|(r, o)| Some((r, o?))) {
        let message = format!(
            "rank {rank} cannot share memory with rank 0: {reason}. Make the window over ranks of one host (split_shared)"
        );
        return Err(Error::new(Class::RmaShared, operation, message));
    }
    let all = mapped.map_err(|reason| Error::new(Class::RmaShared, operation, reason))?;
    parts.into_iter().map(|(start, bytes)| all.part(start, bytes).map_err(failed)).collect()
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
