//! Buffers of collectives that go on without their callers: in place where their data is one after the other, else packed meanwhile.

use transom::{RawBuffer, Room};

use super::Parts;
use crate::buffer::Buffer;
use crate::failure::Result;

/// One of them.
pub struct Held {
    raw: RawBuffer,
    packed: Option<Room>,
}

impl Held {
    /// The program's.
    pub fn of(buffer: &Buffer) -> Result<Self> {
        Ok(match buffer.raw()? {
            Some(raw) => Self::in_place(raw),
            None => Self::packed(buffer.pack()?),
        })
    }

    /// Bytes of the program's.
    pub fn in_place(raw: RawBuffer) -> Self {
        Self { raw, packed: None }
    }

    /// Others.
    pub fn packed(data: Vec<u8>) -> Self {
        let room = Room::new(data);
        // SAFETY: only the request of a collective gets them, and they are taken by what fills the program's buffers when that has
        // ended (MPI-4.1 §6.12).
        Self { raw: unsafe { room.lent() }, packed: Some(room) }
    }

    /// Where it is.
    pub fn raw(&self) -> RawBuffer {
        self.raw
    }

    /// Nothing is under way with it any more: `store` puts what was packed where it belongs.
    pub fn end(self, store: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        self.packed.map_or(Ok(()), |room| store(&room.take()))
    }

    /// The same of what was only read.
    pub fn end_read(self) -> Result<()> {
        self.end(|_| Ok(()))
    }
}

/// All parts of a buffer.
pub struct HeldParts(Vec<Held>);

impl HeldParts {
    /// In place where that can be.
    pub fn of(parts: &Parts) -> Result<Self> {
        parts.iter().map(Held::of).collect::<Result<_>>().map(Self)
    }

    /// Copies, of what is to be replaced meanwhile.
    pub fn copied(parts: &Parts) -> Result<Self> {
        parts.iter().map(|part| part.pack().map(Held::packed)).collect::<Result<_>>().map(Self)
    }

    /// Where they are.
    pub fn raw(&self) -> Vec<RawBuffer> {
        self.0.iter().map(Held::raw).collect()
    }

    /// Nothing is under way with them any more: what was packed comes to its part.
    pub fn end(self, parts: &Parts) -> Result<()> {
        self.0.into_iter().zip(&**parts).try_for_each(|(held, part)| held.end(|data| part.unpack(data)))
    }

    /// The same of what was only read.
    pub fn end_read(self) -> Result<()> {
        self.0.into_iter().try_for_each(Held::end_read)
    }
}
