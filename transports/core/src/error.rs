//! Errors of the transport layer: causes, without a window or an epoch in them.

use thiserror::Error;

use crate::DataType;

/// What goes wrong below the runtime. The runtime adds operation, rank and window.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// This machine lacks what the transport stands on.
    #[error("transport {transport} is not available here: {reason}")]
    Unavailable {
        /// The transport's name.
        transport: &'static str,
        /// What is missing, and how to get it.
        reason: String,
    },
    /// A system call or provider call failed.
    #[error("{operation} failed: {reason}")]
    System {
        /// The call.
        operation: &'static str,
        /// What the system says, and what to do.
        reason: String,
    },
    /// Memory of the size asked for cannot be had.
    #[error("no memory for {bytes} bytes: {reason}")]
    NoMemory {
        /// The bytes asked for.
        bytes: usize,
        /// The limit that stands in the way.
        reason: String,
    },
    /// An access outside the region, or not aligned to its element.
    #[error("access of {bytes} bytes at offset {offset} is outside the region of {len} bytes or not aligned")]
    Range {
        /// Byte offset of the access.
        offset: usize,
        /// Its length in bytes.
        bytes: usize,
        /// The region's length in bytes.
        len: usize,
    },
    /// An operation on elements that the standard does not define it for.
    #[error("{operation} is not defined on elements {ty:?}")]
    Undefined {
        /// The operation.
        operation: String,
        /// The element type.
        ty: DataType,
    },
    /// A peer cannot be reached (any more).
    #[error("peer {peer} cannot be reached: {reason}")]
    Peer {
        /// The peer's rank.
        peer: usize,
        /// What the transport saw.
        reason: String,
    },
    /// A key or address that a peer sent makes no sense.
    #[error("peer {peer} sent a malformed {what}")]
    Malformed {
        /// The peer's rank.
        peer: usize,
        /// What could not be understood.
        what: &'static str,
    },
}

impl TransportError {
    /// A system error from an errno.
    pub fn errno(operation: &'static str, errno: nix::errno::Errno) -> Self {
        let reason = match crate::limits::behind(errno) {
            Some(limit) => format!("{errno}; {limit}"),
            None => errno.to_string(),
        };
        Self::System { operation, reason }
    }

    /// A system error from the standard library's I/O error.
    pub fn io(operation: &'static str, error: &std::io::Error) -> Self {
        Self::System { operation, reason: crate::limits::named(error) }
    }
}

/// Result of a transport's call.
pub type TransportResult<T> = Result<T, TransportError>;
