//! Start-up: opens transports, exchanges addresses, decides per peer which transport leads there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transom_shm::{PLACE_BYTES, Place, Shm};
use transom_transport::{Capabilities, RegionKey, Span, Transport, TransportError};

use super::control::Control;
use super::cores::Processors;
use super::reach::{self, Own, Ranks, Reach, Way};
use super::{Job, Member, cores, network};
use crate::bootstrap::Bootstrap;
use crate::comm::Channel;
use crate::engine::{Engine, JobStatus, Routes};
use crate::explain::Reporter;
use crate::heap::{Heap, capacity};
use crate::protocol::wire::Token;
use crate::settings::Settings;
use crate::{Class, Error, Result};

/// A rank's business card: what it publishes first.
#[derive(Debug, Serialize, Deserialize)]
struct BusinessCard {
    /// Rank 0's choice is the job's secret.
    token: Token,
    /// Where it is.
    place: [u8; PLACE_BYTES],
    /// Address on shared memory, and the key of the control block; or why there is none.
    shm: std::result::Result<(Vec<u8>, Vec<u8>), String>,
    /// The processors that it may run on.
    processors: Processors,
    /// Whether this host has an RDMA device that may be used; or why not.
    verbs: std::result::Result<(), String>,
}

impl BusinessCard {
    /// Why shared memory does not do for all, where it does not.
    fn without_shm(cards: &[Self], otherwise: String) -> String {
        let reason = cards.iter().enumerate().find_map(|(peer, card)| {
            Some(format!("rank {peer} has no shared memory: {}", card.shm.as_ref().err()?))
        });
        reason.unwrap_or(otherwise)
    }
}

/// Joins the job of a bootstrap.
pub(super) fn join(mut bootstrap: Box<dyn Bootstrap>, status: JobStatus) -> Result<Job> {
    let rank = bootstrap.rank();
    let name = |e: Error| e.at_rank(rank);
    let settings = Settings::from_env().map_err(name)?;
    let reporter = Reporter::open(&settings.explain, rank).map_err(name)?;
    let shm = SharedMemory::open(&settings, bootstrap.size());
    let cards = exchange_cards(&settings, &mut *bootstrap, &shm).map_err(name)?;
    let (routes, notes) = connect(&settings, &mut *bootstrap, shm.as_ref().ok(), &cards).map_err(name)?;
    reporter.ways(&routes, &notes);
    let keys = (0..routes.len())
        .map(|peer| match &cards[peer].shm {
            Ok((_, key)) if routes.to(peer).name() == "shm" => Some(RegionKey(key.clone())),
            _ => None,
        })
        .collect();
    let (memory, region) = match shm {
        Ok(shm) => (shm.control, Some(shm.region)),
        Err(_) => {
            let memory = Control::allocate(routes.len(), Span::anonymous);
            (memory.map_err(|e| name(Error::transport("init", &e)))?, None)
        }
    };
    let heap_bytes = capacity(&routes, bootstrap.in_one_process(), settings.heap);
    let sleepers = Control::sleepers(&memory).map_err(|e| Error::transport("init", &e)).map_err(name)?;
    let seats: Vec<_> = cards.iter().map(|card| (Place::parse(&card.place), &card.processors)).collect();
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let crowd = cores::shared_by(rank, &seats, usable);
    let engine =
        Engine::new(rank, cards[0].token, settings, routes, (sleepers, crowd), status).map_err(name)?;
    let engine = Arc::new(engine);
    let thread = engine.start_progress_thread()?;
    Ok(Job::new(Member {
        world: Arc::new(Channel::world(engine.clone())),
        foundings: Default::default(),
        engine,
        control: Control::new(memory, region, keys).map_err(|e| name(Error::transport("init", &e)))?,
        heap: Arc::new(Heap::new(rank, heap_bytes)),
        reporter,
        thread: Some(thread).into(),
        bootstrap: Arc::new(bootstrap.into()),
        listened_for: Arc::default(),
    }))
}

struct SharedMemory {
    transport: Arc<Shm>,
    control: Span,
    region: Box<dyn transom_transport::Region>,
}

impl SharedMemory {
    fn open(settings: &Settings, ranks: usize) -> std::result::Result<Self, String> {
        if !settings.shm {
            return Err("TRANSOM_TRANSPORT does not name shm".into());
        }
        let open = || -> std::result::Result<Self, TransportError> {
            let transport = Arc::new(Shm::new(ranks)?);
            let control = Control::allocate(ranks, |bytes| match transport.allocate(bytes)? {
                Some(control) => Ok(control),
                None => Span::anonymous(bytes),
            })?;
            let region = transport.register(&control)?;
            Ok(Self { transport, control, region })
        };
        open().map_err(|e| e.to_string())
    }
}

fn exchange_cards(
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    shm: &std::result::Result<SharedMemory, String>,
) -> Result<Vec<BusinessCard>> {
    let mut token = Token::default();
    getrandom::fill(&mut token).map_err(|e| {
        Error::new(Class::System, "init", format!("no random numbers for the job's secret: {e}"))
    })?;
    let shm = match shm {
        Ok(shm) => Ok((shm.transport.address(), shm.region.key().0)),
        Err(reason) => Err(reason.clone()),
    };
    let card = BusinessCard {
        token,
        place: Place::here().to_bytes(),
        processors: cores::allowed(),
        shm,
        verbs: network::verbs_available(settings),
    };
    let cards = bootstrap.exchange(0, &encode(&card)?)?;
    cards.iter().enumerate().map(|(peer, card)| decode(peer, card)).collect()
}

pub(super) fn encode<T: Serialize>(card: &T) -> Result<Vec<u8>> {
    postcard::to_stdvec(card).map_err(|e| Error::new(Class::Launch, "init", format!("encoding a card: {e}")))
}

pub(super) fn decode<'a, T: Deserialize<'a>>(peer: usize, card: &'a [u8]) -> Result<T> {
    postcard::from_bytes(card).map_err(|e| {
        let message =
            format!("the card of rank {peer} makes no sense ({e}): is it of another version of Transom?");
        Error::new(Class::Launch, "init", message)
    })
}

/// The routes, and what is out of the ordinary about some.
fn connect(
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    shm: Option<&SharedMemory>,
    cards: &[BusinessCard],
) -> Result<(Routes, BTreeMap<usize, String>)> {
    let own = shm.map(|shm| Own { transport: &shm.transport, memory: &shm.control });
    let ranks = Ranks {
        addresses: cards.iter().map(|card| Some(card.shm.as_ref().ok()?.0.as_slice())).collect(),
        places: cards.iter().map(|card| Place::parse(&card.place)).collect(),
    };
    let Reach { ways, everywhere, notes } =
        reach::agree(bootstrap, own.as_ref(), &ranks, settings.tcp_connect)?;
    let mut transports: Vec<Arc<dyn Transport>> = Vec::new();
    if let Some(shm) = shm {
        shm.transport.leave_out(cards[0].token);
        transports.push(shm.transport.clone());
    }
    if let Err(reason) = everywhere {
        let verbs = cards.iter().map(|card| card.verbs.clone()).collect();
        let loopback = reach::share_loopback(bootstrap, &ranks.places);
        let without_shm = BusinessCard::without_shm(cards, reason);
        transports.push(network::open(settings, bootstrap, verbs, (loopback, &without_shm))?);
    }
    let last = transports.len() - 1;
    let of_peer = ways.iter().map(|way| if *way == Way::Network { last as u8 } else { 0 }).collect();
    let mut routes = Routes::new(transports, of_peer);
    for (peer, _) in ways.iter().enumerate().filter(|(_, way)| **way == Way::Mapped) {
        routes.limit(peer, |capabilities| Capabilities {
            rma: false,
            provider: "memory files".into(),
            ..capabilities.clone()
        });
    }
    Ok((routes, notes))
}
