//! The ranks' parts of a new window: in the symmetric heap, at an offset that is free on all ranks; or else in memory with
//! registrations of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use transom_transport::{Region, Span};

use super::copies::Copies;
use super::create::{Memory, allocate, copies, failed, refuse_if_asked, register};
use super::created::{Created, shares_attached};
use super::options::{Hints, MemoryModel};
use super::plan::Proposal;
use super::table::{Parts, PerRank, Source};
use crate::collective::Kind;
use crate::engine::{Exposed, Exposure, Regions, SharedUpdates, key_for};
use crate::heap::{Block, GRANULARITY, HeapInfo};
use crate::job::Member;
use crate::{Class, Communicator, Error, Result};

/// What a rank offers, or why it cannot: whether for lack of memory, and the text.
type Offer<T> = std::result::Result<T, (bool, String)>;

/// A part with registrations of its own: the window's number, and the keys by name of transport.
type SeparatePart = (u32, Vec<(String, Vec<u8>)>);

/// A part in the heap.
#[derive(Debug, Serialize, Deserialize)]
struct InHeap {
    /// The window's number.
    number: u32,
    /// Its offset, if the heap has space for it.
    start: Option<usize>,
    /// The heap's high-water mark.
    high_water: usize,
    /// The rank's heap, unless the members of the communicator know it already.
    info: Option<HeapInfo>,
}

/// This rank's part.
pub(super) struct LocalPart {
    pub number: u32,
    pub exposure: Arc<Exposure>,
    pub local: Span,
    pub copies: Option<Copies>,
    pub registrations: Vec<Box<dyn Region>>,
    keys: Vec<(String, Vec<u8>)>,
    pub block: Option<Arc<Block>>,
    pub created: Option<Created>,
    /// What pages the memory has, if any were asked for.
    pub pages: Option<String>,
}

impl LocalPart {
    fn undo(self, member: &Member) {
        member.engine.exposures.remove(self.number);
        // No rank has a window of this number, so none signals.
        member.control.close(self.number, true);
    }
}

/// Makes this rank's part, and learns of the others'. `mapped`: all parts, if they are mapped here already. Collective.
pub(super) fn gather(
    comm: &Communicator,
    operation: &'static str,
    memory: Memory,
    mapped: Vec<Span>,
    proposals: &[Proposal],
    hints: &Hints,
) -> Result<(LocalPart, Parts)> {
    if matches!(memory, Memory::Allocate(_))
        && let Some(found) = in_heaps(comm, operation, proposals, hints)?
    {
        return Ok(found);
    }
    let member = comm.member();
    let made = make(comm, memory, hints);
    let offer = made.as_ref().map(|made| (made.number, made.keys.clone())).map_err(reason);
    let offers = comm.exchange(Kind::Window, &offer).and_then(|offers| all(operation, offers));
    let (made, offers) = settle(member, made.map(Some), offers)?;
    let made = made.ok_or_else(|| Error::new(Class::System, operation, "this rank has no part"))?;
    Ok((made, separate_parts(comm, proposals, offers, mapped)))
}

/// As [`gather`], in the ranks' heaps. `None`, at all ranks, if they have no place for it.
fn in_heaps(
    comm: &Communicator,
    operation: &'static str,
    proposals: &[Proposal],
    hints: &Hints,
) -> Result<Option<(LocalPart, Parts)>> {
    let (member, heap) = (comm.member(), &comm.member().heap);
    let room = proposals.iter().map(|proposal| proposal.heap).min().unwrap_or(0);
    let most = proposals.iter().map(Proposal::bytes).max().unwrap_or(0);
    let Some(len) = most.checked_next_multiple_of(GRANULARITY).filter(|len| room > 0 && *len <= room) else {
        return Ok(None);
    };
    // First by each rank's first fit. If these differ, at the highest high-water mark; then a third exchange tells whether
    // that is still free everywhere, since other threads make windows, too.
    let mut start = None;
    for _ in 0..2 {
        let high_water = heap.high_water();
        let block = heap.allocate(len, start).map(Arc::new);
        let own = block.as_ref().map(|block| block.start());
        let made =
            block.clone().map(|p| make_in_heap(member, p, proposals[comm.rank()].bytes(), hints)).transpose();
        let info = if comm.channel().heaps_known.load(Ordering::Relaxed) { None } else { heap.info() };
        let offer: Offer<InHeap> = match &made {
            Ok(made) => {
                Ok(InHeap { number: made.as_ref().map_or(0, |m| m.number), start: own, high_water, info })
            }
            Err(error) => Err(reason(error)),
        };
        let offers = comm.exchange(Kind::Window, &offer);
        if let (Err(_), Some(block)) = (&offers, &block) {
            // Some ranks may have received the offer.
            block.quarantine();
        }
        let (made, mut offers) = settle(member, made, offers.and_then(|offers| all(operation, offers)))?;
        learn(comm, &mut offers);
        let agreed = own.filter(|_| offers.iter().all(|offer| offer.start == own));
        match (made, agreed) {
            (Some(mut made), Some(start)) => {
                if made.copies.is_none() {
                    made.pages = hints.pages.apply(&made.local);
                }
                return Ok(Some((made, parts_in_heaps(comm, proposals, &offers, start))));
            }
            (made, _) => made.into_iter().for_each(|made| made.undo(member)),
        }
        start = offers.iter().map(|offer| offer.high_water).max();
        if start.is_none_or(|start| start > room - len) {
            break;
        }
    }
    Ok(None)
}

/// Keeps what the members of a communicator say of their heaps.
fn learn(comm: &Communicator, offers: &mut [InHeap]) {
    let (member, channel) = (comm.member(), comm.channel());
    for (rank, offer) in offers.iter_mut().enumerate() {
        if let Some(info) = offer.info.take() {
            member.heap.learn(&member.engine.routes, channel.job_rank(rank), info);
        }
    }
    channel.heaps_known.store(true, Ordering::Relaxed);
}

fn reason(error: &Error) -> (bool, String) {
    (error.class() == Class::NoMemory, error.to_string())
}

/// Every rank's offer, or the error of the first rank that has none.
fn all<T>(operation: &'static str, offers: Vec<Offer<T>>) -> Result<Vec<T>> {
    let named = |(rank, offer): (usize, Offer<T>)| {
        offer.map_err(|(no_memory, reason)| {
            let class = if no_memory { Class::NoMemory } else { Class::System };
            Error::new(class, operation, format!("rank {rank}: {reason}"))
        })
    };
    offers.into_iter().enumerate().map(named).collect()
}

/// This rank's part, with every rank's offers, if no rank failed.
fn settle<T>(
    member: &Member,
    made: Result<Option<LocalPart>>,
    offers: Result<Vec<T>>,
) -> Result<(Option<LocalPart>, Vec<T>)> {
    match (made, offers) {
        (Ok(made), Ok(offers)) => Ok((made, offers)),
        (Ok(made), Err(error)) => {
            made.into_iter().for_each(|made| made.undo(member));
            Err(error)
        }
        (Err(_), Err(error)) | (Err(error), Ok(_)) => Err(error),
    }
}

fn parts(proposals: &[Proposal], numbers: Vec<u32>, source: Source) -> Parts {
    Parts {
        bytes: PerRank::of(proposals.iter().map(Proposal::bytes).collect()),
        units: PerRank::of(proposals.iter().map(|proposal| proposal.unit).collect()),
        numbers: PerRank::of(numbers),
        source,
        device: None,
        mapped: Box::default(),
    }
}

fn separate_parts(
    comm: &Communicator,
    proposals: &[Proposal],
    offers: Vec<SeparatePart>,
    mapped: Vec<Span>,
) -> Parts {
    let routes = &comm.member().engine.routes;
    let key = |(rank, (_, keys)): (usize, &SeparatePart)| {
        key_for(keys, routes.to(comm.channel().job_rank(rank)).name())
    };
    let shares_memory = |rank| rank == comm.rank() || routes.shares_memory(comm.channel().job_rank(rank));
    // Where a network is asked for, transfers go by it in mapped memory, too.
    let source = if !mapped.is_empty() && (0..comm.size()).all(shares_memory) {
        Source::Mapped
    } else {
        Source::Keys(PerRank::of(offers.iter().enumerate().map(key).collect()))
    };
    let device = routes
        .device()
        .map(|device| PerRank::of(offers.iter().map(|(_, keys)| key_for(keys, device.name())).collect()));
    let parts = parts(proposals, offers.iter().map(|(number, _)| *number).collect(), source);
    Parts { device, mapped: mapped.into(), ..parts }
}

fn parts_in_heaps(comm: &Communicator, proposals: &[Proposal], offers: &[InHeap], start: usize) -> Parts {
    let heap = comm.member().heap.clone();
    let same_address = heap.same_address((0..offers.len()).map(|rank| comm.channel().job_rank(rank)));
    let source = Source::Heap { heap, start, same_address };
    parts(proposals, offers.iter().map(|offer| offer.number).collect(), source)
}

/// Allocates and registers this rank's part.
fn make(comm: &Communicator, memory: Memory, hints: &Hints) -> Result<LocalPart> {
    let member = comm.member();
    let (mut created, mut pages) = (None, None);
    let (local, block) = match memory {
        Memory::User(span) | Memory::Part(span, None) if span.is_callers() => {
            // In the separate model peers access the other copy.
            let shared = (hints.model == MemoryModel::Unified)
                .then(|| Created::new(comm, span.clone(), hints.created));
            let (how, local) = shared.map_or((None, span), |(how, local)| (Some(how), local));
            created = how;
            (local, None)
        }
        Memory::User(span) => (span, None),
        Memory::Part(span, block) => (span, block),
        Memory::Allocate(bytes) => {
            let bytes = bytes.unwrap_or(0);
            let local = match hints.model {
                MemoryModel::Unified => {
                    let local = allocate(member, bytes)?;
                    pages = hints.pages.apply(&local);
                    local
                }
                MemoryModel::Separate => Span::anonymous(bytes).map_err(failed)?,
            };
            (local, None)
        }
        Memory::Shared(_) => (Span::empty(), None),
        Memory::Dynamic => {
            let regions = Regions::new(shares_attached(comm, hints));
            return expose(member, hints, Exposed::Dynamic(regions), Span::empty(), None);
        }
    };
    let (public, copies) = copies(member, hints, local.clone())?;
    let (registrations, keys) = register(member, &public)?;
    let made = expose(member, hints, Exposed::Fixed(public), local, copies)?;
    Ok(LocalPart { registrations, keys, block, created, pages, ..made })
}

/// This rank's part in a block of its heap.
fn make_in_heap(member: &Member, block: Arc<Block>, bytes: usize, hints: &Hints) -> Result<LocalPart> {
    refuse_if_asked(member, bytes)?;
    let public = block.memory(bytes).map_err(failed)?;
    let (local, copies) = match hints.model {
        MemoryModel::Unified => (public.clone(), None),
        MemoryModel::Separate => {
            let local = Span::anonymous(bytes).map_err(failed)?;
            let copies = Copies::new(local.clone(), public.clone()).map_err(failed)?;
            (local, Some(copies))
        }
    };
    let made = expose(member, hints, Exposed::Fixed(public), local, copies)?;
    Ok(LocalPart { block: Some(block), ..made })
}

fn expose(
    member: &Member,
    hints: &Hints,
    exposed: Exposed,
    local: Span,
    copies: Option<Copies>,
) -> Result<LocalPart> {
    let stripes = member.control.own_stripes().map_err(failed)?.coarser(hints.granularity);
    let (number, lock) = member.control.open()?;
    let granularity = member.engine.granularity(hints.granularity);
    let updates = member.control.own_updates(number, stripes.clone(), granularity).map_err(failed)?;
    let updates = SharedUpdates { updates, sections: member.control.sections.clone() };
    let exposure = Arc::new(Exposure::new(exposed, lock, stripes, updates));
    member.engine.exposures.insert(number, exposure.clone());
    Ok(LocalPart {
        number,
        exposure,
        local,
        copies,
        registrations: Vec::new(),
        keys: Vec::new(),
        block: None,
        created: None,
        pages: None,
    })
}
