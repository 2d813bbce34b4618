//! The bytes of a message behind its beginning, where they are.

use std::cell::RefCell;
use std::ptr;

use crate::{Span, TransportResult};

/// The end of a message in memory that is shared with its sender, who may go on writing there. It is copied once, to where it belongs,
/// before the event that shows it is over.
#[derive(Debug, Clone, Copy)]
pub struct Rest<'a> {
    memory: &'a Span,
    start: usize,
    len: usize,
}

impl<'a> Rest<'a> {
    /// `len` bytes of `memory`, from `start` on.
    ///
    /// # Errors
    /// It has not so many.
    pub fn new(memory: &'a Span, start: usize, len: usize) -> TransportResult<Self> {
        memory.at(start, len)?;
        Ok(Self { memory, start, len })
    }

    /// The whole message, of which `start` is the beginning.
    #[must_use]
    pub fn behind(self, start: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(start.len() + self.len);
        message.extend_from_slice(start);
        self.append_to(&mut message);
        message
    }

    fn copy_to(self, place: &mut [u8]) {
        let len = self.len.min(place.len());
        // They are in the memory, as `new` has found: no error is left.
        let _ = self.memory.copy_out(self.start, &mut place[..len]);
    }

    fn append_to(self, data: &mut Vec<u8>) {
        let Ok(from) = self.memory.at(self.start, self.len) else { return };
        data.reserve(self.len);
        // SAFETY: `from` is valid for so many bytes (checked; kept alive by `memory`), the vector has room for as many behind its
        // length (Vec::reserve), and is nobody else's, so they do not overlap. All of them are written.
        unsafe {
            ptr::copy_nonoverlapping(from.cast_const(), data.as_mut_ptr().add(data.len()), self.len);
            data.set_len(data.len() + self.len);
        }
    }
}

/// Bytes of a message.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// Here.
    Here(&'a [u8]),
    /// Still in memory that is shared with the sender.
    There(Rest<'a>),
}

thread_local! {
    /// Room for what is looked at and not copied.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Payload<'_> {
    /// How many they are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::There(rest) => rest.len,
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies them to the beginning of `place`; what it has no room for is left out.
    #[inline]
    pub fn copy_to(self, place: &mut [u8]) {
        match self {
            Self::Here(bytes) => {
                let len = bytes.len().min(place.len());
                place[..len].copy_from_slice(&bytes[..len]);
            }
            Self::There(rest) => rest.copy_to(place),
        }
    }

    /// Copies them behind what is in `data`.
    pub fn append_to(self, data: &mut Vec<u8>) {
        match self {
            Self::Here(bytes) => data.extend_from_slice(bytes),
            Self::There(rest) => rest.append_to(data),
        }
    }

    /// What `with` makes of them.
    #[inline]
    pub fn with<R>(self, with: impl FnOnce(&[u8]) -> R) -> R {
        let rest = match self {
            Self::Here(bytes) => return with(bytes),
            Self::There(rest) => rest,
        };
        // Taken for the while: `with` may look at another message.
        let mut room = ROOM.take();
        room.resize(room.len().max(rest.len), 0);
        rest.copy_to(&mut room[..rest.len]);
        let result = with(&room[..rest.len]);
        ROOM.set(room);
        result
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Here(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Payload<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Here(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_the_same_bytes() {
        let memory = Span::anonymous(64).unwrap();
        memory.copy_in(8, b"payload").unwrap();
        assert!(Rest::new(&memory, 60, 5).is_err() && Rest::new(&memory, usize::MAX, 2).is_err());
        let payloads = [Payload::Here(b"payload"), Payload::There(Rest::new(&memory, 8, 7).unwrap())];
        for payload in payloads {
            assert!(payload.len() == 7 && !payload.is_empty());
            let mut place = [b'.'; 9];
            payload.copy_to(&mut place);
            assert_eq!(&place, b"payload..");
            payload.copy_to(&mut place[..3]);
            let mut data = b"a ".to_vec();
            payload.append_to(&mut data);
            assert_eq!(data, b"a payload");
            let inside = payload.with(|bytes| (bytes.to_vec(), payload.with(<[u8]>::to_vec)));
            assert_eq!(inside, (b"payload".to_vec(), b"payload".to_vec()));
        }
        assert_eq!(Rest::new(&memory, 8, 7).unwrap().behind(b"the "), b"the payload");
        assert!(Payload::There(Rest::new(&memory, 64, 0).unwrap()).is_empty());
    }
}
