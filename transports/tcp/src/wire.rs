//! What travels on a connection after the handshake: records, each a header, for puts and gets a place, and data.
//!
//! Numbers are little-endian. Every header has the number of its record, and how many of the receiver's puts its sender has in
//! memory.

use transom_transport::{TransportError, TransportResult};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Puts that a rank may have under way at a peer.
pub(crate) const MAX_PUTS: usize = 8192;
/// Gets that a rank may have under way at a peer.
pub(crate) const MAX_GETS: usize = 1024;
/// Most bytes of one message: 256 KiB of data, as much as a core's caches hold with what becomes of it, and what is around them.
pub(crate) const MAX_MESSAGE: usize = (256 << 10) + 1024;
/// Most bytes of one put or get.
pub(crate) const MAX_TRANSFER: usize = 1 << 30;
/// A get is answered by replies of at most so many bytes each.
pub(crate) const PIECE: usize = 1 << 20;

/// Kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Data for a place of the receiver's.
    Put = 1,
    /// Asks for the bytes of a place.
    Get,
    /// The next bytes of the oldest get that is not answered yet.
    Reply,
    /// A message.
    Message,
    /// Nothing but the count in the header.
    Served,
    /// The last put that the count covers was refused.
    PutRefused,
    /// The oldest get is refused.
    GetRefused,
}

impl Kind {
    fn of(number: u8) -> Option<Self> {
        use Kind::{Get, GetRefused, Message, Put, PutRefused, Reply, Served};
        [Put, Get, Reply, Message, Served, PutRefused, GetRefused]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }

    /// Whether a place follows the header.
    #[inline]
    pub fn has_place(self) -> bool {
        matches!(self, Self::Put | Self::Get)
    }
}

/// What every record begins with.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    kind: u8,
    zero: [u8; 3],
    /// Bytes of data that follow, or that a get asks for.
    pub len: U32,
    /// Puts of the receiver's that are served.
    pub served: U32,
    /// Of this record on this connection, from 0.
    pub number: U32,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = size_of::<Self>();

    #[inline]
    pub fn new(kind: Kind, len: u32, served: u32, number: u32) -> Self {
        Self { kind: kind as u8, zero: [0; 3], len: len.into(), served: served.into(), number: number.into() }
    }

    /// What kind it is, if it makes sense by itself.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        let kind = Kind::of(self.kind).filter(|_| self.zero == [0; 3])?;
        let len = self.len.get() as usize;
        let bounds = match kind {
            Kind::Put | Kind::Get => 1..=MAX_TRANSFER,
            Kind::Reply => 1..=PIECE,
            Kind::Message => 0..=MAX_MESSAGE,
            Kind::Served | Kind::PutRefused | Kind::GetRefused => 0..=0,
        };
        bounds.contains(&len).then_some(kind)
    }
}

/// A place in a region of the receiver's.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Place {
    pub key: U64,
    pub offset: U64,
}

impl Place {
    /// Bytes of a place.
    pub const BYTES: usize = size_of::<Self>();
}

/// The longest that a record has before its data.
pub(crate) const LONGEST_HEAD: usize = Header::BYTES + Place::BYTES;

/// What a peer is told of a region.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Key {
    /// A random number.
    pub key: U64,
    pub len: U64,
}

/// The range of an access, checked as far as the origin can.
#[inline]
pub(crate) fn check_range(len: usize, offset: usize, bytes: usize) -> TransportResult<()> {
    if offset > len || bytes > len - offset {
        return Err(TransportError::Range { offset, bytes, len });
    }
    if bytes > MAX_TRANSFER {
        return Err(TransportError::Range { offset: 0, bytes, len: MAX_TRANSFER });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_one_meaning() {
        let header = Header::new(Kind::Put, 8, 3, 4);
        assert_eq!(header.kind(), Some(Kind::Put));
        assert_eq!(Header::BYTES + Place::BYTES, 32);
        for (kind, len) in [
            (Kind::Put, 0),
            (Kind::Get, 0),
            (Kind::Reply, 0),
            (Kind::Reply, PIECE + 1),
            (Kind::Put, MAX_TRANSFER + 1),
            (Kind::Message, MAX_MESSAGE + 1),
            (Kind::Served, 1),
            (Kind::PutRefused, 1),
            (Kind::GetRefused, 1),
        ] {
            assert_eq!(Header::new(kind, len as u32, 0, 0).kind(), None, "{kind:?} of {len} bytes");
        }
        assert_eq!(Header { kind: 0, ..header }.kind(), None);
        assert_eq!(Header { kind: 8, ..header }.kind(), None);
        assert_eq!(Header { zero: [0, 0, 1], ..header }.kind(), None);
    }

    #[test]
    fn ranges_are_checked_without_overflow() {
        assert!(check_range(8, 0, 8).is_ok() && check_range(8, 8, 0).is_ok());
        for (offset, bytes) in [(8, 1), (9, 0), (usize::MAX, 8), (0, usize::MAX), (1, 8)] {
            assert!(check_range(8, offset, bytes).is_err(), "{bytes} at {offset}");
        }
        assert!(check_range(usize::MAX, 0, MAX_TRANSFER + 1).is_err());
    }
}
