//! Windows: memory that ranks expose to each other. Knows ranges, displacement units and peers' regions; what may be
//! accessed when is the epochs' matter, how is the operations'.

mod create;
mod local;
mod peer;

use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::{Region, Span};

pub(crate) use create::Memory;
pub use local::Local;
pub(crate) use peer::Peer;

use crate::collective::{self, Kind};
use crate::engine::{Exposure, LockWords};
use crate::epoch::{Epochs, Explicit};
use crate::job::Member;
use crate::protocol::wire;
use crate::{Class, Element, Error, Job, NULL_RANK, Result};

/// Memory of elements `T` at each rank of a job, which every rank may access in epochs (MPI-4.1 §12.2).
///
/// Each rank chooses its own length. A displacement counts the target's displacement units, by default one element.
/// `'m` is how long the memory may be used: `'static` for memory that Transom allocated.
#[derive(Debug)]
pub struct Window<'m, T> {
    pub(crate) core: Arc<Core>,
    _memory: PhantomData<(&'m mut [T], fn(T) -> T)>,
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
    /// This rank's number of the window.
    pub number: u32,
    pub exposure: Arc<Exposure>,
    pub peers: Box<[Peer]>,
    pub epochs: Mutex<Epochs>,
    /// By name of transport; dropped when the window goes.
    regions: Mutex<Vec<Box<dyn Region>>>,
    /// Whether the memory is the user's, which goes when the window goes.
    of_user: bool,
}

impl Job {
    /// A window of `len` zeroed elements at this rank, in memory that ranks of one node map (`MPI_Win_allocate`,
    /// MPI-4.1 §12.2.2). Collective; `len` may differ by rank.
    ///
    /// # Errors
    /// The same on all ranks: element types differ, no memory for it on some host, or registration fails somewhere.
    pub fn allocate<T: Element>(&self, len: usize) -> Result<Window<'static, T>> {
        self.allocate_with(len, WindowOptions::default())
    }

    /// [`Job::allocate`] with options.
    ///
    /// # Errors
    /// As [`Job::allocate`]; a displacement unit of 0.
    pub fn allocate_with<T: Element>(
        &self,
        len: usize,
        options: WindowOptions,
    ) -> Result<Window<'static, T>> {
        let core = Core::create::<T>(&self.0, "allocate", Memory::Allocate(len), options)?;
        Ok(Window { core, _memory: PhantomData })
    }

    /// A window over memory of the caller's (`MPI_Win_create`, MPI-4.1 §12.2.1). Collective; lengths may differ by rank.
    ///
    /// # Errors
    /// As [`Job::allocate`].
    pub fn create<'m, T: Element>(&self, memory: &'m mut [T]) -> Result<Window<'m, T>> {
        self.create_with(memory, WindowOptions::default())
    }

    /// [`Job::create`] with options.
    ///
    /// # Errors
    /// As [`Job::allocate`]; a displacement unit of 0.
    pub fn create_with<'m, T: Element>(
        &self,
        memory: &'m mut [T],
        options: WindowOptions,
    ) -> Result<Window<'m, T>> {
        let memory = Memory::User(crate::memory::expose(memory));
        let core = Core::create::<T>(&self.0, "create", memory, options)?;
        Ok(Window { core, _memory: PhantomData })
    }
}

impl<T: Element> Window<'_, T> {
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
        let core = &self.core;
        core.epochs.lock().check_none("free").map_err(|e| core.name(e))?;
        collective::barrier_as(&core.member.engine, Kind::Free).map_err(|e| core.name(e))
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
        self.error(Class::Rank, operation, format!("the job has ranks 0 to {last}, not {target}"))
            .to_target(target)
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
        self.error(Class::RmaRange, operation, message).to_target(target)
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
        if self.of_user
            && self.member.is_alive()
            && let Err(error) = self.revoke()
        {
            tracing::error!(%error, "a peer may still access memory of a window that is gone");
        }
        self.regions.lock().clear();
        self.member.control.close(self.number);
    }
}

impl Core {
    /// Makes sure that no rank of this node accesses the user's memory any more: their agents agree, whatever they
    /// compute. (Over libfabric the end of the registration does the same.)
    fn revoke(&self) -> Result<()> {
        let engine = &self.member.engine;
        let mut requests = Vec::new();
        for (rank, peer) in self.peers.iter().enumerate() {
            if rank != engine.rank && engine.routes.to(rank).name() == "shm" {
                let mut header = engine.header(wire::Kind::Revoke);
                header.window = peer.number;
                requests.push((rank, engine.request("free", rank, header, &[])?));
            }
        }
        requests.iter().try_for_each(|(rank, request)| engine.await_reply("free", *rank, request))
    }
}
