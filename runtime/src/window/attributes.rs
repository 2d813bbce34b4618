//! A window's attributes (MPI-4.1 §12.2.6).

use super::created::CREATED_AS;
use super::options::Hints;
use super::pages::PAGES_AS;
use super::{Flavour, Info, Local, MemoryModel, Window};
use crate::{Class, Communicator, Element, NULL_RANK, Result};

impl<T: Element> Window<T> {
    /// Elements at this rank (`MPI_WIN_SIZE` over the size of an element).
    pub fn len(&self) -> usize {
        self.core.local.len() / size_of::<T>()
    }

    /// Whether this rank exposes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements that `rank` exposes, or `None` if there is no such rank.
    pub fn len_at(&self, rank: usize) -> Option<usize> {
        (rank < self.core.peers.len()).then(|| self.core.peers.bytes(rank) / size_of::<T>())
    }

    /// Bytes at this rank (`MPI_WIN_SIZE`).
    pub fn bytes(&self) -> usize {
        self.core.local.len()
    }

    /// Address of this rank's part in this process (`MPI_WIN_BASE`), 0 if there is none.
    pub fn base(&self) -> usize {
        if self.core.local.is_empty() { 0 } else { self.core.local.address() }
    }

    /// Address of `rank`'s part in `rank`'s process, where this rank knows it: of allocated windows that lie in the heaps
    /// of their ranks. `None` as well if nothing is there, if there is no such rank, and in the separate memory model.
    pub fn base_at(&self, rank: usize) -> Option<usize> {
        let core = &self.core;
        if rank == core.rank() && !core.local.is_empty() {
            return Some(core.local.address());
        }
        let known = rank < core.peers.len() && core.copies.is_none() && core.peers.bytes(rank) > 0;
        known.then(|| core.peers.address(rank)).flatten()
    }

    /// Whether an allocated window has the same address at all its ranks, each in a process of its own: then a pointer
    /// into one rank's part tells where the same element is at any other. Most are; not those of ranks that are threads
    /// of one process ([`crate::local`]), nor in the separate memory model.
    pub fn is_symmetric(&self) -> bool {
        self.core.copies.is_none() && self.core.peers.same_address()
    }

    /// Bytes that a displacement of 1 stands for at this rank (`MPI_WIN_DISP_UNIT`).
    pub fn displacement_unit(&self) -> usize {
        self.core.peers.unit(self.core.rank())
    }

    /// Bytes that a displacement of 1 stands for at `rank`, or `None` if there is no such rank.
    pub fn displacement_unit_at(&self, rank: usize) -> Option<usize> {
        (rank < self.core.peers.len()).then(|| self.core.peers.unit(rank))
    }

    /// Where the memory comes from (`MPI_WIN_CREATE_FLAVOR`).
    pub fn flavour(&self) -> Flavour {
        self.core.flavour
    }

    /// The memory model (`MPI_WIN_MODEL`).
    pub fn model(&self) -> MemoryModel {
        self.core.hints.model
    }

    /// The ranks of the window, as a communicator of its own (`MPI_Win_get_group` is its group).
    pub fn communicator(&self) -> &Communicator {
        &self.core.comm
    }

    /// The rank in the window of a rank of the job, if it has one: as [`crate::Group::rank_of`] of the window's group.
    #[inline]
    pub fn rank_of(&self, job_rank: usize) -> Option<usize> {
        self.core.comm.channel().group.rank_of(job_rank)
    }

    /// The hints in effect (`MPI_Win_get_info`).
    pub fn info(&self) -> Info {
        let info = self.core.live.info(&self.core.hints);
        let info = match &self.core.created {
            Some(created) => info.with(CREATED_AS, created.text()),
            None => info,
        };
        match &self.core.pages {
            Some(pages) => info.with(PAGES_AS, pages.clone()),
            None => info,
        }
    }

    /// Changes hints (`MPI_Win_set_info`): `no_locks`, `accumulate_ordering` and `accumulate_ops`, for what follows. Others are
    /// as the window was made; [`Window::info`] tells what is in effect.
    ///
    /// # Errors
    /// A value that makes no sense ([`Class::Info`]).
    pub fn set_info(&self, info: &Info) -> Result<()> {
        let hints = Hints::parse(info).map_err(|e| self.core.name(e))?;
        self.core.live.change(info, &hints);
        Ok(())
    }

    /// The name that [`Window::set_name`] gave (`MPI_Win_get_name`), at first empty.
    pub fn name(&self) -> String {
        self.core.name.lock().clone()
    }

    /// Names the window, at this rank (`MPI_Win_set_name`).
    pub fn set_name(&self, name: impl Into<String>) {
        *self.core.name.lock() = name.into();
    }

    /// The part of `rank`, or of the first rank that has memory if that is [`NULL_RANK`], for loads and stores
    /// (`MPI_Win_shared_query`, §12.2.3): of shared windows, and of allocated ones where the two ranks share memory. Memory
    /// that is stored to this way is synchronised by [`Window::sync`] and messages, or by epochs.
    ///
    /// # Errors
    /// No such rank; a window of another flavour, or in the separate memory model; a rank of another node.
    pub fn shared(&self, rank: usize) -> Result<Local<'_, T>> {
        const NAME: &str = "shared_query";
        let core = &self.core;
        let fail = |class, message: &str| Err(core.error(class, NAME, message).with_target(rank));
        let first = || (0..core.peers.len()).find(|rank| core.peers.bytes(*rank) > 0).unwrap_or(0);
        let rank = if rank == NULL_RANK { first() } else { rank };
        let Some(peer) = core.target(NAME, rank)? else {
            return fail(Class::Rank, "the null rank shares no memory");
        };
        if !matches!(core.flavour, Flavour::Shared | Flavour::Allocate) {
            return fail(
                Class::RmaFlavour,
                "memory is shared by load and store in windows that were allocated, not in created or dynamic ones",
            );
        }
        if core.copies.is_some() {
            return fail(
                Class::RmaFlavour,
                "in the separate memory model others' private copies are not seen",
            );
        }
        if rank == core.rank() {
            return Ok(self.local());
        }
        if let Some(memory) = core.peers.mapped(rank) {
            return Ok(Local::new(memory));
        }
        match &core.remote(NAME, rank, peer)?.direct {
            Some(memory) => Ok(Local::new(memory)),
            None => fail(Class::RmaShared, "the rank shares no memory with this one: use put and get"),
        }
    }
}
