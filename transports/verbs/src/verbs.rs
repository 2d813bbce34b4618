//! One rank's use of verbs: what is behind the lock, and what is not.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use parking_lot::Mutex;
use transom_transport::{Capabilities, Completion, Event, Moves, TransportResult, WaitFd};
use zerocopy::IntoBytes;

use crate::Options;
use crate::connect::Connector;
use crate::device::Device;
use crate::poll::Found;
use crate::pool::Pool;
use crate::port::{BATCH, Port};
use crate::posting::COPIED;
use crate::setup::{self, MAX_MESSAGE};
use crate::wire::Address;

/// How long a transport that is dropped goes on with messages that it has accepted.
const LINGER: Duration = Duration::from_millis(500);

/// Verbs, as one rank uses them.
#[derive(Debug)]
pub struct Verbs {
    pub(crate) shared: Arc<Shared>,
    pub(crate) address: Address,
    pub(crate) capabilities: Capabilities,
    pub(crate) wait_fd: WaitFd,
    /// What progress hands out, of one thread at a time.
    pub(crate) taken: Mutex<Vec<Found>>,
}

/// What regions refer to as well.
pub(crate) struct Shared {
    pub port: Mutex<Port>,
    /// The port's, for messages that are handed out without its lock.
    pub inbox: Arc<Pool>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Verbs {
    /// The transport of one rank.
    ///
    /// # Errors
    /// There is no device that can be used, or no room in it: says which, why, and what to do.
    pub fn new(options: &Options) -> TransportResult<Self> {
        let device = Device::choose(options.device.as_deref(), options.rank)?;
        let atomics = crate::report::scope(device.attributes.atomics);
        let provider = format!("device {}, firmware {}", device.context.name(), device.attributes.firmware);
        let port = setup::open(options, device)?;
        let device = &port.device;
        let (gid, number) = match &port.connector {
            Some(Connector::Datagrams(datagrams)) => {
                (device.gid.bytes, (datagrams.queue_pair.number(), datagrams.queue_key))
            }
            Some(Connector::Manager(manager)) => {
                let (ip, at) = manager.address();
                (ip, (at.into(), 0))
            }
            None => return Err(crate::device::unavailable("closed".into())),
        };
        let managed = matches!(port.connector, Some(Connector::Manager(_)));
        let address =
            Address::new(port.secret, gid, number, device.lid, device.network, device.mtu as u8, managed);
        Ok(Self {
            address,
            capabilities: Capabilities {
                max_message: MAX_MESSAGE,
                max_transfer: port.max_transfer(),
                rma: true,
                immediate: false,
                registration_is_free: false,
                moves: Some(Moves {
                    inline: port.bounds.inline as usize,
                    copied: COPIED,
                    lists: port.lists(),
                }),
                copied_put: port.bounds.copied,
                ordered: false,
                atomics,
                provider,
            },
            wait_fd: port.wait.fd(),
            taken: Mutex::default(),
            shared: Arc::new(Shared { inbox: port.inbox.clone(), port: Mutex::new(port) }),
        })
    }

    /// The bytes that peers are given.
    pub(crate) fn address_bytes(&self) -> Vec<u8> {
        self.address.as_bytes().to_vec()
    }

    /// Hands out what was found; returns how much it was.
    #[inline(never)]
    pub(crate) fn hand_out(
        &self,
        taken: &mut Vec<Found>,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> TransportResult<usize> {
        let count = taken.len();
        let mut buffers = ArrayVec::<u32, BATCH>::new();
        let mut given = Ok(());
        for event in taken.drain(..) {
            match event {
                Found::Complete { context, value } => {
                    sink(Event::Complete(Completion { context, value, result: Ok(()) }));
                }
                Found::Message { buffer, len } => {
                    // SAFETY: the device gave the buffer back, and gets it again in `give_back` only.
                    sink(Event::Message(unsafe { self.shared.inbox.bytes(buffer, len) }));
                    buffers.push(buffer);
                    if buffers.is_full() {
                        given = given.and(self.give_back(&buffers));
                        buffers.clear();
                    }
                }
                Found::Failed { context, error } => {
                    sink(Event::Complete(Completion { context, value: 0, result: Err(*error) }));
                }
            }
        }
        if !buffers.is_empty() {
            given = given.and(self.give_back(&buffers));
        }
        given.map(|()| count)
    }

    /// Gives back the buffers of messages that were handed out.
    fn give_back(&self, buffers: &[u32]) -> TransportResult<()> {
        let mut port = self.shared.port.lock();
        buffers.iter().try_for_each(|buffer| port.receive_into(*buffer))
    }
}

impl Drop for Verbs {
    fn drop(&mut self) {
        let start = Instant::now();
        while start.elapsed() < LINGER {
            let mut port = self.shared.port.lock();
            let polled = port.poll();
            port.found.clear();
            let busy = port.links.iter().flatten().any(|link| !link.works.is_empty());
            if polled.is_err() || !busy {
                break;
            }
        }
        self.shared.port.lock().close();
    }
}
