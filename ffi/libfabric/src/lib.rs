//! Libfabric's objects as Rust types: opened by a constructor, closed when dropped, in the right order.
//!
//! ```no_run
//! use libfabric::{AddressVector, CompletionQueue, Domain, Endpoint, EndpointOptions, Fabric, Hints, Library, flags};
//!
//! let library = Library::open()?;
//! let hints = Hints { provider: Some("tcp;ofi_rxm".into()), caps: flags::MSG | flags::RMA, ..Hints::default() };
//! let info = hints.query(library)?.into_iter().next().ok_or("no such provider")?;
//! let fabric = Fabric::open(&info)?;
//! let domain = Domain::open(&fabric, &info)?;
//! let queue = CompletionQueue::open(&domain, &Default::default())?;
//! let peers = AddressVector::open(&domain, &info, 16)?;
//! let endpoint = Endpoint::open(&domain, &info, &peers, &queue, &queue, &EndpointOptions::default())?;
//! println!("reached at {:?}", endpoint.name()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Ownership
//! A child holds its parents: an [`Endpoint`] its queues and address vector, these and every [`MemoryRegion`] their
//! [`Domain`], the domain its [`Fabric`]. So handles may be dropped in any order and libfabric sees them closed in the
//! only one it accepts (`fi_close` refuses a parent in use).
//!
//! # Threads
//! Every type is `Send` and `Sync`. [`Domain::open`] takes only a provider that promises `FI_THREAD_SAFE`, which makes
//! that right. For the weaker levels there is the unsafe [`Domain::open_serialised`], whose caller promises to hold a
//! lock of its own around every use of every object of the domain, dropping them included.
//!
//! # Safety
//! What posts an operation is unsafe, since the network then reads or writes memory behind the compiler's back: see
//! *Posting* at [`Endpoint`]. All else is safe. Names in brackets such as fi_cq(3) are libfabric's manual pages.

mod address_vector;
mod atomic;
mod completion_queue;
mod domain;
mod endpoint;
mod error;
mod fabric;
pub mod flags;
mod handle;
mod hints;
mod info;
mod memory_region;

pub use address_vector::{Address, AddressVector};
pub use atomic::{AtomicCall, AtomicKind, AtomicLimits, AtomicOp, Datatype};
pub use completion_queue::{Completion, CompletionQueue, CqError, QueueOptions, Wait};
pub use domain::Domain;
pub use endpoint::{Endpoint, EndpointOptions, Local, MAX_PARTS, Posted, Remote};
pub use error::FabricError;
pub use fabric::Fabric;
pub use hints::Hints;
pub use info::{EndpointType, Info, Progress, ResourceManagement, Threading};
pub use libfabric_sys::{Library, OpenError};
pub use memory_region::{Descriptor, MemoryRegion};
