//! Which ranks share memory, and which reach the memory of each other's programs. Namespaces, limits and filters of system calls
//! that forbid it cannot be listed, so every rank tries; and both ends of a pair must come to the same answer, so all tell.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use transom_shm::{Call, Meeting, Place, Shm};
use transom_transport::{Span, Transport, TransportError};

use super::connect::{decode, encode};
use crate::bootstrap::Bootstrap;
use crate::{Error, Result};

/// The bootstrap's barrier behind the first look, and its exchanges: of what ranks found, of where they meet, of who was not seen
/// there, and of what came of it.
const LOOKED: u32 = 8;
const FOUND: u32 = 4;
const MEETING: u32 = 5;
const UNSEEN: u32 = 6;
const FINALLY: u32 = 7;

/// What a rank has on shared memory.
pub(super) struct Own<'a> {
    pub transport: &'a Shm,
    /// What it has allocated already.
    pub memory: &'a Span,
}

/// What each rank has told: its address on shared memory, if it has one, and where it is.
pub(super) struct Ranks<'a> {
    pub addresses: Vec<Option<&'a [u8]>>,
    pub places: Vec<Place>,
}

/// What a rank has found out.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    /// Every rank of the job shares memory, as far as this one sees.
    everywhere: bool,
    /// Ranks that may share memory, in ascending order: whose memory is not to be had; whose program's memory is not.
    unopened: Vec<u32>,
    unattached: Vec<u32>,
    /// Why the first of the former is not.
    why: Option<String>,
}

/// How a peer's memory is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is mapped; the program's own memory that cannot be is reached by cross-memory attach.
    Shared,
    /// It is mapped; the program's own memory that cannot be is reached by messages.
    Mapped,
    /// By a network.
    Network,
}

/// What all have agreed on.
pub(super) struct Reach {
    /// The way to each rank.
    pub ways: Vec<Way>,
    /// Every rank shares memory with every other; else why the first does not.
    pub everywhere: std::result::Result<(), String>,
    /// What is out of the ordinary about the ways to ranks, as this rank has seen it.
    pub notes: BTreeMap<usize, String>,
}

/// Finds out the way to every rank, and connects to those that share memory. Collective.
pub(super) fn agree(
    bootstrap: &mut dyn Bootstrap,
    own: Option<&Own<'_>>,
    ranks: &Ranks<'_>,
    patience: Duration,
) -> Result<Reach> {
    let mut search = Search::new(bootstrap.rank(), own, ranks);
    let addresses = &ranks.addresses;
    if addresses.len() == 1 || addresses.iter().all(Option::is_none) || search.all_is_well(bootstrap)? {
        return Ok(search.conclude(&[]));
    }
    let mut all = search.tell(bootstrap, FOUND)?;
    if all.iter().any(|found| !found.unopened.is_empty()) {
        search.pass_files(bootstrap, &all, patience)?;
        all = search.tell(bootstrap, FINALLY)?;
    }
    Ok(search.conclude(&all))
}

/// What is out of the ordinary about a peer that may share memory: why its files cannot be opened, or passed; and why it cannot be
/// attached.
#[derive(Debug, Default)]
struct Note {
    unopened: Option<String>,
    unpassed: Option<String>,
    unattached: Option<String>,
}

impl Note {
    /// In words, for a way that was chosen.
    fn text(&self, way: Way) -> String {
        const OTHER: &str = "that rank finds no way to this one";
        let or_other = |reason: &Option<String>| reason.clone().unwrap_or_else(|| OTHER.into());
        let opened = |but: &str| self.unopened.as_ref().map(|reason| format!("{but}: {reason}"));
        let (first, second) = match way {
            Way::Shared => (opened("passed over a socket"), None),
            Way::Mapped => {
                let reason = or_other(&self.unattached);
                (opened("passed over a socket"), Some(format!("other memory by messages: {reason}")))
            }
            Way::Network => {
                (Some(format!("no shared memory: {}", or_other(&self.unopened))), self.unpassed.clone())
            }
        };
        first.into_iter().chain(second).collect::<Vec<_>>().join("; ")
    }
}

/// What happened, without the peer's number.
fn reason(error: TransportError) -> String {
    match error {
        TransportError::Peer { reason, .. } => reason,
        other => other.to_string(),
    }
}

struct Search<'a> {
    rank: usize,
    own: Option<&'a Own<'a>>,
    ranks: &'a Ranks<'a>,
    /// Ranks that may share memory.
    candidates: Vec<bool>,
    found: Found,
    notes: BTreeMap<usize, Note>,
}

impl<'a> Search<'a> {
    /// Tries every rank.
    fn new(rank: usize, own: Option<&'a Own<'a>>, ranks: &'a Ranks<'a>) -> Self {
        let here = &ranks.places[rank];
        let of = |peer: usize| Some((own?.transport, ranks.addresses[peer]?));
        let may = |peer| {
            of(peer).is_some_and(|(transport, address)| transport.reaches(address))
                && (peer == rank || here.may_share(&ranks.places[peer]))
        };
        let candidates: Vec<bool> = (0..ranks.places.len()).map(may).collect();
        let mut found = Found { everywhere: candidates.iter().all(|may| *may), ..Found::default() };
        let mut notes = BTreeMap::new();
        for peer in (0..candidates.len()).filter(|peer| candidates[*peer]) {
            let Some((transport, address)) = of(peer) else { continue };
            if let Err(error) = transport.connect(peer, address) {
                found.unopened.push(peer as u32);
                notes.insert(peer, Note { unopened: Some(reason(error)), ..Note::default() });
            }
            if let Err(reason) = transport.attaches(peer, address) {
                found.unattached.push(peer as u32);
                notes.entry(peer).or_default().unattached = Some(reason);
            }
        }
        let mut this = Self { rank, own, ranks, candidates, found, notes };
        this.sum_up();
        this
    }

    /// Whether every rank reaches every other's memory, both ways. On one host that takes no exchange: who has found otherwise says so
    /// by a flag in memory that all others see, or else have found otherwise themselves.
    fn all_is_well(&self, bootstrap: &mut dyn Bootstrap) -> Result<bool> {
        let (Some(own), Ranks { addresses, places }) = (self.own, self.ranks) else { return Ok(false) };
        if !places.iter().all(|place| places[0].is_of_one_host(place))
            || addresses.iter().any(Option::is_none)
        {
            return Ok(false);
        }
        let is_well = self.found.everywhere && self.found.unattached.is_empty();
        if !is_well {
            own.transport.announce().map_err(|e| Error::transport("init", &e))?;
        }
        bootstrap.barrier(LOOKED)?;
        Ok(is_well && !own.transport.hears_an_announcement())
    }

    fn sum_up(&mut self) {
        self.found.everywhere = self.candidates.iter().all(|may| *may) && self.found.unopened.is_empty();
        let first = self.found.unopened.first().map(|peer| *peer as usize);
        let of = |peer: usize| self.notes.get(&peer).map(|note| note.text(Way::Network)).unwrap_or_default();
        self.found.why =
            first.map(|peer| format!("rank {} cannot map memory of rank {peer}: {}", self.rank, of(peer)));
    }

    fn tell(&self, bootstrap: &mut dyn Bootstrap, round: u32) -> Result<Vec<Found>> {
        let cards = bootstrap.exchange(round, &encode(&self.found)?)?;
        cards.iter().enumerate().map(|(peer, card)| decode(peer, card)).collect()
    }

    /// Ranks that cannot open files of others get them passed.
    fn pass_files(&mut self, bootstrap: &mut dyn Bootstrap, all: &[Found], patience: Duration) -> Result<()> {
        let rank = self.rank as u32;
        let meeting = match self.own.filter(|_| !self.found.unopened.is_empty()) {
            Some(_) => Meeting::new().inspect_err(|error| tracing::debug!(%error, "no meeting place")).ok(),
            None => None,
        };
        let card = meeting.as_ref().map(Meeting::card).unwrap_or_default();
        let cards = bootstrap.exchange(MEETING, &card)?;
        let mut calls = Vec::new();
        let mut unseen: Vec<u32> = Vec::new();
        let takers = (0..all.len()).filter(|peer| all[*peer].unopened.binary_search(&rank).is_ok());
        let mut offered = None;
        for (peer, own) in takers.filter_map(|peer| Some((peer, self.own?))) {
            let offer = offered.get_or_insert_with(|| own.transport.offer_files());
            match offer.clone().and_then(|()| Call::new(peer, &cards[peer])) {
                Ok(call) => calls.push(call),
                Err(error) => {
                    unseen.push(peer as u32);
                    self.notes.entry(peer).or_default().unpassed = Some(reason(error));
                }
            }
        }
        let unseen = bootstrap.exchange(UNSEEN, &encode(&unseen)?)?;
        let unseen = unseen.iter().enumerate().map(|(peer, card)| decode(peer, card));
        let unseen = unseen.collect::<Result<Vec<Vec<u32>>>>()?;
        let Some(own) = self.own else { return Ok(()) };
        let came = |peer: &&u32| !unseen[**peer as usize].contains(&rank);
        let expected = self.found.unopened.iter().filter(came).count();
        let passed = own.transport.exchange_files(
            self.rank,
            calls,
            own.memory,
            (meeting.as_ref(), expected),
            patience,
        );
        for (peer, files) in passed {
            let known = self.found.unopened.binary_search(&(peer as u32));
            let (Ok(index), Some(Some(address))) = (known, self.ranks.addresses.get(peer)) else { continue };
            match own.transport.connect_passed(peer, address, files) {
                Ok(()) => drop(self.found.unopened.remove(index)),
                Err(error) => self.notes.entry(peer).or_default().unpassed = Some(reason(error)),
            }
        }
        self.sum_up();
        Ok(())
    }

    fn conclude(self, all: &[Found]) -> Reach {
        let Self { rank, candidates, found, mut notes, .. } = self;
        let lists = |list: &[u32], rank: usize| list.binary_search(&(rank as u32)).is_ok();
        let way = |peer: usize| {
            let other = all.get(peer).filter(|_| peer != rank);
            if !candidates[peer]
                || lists(&found.unopened, peer)
                || other.is_some_and(|other| lists(&other.unopened, rank))
            {
                Way::Network
            } else if lists(&found.unattached, peer)
                || other.is_some_and(|other| lists(&other.unattached, rank))
            {
                Way::Mapped
            } else {
                Way::Shared
            }
        };
        let ways: Vec<Way> = (0..candidates.len()).map(way).collect();
        for (peer, way) in ways.iter().enumerate().filter(|(peer, _)| candidates[*peer]) {
            if *way != Way::Shared {
                notes.entry(peer).or_default();
            }
        }
        let notes = notes.into_iter().map(|(peer, note)| (peer, note.text(ways[peer]))).collect();
        let everywhere = match found.everywhere && all.iter().all(|found| found.everywhere) {
            true => Ok(()),
            false => Err(all
                .iter()
                .find_map(|found| found.why.clone())
                .unwrap_or_else(|| "ranks are on several hosts".into())),
        };
        Reach { ways, everywhere, notes }
    }
}

/// Whether all ranks talk by the loopback: then nothing need listen on an address that others can reach. What the kernel does not
/// tell is taken from the launcher.
///
/// # Errors
/// The first rank that is elsewhere.
pub(super) fn share_loopback(bootstrap: &dyn Bootstrap, places: &[Place]) -> std::result::Result<(), String> {
    if bootstrap.in_one_process() {
        return Ok(());
    }
    let believed = || std::env::var("TRANSOM_HOST_COUNT").is_ok_and(|count| count.trim() == "1");
    let apart = |place: &Place| !places[0].shares_loopback(place).unwrap_or_else(believed);
    match places.iter().skip(1).position(apart) {
        None => Ok(()),
        Some(index) => {
            let rank = index + 1;
            Err(format!("ranks 0 and {rank} are on different hosts or in different network namespaces"))
        }
    }
}
