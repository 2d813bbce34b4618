//! The ranks of a window. What is the same at all of them is kept once, and a [`Peer`] is made for each rank that this one
//! deals with, when it first does: a window costs memory for the peers it is used with, not for the job.

use std::ops::Index;
use std::sync::{Arc, OnceLock, Weak};

use transom_transport::{RegionKey, Remote, Span, TransportResult};

use super::Peer;
use crate::comm::Channel;
use crate::heap::Heap;

/// Peers whose slots are allocated together.
const LEAF: usize = 256;

/// A value for each rank.
#[derive(Debug)]
pub(super) enum PerRank<T> {
    /// The same for all.
    Uniform(T),
    Each(Box<[T]>),
}

impl<T: PartialEq> PerRank<T> {
    /// The values of ranks 0, 1, ….
    pub fn of(mut values: Vec<T>) -> Self {
        match values.iter().all(|value| *value == values[0]).then(|| values.pop()).flatten() {
            Some(value) => Self::Uniform(value),
            None => Self::Each(values.into()),
        }
    }

    /// The value of a rank of the window.
    pub fn get(&self, rank: usize) -> &T {
        match self {
            Self::Uniform(value) => value,
            Self::Each(values) => &values[rank],
        }
    }
}

/// Where the peers' memory is.
#[derive(Debug)]
pub(super) enum Source {
    /// Regions of this window, with their keys on the transports that lead there.
    Keys(PerRank<RegionKey>),
    /// [`Parts::mapped`].
    Mapped,
    /// Blocks of the ranks' heaps, at the same offset; whether their addresses are the same, too.
    Heap { heap: Arc<Heap>, start: usize, same_address: bool },
}

/// What the ranks said when the window was made.
#[derive(Debug)]
pub(super) struct Parts {
    /// Sizes in bytes.
    pub bytes: PerRank<usize>,
    /// Displacement units in bytes.
    pub units: PerRank<usize>,
    /// The ranks' numbers of the window.
    pub numbers: PerRank<u32>,
    pub source: Source,
    /// Keys for the device that has atomics, where it updates elements.
    pub device: Option<PerRank<RegionKey>>,
    /// The ranks' memory as mapped here, of windows in one range of memory that all map.
    pub mapped: Box<[Span]>,
}

type Leaf = OnceLock<Box<[OnceLock<Arc<Peer>>]>>;

/// The ranks of a window.
#[derive(Debug)]
pub(crate) struct Peers {
    channel: Arc<Channel>,
    /// Views of the window have them, too.
    parts: Arc<Parts>,
    /// Ranks below [`LEAF`]: all there are, most often.
    first: Leaf,
    rest: Box<[Leaf]>,
}

impl Peers {
    /// The ranks of `channel`, with a part each.
    pub(super) fn new(channel: Arc<Channel>, parts: Arc<Parts>) -> Self {
        let rest = channel.size.div_ceil(LEAF).saturating_sub(1);
        let rest = (0..rest).map(|_| Leaf::new()).collect();
        Self { channel, parts, first: Leaf::new(), rest }
    }

    /// What the ranks said.
    pub(super) fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// Number of ranks.
    #[inline]
    pub fn len(&self) -> usize {
        self.channel.size
    }

    /// The peer, if this rank has dealt with it.
    #[inline]
    pub fn made(&self, rank: usize) -> Option<&Peer> {
        Some(self.leaf(rank)?.get()?.get(rank % LEAF)?.get()?)
    }

    /// The peer, if there is such a rank.
    #[inline]
    pub fn get(&self, rank: usize) -> Option<&Peer> {
        match self.made(rank) {
            Some(peer) => Some(peer),
            None => self.make(rank),
        }
    }

    /// The peer, if this rank has dealt with it, to be kept.
    pub fn share(&self, rank: usize) -> Option<Arc<Peer>> {
        self.leaf(rank)?.get()?.get(rank % LEAF)?.get().cloned()
    }

    #[inline]
    fn leaf(&self, rank: usize) -> Option<&Leaf> {
        if rank < LEAF { Some(&self.first) } else { self.rest.get(rank / LEAF - 1) }
    }

    #[cold]
    #[inline(never)]
    fn make(&self, rank: usize) -> Option<&Peer> {
        if rank >= self.len() {
            return None;
        }
        let ranks = LEAF.min(self.len() - rank / LEAF * LEAF);
        let leaf = self.leaf(rank)?.get_or_init(|| (0..ranks).map(|_| OnceLock::new()).collect());
        let peer = || {
            let state = self.channel.engine.pendings.target();
            let peer =
                Peer::new(state, self.world(rank), self.bytes(rank), self.unit(rank), self.number(rank));
            let peer = Arc::new(peer);
            if let Some(board) = &self.channel.engine.board {
                let holder: Weak<Peer> = Arc::downgrade(&peer);
                board.add_holder(holder);
            }
            peer
        };
        Some(leaf[rank % LEAF].get_or_init(peer))
    }

    /// Size in bytes at a rank of the window.
    pub fn bytes(&self, rank: usize) -> usize {
        *self.parts.bytes.get(rank)
    }

    /// Displacement unit at a rank of the window.
    pub fn unit(&self, rank: usize) -> usize {
        *self.parts.units.get(rank)
    }

    /// The window's number at a rank of the window.
    pub fn number(&self, rank: usize) -> u32 {
        *self.parts.numbers.get(rank)
    }

    /// The job rank of a rank of the window.
    pub fn world(&self, rank: usize) -> usize {
        self.channel.job_rank(rank)
    }

    /// Address of the memory that a rank of the window exposes, in its own process, where that is known.
    pub fn address(&self, rank: usize) -> Option<usize> {
        match &self.parts.source {
            Source::Heap { heap, start, .. } => {
                heap.address_of(self.world(rank)).map(|address| address + start)
            }
            Source::Keys(_) | Source::Mapped => None,
        }
    }

    /// Whether that address is known and the same at all ranks.
    pub fn same_address(&self) -> bool {
        matches!(self.parts.source, Source::Heap { same_address: true, .. })
    }

    /// The memory of a rank of the window, where all map it as one range.
    pub fn mapped(&self, rank: usize) -> Option<&Span> {
        self.parts.mapped.get(rank)
    }

    /// Makes the memory of a rank of the window accessible to this rank's device, for its atomics.
    pub fn attach_device(&self, rank: usize) -> Option<TransportResult<Remote>> {
        let device = self.channel.engine.routes.device()?;
        Some(device.attach(self.world(rank), self.parts.device.as_ref()?.get(rank)))
    }

    /// Makes the memory of a rank of the window accessible here.
    pub fn attach(&self, rank: usize) -> TransportResult<Remote> {
        let world = self.world(rank);
        match &self.parts.source {
            Source::Keys(keys) => self.channel.engine.routes.to(world).attach(world, keys.get(rank)),
            Source::Mapped => {
                let memory = self.parts.mapped[rank].clone();
                Ok(Remote { peer: world, len: memory.len(), direct: Some(memory), base: 0, key: 0 })
            }
            Source::Heap { heap, start, .. } => {
                heap.attach(&self.channel.engine.routes, world, *start, self.bytes(rank))
            }
        }
    }
}

/// The peer, made if this is the first access. Panics like a slice if there is no such rank.
impl Index<usize> for Peers {
    type Output = Peer;

    #[inline]
    fn index(&self, rank: usize) -> &Peer {
        match self.get(rank) {
            Some(peer) => peer,
            None => &[][rank],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_for_all_is_kept_once() {
        assert!(matches!(PerRank::of(vec![7; 1000]), PerRank::Uniform(7)));
        let each = PerRank::of(vec![7, 7, 8]);
        assert_eq!([0, 1, 2].map(|rank| *each.get(rank)), [7, 7, 8]);
    }

    #[test]
    fn peers_are_made_when_they_are_accessed() {
        crate::local(4, |job| {
            let window = job.allocate_with::<u8>(job.rank(), &crate::WindowOptions::default())?;
            let peers = &window.core.peers;
            assert!(peers.first.get().is_none());
            assert_eq!((window.len_at(3), window.len_at(4), window.displacement_unit()), (Some(3), None, 1));
            assert!(peers.first.get().is_none() && peers.get(4).is_none() && peers.get(usize::MAX).is_none());
            assert_eq!((peers[2].bytes, peers[2].world), (2, 2));
            let made = peers.first.get().unwrap().iter().filter(|peer| peer.get().is_some()).count();
            assert_eq!((made, peers.len()), (1, 4));
            window.free()
        })
        .unwrap();
    }
}
