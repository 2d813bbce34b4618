//! The memory of messages that are under way: a vector, or a buffer of the program's.

use std::sync::Arc;

use transom_transport::Span;
use zerocopy::IntoBytes;

use super::delivery::{check_capacity, zeroed};
use crate::engine::Engine;
use crate::memory::{ExposedVec, RawBuffer, ResultBuffer};
use crate::{Element, Result};

/// Where the bytes of a message are or come to.
pub(crate) trait Buffer: Send + Sized + 'static {
    /// What there is room for.
    type Room: Copy + Send + Sync;

    /// The buffer while transports access it: nobody here can.
    type Exposed: Send + Sync;

    /// Whether it is the program's, which has it back when the request has ended, in whatever way.
    const LENT: bool;

    /// Without any bytes.
    fn empty() -> Self;

    /// A place for a message of so many bytes.
    fn place(engine: &Engine, operation: &'static str, bytes: usize, room: Self::Room) -> Result<Self>;

    fn bytes(&self) -> &[u8];

    fn bytes_mut(&mut self) -> &mut [u8];

    /// A span of its bytes, which goes before the other value is dropped or taken.
    fn expose(self) -> (Self::Exposed, Span);

    /// Its bytes, to be filled by several gets of disjoint parts.
    fn result(exposed: &Arc<Self::Exposed>) -> ResultBuffer<'static>;

    /// The opposite of [`expose`](Self::expose).
    fn take(exposed: Self::Exposed) -> Self;
}

/// The most elements are the room.
impl<T: Element> Buffer for Vec<T> {
    type Room = usize;
    type Exposed = ExposedVec<T>;
    const LENT: bool = false;

    fn empty() -> Self {
        Self::new()
    }

    fn place(engine: &Engine, operation: &'static str, bytes: usize, most: usize) -> Result<Self> {
        zeroed(engine, operation, check_capacity::<T>(engine, operation, bytes, most)?)
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_bytes()
    }

    fn expose(self) -> (ExposedVec<T>, Span) {
        ExposedVec::new(self)
    }

    fn result(exposed: &Arc<ExposedVec<T>>) -> ResultBuffer<'static> {
        exposed.result()
    }

    fn take(exposed: ExposedVec<T>) -> Self {
        exposed.take()
    }
}

/// The whole buffer is the room; a message may be shorter.
impl Buffer for RawBuffer {
    type Room = Self;
    type Exposed = Self;
    const LENT: bool = true;

    fn empty() -> Self {
        Self::none()
    }

    fn place(engine: &Engine, operation: &'static str, bytes: usize, room: Self) -> Result<Self> {
        let count = check_capacity::<u8>(engine, operation, bytes, room.len())?;
        Ok(room.part(0, count).unwrap_or_else(Self::none))
    }

    fn bytes(&self) -> &[u8] {
        RawBuffer::bytes(*self)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        RawBuffer::bytes_mut(*self)
    }

    fn expose(self) -> (Self, Span) {
        (self, self.span())
    }

    fn result(exposed: &Arc<Self>) -> ResultBuffer<'static> {
        ResultBuffer::borrowed(RawBuffer::bytes_mut(**exposed))
    }

    fn take(exposed: Self) -> Self {
        exposed
    }
}
