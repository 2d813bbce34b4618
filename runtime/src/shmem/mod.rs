//! OpenSHMEM on windows: symmetric memory that any PE puts into, gets from and updates (OpenSHMEM 1.5).
//!
//! A [`Shmem`] is one allocated window, the *symmetric heap*, in an epoch of lock_all from beginning to end, with an allocator inside
//! that finds the same place at every PE. Ranks are called PEs here.
//!
//! ```
//! use transom::shmem::Shmem;
//! transom::local(4, |job| {
//!     let shmem = Shmem::start(&job, 1 << 20)?; // collective: a symmetric heap of 1 MiB at each PE
//!     let mail = shmem.allocate::<u64>(1)?; // collective, the same place at each PE
//!     let counter = shmem.allocate::<u64>(1)?;
//!     let (me, n) = (shmem.my_pe(), shmem.n_pes());
//!     shmem.put(&mail, 0, &[me as u64 + 1], (me + 1) % n)?;
//!     let ticket = shmem.fetch_add(&counter, 0, 1, 0)?; // a value, now
//!     assert!(ticket < 4);
//!     shmem.wait_until(&mail, 0, |value| value != 0)?; // until my left neighbour has put
//!     assert_eq!(shmem.load(&mail, 0)?, ((me + n - 1) % n) as u64 + 1);
//!     shmem.barrier_all()?; // everything is complete everywhere
//!     let mut drawn = [0];
//!     shmem.get(&counter, 0, &mut drawn, 0)?;
//!     assert_eq!(drawn, [4]);
//!     shmem.free(counter)?;
//!     shmem.free(mail)?;
//!     shmem.finalize()
//! })?;
//! # Ok::<(), transom::Error>(())
//! ```
//!
//! Methods with `_raw` in their names, and those that take addresses, are for bindings of other languages: `libsma.so` is made of them.

mod allocate;
mod atomic;
mod blocks;
pub mod collective;
mod context;
mod lock;
mod segment;
mod symmetric;
mod team;
mod transfer;
mod wait;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Engine;
use crate::memory::RawBuffer;
use crate::{Class, Communicator, Error, Job, Result};
use blocks::Blocks;
pub use context::Context;
use segment::Segment;
pub use symmetric::Symmetric;
pub use team::Team;
pub use transfer::{SignalOp, Strides};

/// Blocks can be aligned to as much as this, where all PEs have their heaps at one address.
const LARGEST_ALIGNMENT: usize = 1 << 30;

/// How a [`Shmem`] is made.
#[derive(Debug, Default)]
pub struct Options {
    /// Bytes of the symmetric heap at each PE.
    pub heap: usize,
    /// Static data of the program, which is symmetric, too: of the same length at every PE.
    pub statics: Option<RawBuffer>,
    /// Several threads make calls at once.
    pub multiple: bool,
    /// Every access is checked to be in a block that is in use, which takes longer.
    pub checks: bool,
}

/// This PE's part in symmetric memory.
#[derive(Debug)]
pub struct Shmem {
    heap: Segment,
    statics: Option<Segment>,
    blocks: Mutex<Blocks>,
    /// The largest alignment that is one at all PEs.
    alignment: usize,
    world: Arc<Team>,
    shared: Arc<Team>,
    default: Context,
    /// Communicators of active sets.
    sets: Mutex<HashMap<(usize, usize, usize), Communicator>>,
    multiple: bool,
    checks: bool,
    job: Job,
}

impl Shmem {
    /// Symmetric memory for all ranks of a job, with a heap of so many bytes at each (`shmem_init`). Collective. Ends by
    /// [`Shmem::finalize`].
    ///
    /// # Errors
    /// The same at all PEs: no memory for it on some host, or registration fails somewhere.
    pub fn start(job: &Job, heap: usize) -> Result<Self> {
        Self::start_with(job, &Options { heap, ..Options::default() })
    }

    /// [`Shmem::start`] with options.
    ///
    /// # Errors
    /// As [`Shmem::start`]; static data of different lengths.
    pub fn start_with(job: &Job, options: &Options) -> Result<Self> {
        let &Options { heap: bytes, statics, multiple, checks } = options;
        let heap = Segment::heap(job, bytes, multiple, checks)?;
        let statics = statics.map(|memory| Segment::statics(job, memory, multiple)).transpose()?;
        for segment in [Some(&heap), statics.as_ref()].into_iter().flatten() {
            let longest = job.allreduce(crate::Max, &[segment.len() as u64])?;
            if longest != [segment.len() as u64] {
                let message =
                    format!("{} bytes of symmetric memory here, {longest:?} elsewhere", segment.len());
                return Err(Error::new(Class::Size, "shmem_init", message).at_rank(job.rank()));
            }
        }
        let alignment = if heap.window().is_symmetric() {
            LARGEST_ALIGNMENT
        } else {
            let own = 1u64 << heap.base().trailing_zeros().min(30);
            job.allreduce(crate::Min, &[own])?.first().map_or(1, |least| *least as usize)
        };
        let world = Arc::new(Team::new(Communicator::clone(job), 0, 1));
        Ok(Self {
            blocks: Mutex::new(Blocks::new(heap.len())),
            alignment,
            shared: Arc::new(team::shared(job)?),
            default: Context::new(world.clone(), multiple, false),
            world,
            heap,
            statics,
            sets: Mutex::default(),
            multiple,
            checks,
            job: job.clone(),
        })
    }

    /// Completes everything, and frees all symmetric memory (`shmem_finalize`). Collective.
    ///
    /// # Errors
    /// A peer is gone or calls something else.
    pub fn finalize(self) -> Result<()> {
        self.barrier_all()?;
        let Self { heap, statics, .. } = self;
        let freed = statics.map_or(Ok(()), Segment::free);
        heap.free().and(freed)
    }

    /// This PE, from 0 (`shmem_my_pe`).
    #[inline]
    pub fn my_pe(&self) -> usize {
        self.job.rank()
    }

    /// Number of PEs (`shmem_n_pes`).
    #[inline]
    pub fn n_pes(&self) -> usize {
        self.job.size()
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// The context of operations that name none (`SHMEM_CTX_DEFAULT`).
    #[inline(always)]
    pub fn default_context(&self) -> &Context {
        &self.default
    }

    /// A context of a team's (`shmem_team_create_ctx`). Its operations are completed by a [`Shmem::quiet`] of it.
    pub fn context(&self, team: &Arc<Team>) -> Context {
        Context::new(team.clone(), self.multiple, true)
    }

    /// Completes what this PE has issued in the default context, and waits for all PEs (`shmem_barrier_all`). Collective.
    ///
    /// # Errors
    /// A peer is gone or calls something else; the deadline passes.
    pub fn barrier_all(&self) -> Result<()> {
        self.barrier(self.world.comm())
    }

    /// The same of some PEs (`shmem_barrier`).
    ///
    /// # Errors
    /// As [`Shmem::barrier_all`].
    pub fn barrier(&self, comm: &Communicator) -> Result<()> {
        self.quiet(&self.default)?;
        comm.barrier()
    }

    /// Where this process loads and stores an object of another PE's (`shmem_ptr`): the address here of that PE's copy of what is at
    /// `address`. None if it cannot.
    pub fn address_at(&self, address: usize, pe: usize) -> Option<usize> {
        let mut segments = self.segments();
        let (segment, at) =
            segments.find_map(|segment| Some((segment, segment.displacement(address, 1)?)))?;
        if pe < self.n_pes() { segment.mapped(at, pe) } else { None }
    }

    /// Whether an address is symmetric (`shmem_addr_accessible`).
    pub fn is_symmetric(&self, address: usize) -> bool {
        self.segments().any(|segment| segment.displacement(address, 1).is_some())
    }

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        [Some(&self.heap), self.statics.as_ref()].into_iter().flatten()
    }

    fn engine(&self) -> &Engine {
        &self.world.comm().member().engine
    }

    /// An error of a call at this PE.
    pub(crate) fn error(&self, class: Class, call: &'static str, message: impl Into<String>) -> Error {
        Error::new(class, call, message).at_rank(self.my_pe())
    }

    fn check_pe(&self, call: &'static str, pe: usize) -> Result<()> {
        if pe < self.n_pes() {
            return Ok(());
        }
        let message = format!("PE {} does not exist: there are {}", pe.cast_signed(), self.n_pes());
        Err(self.error(Class::Rank, call, message))
    }

    /// Where an access of `bytes` bytes at `address` of a PE goes, if that is symmetric memory, in use as far as that is checked.
    #[inline(never)]
    fn check(
        &self,
        call: &'static str,
        address: usize,
        bytes: usize,
        pe: usize,
    ) -> Result<(&Segment, usize)> {
        self.check_pe(call, pe)?;
        let found =
            self.segments().find_map(|segment| Some((segment, segment.displacement(address, bytes)?)));
        let Some((segment, at)) = found else { return Err(self.not_symmetric(call, address, bytes, pe)) };
        if self.checks && std::ptr::eq(segment, &self.heap) && !self.blocks.lock().holds(at, bytes) {
            let message = format!(
                "{bytes} bytes at {address:#x} of PE {pe} are not in a block that is in use: it was freed, or is shorter"
            );
            return Err(self.error(Class::RmaRange, call, message).with_target(pe));
        }
        Ok((segment, at))
    }

    /// The same of one element, which is at a multiple of its size.
    fn check_element<T>(&self, call: &'static str, address: usize, pe: usize) -> Result<(&Segment, usize)> {
        let size = size_of::<T>();
        if address.is_multiple_of(size) {
            return self.check(call, address, size, pe);
        }
        let message =
            format!("an element of {size} bytes at {address:#x} of PE {pe}, which is no multiple of {size}");
        Err(self.error(Class::Argument, call, message).with_target(pe))
    }

    #[cold]
    fn not_symmetric(&self, call: &'static str, address: usize, bytes: usize, pe: usize) -> Error {
        let heap = format!("{:#x} to {:#x}", self.heap.base(), self.heap.base() + self.heap.len());
        let statics = match &self.statics {
            Some(statics) => {
                format!(", or static data ({:#x} to {:#x})", statics.base(), statics.base() + statics.len())
            }
            None => String::new(),
        };
        let message = format!(
            "{bytes} bytes at {address:#x}, for PE {pe}, are not symmetric: they must be in the symmetric heap ({heap}){statics}"
        );
        self.error(Class::RmaRange, call, message).with_target(pe)
    }
}
