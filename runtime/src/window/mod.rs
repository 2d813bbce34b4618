//! Windows: memory that ranks expose to each other. Knows ranges, displacement units and peers' regions; what may be
//! accessed when is the epochs' matter, how is the operations'.

mod attributes;
mod copies;
mod core;
mod create;
mod created;
mod domain;
mod dynamic;
mod gather;
mod local;
mod make;
mod notifications;
mod options;
mod pages;
mod peer;
mod plan;
mod shared;
mod signals;
mod table;
mod view;

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) use self::core::Core;
pub(crate) use created::CreatedHint;
pub use domain::device_path;
pub(crate) use domain::{AtomicsHint, Domain, WORD, is_devices};
pub use local::Local;
pub(crate) use options::Word;
pub use options::{Flavour, Info, MemoryModel, WindowOptions};
pub(crate) use pages::PagesHint;
pub(crate) use peer::{Peer, TargetMemory};
pub(crate) use signals::PeerSignals;

use transom_transport::memory::store_load_fence;

use crate::collective::{self, Kind};
use crate::epoch::Explicit;
use crate::memory::ExposedVec;
use crate::{Class, Element, Result};

/// Memory of elements `T` at each rank of a job, which every rank may access in epochs (MPI-4.1 §12.2).
///
/// Each rank chooses its own length. A displacement counts the target's displacement units, by default one element; in a
/// dynamic window it is an address at the target.
#[derive(Debug)]
pub struct Window<T> {
    /// Dropped first: after that no peer accesses the memory.
    pub(crate) core: Box<Core>,
    /// The user's memory, if the window owns it, with windows that overlap it.
    memory: Option<Arc<ExposedVec<T>>>,
    _elements: PhantomData<T>,
}

impl<T: Element> Window<T> {
    /// This rank's part of the window. Nothing of a dynamic window: see [`Window::with_attached`].
    ///
    /// In the unified memory model a load may see what others put at any time; synchronisation tells when it must
    /// (MPI-4.1 §12.4). In the separate model this is the private copy.
    pub fn local(&self) -> Local<'_, T> {
        Local::new(&self.core.local)
    }

    /// Epochs as calls, checked at run time.
    pub fn explicit(&self) -> Explicit<'_, T> {
        Explicit::new(&self.core)
    }

    /// How many threads of the program make calls on the window, for language bindings whose programs promise that: then
    /// opening and closing epochs costs less (`one_at_a_time`), or operations of several threads write nothing that they
    /// share. To be said before the first epoch.
    #[doc(hidden)]
    pub fn promise_threads(&self, one_at_a_time: bool) {
        self.core.promise_threads(one_at_a_time);
    }

    /// Orders this rank's loads and stores of window memory before and after it, and reconciles the copies of the separate
    /// memory model (`MPI_Win_sync`, §12.5.4).
    ///
    /// # Errors
    /// None in the unified memory model.
    pub fn sync(&self) -> Result<()> {
        store_load_fence();
        self.core.publish("sync")?;
        self.core.refresh("sync")
    }

    /// The ranks of this window that are gone, as [`crate::Communicator::failed`].
    pub fn failed(&self) -> Vec<usize> {
        self.core.comm.failed()
    }

    /// Frees the window (`MPI_Win_free`, §12.2.5). Collective: waits until every rank is done with it, or is gone in a job
    /// that goes on. Dropping a window instead does not wait; accesses of other ranks that come later fail or have no effect, and the block of an allocated
    /// window in this rank's heap is not used again.
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
    /// As [`Window::free`]; another window overlaps the memory. The memory is then freed with the last of them.
    pub fn reclaim(self) -> Result<Vec<T>> {
        self.finish()?;
        let Self { core, memory, .. } = self;
        let Some(memory) = memory else { return Local::new(&core.local).to_vec() };
        let overlapped = core.error(
            Class::Window,
            "reclaim",
            "another window overlaps this memory: free that one first, then reclaim",
        );
        drop(core);
        Arc::try_unwrap(memory).map(ExposedVec::take).map_err(|_| overlapped)
    }

    fn finish(&self) -> Result<()> {
        let core = &self.core;
        core.access.open.check_none("free").map_err(|e| core.name(e))?;
        let met = match core.comm.outlives_ranks() {
            // Those that live, also if one dies meanwhile.
            true => core.comm.meet_living(),
            false => collective::barrier_as(core.comm.channel(), Kind::Free),
        };
        met.map_err(|e| core.name(e))?;
        core.freed.store(true, Ordering::Relaxed);
        core.publish("free")?;
        core.refresh("free")
    }
}
