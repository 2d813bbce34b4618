//! The transport interface: what a transport knows (peers, registered regions, work requests, completions), the memory
//! words that several ranks update at once, and the arithmetic of accumulates.
//!
//! Nothing here knows windows or epochs. Transports depend on this crate; the runtime depends on the transports.

pub mod barrier;
pub mod devices;
mod elements;
mod error;
pub mod futex;
pub mod latency;
pub mod limits;
pub mod memory;
mod operation;
mod payload;
mod table;
pub mod thread;
mod transport;
mod try_lock;

pub use elements::{
    Arithmetic, Basic, Bitwise, Byte, Char, Complex, ComplexLongDouble, F32I32, F64I32, F80I32, Flag, I16I32,
    I32I32, I64I32, Integer, Located, Logical, LongDouble, Number, Ordered, Swappable, WideChar, reduce_word,
};
pub use error::{TransportError, TransportResult};
pub use memory::{Mapped, Memory, Owner, Reduction, Sections, Span, Stripes, Updates, Words};
pub use operation::{DataType, ReduceOp, reduce_valid, swap_valid};
pub use payload::{Payload, Rest};
pub use table::BitTable;
pub use transport::{
    Armed, AtomicScope, Capabilities, Completion, Event, ListTransfer, Lists, Moves, NativeAtomic, Part,
    Posted, Region, RegionKey, Remote, Transfer, Transport, Unwatched, WaitFd,
};
pub use try_lock::{Taken, TryLock};
