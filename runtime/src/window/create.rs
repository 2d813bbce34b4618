//! Making a window: two exchanges, each of which ends with the same result on every rank.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use transom_transport::{Region, RegionKey, Span};

use super::{Core, Peer, WindowOptions};
use crate::collective::{self, Kind};
use crate::engine::{Exposure, LockWords};
use crate::job::Member;
use crate::{Class, Communicator, Element, Error, Result};

/// Windows of at least this size are checked against the host's free memory before they are made.
const LARGE: usize = 64 << 20;

/// Where a window's memory comes from.
#[derive(Debug)]
pub(crate) enum Memory {
    /// So many elements, to be allocated.
    Allocate(usize),
    /// The user's.
    User(Span),
}

/// What a rank wants.
#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    operation: String,
    element: String,
    element_bytes: usize,
    unit: usize,
    /// Bytes, or why they cannot be counted.
    bytes: std::result::Result<usize, String>,
    /// Bytes to be allocated on this host, and what is free there, for large windows.
    large: Option<(u64, u64)>,
    /// A new context, for the case that this is the first rank.
    context: u64,
}

/// What a rank has, or why not.
type Offer = std::result::Result<(u32, Vec<(String, Vec<u8>)>), (bool, String)>;

/// What a rank made for itself.
struct Made {
    number: u32,
    exposure: Arc<Exposure>,
    regions: Vec<Box<dyn Region>>,
    keys: Vec<(String, Vec<u8>)>,
}

impl Core {
    /// Makes a window. Collective.
    pub fn create<T: Element>(
        comm: &Communicator,
        operation: &'static str,
        memory: Memory,
        options: WindowOptions,
    ) -> Result<Box<Self>> {
        let member = comm.member();
        let engine = &member.engine;
        let at = |e: Error| e.at_rank(engine.rank);
        let wish = wish::<T>(operation, &memory, options, comm.new_context());
        let wishes: Vec<Wish> = exchange(comm, &wish).map_err(at)?;
        agree(operation, &wishes).map_err(at)?;
        let context = wishes[0].context;
        let bytes = wish.bytes.unwrap_or(0);
        let of_user = matches!(memory, Memory::User(_));
        let made = make(member, memory, bytes);
        let offer: Offer = match &made {
            Ok(made) => Ok((made.number, made.keys.clone())),
            Err(e) => Err((e.class() == Class::NoMemory, e.to_string())),
        };
        let offers: std::result::Result<Vec<Offer>, Error> = exchange(comm, &offer);
        let result = offers.and_then(|offers| peers(comm, operation, &wishes, &offers));
        match (made, result) {
            (Ok(made), Ok(peers)) => Ok(Box::new(Self {
                member: member.clone(),
                title: comm.channel().title(),
                comm: comm.with_context(context),
                number: made.number,
                private: made.exposure.private,
                exposure: made.exposure,
                peers,
                epochs: Mutex::default(),
                regions: Mutex::new(made.regions),
                of_user,
            })),
            (Ok(made), Err(error)) => {
                engine.exposures.remove(made.number);
                member.control.close(made.number);
                Err(at(error))
            }
            (Err(_), Err(error)) | (Err(error), Ok(_)) => Err(at(error)),
        }
    }
}

fn exchange<T: Serialize + for<'a> Deserialize<'a>>(comm: &Communicator, own: &T) -> Result<Vec<T>> {
    let malformed = |e: postcard::Error| {
        Error::new(Class::Collective, "window creation", format!("a peer's part makes no sense: {e}"))
    };
    let own = postcard::to_stdvec(own).map_err(malformed)?;
    let all = collective::allgather_bytes(comm.channel(), Kind::Window, own)?;
    all.iter().map(|bytes| postcard::from_bytes(bytes).map_err(malformed)).collect()
}

fn wish<T: Element>(operation: &'static str, memory: &Memory, options: WindowOptions, context: u64) -> Wish {
    let (bytes, large) = match memory {
        Memory::User(span) => (Ok(span.len()), None),
        Memory::Allocate(len) => {
            match len.checked_mul(size_of::<T>()).filter(|b| isize::try_from(*b).is_ok()) {
                Some(bytes) if bytes >= LARGE => {
                    (Ok(bytes), free_memory().map(|free| (transom_shm::host_identity(), free)))
                }
                Some(bytes) => (Ok(bytes), None),
                None => {
                    let size = size_of::<T>();
                    (
                        Err(format!("{len} elements of {size} bytes are more than an address space holds")),
                        None,
                    )
                }
            }
        }
    };
    Wish {
        operation: operation.into(),
        element: std::any::type_name::<T>().into(),
        element_bytes: size_of::<T>(),
        unit: options.displacement_unit.unwrap_or(size_of::<T>()),
        bytes,
        large,
        context,
    }
}

/// Bytes that this host can still give (MemAvailable of proc(5)).
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Whether the wishes go together. Every rank computes the same answer from the same wishes.
fn agree(operation: &'static str, wishes: &[Wish]) -> Result<()> {
    let fail = |class, message: String| Err(Error::new(class, operation, message));
    let first = &wishes[0];
    for (rank, wish) in wishes.iter().enumerate() {
        if (&wish.element, wish.element_bytes) != (&first.element, first.element_bytes) {
            let message = format!(
                "rank 0 has elements of type {}, rank {rank} of type {}: all ranks must name the same type",
                first.element, wish.element
            );
            return fail(Class::Type, message);
        }
        if wish.operation != first.operation {
            let message = format!("rank 0 calls {}, rank {rank} {}", first.operation, wish.operation);
            return fail(Class::Collective, message);
        }
        if wish.unit == 0 || wish.element_bytes == 0 {
            let message = format!("rank {rank}: elements and displacement units have at least one byte");
            return fail(Class::Displacement, message);
        }
        if let Err(reason) = &wish.bytes {
            return fail(Class::Size, format!("rank {rank}: {reason}"));
        }
    }
    enough_memory(operation, wishes)
}

fn enough_memory(operation: &'static str, wishes: &[Wish]) -> Result<()> {
    for (rank, wish) in wishes.iter().enumerate() {
        let Some((host, free)) = wish.large else { continue };
        let on_host = wishes.iter().filter(|w| w.large.is_some_and(|(h, _)| h == host));
        let wanted: u128 = on_host.map(|w| *w.bytes.as_ref().unwrap_or(&0) as u128).sum();
        if wanted > u128::from(free) {
            let message = format!(
                "the ranks on the host of rank {rank} want {wanted} bytes together, {free} are available there: use \
                 smaller windows, fewer ranks a host, or more hosts"
            );
            return Err(Error::new(Class::NoMemory, operation, message));
        }
    }
    Ok(())
}

/// Allocates and registers this rank's part.
fn make(member: &Member, memory: Memory, bytes: usize) -> Result<Made> {
    let transports = member.engine.routes.transports();
    let failed = |e: transom_transport::TransportError| Error::transport("window", &e);
    let memory = match memory {
        Memory::User(span) => span,
        Memory::Allocate(_) => {
            let mut allocated = None;
            for transport in transports {
                if allocated.is_none() {
                    allocated = transport.allocate(bytes).map_err(failed)?;
                }
            }
            allocated.map_or_else(|| Span::anonymous(bytes).map_err(failed), Ok)?
        }
    };
    let mut regions = Vec::new();
    let mut keys = Vec::new();
    for transport in transports {
        let region = transport.register(&memory).map_err(failed)?;
        keys.push((transport.name().to_owned(), region.key().0));
        regions.push(region);
    }
    let (number, lock): (u32, LockWords) = member.control.open()?;
    let exposure = Arc::new(Exposure::new(memory, lock));
    member.engine.exposures.insert(number, exposure.clone());
    Ok(Made { number, exposure, regions, keys })
}

/// The peers' parts, or the error of the first rank that has none.
fn peers(
    comm: &Communicator,
    operation: &'static str,
    wishes: &[Wish],
    offers: &[Offer],
) -> Result<Box<[Peer]>> {
    let mut peers = Vec::with_capacity(offers.len());
    for (rank, offer) in offers.iter().enumerate() {
        let (number, keys) = match offer {
            Ok(offer) => offer,
            Err((no_memory, reason)) => {
                let class = if *no_memory { Class::NoMemory } else { Class::System };
                return Err(Error::new(class, operation, format!("rank {rank}: {reason}")));
            }
        };
        let world = comm.channel().job_rank(rank);
        let name = comm.member().engine.routes.to(world).name();
        let key = keys.iter().find(|(transport, _)| transport == name).map(|(_, key)| key.clone());
        peers.push(Peer {
            world,
            bytes: *wishes[rank].bytes.as_ref().unwrap_or(&0),
            unit: wishes[rank].unit,
            number: *number,
            key: RegionKey(key.unwrap_or_default()),
            state: Arc::default(),
            remote: Default::default(),
            lock: Default::default(),
        });
    }
    Ok(peers.into())
}
