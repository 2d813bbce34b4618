//! Room for bytes of something that goes on when its caller does something else.

use std::mem::ManuallyDrop;

use super::RawBuffer;

/// Bytes that are read and written by their [`RawBuffer`]s alone until they are [taken](Self::take). Whoever loses them before, since
/// what goes on has not come to its end, leaves their memory to it for ever.
#[derive(Debug)]
pub struct Room {
    bytes: ManuallyDrop<Vec<u8>>,
    raw: RawBuffer,
}

impl Room {
    /// Such bytes.
    #[must_use]
    pub fn new(mut bytes: Vec<u8>) -> Self {
        let raw = RawBuffer { start: bytes.as_mut_ptr(), len: bytes.len() };
        Self { bytes: ManuallyDrop::new(bytes), raw }
    }

    /// All of them, for what ends before they are taken.
    pub(crate) fn raw(&self) -> RawBuffer {
        self.raw
    }

    /// The same, for language bindings.
    ///
    /// # Safety
    /// What they are given to has ended before they are taken, and nothing else accesses them meanwhile.
    #[must_use]
    pub unsafe fn lent(&self) -> RawBuffer {
        self.raw
    }

    /// What they have become. Nothing is under way with them any more.
    #[must_use]
    pub fn take(self) -> Vec<u8> {
        ManuallyDrop::into_inner(self.bytes)
    }
}
