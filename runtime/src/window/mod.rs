//! Windows: memory that ranks expose to each other. Knows ranges, displacement units and peers' regions; what may be
//! accessed when is the epochs' matter, how is the operations'.

mod create;
mod local;
mod peer;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::{Region, Span};

pub(crate) use create::Memory;
pub use local::Local;
pub(crate) use peer::Peer;

use crate::collective::{self, Kind};
use crate::engine::{Exposure, LockWords};
use crate::epoch::{Epochs, Explicit};
use crate::job::Member;
use crate::memory::ExposedVec;
use crate::protocol::wire;
use crate::{Class, Communicator, Element, Error, NULL_RANK, Result};

/// How long a window that goes waits for the agents of this node: they sleep in the kernel and answer in microseconds.
const REVOKE_LIMIT: Duration = Duration::from_secs(2);

/// Memory of elements `T` at each rank of a communicator, which every rank may access in epochs (MPI-4.1 §12.2).
///
/// Each rank chooses its own length. A displacement counts the target's displacement units, by default one element.
#[derive(Debug)]
pub struct Window<T> {
    /// Dropped first: after that no peer accesses the memory.
    pub(crate) core: Box<Core>,
    /// The user's memory, if the window owns it.
    memory: Option<ExposedVec<T>>,
    _elements: PhantomData<T>,
}

/// How a window is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowOptions {
    /// Bytes that a displacement of 1 stands for at this rank; by default the size of an element.
    pub displacement_unit: Option<usize>,
}

/// What a window is besides its element type.
#[derive(Debug)]
pub(crate) struct Core {
    pub member: Arc<Member>,
    /// As if duplicated: fences and the rest of the window's collectives never mix with the user's.
    pub comm: Communicator,
    /// This rank's number of the window.
    pub number: u32,
    pub exposure: Arc<Exposure>,
    pub peers: Box<[Peer]>,
    pub epochs: Mutex<Epochs>,
    /// By name of transport; dropped when the window goes.
    regions: Mutex<Vec<Box<dyn Region>>>,
    /// [`Exposure::private`], where every atomic finds it.
    pub private: bool,
    /// Whether the memory is the user's, which goes when the window goes.
    of_user: bool,
    /// Whose ranks it has.
    title: &'static str,
}

impl Communicator {
    /// A window of `len` zeroed elements at this rank, in memory that ranks of one node map (`MPI_Win_allocate`,
    /// MPI-4.1 §12.2.2). Collective; `len` may differ by rank.
    ///
    /// # Errors
    /// The same on all ranks: element types differ, no memory for it on some host, or registration fails somewhere.
    pub fn allocate<T: Element>(&self, len: usize) -> Result<Window<T>> {
        self.allocate_with(len, WindowOptions::default())
    }

    /// [`Communicator::allocate`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate`]; a displacement unit of 0.
    pub fn allocate_with<T: Element>(&self, len: usize, options: WindowOptions) -> Result<Window<T>> {
        let core = Core::create::<T>(self, "allocate", Memory::Allocate(len), options)?;
        Ok(Window { core, memory: None, _elements: PhantomData })
    }

    /// A window over memory of the caller's (`MPI_Win_create`, MPI-4.1 §12.2.1). Collective; lengths may differ by rank.
    /// [`Window::reclaim`] gives the memory back.
    ///
    /// # Errors
    /// As [`Communicator::allocate`].
    pub fn create<T: Element>(&self, memory: Vec<T>) -> Result<Window<T>> {
        self.create_with(memory, WindowOptions::default())
    }

    /// [`Communicator::create`] with options.
    ///
    /// # Errors
    /// As [`Communicator::allocate`]; a displacement unit of 0.
    pub fn create_with<T: Element>(&self, memory: Vec<T>, options: WindowOptions) -> Result<Window<T>> {
        let (memory, span) = ExposedVec::new(memory);
        let core = Core::create::<T>(self, "create", Memory::User(span), options)?;
        Ok(Window { core, memory: Some(memory), _elements: PhantomData })
    }

    /// A window over memory that the caller only lends, for as long as `body` runs (`MPI_Win_create`, §12.2.1).
    /// Collective, at the end, too, if `body` succeeds.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let mut grid = [0.0f32; 4];
    ///     job.create_scoped(&mut grid, |window| {
    ///         window.fence(|epoch| epoch.put_value(1 - job.rank(), 3, 2.5))
    ///     })?;
    ///     assert_eq!(grid, [0.0, 0.0, 0.0, 2.5]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Communicator::allocate`] and [`Window::free`], and those of `body`.
    pub fn create_scoped<T: Element, R>(
        &self,
        memory: &mut [T],
        body: impl FnOnce(&Window<T>) -> Result<R>,
    ) -> Result<R> {
        let memory = Memory::User(crate::memory::expose(memory));
        let core = Core::create::<T>(self, "create", memory, WindowOptions::default())?;
        // Not given out, so it cannot outlive this call: its drop ends all access, after a panic, too.
        let window = Window { core, memory: None, _elements: PhantomData };
        let result = body(&window)?;
        window.free().map(|()| result)
    }
}

impl<T: Element> Window<T> {
    /// Elements at this rank.
    pub fn len(&self) -> usize {
        self.core.exposure.memory.len() / size_of::<T>()
    }

    /// Whether this rank exposes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements that `rank` exposes, or `None` if there is no such rank.
    pub fn len_at(&self, rank: usize) -> Option<usize> {
        self.core.peers.get(rank).map(|peer| peer.bytes / size_of::<T>())
    }

    /// Bytes that a displacement of 1 stands for at `rank`, or `None` if there is no such rank.
    pub fn displacement_unit_at(&self, rank: usize) -> Option<usize> {
        self.core.peers.get(rank).map(|peer| peer.unit)
    }

    /// This rank's part of the window.
    ///
    /// In the unified memory model, which this is, a load may see what others put at any time; synchronisation tells when
    /// it must (MPI-4.1 §12.4).
    pub fn local(&self) -> Local<'_, T> {
        Local::new(&self.core.exposure.memory)
    }

    /// Epochs as calls, checked at run time.
    pub fn explicit(&self) -> Explicit<'_, T> {
        Explicit::new(&self.core)
    }

    /// Orders this rank's loads and stores of window memory before and after it (`MPI_Win_sync`, §12.5.4).
    pub fn sync(&self) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// Frees the window (`MPI_Win_free`, §12.2.5). Collective: waits until every rank is done with it. Dropping a window
    /// instead waits for nobody; accesses of other ranks that come later fail.
    ///
    /// # Errors
    /// An epoch is open; a peer is gone or calls another collective.
    pub fn free(self) -> Result<()> {
        self.finish()
    }

    /// Frees the window like [`Window::free`], and gives back the memory that it was created over; of an allocated window
    /// a copy.
    ///
    /// # Errors
    /// As [`Window::free`]; the memory is then freed, too.
    pub fn reclaim(self) -> Result<Vec<T>> {
        self.finish()?;
        let Self { core, memory, .. } = self;
        match memory {
            Some(memory) => {
                drop(core);
                Ok(memory.take())
            }
            None => Local::new(core.own_memory()).to_vec(),
        }
    }

    fn finish(&self) -> Result<()> {
        let core = &self.core;
        core.epochs.lock().check_none("free").map_err(|e| core.name(e))?;
        collective::barrier_as(core.comm.channel(), Kind::Free).map_err(|e| core.name(e))
    }
}

impl Core {
    /// An error with this rank and window.
    #[cold]
    pub fn name(&self, error: Error) -> Error {
        error.at_rank(self.member.engine.rank).in_window(self.number)
    }

    #[cold]
    pub fn error(&self, class: Class, operation: &'static str, message: String) -> Error {
        self.name(Error::new(class, operation, message))
    }

    /// The target of an operation; `None` for the null rank.
    #[inline]
    pub fn target(&self, operation: &'static str, target: usize) -> Result<Option<&Peer>> {
        match self.peers.get(target) {
            Some(peer) => Ok(Some(peer)),
            None if target == NULL_RANK => Ok(None),
            None => Err(self.no_such_rank(operation, target)),
        }
    }

    #[cold]
    fn no_such_rank(&self, operation: &'static str, target: usize) -> Error {
        let last = self.peers.len() - 1;
        let title = self.title;
        self.error(Class::Rank, operation, format!("{title} has ranks 0 to {last}, not {target}"))
            .with_target(target)
    }

    /// Byte offset of an access of `bytes` bytes at `displacement`, if it is inside the target's window.
    #[inline]
    pub fn locate(
        &self,
        operation: &'static str,
        target: usize,
        peer: &Peer,
        displacement: usize,
        bytes: usize,
    ) -> Result<usize> {
        match displacement.checked_mul(peer.unit) {
            Some(offset) if offset <= peer.bytes && bytes <= peer.bytes - offset => Ok(offset),
            _ => Err(self.out_of_range(operation, target, peer, displacement, bytes)),
        }
    }

    #[cold]
    fn out_of_range(
        &self,
        operation: &'static str,
        target: usize,
        peer: &Peer,
        displacement: usize,
        bytes: usize,
    ) -> Error {
        let message = format!(
            "{bytes} bytes at displacement {displacement} are outside the target's window of {} bytes (displacement \
             unit {} bytes)",
            peer.bytes, peer.unit
        );
        self.error(Class::RmaRange, operation, message).with_target(target)
    }

    /// This rank's own lock.
    pub fn own_lock(&self) -> &LockWords {
        &self.exposure.lock
    }

    /// This rank's own memory.
    pub fn own_memory(&self) -> &Span {
        &self.exposure.memory
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let engine = &self.member.engine;
        engine.exposures.remove(self.number);
        if self.of_user {
            self.revoke();
        }
        self.regions.lock().clear();
        self.member.control.close(self.number);
    }
}

impl Core {
    /// Makes sure that no rank of this node accesses the user's memory any more: their agents agree, whatever they
    /// compute. (Over libfabric the end of the registration does the same.) Also in a job that has failed.
    fn revoke(&self) {
        let engine = &self.member.engine;
        let mut waiting = Vec::new();
        for peer in &self.peers {
            let rank = peer.world;
            if rank != engine.rank && engine.routes.to(rank).name() == "shm" {
                let (request, reply) = engine.requests.open();
                let mut header = engine.header(wire::Kind::Revoke);
                header.window = peer.number;
                header.request = request;
                engine.send_later(rank, &header, &[]);
                waiting.push((rank, reply));
            }
        }
        let start = Instant::now();
        while !waiting.is_empty() && start.elapsed() < REVOKE_LIMIT {
            // A broken transport has been reported, and the others may still answer.
            if !matches!(engine.poll(), Ok(found) if found > 0) {
                std::thread::yield_now();
            }
            waiting.retain(|(rank, reply)| reply.outcome().is_none() && !engine.has_left(*rank));
        }
        if !waiting.is_empty() && self.member.is_alive() {
            let ranks: Vec<usize> = waiting.iter().map(|(rank, _)| *rank).collect();
            tracing::error!(
                ?ranks,
                "no answer: these ranks are stopped or gone, and must not touch freed memory"
            );
        }
    }
}
