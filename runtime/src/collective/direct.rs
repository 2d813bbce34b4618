//! Blocking transfers of what one message holds: straight to and from the caller's memory, without a future between.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use transom_transport::Payload;

use super::exchange::{Exchange, Taken};
use crate::Result;
use crate::protocol::wire::Header;

/// What a peer has sent, if it was not there when it was asked for first.
pub(super) enum Arrived {
    /// So many bytes, which are in their place.
    InPlace(usize),
    Elsewhere(Taken),
}

impl Exchange<'_> {
    /// Sends `bytes` to a peer, which receives them in the same round; waits until they are under way.
    pub fn send_now(&self, peer: usize, round: usize, bytes: &[u8]) -> Result<()> {
        self.in_vain().map_or(Ok(()), Err)?;
        let to = self.channel().job_rank(peer);
        let engine = &*self.channel().engine;
        if bytes.len() <= self.room(to) {
            let (header, payload) = self.part((round, bytes.len()), 0, bytes);
            if let Some(sent) = engine.try_send(self.operation(), to, &header, payload) {
                return sent;
            }
        }
        self.block(self.send(peer, round, bytes))
    }

    /// Waits for what a peer sends in this round, or in the `other`. What comes meanwhile in one message, and fits, is copied to
    /// `place`.
    pub(super) fn receive_now(
        &self,
        (peer, round): (usize, usize),
        other: Option<usize>,
        place: &mut [u8],
    ) -> Result<Arrived> {
        if let Some(revoked) = self.revoked() {
            return Err(revoked);
        }
        self.awaits(peer, round);
        let (place, len) = (Cell::new(place), Cell::new(None));
        let takes = |header: &Header, kind, payload: Payload<'_>| {
            if len.get().is_some() || !self.is_of(peer, round, header, kind) {
                return false;
            }
            let bytes = place.take();
            let copied = Self::with_data(header, payload, |data| {
                bytes.get_mut(..data.len()).map(|bytes| data.copy_to(bytes)).map(|()| data.len())
            });
            place.set(bytes);
            len.set(copied.flatten());
            len.get().is_some()
        };
        let engine = &*self.channel().engine;
        let result = engine.wait_taking(self.operation(), &|| self.awaits_for(), takes, || {
            if let Some(len) = len.get() {
                return Some(Ok(Arrived::InPlace(len)));
            }
            let taken = if self.may_be_matched() { self.take_either(peer, round, other) } else { None };
            match taken {
                Some(taken) => Some(taken.map(Arrived::Elsewhere)),
                None => self.in_vain().map(Err),
            }
        });
        self.awaited.store(self.channel().rank, Ordering::Relaxed);
        result
    }
}
