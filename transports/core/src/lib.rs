//! The transport seam: what a transport knows (peers, registered regions, work requests, completions), the memory
//! words that several ranks update at once, and the arithmetic of accumulates.
//!
//! Nothing here knows windows or epochs. Transports depend on this crate; the runtime depends on the transports.

mod error;
pub mod futex;
pub mod latency;
pub mod memory;
mod numbers;
mod operation;
mod transport;

pub use error::{TransportError, TransportResult};
pub use memory::{Owner, Span};
pub use numbers::{Integer, Number};
pub use operation::{DataType, ReduceOp, reduce_valid};
pub use transport::{
    Armed, Capabilities, Completion, Event, Posted, Region, RegionKey, Remote, Transport, WaitFd,
};
