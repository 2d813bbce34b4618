//! The seam's methods.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use transom_transport::{
    Armed, Capabilities, Event, ListTransfer, Part, Posted, Region, RegionKey, Remote, Span, Transfer,
    Transport, TransportError, TransportResult, WaitFd,
};
use zerocopy::FromBytes;

use crate::card::Card;
use crate::link::Link;
use crate::posting::{COPIED, Leaves, Local};
use crate::region::TcpRegion;
use crate::tcp::{LIST_BYTES, PARTS};
use crate::wire::Key;
use crate::{NAME, Tcp};

impl Transport for Tcp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        self.card()
    }

    fn reaches(&self, address: &[u8]) -> bool {
        Card::decode(address).is_some()
    }

    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()> {
        let card = Card::decode(address).ok_or(TransportError::Malformed { peer, what: "tcp address" })?;
        let mut port = self.shared.port.lock();
        port.check_open()?;
        let slot = port.links.get_mut(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        *slot = Some(Box::new(Link::new(card)));
        Ok(())
    }

    fn allocate(&self, _bytes: usize) -> TransportResult<Option<Span>> {
        Ok(None)
    }

    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>> {
        let mut port = self.shared.port.lock();
        port.check_open()?;
        let key = port.regions.insert(memory)?;
        let key = Key { key: key.into(), len: (memory.len() as u64).into() };
        Ok(Box::new(TcpRegion { key, shared: Arc::downgrade(&self.shared) }))
    }

    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote> {
        let malformed = TransportError::Malformed { peer, what: "tcp region key" };
        let Ok(key) = Key::read_from_bytes(&key.0) else { return Err(malformed) };
        let Ok(len) = usize::try_from(key.len.get()) else { return Err(malformed) };
        Ok(Remote { peer, len, direct: None, base: 0, key: key.key.get() })
    }

    #[inline]
    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        let local = Local { address: transfer.local, len: transfer.len, parts: None };
        let place = (transfer.remote, transfer.offset);
        // SAFETY: the promise of this method's caller.
        unsafe { self.shared.port.lock().put(place, local, transfer.context) }
    }

    #[inline]
    fn put_copy(
        &self,
        remote: &Remote,
        offset: usize,
        bytes: &[u8],
        context: u64,
    ) -> TransportResult<Posted> {
        if bytes.len() > COPIED {
            return Err(TransportError::Range { offset: 0, bytes: bytes.len(), len: COPIED });
        }
        let local = Local { address: bytes.as_ptr().cast_mut(), len: bytes.len(), parts: None };
        // SAFETY: a slice, which is copied; a put reads only.
        unsafe { self.shared.port.lock().put((remote, offset), local, context) }
    }

    #[inline]
    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        let local = Local { address: transfer.local, len: transfer.len, parts: None };
        let place = (transfer.remote, transfer.offset);
        // SAFETY: the promise of this method's caller.
        unsafe { self.shared.port.lock().get(place, local, transfer.context) }
    }

    unsafe fn put_list(&self, transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        let local = Self::list(transfer)?;
        let place = (transfer.remote, transfer.offset);
        // SAFETY: the promise of this method's caller.
        unsafe { self.shared.port.lock().put(place, local, transfer.context) }
    }

    unsafe fn get_list(&self, transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        let local = Self::list(transfer)?;
        let place = (transfer.remote, transfer.offset);
        // SAFETY: the promise of this method's caller.
        unsafe { self.shared.port.lock().get(place, local, transfer.context) }
    }

    #[inline]
    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.shared.port.lock().send(peer, (header, payload), Leaves::AtOnce)
    }

    #[inline]
    fn message_gathered(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.shared.port.lock().send(peer, (header, payload), Leaves::WithOthers)
    }

    fn messages(&self, peer: usize, messages: &[(&[u8], &[u8])]) -> TransportResult<usize> {
        self.shared.port.lock().send_all(peer, messages)
    }

    #[inline]
    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        self.look(sink)
    }

    fn begin_to_leave(&self) {
        self.shared.port.lock().leaves = true;
    }

    fn is_sent(&self) -> bool {
        self.shared.port.lock().is_sent()
    }

    fn distrust(&self) {
        self.shared.port.lock().is_distrusted = true;
    }

    fn abandon(&self) {
        self.shared.port.lock().close();
    }

    fn wait_fd(&self) -> WaitFd {
        self.wait_fd
    }

    fn arm(&self) -> TransportResult<Armed> {
        let mut port = self.shared.port.lock();
        port.check_open()?;
        self.shared.woken.store(0, Ordering::Relaxed);
        // From here on, who posts makes sure that it leaves, or wakes the sleeper.
        port.is_armed = true;
        port.looks += 1;
        port.attach_all();
        port.flush_listed();
        port.watch_time();
        let ready = !port.ended.is_empty() || !port.own.is_empty() || port.tells_unreachable();
        // What has come and was not received makes the descriptor readable by itself.
        Ok(if ready { Armed::Ready } else { Armed::Sleep })
    }

    fn disarm(&self, readable: bool) {
        self.shared.disarm(readable);
    }
}

impl Tcp {
    /// The parts of a list, if one transfer takes them.
    fn list<'a>(transfer: &ListTransfer<'a>) -> TransportResult<Local<'a>> {
        let (len, _) = Part::measure(transfer.parts);
        if len > COPIED && (transfer.parts.len() > PARTS || len > LIST_BYTES) {
            return Err(TransportError::Range { offset: 0, bytes: len, len: LIST_BYTES });
        }
        Ok(Local { address: transfer.local, len, parts: Some(transfer.parts) })
    }
}
