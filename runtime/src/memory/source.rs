//! What a send shows, for as long as it is under way.

use parking_lot::Mutex;
use transom_transport::{Posted, Remote, Span, Transfer, Transport, TransportResult};

/// The bytes of a message that is being sent, which may be put to where the receiver has asked for them, until the send ends.
#[derive(Debug)]
pub(crate) struct Source {
    len: usize,
    bytes: Mutex<Option<Span>>,
}

impl Source {
    /// Such bytes ([`super::expose_read_only`], [`super::RawBuffer::span`], [`super::ExposedVec::new`]).
    pub fn new(bytes: Span) -> Self {
        Self { len: bytes.len(), bytes: Mutex::new(Some(bytes)) }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts `len` of them from `start` on, by a transport whose puts are over when they return. `None` if the send has ended.
    pub fn put(
        &self,
        transport: &dyn Transport,
        (remote, offset): (&Remote, usize),
        (start, len): (usize, usize),
    ) -> Option<TransportResult<Posted>> {
        let bytes = self.bytes.lock();
        let local = bytes.as_ref().filter(|_| transport.capabilities().immediate)?.part(start, len).ok()?;
        let transfer = Transfer { remote, offset, local: local.address() as *mut u8, len, context: 0 };
        // SAFETY: the send has not ended, and does not before the lock is free: until then its bytes stay valid for reads, as is
        // promised where they are exposed. The put is over when it returns.
        Some(unsafe { transport.put(&transfer) })
    }

    /// The send ends: when this returns, the bytes are not read any more.
    pub fn end(&self) {
        *self.bytes.lock() = None;
    }
}
