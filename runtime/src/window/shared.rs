//! Memory that all ranks of a window map as one piece (`MPI_Win_allocate_shared`, MPI-4.1 §12.2.3).

use transom_transport::{RegionKey, Remote, Span};

use super::create::{allocate, register};
use super::options::Hints;
use super::plan::Wish;
use crate::collective::Kind;
use crate::{Class, Communicator, Error, Result};

/// Rank 0 allocates all, the others map it. Returns this rank's part, and everybody's as mapped here. Collective.
pub(super) fn make(
    comm: &Communicator,
    operation: &'static str,
    wishes: &[Wish],
    hints: &Hints,
) -> Result<(Span, Vec<Remote>)> {
    let member = comm.member();
    let (parts, total) = layout(wishes, hints);
    // The first of them keeps its registration until all have mapped the memory; after that the mappings hold it.
    let mut first = None;
    let card: std::result::Result<Option<Vec<u8>>, (bool, String)> = if comm.rank() == 0 {
        let made = allocate(member, total).and_then(|all| Ok((register(member, &all)?, all)));
        match made {
            Ok(((registrations, keys), all)) => {
                let key = keys.into_iter().find(|(transport, _)| transport == "shm").map(|(_, key)| key);
                first = Some((registrations, all));
                Ok(key)
            }
            Err(e) => Err((e.class() == Class::NoMemory, e.to_string())),
        }
    } else {
        Ok(None)
    };
    let key = match comm.exchange(Kind::Window, &card)?.swap_remove(0) {
        Ok(key) => key,
        Err((no_memory, reason)) => {
            let class = if no_memory { Class::NoMemory } else { Class::System };
            return Err(Error::new(class, operation, format!("rank 0: {reason}")));
        }
    };
    let mapped: std::result::Result<Span, String> = match (&first, key) {
        // Alone, it needs no transport.
        (Some((_, all)), _) => Ok(all.clone()),
        (None, Some(key)) => map(comm, key),
        (_, None) => Err("there is no transport by shared memory".into()),
    };
    let outcomes: Vec<Option<String>> = comm.exchange(Kind::Window, &mapped.as_ref().err().cloned())?;
    if let Some((rank, reason)) = outcomes.into_iter().enumerate().find_map(|(r, o)| Some((r, o?))) {
        let message = format!(
            "rank {rank} cannot share memory with rank 0: {reason}. Make the window over ranks of one node, with shm among \
             the transports (TRANSOM_TRANSPORT)"
        );
        return Err(Error::new(Class::RmaShared, operation, message));
    }
    let all = mapped.map_err(|reason| Error::new(Class::RmaShared, operation, reason))?;
    let remotes = parts
        .iter()
        .enumerate()
        .map(|(peer, (start, bytes))| {
            let direct = all.part(*start, *bytes)?;
            Ok(Remote {
                peer: comm.channel().job_rank(peer),
                len: *bytes,
                direct: Some(direct),
                base: 0,
                key: 0,
            })
        })
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|e| Error::transport(operation, &e))?;
    let (start, bytes) = parts[comm.rank()];
    let own = all.part(start, bytes).map_err(|e| Error::transport(operation, &e))?;
    Ok((own, remotes))
}

/// Start and length of every rank's part, and the length of all.
fn layout(wishes: &[Wish], hints: &Hints) -> (Vec<(usize, usize)>, usize) {
    const PAGE: usize = 4096;
    let mut end = 0usize;
    let parts = wishes
        .iter()
        .map(|wish| {
            let start = if hints.noncontiguous { end.next_multiple_of(PAGE) } else { end };
            end = start.saturating_add(wish.bytes());
            (start, wish.bytes())
        })
        .collect();
    (parts, end)
}

fn map(comm: &Communicator, key: Vec<u8>) -> std::result::Result<Span, String> {
    let first = comm.channel().job_rank(0);
    let transport = comm.member().engine.routes.to(first);
    if transport.name() != "shm" {
        return Err(format!("{} leads there", transport.name()));
    }
    let remote = transport.attach(first, &RegionKey(key)).map_err(|e| e.to_string())?;
    remote.direct.ok_or_else(|| "its memory cannot be mapped".into())
}
