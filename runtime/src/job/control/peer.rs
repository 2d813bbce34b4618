//! A peer's control block, as this rank maps it: its beginning at once, the lines of further windows when they are signalled.

use std::sync::OnceLock;

use transom_transport::{RegionKey, Remote, Span, TransportError, TransportResult, limits};

use super::{LEAST, SIGNAL_TABLES, SLOTS, TABLE_BYTES};
use crate::engine::Routes;

/// Windows whose lines are mapped at once: a mebibyte.
const AT_ONCE: usize = 256;
const PART: usize = AT_ONCE * TABLE_BYTES;

#[derive(Debug)]
pub(super) struct PeerBlock {
    peer: usize,
    /// With the lines of the first windows, or fewer, if the peer has no more or the system refuses more.
    beginning: Remote,
    /// The lines of all windows, in parts; made with the first window whose lines are not in the beginning.
    parts: OnceLock<Box<[OnceLock<Option<Remote>>]>>,
}

impl PeerBlock {
    /// Maps the beginning; at most `most` bytes of it.
    pub fn attach(routes: &Routes, peer: usize, key: &RegionKey, most: usize) -> TransportResult<Self> {
        let transport = routes.to(peer);
        let beginning = limits::as_much(most.min(SIGNAL_TABLES + PART), LEAST, |bytes| {
            match transport.attach_part(peer, key, 0, bytes) {
                // The peer has fewer lines than this rank.
                Err(TransportError::Range { .. }) => transport.attach(peer, key),
                attached => attached,
            }
        })?;
        Ok(Self { peer, beginning, parts: OnceLock::new() })
    }

    /// All but lines; none where memory is not shared.
    pub fn memory(&self) -> Option<&Span> {
        self.beginning.direct.as_ref()
    }

    /// The memory that holds `bytes` bytes of a line at `at`, and where in it; none if it cannot be mapped.
    pub fn line(&self, routes: &Routes, key: &RegionKey, at: usize, bytes: usize) -> Option<(&Span, usize)> {
        let beginning = self.memory()?;
        if at + bytes <= beginning.len() {
            return Some((beginning, at));
        }
        let parts = self.parts.get_or_init(|| (0..SLOTS / AT_ONCE).map(|_| OnceLock::new()).collect());
        let (index, offset) = ((at - SIGNAL_TABLES) / PART, (at - SIGNAL_TABLES) % PART);
        // The peer may have no such part, or the system no room for it.
        let attach =
            || routes.to(self.peer).attach_part(self.peer, key, SIGNAL_TABLES + index * PART, PART).ok();
        let part = parts.get(index)?.get_or_init(attach).as_ref()?;
        Some((part.direct.as_ref()?, offset))
    }
}
