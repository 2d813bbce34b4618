//! Making a window: a few exchanges, each of which ends with the same result on every rank.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use transom_transport::{Region, Remote, Span, TransportError};

use super::copies::Copies;
use super::options::{Flavour, Hints, MemoryModel};
use super::plan::{Wish, agree};
use super::table::{Parts, Peers, PerRank, Source};
use super::{Core, WindowOptions, shared};
use crate::collective::{self, Kind};
use crate::engine::{Exposed, Exposure, Regions, key_for};
use crate::job::Member;
use crate::{Class, Communicator, Element, Error, Result};

/// Where a window's memory comes from.
#[derive(Debug)]
pub(crate) enum Memory {
    /// So many bytes are to be allocated, or why they cannot be counted.
    Allocate(std::result::Result<usize, String>),
    /// So many bytes of memory that all ranks map.
    Shared(std::result::Result<usize, String>),
    /// The user's.
    User(Span),
    /// A part of another window of this rank.
    Part(Span),
    /// Nothing yet.
    Dynamic,
}

/// What a rank has, or why not.
type Offer = std::result::Result<(u32, Vec<(String, Vec<u8>)>), (bool, String)>;

/// This rank's part.
struct Made {
    number: u32,
    exposure: Arc<Exposure>,
    local: Span,
    copies: Option<Copies>,
    registrations: Vec<Box<dyn Region>>,
    keys: Vec<(String, Vec<u8>)>,
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
        let wishes: Vec<Wish> = exchange(comm, &wish::<T>(comm, operation, &memory, options)).map_err(at)?;
        let hints = agree(operation, &wishes).map_err(at)?;
        let flavour = wishes[0].flavour;
        let (memory, remotes) = match memory {
            Memory::Shared(_) => {
                let (part, remotes) = shared::make(comm, operation, &wishes, &hints).map_err(at)?;
                (Memory::Part(part), remotes)
            }
            memory => (memory, Vec::new()),
        };
        let of_user = match &memory {
            Memory::User(span) | Memory::Part(span) => {
                hints.model == MemoryModel::Unified && span.file().is_none()
            }
            _ => false,
        };
        let made = make(member, memory, &hints);
        let offer: Offer = match &made {
            Ok(made) => Ok((made.number, made.keys.clone())),
            Err(e) => Err((e.class() == Class::NoMemory, e.to_string())),
        };
        let offers: Result<Vec<Offer>> = exchange(comm, &offer);
        let parts = offers.and_then(|offers| parts(comm, operation, &wishes, offers, remotes));
        match (made, parts) {
            (Ok(made), Ok(parts)) => {
                Ok(Box::new(Self::of(comm, wishes[0].context, made, parts, flavour, hints, of_user)))
            }
            (Ok(made), Err(error)) => {
                member.engine.exposures.remove(made.number);
                member.control.close(made.number);
                Err(at(error))
            }
            (Err(_), Err(error)) | (Err(error), Ok(_)) => Err(at(error)),
        }
    }

    fn of(
        comm: &Communicator,
        context: u64,
        made: Made,
        parts: Parts,
        flavour: Flavour,
        hints: Hints,
        of_user: bool,
    ) -> Self {
        let own = comm.with_context(context);
        Self {
            member: comm.member().clone(),
            title: comm.channel().title(),
            peers: Peers::new(own.channel().clone(), parts),
            comm: own,
            number: made.number,
            private: made.exposure.private,
            exposure: made.exposure,
            epochs: Mutex::default(),
            flavour,
            hints,
            name: Mutex::default(),
            local: made.local,
            copies: made.copies,
            attachments: Mutex::default(),
            registrations: Mutex::new(made.registrations),
            of_user,
        }
    }
}

/// Everybody's part, by rank. Collective.
pub(super) fn exchange<T: Serialize + for<'a> Deserialize<'a>>(
    comm: &Communicator,
    own: &T,
) -> Result<Vec<T>> {
    let malformed = |e: postcard::Error| {
        Error::new(Class::Collective, "window creation", format!("a peer's part makes no sense: {e}"))
    };
    let own = postcard::to_stdvec(own).map_err(malformed)?;
    let all = collective::allgather_bytes(comm.channel(), Kind::Window, own)?;
    all.iter().map(|bytes| postcard::from_bytes(bytes).map_err(malformed)).collect()
}

fn wish<T: Element>(
    comm: &Communicator,
    operation: &'static str,
    memory: &Memory,
    options: &WindowOptions,
) -> Wish {
    let hints = Hints::parse(&options.info).map_err(|e| e.message().to_owned());
    let (flavour, bytes) = match memory {
        Memory::Allocate(bytes) => (Flavour::Allocate, bytes.clone()),
        Memory::Shared(bytes) => (Flavour::Shared, bytes.clone()),
        Memory::User(span) | Memory::Part(span) => (Flavour::Create, Ok(span.len())),
        Memory::Dynamic => (Flavour::Dynamic, Ok(0)),
    };
    let context = comm.new_context();
    Wish::new::<T>(operation, flavour, options.displacement_unit, hints, bytes, context)
}

fn failed(error: TransportError) -> Error {
    Error::transport("window", &error)
}

/// Memory that peers of some transport map, if one has such.
pub(super) fn allocate(member: &Member, bytes: usize) -> Result<Span> {
    for transport in member.engine.routes.transports() {
        if let Some(memory) = transport.allocate(bytes).map_err(failed)? {
            return Ok(memory);
        }
    }
    Span::anonymous(bytes).map_err(failed)
}

/// Exposes memory to the peers of every transport.
#[expect(clippy::type_complexity, reason = "regions and their keys")]
pub(super) fn register(
    member: &Member,
    memory: &Span,
) -> Result<(Vec<Box<dyn Region>>, Vec<(String, Vec<u8>)>)> {
    if member.engine.settings.fault == Some(member.engine.rank as u64) {
        let reason = "registration refused, as TRANSOM_FAULT asks".into();
        return Err(failed(TransportError::NoMemory { bytes: memory.len(), reason }));
    }
    let mut registrations = Vec::new();
    let mut keys = Vec::new();
    for transport in member.engine.routes.transports() {
        let region = transport.register(memory).map_err(failed)?;
        keys.push((transport.name().to_owned(), region.key().0));
        registrations.push(region);
    }
    Ok((registrations, keys))
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

/// Allocates and registers this rank's part.
fn make(member: &Member, memory: Memory, hints: &Hints) -> Result<Made> {
    let local = match memory {
        Memory::User(span) | Memory::Part(span) => span,
        Memory::Allocate(bytes) => {
            let bytes = bytes.unwrap_or(0);
            match hints.model {
                MemoryModel::Unified => allocate(member, bytes)?,
                MemoryModel::Separate => Span::anonymous(bytes).map_err(failed)?,
            }
        }
        Memory::Shared(_) => Span::empty(),
        Memory::Dynamic => {
            let exposed = Exposed::Dynamic(Regions::default());
            return expose(member, hints, exposed, Span::empty(), None, Vec::new(), Vec::new());
        }
    };
    let (public, copies) = copies(member, hints, local.clone())?;
    let (registrations, keys) = register(member, &public)?;
    expose(member, hints, Exposed::Fixed(public), local, copies, registrations, keys)
}

fn expose(
    member: &Member,
    hints: &Hints,
    exposed: Exposed,
    local: Span,
    copies: Option<Copies>,
    registrations: Vec<Box<dyn Region>>,
    keys: Vec<(String, Vec<u8>)>,
) -> Result<Made> {
    let stripes = member.control.own_stripes().map_err(failed)?.coarser(hints.granularity);
    let (number, lock) = member.control.open()?;
    let exposure = Arc::new(Exposure::new(exposed, lock, stripes));
    member.engine.exposures.insert(number, exposure.clone());
    Ok(Made { number, exposure, local, copies, registrations, keys })
}

/// The peers' parts, or the error of the first rank that has none.
fn parts(
    comm: &Communicator,
    operation: &'static str,
    wishes: &[Wish],
    offers: Vec<Offer>,
    remotes: Vec<Remote>,
) -> Result<Parts> {
    let routes = &comm.member().engine.routes;
    let (mut numbers, mut all_keys) = (Vec::new(), Vec::new());
    for (rank, offer) in offers.into_iter().enumerate() {
        let (number, keys) = offer.map_err(|(no_memory, reason)| {
            let class = if no_memory { Class::NoMemory } else { Class::System };
            Error::new(class, operation, format!("rank {rank}: {reason}"))
        })?;
        numbers.push(number);
        all_keys.push(key_for(&keys, routes.to(comm.channel().job_rank(rank)).name()));
    }
    Ok(Parts {
        bytes: PerRank::of(wishes.iter().map(Wish::bytes).collect()),
        units: PerRank::of(wishes.iter().map(|wish| wish.unit).collect()),
        numbers: PerRank::of(numbers),
        source: match remotes.is_empty() {
            true => Source::Keys(PerRank::of(all_keys)),
            false => Source::Mapped(remotes.into()),
        },
    })
}
