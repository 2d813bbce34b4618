//! Makes records of puts, gets and messages, and decides when they leave.

use std::time::Duration;

use transom_transport::{Part, Posted, Remote, TransportError, TransportResult};

use crate::link::{Link, State};
use crate::output::Hold;
use crate::port::Port;
use crate::under_way::{Destination, Get};
use crate::wire::{Kind, MAX_GETS, MAX_MESSAGE, MAX_PUTS, Place, check_range};

/// Data of up to so many bytes is copied behind its header; longer data is sent from where it is.
pub(crate) const COPIED: usize = 8 << 10;
/// Records that wait no longer for company when they have so many bytes.
const TOGETHER: usize = 32 << 10;
/// The same with long data behind other puts: with one call for many the system has twice the bandwidth of a call for each.
const LONG_TOGETHER: usize = 1 << 20;
/// How long records wait for company at most where all others sleep.
const GATHERING: Duration = Duration::from_micros(50);
/// Messages to itself that may wait.
const MAX_OWN: usize = 1024;

/// When a record leaves that is the first to its peer since somebody looked for arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// Now: a peer may wait for it.
    AtOnce,
    /// With the next look, or with a record that leaves at once: whoever made it waits for its end, which takes a look.
    WithOthers,
}

/// Memory of the caller's, all of it or parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local<'a> {
    pub address: *mut u8,
    pub len: usize,
    /// Else all of it.
    pub parts: Option<&'a [Part]>,
}

impl Local<'_> {
    /// Calls `each` with address and length of each part.
    fn each(&self, mut each: impl FnMut(usize, usize)) {
        match self.parts {
            None => each(self.address as usize, self.len),
            Some(parts) => parts
                .iter()
                .filter(|part| part.len > 0)
                .for_each(|part| each((self.address as usize).wrapping_add(part.offset), part.len)),
        }
    }

    fn destination(&self) -> Destination {
        if self.parts.is_none() {
            return Destination::One { address: self.address as usize };
        }
        let mut parts = Vec::new();
        self.each(|address, len| parts.push((address, len)));
        Destination::Many { parts: parts.into(), part: 0, within: 0 }
    }
}

impl Port {
    /// A peer that may be sent something.
    #[inline]
    fn link(&mut self, peer: usize) -> TransportResult<&mut Link> {
        self.check_open()?;
        let Some(Some(link)) = self.links.get_mut(peer) else {
            return Err(TransportError::Peer { peer, reason: "not connected".into() });
        };
        match &link.state {
            State::Lost(reason) => Err(TransportError::Peer { peer, reason: reason.clone() }),
            _ => Ok(link),
        }
    }

    /// Writes bytes to a peer's region: of a copy, or from where they are.
    ///
    /// # Safety
    /// The memory is valid for reads. If it is not copied, it stays so and unchanged until the completion has been reported, or
    /// until the port is closed.
    #[inline]
    pub unsafe fn put(
        &mut self,
        (remote, offset): (&Remote, usize),
        local: Local<'_>,
        context: u64,
    ) -> TransportResult<Posted> {
        check_range(remote.len, offset, local.len)?;
        if remote.peer == self.rank {
            // SAFETY: the caller's promise.
            return unsafe { self.access_own(true, (remote, offset), local) };
        }
        let link = self.link(remote.peer)?;
        if local.len == 0 {
            return Ok(Posted::Complete);
        }
        if link.puts.len() >= MAX_PUTS || !link.has_room() {
            return Ok(Posted::Again);
        }
        link.begin(Kind::Put, local.len);
        link.output.push(&place(remote, offset));
        local.each(|address, len| {
            if local.len > COPIED {
                link.output.push_long(address, len, Hold::Caller);
            } else {
                // SAFETY: valid for reads, and not written to meanwhile: the caller's promise.
                link.output.push(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
            }
        });
        link.puts.push(context);
        self.posted(remote.peer, if local.len > COPIED { local.len } else { 0 }, Leaves::WithOthers);
        Ok(Posted::Pending)
    }

    /// Reads bytes of a peer's region.
    ///
    /// # Safety
    /// The memory is valid for writes and not accessed until the completion has been reported, or until the port is closed.
    #[inline]
    pub unsafe fn get(
        &mut self,
        (remote, offset): (&Remote, usize),
        local: Local<'_>,
        context: u64,
    ) -> TransportResult<Posted> {
        check_range(remote.len, offset, local.len)?;
        if remote.peer == self.rank {
            // SAFETY: the caller's promise.
            return unsafe { self.access_own(false, (remote, offset), local) };
        }
        let link = self.link(remote.peer)?;
        if local.len == 0 {
            return Ok(Posted::Complete);
        }
        if link.gets.len() >= MAX_GETS || !link.has_room() {
            return Ok(Posted::Again);
        }
        link.begin(Kind::Get, local.len);
        link.output.push(&place(remote, offset));
        link.gets.push_back(Get { context, to: local.destination(), left: local.len });
        self.posted(remote.peer, 0, Leaves::WithOthers);
        Ok(Posted::Pending)
    }

    /// A put or get of this rank's own region: a copy.
    ///
    /// # Safety
    /// The memory is valid, for reads or writes.
    unsafe fn access_own(
        &self,
        write: bool,
        (remote, offset): (&Remote, usize),
        local: Local<'_>,
    ) -> TransportResult<Posted> {
        self.check_open()?;
        if local.len == 0 {
            return Ok(Posted::Complete);
        }
        let Some((region, mut at)) =
            self.regions.find(remote.key, remote.base.wrapping_add(offset as u64), local.len)
        else {
            return Err(TransportError::Peer { peer: self.rank, reason: "no such region of its own".into() });
        };
        let mut result = Ok(());
        local.each(|address, len| {
            // SAFETY: the caller's promise; that memory and the region may overlap, as far as both are this process's, is a race
            // that MPI leaves undefined in value: the span's copies are of raw memory.
            let copied = unsafe {
                if write {
                    region.copy_in(at, std::slice::from_raw_parts(address as *const u8, len))
                } else {
                    region.copy_out(at, std::slice::from_raw_parts_mut(address as *mut u8, len))
                }
            };
            at += len;
            result = result.clone().and(copied);
        });
        result.map(|()| Posted::Complete)
    }

    /// Sends a message.
    #[inline]
    pub fn send(
        &mut self,
        peer: usize,
        (header, payload): (&[u8], &[u8]),
        leaves: Leaves,
    ) -> TransportResult<Posted> {
        let len = header.len() + payload.len();
        if len > MAX_MESSAGE {
            return Err(TransportError::Range { offset: 0, bytes: len, len: MAX_MESSAGE });
        }
        let own = peer == self.rank;
        let link = self.link(peer)?;
        if own {
            return Ok(self.send_own([header, payload].concat()));
        }
        if !link.has_room() {
            return Ok(Posted::Again);
        }
        link.begin(Kind::Message, len);
        link.output.push(header);
        if payload.len() > COPIED {
            link.push_through(payload);
        } else {
            link.output.push(payload);
        }
        self.posted(peer, 0, leaves);
        Ok(Posted::Complete)
    }

    /// Sends messages to a peer, long ones with one call: how many were taken.
    pub fn send_all(&mut self, peer: usize, messages: &[(&[u8], &[u8])]) -> TransportResult<usize> {
        let mut lengths = messages.iter().map(|(header, payload)| header.len() + payload.len());
        let are_long = messages.len() > 1 && lengths.all(|len| (COPIED..=MAX_MESSAGE).contains(&len));
        let is_ready = matches!(self.link(peer)?.state, State::Ready(_));
        if !is_ready || !are_long || self.is_handing_out {
            return self.send_each(peer, messages);
        }
        if !self.flush(peer) {
            self.list(peer);
            return Ok(0);
        }
        let link = self.link(peer)?;
        let begun = match link.send_messages(messages) {
            Ok(begun) => begun,
            Err(broken) => {
                link.stop_sending(broken);
                messages.len()
            }
        };
        // Of who sleeps it has the socket watched for room.
        if link.has_output() && !self.flush(peer) {
            self.list(peer);
        }
        Ok(begun)
    }

    fn send_each(&mut self, peer: usize, messages: &[(&[u8], &[u8])]) -> TransportResult<usize> {
        for (sent, message) in messages.iter().enumerate() {
            if self.send(peer, *message, Leaves::AtOnce)? == Posted::Again {
                return Ok(sent);
            }
        }
        Ok(messages.len())
    }

    fn send_own(&mut self, message: Vec<u8>) -> Posted {
        if self.own.len() >= MAX_OWN {
            return Posted::Again;
        }
        self.own.push_back(message);
        if self.is_armed {
            self.wait.wake_in(Duration::ZERO);
        }
        Posted::Complete
    }

    /// A record was made, with `long` bytes that are sent from where they are: it leaves at once, or waits for company. Where all
    /// others sleep there may be none, so that the first leaves anyhow.
    #[inline]
    fn posted(&mut self, peer: usize, long: usize, leaves: Leaves) {
        let Some(link) = self.links[peer].as_deref_mut() else { return };
        match &link.state {
            State::Ready(_) => {}
            State::Unconnected => return self.dial(peer),
            _ => return,
        }
        // It may be the last before the process ends: a peer may wait for it, and nobody looks any more.
        let wanted = leaves == Leaves::AtOnce || (self.is_armed && link.sent_at != self.looks);
        let first = wanted && !self.is_handing_out;
        // Of a long put that is alone nothing is gained by waiting.
        let alone = if link.puts.len() == 1 { long } else { 0 };
        let enough = link.output.buffered() + alone >= TOGETHER || link.output.waiting() >= LONG_TOGETHER;
        if first || enough {
            if !self.flush(peer) {
                self.list(peer);
            }
            return;
        }
        if !link.is_listed {
            link.is_listed = true;
            self.listed.push(peer);
            if self.is_armed {
                self.wait.wake_in(GATHERING);
            }
        }
    }
}

#[inline]
fn place(remote: &Remote, offset: usize) -> Place {
    Place { key: remote.key.into(), offset: remote.base.wrapping_add(offset as u64).into() }
}
