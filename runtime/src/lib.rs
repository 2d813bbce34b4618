//! One-sided communication as a production runtime: the windows of MPI-3/4, in Rust.
//!
//! A rank exposes memory as a [`Window`]; any other rank puts into it, gets from it and updates it atomically, and the
//! owner of the memory does nothing, not even when it computes for seconds without a call to the runtime.
//!
//! ```
//! transom::local(4, |job| {
//!     let table = job.allocate::<u64>(8)?; // collective: 8 words on each rank
//!     let right = (job.rank() + 1) % job.size();
//!     let edge = [job.rank() as u64; 2];
//!     table.lock_all(|epoch| {
//!         epoch.put(right, 0, &edge)?; // `edge` is borrowed until the epoch's scope ends
//!         let ticket = epoch.fetch_add(0, 7, 1)?; // a value, now
//!         assert!(ticket < 4);
//!         epoch.flush(right) // visible at `right`
//!     })?; // unlock: complete everywhere
//!     job.barrier()?;
//!     let left = (job.rank() + job.size() - 1) % job.size();
//!     assert_eq!(table.local().get(1)?, left as u64);
//!     table.free()
//! })?;
//! # Ok::<(), transom::Error>(())
//! ```
//!
//! # Jobs
//! [`init`] joins the job that a launcher started (`transom run`, `srun --mpi=pmi2`, MPICH's `mpiexec`); without a
//! launcher it is a job of one rank. [`run`] does the same around a function, and reports its error. [`local`] runs a
//! job inside one process.
//!
//! # Epochs
//! Operations are methods of an [`Epoch`], which exists only inside the closure given to [`Window::lock`],
//! [`Window::lock_all`] or [`Window::fence`]: an operation outside an epoch does not compile, and no buffer can go
//! before its operations are complete. Programs translated from MPI, where epochs are calls, use
//! [`Window::explicit`], which checks the same at run time.
//!
//! # Messages
//! Programs around windows exchange messages, too: [`Communicator::send`], [`Communicator::recv`] and their
//! nonblocking forms, whose [`Request`]s are futures.
//!
//! # Errors
//! Every call that can fail returns an [`Error`] with the standard's class, the operation, rank and window, and what to
//! do. Nothing is sent when arguments are wrong.

#![deny(unsafe_code)]

mod bootstrap;
mod collective;
mod comm;
pub mod datatype;
mod engine;
mod epoch;
mod error;
pub mod explain;
mod heap;
mod job;
mod memory;
mod message;
mod operation;
#[doc = include_str!("pgas.md")]
pub mod pgas {}
mod protocol;
pub mod settings;
pub mod shmem;
mod shortcut;
#[doc(hidden)]
pub mod waits;
mod window;

pub use collective::raw;
pub use comm::{
    Agreement, Communicator, Comparison, Group, RankRange, Request, await_any, test_all, test_any, test_some,
    wait_all, wait_any, wait_some,
};
pub use datatype::Datatype;
pub use epoch::{Assert, Epoch, Explicit};
#[doc(hidden)]
pub use epoch::{NotYet, Transfer, Update};
pub use error::{Class, Error, Result};
pub use explain::Explanation;
pub use job::{Job, init, local, run};
pub use memory::{Lingering, RawBuffer, Room};
pub use message::{ANY_SOURCE, ANY_TAG, Message, Source, Status, Tag};
pub use operation::{
    Band, Bor, Bxor, Element, Land, Layout, Lor, Lxor, Max, MaxLoc, Min, MinLoc, NoOp, Operation, Prod,
    Replace, Sum,
};
pub use protocol::lock::LockKind;
#[doc(hidden)]
pub use protocol::lock::Ticket;
#[doc(hidden)]
pub use shortcut::ShortCut;
pub use transom_transport::{
    Arithmetic, Basic, Bitwise, Byte, Char, Complex, ComplexLongDouble, DataType, F32I32, F64I32, F80I32,
    Flag, I16I32, I32I32, I64I32, Integer, Located, Logical, LongDouble, Number, Ordered, ReduceOp,
    Swappable, WideChar, reduce_valid, swap_valid,
};
pub use window::{Flavour, Info, Local, MemoryModel, Window, WindowOptions, device_path};

/// The null rank (`MPI_PROC_NULL`): a valid target of every operation, which then does nothing (MPI-4.1 §12.3).
pub const NULL_RANK: usize = usize::MAX;
