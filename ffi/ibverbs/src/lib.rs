//! Libibverbs' and librdmacm's objects as Rust types: created by a constructor, destroyed when dropped, in the right order.
//!
//! ```no_run
//! use ibverbs::{CompletionQueue, Context, ProtectionDomain, QueuePair, QueuePairOptions};
//!
//! let devices = ibverbs::device_names()?;
//! let context = Context::open(&devices[0])?;
//! let domain = ProtectionDomain::new(&context)?;
//! let queue = CompletionQueue::new(&context, 256, None)?;
//! let options = QueuePairOptions {
//!     send: &queue,
//!     receive: &queue,
//!     shared: None,
//!     sends: 128,
//!     receives: 1,
//!     parts: 1,
//!     inline: 64,
//!     signal_all: false,
//! };
//! let pair = QueuePair::reliable(&domain, &options)?;
//! println!("queue pair {} takes {} bytes inline", pair.number(), pair.inline());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The library
//! Libibverbs is opened when it is first needed: the file that the environment variable `TRANSOM_IBVERBS` names, else
//! `libibverbs.so.1`. Without it, [`device_names`] and [`Context::open`], where everything begins, fail with an error that
//! says so ([`VerbsError::is_no_library`]). So with librdmacm, which only [`EventChannel::new`] opens.
//!
//! # Ownership
//! A child holds its parents: a [`QueuePair`] its queues and its [`ProtectionDomain`], that its [`Context`]. So handles may
//! be dropped in any order and libibverbs sees them destroyed in the only one it accepts (it refuses a parent in use).
//!
//! # Threads
//! Every type is `Send` and `Sync`: verbs objects are safe for use by many threads unless a thread domain says otherwise
//! (ibv_alloc_td(3)), and there is none here.
//!
//! # Safety
//! What posts a request is unsafe, since the device then reads or writes memory behind the compiler's back: see
//! [`QueuePair::post`]. So is [`MemoryRegion::register`]. All else is safe. Names such as ibv_post_send(3) are
//! libibverbs' manual pages.

mod address_handle;
mod async_event;
mod batch;
mod completion_channel;
mod completion_queue;
mod connect;
mod context;
mod device;
mod error;
mod gid;
mod handle;
mod manager;
mod memory_region;
mod port;
mod protection_domain;
mod queue_pair;
mod shared_receive_queue;
mod work_completion;

pub use address_handle::{AddressHandle, Route};
pub use async_event::{AsyncEvent, AsyncKind};
pub use batch::{BATCH, Batch, MAX_PARTS, Operation, PostError, PushError, Request};
pub use completion_channel::CompletionChannel;
pub use completion_queue::CompletionQueue;
pub use connect::{Path, QpState, Sending};
pub use context::{Atomics, Attributes, Context, TransportKind};
pub use device::device_names;
pub use error::VerbsError;
pub use gid::{Gid, GidKind};
pub use manager::{ConnectionEvent, ConnectionEventKind, ConnectionId, EventChannel, Parameters};
pub use memory_region::{Access, Local, MemoryRegion};
pub use port::{Mtu, Port};
pub use protection_domain::ProtectionDomain;
pub use queue_pair::{QueuePair, QueuePairOptions};
pub use shared_receive_queue::SharedReceiveQueue;
pub use work_completion::{Opcode, Status, WorkCompletion};
