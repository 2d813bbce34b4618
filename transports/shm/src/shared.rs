//! Memory that processes of one host map, whatever carries their messages and transfers.

use transom_transport::{Span, TransportError, TransportResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::address::{Key, NO_FILE};
use crate::host::Place;
use crate::peer::Files;
use crate::{attach, file};

/// Where the memory is.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Card {
    place: Place,
    key: Key,
}

/// Makes zeroed memory in a file, and the card by which other processes [`map`](map_shared) it as long as this one keeps it.
///
/// # Errors
/// There is no memory; the system has no memory files.
pub fn allocate_shared(bytes: usize) -> TransportResult<(Span, Vec<u8>)> {
    let mut key = Key { pid: std::process::id(), file: NO_FILE, inode: 0, start: 0, len: bytes as u64 };
    let memory = if bytes == 0 { Span::empty() } else { file::create("transom-window", bytes)? };
    if let Some((fd, start)) = memory.file() {
        key = Key { file: file::descriptor(&fd), inode: file::inode(fd)?, start: start as u64, ..key };
    }
    attach::permit();
    Ok((memory, Card { place: Place::here(), key }.as_bytes().to_vec()))
}

/// Maps memory of another process of this host's. `peer`: whose it is, for errors.
///
/// # Errors
/// The process is on another host, of another user, or gone; there is no room for the mapping.
pub fn map_shared(peer: usize, card: &[u8]) -> TransportResult<Span> {
    let Ok(Card { place, key }) = Card::read_from_bytes(card) else {
        return Err(TransportError::Malformed { peer, what: "card of shared memory" });
    };
    if !Place::here().may_share(&place) {
        return Err(TransportError::Peer { peer, reason: "it is on another host".into() });
    }
    key.map(peer, &Files::Proc)
}
