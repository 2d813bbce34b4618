//! Receives from a peer: data of a record straight to its place, all else to a buffer.

use arrayvec::ArrayVec;

use crate::input::{Inbox, Incoming};
use crate::link::{Broken, Link, State};
use crate::parse::Reader;
use crate::region::Regions;
use crate::socket::{self, Parts};

/// Of data of which so many bytes lack or more, these are received straight to their place.
const DIRECT: usize = 4 << 10;
/// Bytes that are received to the buffer where long data may follow.
const SHORT: usize = 4 << 10;
/// Calls and bytes for one peer before others have their turn.
const CALLS: usize = 16;
const TURN: usize = 4 << 20;

impl Link {
    /// Receives what has come, and carries it out as far as it is no message. Whether there was something; an error: the
    /// connection has ended.
    #[inline]
    pub fn receive(&mut self, peer: usize, regions: &Regions, inbox: &mut Inbox) -> Result<bool, Broken> {
        let mut total = 0;
        for _ in 0..CALLS {
            let (received, wanted) = self.receive_some(peer, regions, inbox)?;
            total += received;
            // What messages are in must not be overwritten.
            if received < wanted || total >= TURN || !inbox.found.messages.is_empty() {
                break;
            }
        }
        Ok(total > 0)
    }

    /// One call: bytes received, of how many that there was room for.
    #[inline]
    fn receive_some(
        &mut self,
        peer: usize,
        regions: &Regions,
        inbox: &mut Inbox,
    ) -> Result<(usize, usize), Broken> {
        let stashed = self.input.stash.len();
        let mut parts: Parts = ArrayVec::new_const();
        let left = self.input.incoming.left();
        let direct = if left >= DIRECT { self.destination(&mut parts) } else { 0 };
        let room = match (direct, self.input.is_long) {
            (0, false) => inbox.buffer.len() - stashed,
            (0, true) => SHORT,
            // Else what is behind would be received before it.
            _ if direct == left => SHORT,
            _ => 0,
        };
        let State::Ready(socket) = &self.state else { return Ok((0, 1)) };
        inbox.buffer[..stashed].copy_from_slice(&self.input.stash);
        let buffer = &mut inbox.buffer[stashed..stashed + room];
        let received = if direct == 0 {
            socket.receive_into(buffer)
        } else {
            if room > 0 {
                parts.push(socket::part(buffer.as_mut_ptr() as usize, room));
            }
            // SAFETY: the parts are the buffer, which is ours; a region, which is exposed as long as it is held (`release`);
            // the destination of a get, whose completion has not been reported; or bytes of ours.
            unsafe { socket.receive_parts(&mut parts) }
        };
        let received = match received {
            Ok(None) => return Ok((0, 1)),
            Ok(Some(0)) => return Err(Broken::by_peer("it has ended the connection")),
            Ok(Some(received)) => received,
            Err(error) => return Err(socket.failed(&error)),
        };
        self.input.stash.clear();
        let placed = received.min(direct);
        if placed > 0
            && let Incoming::Reply { .. } = self.input.incoming
            && let Some(get) = self.gets.front_mut()
        {
            get.to.advance(placed);
        }
        let Inbox { buffer, found, .. } = inbox;
        let mut reader = Reader { peer, link: self, regions, found };
        if placed > 0 {
            reader.arrived(placed).map_err(Broken::by_peer)?;
        }
        reader.parse(buffer, 0..stashed + received - placed).map_err(Broken::by_peer)?;
        Ok((received, direct + room))
    }

    /// Where the data of the record that is being received belongs: how many bytes of it.
    fn destination(&mut self, parts: &mut Parts) -> usize {
        match &mut self.input.incoming {
            Incoming::Head | Incoming::Refused { .. } => 0,
            Incoming::Put { region, at, left } => {
                parts.push(socket::part(region.address() + *at, *left));
                *left
            }
            Incoming::Reply { left } => self.gets.front().map_or(0, |get| get.to.next(*left, parts)),
            Incoming::Message { bytes, left } => {
                let at = bytes.len() - *left;
                parts.push(socket::part(bytes[at..].as_mut_ptr() as usize, *left));
                *left
            }
        }
    }
}
