//! The seam's methods.

use transom_transport::{
    Armed, Capabilities, Completion, Event, ListTransfer, NativeAtomic, Posted, Region, RegionKey, Remote,
    Span, Transfer, Transport, TransportError, TransportResult, WaitFd,
};
use zerocopy::FromBytes;

use crate::link::Link;
use crate::poll::{Found, unreadable};
use crate::port::Port;
use crate::posting::Access;
use crate::region::VerbsRegion;
use crate::wire::{Address, Key};
use crate::{NAME, Verbs};

impl Transport for Verbs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        self.address_bytes()
    }

    fn reaches(&self, address: &[u8]) -> bool {
        Address::parse(address).is_some_and(|address| self.address.obstacle(&address).is_none())
    }

    fn connect(&self, peer: usize, address: &[u8]) -> TransportResult<()> {
        let Some(address) = Address::parse(address) else {
            return Err(TransportError::Malformed { peer, what: "verbs address" });
        };
        if let Some(obstacle) = self.address.obstacle(&address) {
            return Err(TransportError::Peer { peer, reason: obstacle.into() });
        }
        let mut port = self.shared.port.lock();
        port.check_open()?;
        let slot = port.links.get_mut(peer).ok_or(TransportError::Malformed { peer, what: "rank" })?;
        *slot = Some(Box::new(Link::new(address)));
        Ok(())
    }

    fn allocate(&self, _bytes: usize) -> TransportResult<Option<Span>> {
        Ok(None)
    }

    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>> {
        Ok(Box::new(VerbsRegion::new(&self.shared, memory)?))
    }

    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote> {
        let malformed = TransportError::Malformed { peer, what: "verbs region key" };
        let Ok(key) = Key::read_from_bytes(&key.0) else { return Err(malformed) };
        let Ok(len) = usize::try_from(key.len) else { return Err(malformed) };
        if key.base.checked_add(key.len).is_none() || u32::try_from(key.key).is_err() {
            return Err(malformed);
        }
        Ok(Remote { peer, len, direct: None, base: key.base, key: key.key })
    }

    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: the promise of this method's caller is that of `access`.
        unsafe { self.shared.port.lock().access(Access { write: true, transfer: *transfer }) }
    }

    fn put_copy(
        &self,
        remote: &Remote,
        offset: usize,
        bytes: &[u8],
        context: u64,
    ) -> TransportResult<Posted> {
        let (local, len) = (bytes.as_ptr().cast_mut(), bytes.len());
        let transfer = Transfer { remote, offset, local, len, context };
        self.shared.port.lock().copy_access(Access { write: true, transfer })
    }

    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        // SAFETY: as in `put`.
        unsafe { self.shared.port.lock().access(Access { write: false, transfer: *transfer }) }
    }

    unsafe fn put_list(&self, transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        // SAFETY: the promise of this method's caller is that of `list`.
        unsafe { self.shared.port.lock().list(&Access { write: true, transfer: *transfer }) }
    }

    unsafe fn get_list(&self, transfer: &ListTransfer<'_>) -> TransportResult<Posted> {
        // SAFETY: as in `put_list`.
        unsafe { self.shared.port.lock().list(&Access { write: false, transfer: *transfer }) }
    }

    fn atomic(
        &self,
        remote: &Remote,
        offset: usize,
        operation: NativeAtomic,
        context: u64,
    ) -> TransportResult<Posted> {
        self.shared.port.lock().atomic(remote, offset, operation, context)
    }

    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        self.shared.port.lock().send(peer, header, payload)
    }

    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        // Another thread is at it.
        let Some(mut taken) = self.taken.try_lock() else { return Ok(0) };
        let mut port = self.shared.port.lock();
        let calm = port.is_calm();
        let count = port.look()?;
        if count == 1
            && calm
            && let Some((context, value)) = port.take_alone()
        {
            drop(port);
            sink(Event::Complete(Completion { context, value, result: Ok(()) }));
            return Ok(1);
        }
        port.take_completions(count)?;
        if port.found.is_empty() {
            return Ok(0);
        }
        std::mem::swap(&mut *taken, &mut port.found);
        drop(port);
        self.hand_out(&mut taken, sink)
    }

    fn progress_one(&self) -> TransportResult<Option<(u64, u64)>> {
        let mut port = self.shared.port.lock();
        if !port.is_calm() {
            return Ok(None);
        }
        let Port { queue, entries, .. } = &mut *port;
        let count = match queue.poll(&mut entries[..]) {
            Ok(0) => return Ok(None),
            Ok(count) => count,
            Err(error) => return Err(unreadable(&error)),
        };
        if count == 1
            && let Some(ended) = port.take_alone()
        {
            return Ok(Some(ended));
        }
        port.take_completions(count).map(|_| None)
    }

    fn try_idle(&self, lost: &mut Vec<(usize, String)>) {
        self.shared.port.lock().try_idle(lost);
    }

    fn forget(&self, peers: &[usize]) {
        let mut port = self.shared.port.lock();
        peers.iter().for_each(|peer| port.lose(*peer, "its process has ended"));
    }

    /// The device repeats nothing for a queue pair that is gone.
    fn delivers_after_the_end(&self) -> bool {
        false
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
        port.watch(true);
        // Asked for before the last look: what comes after that makes an event (ibv_get_cq_event(3)).
        port.wait.arm(&port.queue)?;
        let until = port.poll()?;
        if !port.found.is_empty() {
            return Ok(Armed::Ready);
        }
        if let Some(until) = until {
            port.wait.arm(&port.queue)?;
            port.wait.wake_at(until)?;
        }
        Ok(Armed::Sleep)
    }

    fn arm_for_messages(&self) -> TransportResult<Option<Armed>> {
        let mut port = self.shared.port.lock();
        port.check_open()?;
        port.watch(true);
        port.wait.arm_for_messages(&port.queue)?;
        let until = port.poll()?;
        if port.found.iter().any(|event| matches!(event, Found::Message { .. })) {
            return Ok(Some(Armed::Ready));
        }
        // Connections and posts that wait go on when operations end.
        Ok((until.is_none() && port.dirty.is_empty()).then_some(Armed::Sleep))
    }

    fn disarm(&self, readable: bool) {
        let mut port = self.shared.port.lock();
        port.wait.disarm();
        if readable && port.wait.take_device_events().is_some() {
            for peer in 0..port.links.len() {
                port.lose(peer, "the RDMA device is gone");
            }
        }
    }
}
