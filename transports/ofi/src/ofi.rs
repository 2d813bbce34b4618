//! One rank's use of libfabric: what is behind the lock, and what is not.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::{
    AtomicScope, Capabilities, Posted, Transfer, TransportError, TransportResult, WaitFd,
};

use crate::buffers::Buffers;
use crate::port::Port;
use crate::posting::Access;
use crate::progress::Found;
use crate::wire;
use crate::{Options, provider, setup};

/// Most bytes of one put or get. What a peer's provider has dropped is found out by how long nothing ends there, and even that many
/// bytes must come through in the time.
const MAX_TRANSFER: usize = 64 << 20;
/// How long a transport that is dropped goes on with messages that it has accepted.
const LINGER: Duration = Duration::from_millis(500);

/// libfabric, as one rank uses it.
#[derive(Debug)]
pub struct Ofi {
    pub(crate) shared: Arc<Shared>,
    pub(crate) provider: String,
    pub(crate) address: Vec<u8>,
    pub(crate) capabilities: Capabilities,
    pub(crate) wait_fd: WaitFd,
}

/// What regions refer to as well.
pub(crate) struct Shared {
    pub port: Mutex<Port>,
    /// The port's, for messages that are handed out without its lock.
    pub inbox: Arc<Buffers>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Ofi {
    /// The transport of one rank.
    pub fn new(options: Options) -> TransportResult<Self> {
        let info = setup::find(&options)?;
        let port = setup::open(&info, &options)?;
        let name = port
            .endpoint()?
            .name()
            .map_err(|e| TransportError::System { operation: "fi_getname", reason: e.to_string() })?;
        Ok(Self {
            address: wire::encode_address(&info.provider(), &name)?,
            capabilities: Capabilities {
                max_message: setup::max_message(&info),
                max_transfer: MAX_TRANSFER.min(info.max_message_size()),
                rma: true,
                immediate: false,
                registration_is_free: provider::registration_is_free(&info.provider()),
                moves: None,
                copied_put: 0,
                ordered: false,
                atomics: AtomicScope::None,
                provider: format!("{}, {}", info.provider(), provider::version(info.library())),
            },
            provider: info.provider(),
            wait_fd: port.wait.fd(),
            shared: Arc::new(Shared { inbox: port.inbox.buffers.clone(), port: Mutex::new(port) }),
        })
    }

    /// Checks and posts a put or a get.
    ///
    /// # Safety
    /// The local buffer is the provider's until the completion, or until the port is closed.
    pub(crate) unsafe fn access(&self, write: bool, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        let Transfer { remote, offset, local, len, context } = *transfer;
        if offset > remote.len || len > remote.len - offset {
            return Err(TransportError::Range { offset, bytes: len, len: remote.len });
        }
        if len > self.capabilities.max_transfer {
            return Err(TransportError::Range { offset: 0, bytes: len, len: self.capabilities.max_transfer });
        }
        if len == 0 {
            return Ok(Posted::Complete);
        }
        let address = remote.base.wrapping_add(offset as u64);
        let place = libfabric::Remote { address, key: remote.key };
        let access = Access { write, peer: remote.peer, remote: place, local, len, context };
        // SAFETY: the caller's promise.
        let taken = unsafe { self.shared.port.lock().access(&access)? };
        Ok(if taken { Posted::Pending } else { Posted::Again })
    }

    /// Reads the completion queue; `None` if that brought nothing for the caller.
    pub(crate) fn poll(&self) -> TransportResult<Option<Vec<Found>>> {
        let mut port = self.shared.port.lock();
        port.poll()?;
        if let Some(error) = port.unreachable.take() {
            return Err(error);
        }
        if port.found.is_empty() {
            return Ok(None);
        }
        port.wait.found();
        Ok(Some(std::mem::take(&mut port.found)))
    }

    /// Gives back the buffers of messages that were handed out, and the list.
    pub(crate) fn give_back(&self, mut found: Vec<Found>) -> TransportResult<()> {
        let mut port = self.shared.port.lock();
        for event in found.drain(..) {
            if let Found::Message { buffer, .. } = event
                && port.endpoint.is_some()
            {
                port.receive_into(buffer)?;
            }
        }
        if port.found.is_empty() {
            port.found = found;
        }
        Ok(())
    }
}

impl Drop for Ofi {
    fn drop(&mut self) {
        let start = Instant::now();
        while start.elapsed() < LINGER {
            let mut port = self.shared.port.lock();
            let polled = port.poll();
            port.found.clear();
            if polled.is_err() || port.outbox.peers.iter().all(Option::is_none) {
                break;
            }
        }
        self.shared.port.lock().close();
    }
}
