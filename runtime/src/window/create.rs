//! Making a window: a few exchanges, each of which ends with the same result on every rank.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use transom_transport::{AtomicScope, Span, TransportError};

use super::copies::Copies;
use super::domain::{AtomicSupport, Domain, domain};
use super::gather::{LocalPart, gather};
use super::options::{Flavour, Hints, LiveHints, MemoryModel, Word};
use super::plan::{Proposal, agree};
use super::table::{Parts, Peers};
use super::{Core, WindowOptions, shared};
use crate::collective::Kind;
use crate::engine::Registered;
use crate::epoch::AccessState;
use crate::heap::Block;
use crate::job::Member;
use crate::settings::Fault;
use crate::shortcut::ShortCut;
use crate::{Communicator, Element, Error, Result};

/// Where a window's memory comes from.
#[derive(Debug)]
pub(crate) enum Memory {
    /// So many bytes are to be allocated, or why they cannot be counted.
    Allocate(std::result::Result<usize, String>),
    /// So many bytes of memory that all ranks map.
    Shared(std::result::Result<usize, String>),
    /// The user's.
    User(Span),
    /// A part of another window of this rank, and the block of the heap that it lies in, if it does.
    Part(Span, Option<Arc<Block>>),
    /// Nothing yet.
    Dynamic,
}

impl Core {
    /// Makes a window. Collective.
    pub fn create<T: Element>(
        comm: &Communicator,
        operation: &'static str,
        memory: Memory,
        options: &WindowOptions,
    ) -> Result<Box<Self>> {
        let member = comm.member();
        let at = |e: Error| e.at_rank(member.engine.rank);
        let proposals: Vec<Proposal> =
            comm.exchange(Kind::Window, &proposal::<T>(comm, operation, &memory, options)).map_err(at)?;
        let hints = agree(operation, &proposals).map_err(at)?;
        let flavour = proposals[0].flavour;
        let (memory, mapped, shared_pages) = match memory {
            Memory::Shared(_) => {
                let (parts, pages) = shared::make(comm, operation, &proposals, &hints).map_err(at)?;
                (Memory::Part(parts[comm.rank()].clone(), None), parts, pages)
            }
            memory => (memory, Vec::new(), None),
        };
        let user_memory = match &memory {
            Memory::User(span) | Memory::Part(span, None) => {
                hints.model == MemoryModel::Unified && span.is_callers()
            }
            _ => false,
        };
        let mixed = member.engine.settings.fault == Some(Fault::MixedAtomics);
        let domain = domain(&proposals, flavour, hints.atomics, mixed);
        let (mut made, mut parts) =
            gather(comm, operation, memory, mapped, &proposals, &hints).map_err(at)?;
        made.pages = made.pages.or(shared_pages);
        if domain == Domain::Cpu {
            parts.device = None;
        }
        let context = proposals[0].context;
        Ok(Box::new(Self::of(comm, context, (made, parts), (flavour, hints, domain), user_memory)))
    }

    fn of(
        comm: &Communicator,
        context: u64,
        (made, parts): (LocalPart, Parts),
        (flavour, hints, domain): (Flavour, Hints, Domain),
        user_memory: bool,
    ) -> Self {
        let own = comm.with_context(context);
        let routes = &comm.member().engine.routes;
        let shares_memory =
            |rank: &usize| *rank == comm.rank() || routes.shares_memory(comm.channel().job_rank(*rank));
        let mapped_ranks =
            if flavour == Flavour::Dynamic { 0 } else { (0..comm.size()).filter(shares_memory).count() };
        let plain_locks = made.copies.is_none() && flavour != Flavour::Dynamic;
        Self {
            member: comm.member().clone(),
            rank: comm.rank(),
            title: comm.channel().title(),
            peers: Peers::new(own.channel().clone(), Arc::new(parts)),
            comm: own,
            number: made.number,
            private: made.exposure.private,
            domain,
            exposure: made.exposure,
            access: AccessState::default(),
            shortcut: ShortCut::new(mapped_ranks, comm.member().control.sections.clone(), plain_locks),
            flavour,
            counters: comm
                .member()
                .engine
                .tally
                .open(hints.explain || comm.member().engine.settings.explain.is_some()),
            live: LiveHints::new(&hints),
            hints,
            name: Mutex::default(),
            local: made.local,
            copies: made.copies,
            attachments: Mutex::default(),
            registrations: Mutex::new(made.registrations),
            user_memory,
            created: made.created,
            pages: made.pages,
            block: made.block,
            freed: AtomicBool::new(false),
            is_view: false,
        }
    }
}

fn proposal<T: Element>(
    comm: &Communicator,
    operation: &'static str,
    memory: &Memory,
    options: &WindowOptions,
) -> Proposal {
    let mut hints = Hints::parse(&options.info).map_err(|e| e.message().to_owned());
    if let Ok(hints) = &mut hints {
        let settings = &comm.member().engine.settings;
        hints.atomics = hints.atomics.or(settings.atomics);
        hints.created = hints.created.or(settings.created);
        hints.pages = hints.pages.or(settings.pages);
    }
    let (flavour, bytes) = match memory {
        Memory::Allocate(bytes) => (Flavour::Allocate, bytes.clone()),
        Memory::Shared(bytes) => (Flavour::Shared, bytes.clone()),
        Memory::User(span) | Memory::Part(span, _) => (Flavour::Create, Ok(span.len())),
        Memory::Dynamic => (Flavour::Dynamic, Ok(0)),
    };
    let context = comm.new_context();
    let mut proposal =
        Proposal::new::<T>(operation, flavour, options.displacement_unit, hints, bytes, context);
    if flavour == Flavour::Allocate {
        proposal.heap = comm.member().heap.open(&comm.member().engine.routes);
    }
    let routes = &comm.member().engine.routes;
    let scope = routes.device().map_or(AtomicScope::None, |device| device.capabilities().atomics);
    let spans_nodes = (0..comm.size())
        .filter(|rank| *rank != comm.rank())
        .any(|rank| !routes.shares_memory(comm.channel().job_rank(rank)));
    proposal.support = AtomicSupport::new(scope, spans_nodes);
    proposal
}

pub(super) fn failed(error: TransportError) -> Error {
    Error::transport("window", &error)
}

/// Memory that peers of some transport map, if one has such.
pub(super) fn allocate(member: &Member, bytes: usize) -> Result<Span> {
    for transport in member.engine.routes.transports() {
        match transport.allocate(bytes) {
            Ok(Some(memory)) => return Ok(memory),
            Ok(None) => {}
            // A limit on files leaves private memory, which peers reach by cross-memory attach, or by messages.
            Err(error @ TransportError::NoMemory { .. }) => {
                let private = Span::anonymous(bytes).map_err(|_| failed(error.clone()))?;
                tracing::warn!(%error, "a window's memory is mapped by no peer, and is slower for them");
                return Ok(private);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Span::anonymous(bytes).map_err(failed)
}

/// Exposes memory to the peers of every transport.
pub(super) fn register(member: &Member, memory: &Span) -> Result<Registered> {
    refuse_if_asked(member, memory.len())?;
    member.engine.routes.register(memory).map_err(failed)
}

/// Fails where `TRANSOM_FAULT` says so.
pub(super) fn refuse_if_asked(member: &Member, bytes: usize) -> Result<()> {
    if member.engine.settings.fault == Some(Fault::Register(member.engine.rank as u64)) {
        let reason = "registration refused, as TRANSOM_FAULT asks".into();
        return Err(failed(TransportError::NoMemory { bytes, reason }));
    }
    Ok(())
}

/// The copies of `local` that a memory model asks for, and what is exposed to others.
pub(super) fn copies(member: &Member, hints: &Hints, local: Span) -> Result<(Span, Option<Copies>)> {
    match hints.model {
        MemoryModel::Unified => Ok((local, None)),
        MemoryModel::Separate => {
            let public = allocate(member, local.len())?;
            let copies = Copies::new(local, public.clone()).map_err(failed)?;
            Ok((public, Some(copies)))
        }
    }
}
