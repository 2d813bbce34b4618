//! One rank's use of TCP: what is behind the lock, and what is not.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::{
    AtomicScope, Capabilities, Event, Lists, Moves, TransportError, TransportResult, WaitFd,
};

use crate::card::{Card, Machine, Secret};
use crate::handshake::Nonces;
use crate::listen::listen;
use crate::port::Port;
use crate::posting::COPIED;
use crate::wire::{MAX_MESSAGE, MAX_TRANSFER};
use crate::{Options, interface};

/// How long a transport that is dropped waits for peers' hosts to have what was sent; and for what it has accepted to be sent, if
/// there are doubts whether that can be: else as long as it may take to connect.
const LINGER: Duration = Duration::from_millis(500);
/// Between two looks of one that has waited for so long already.
const PAUSE: Duration = Duration::from_millis(1);
/// Parts of a list: what one call takes, with the header before them and the record behind.
pub(crate) const PARTS: usize = 32;
/// Bytes of a list with so many parts that they are not copied.
pub(crate) const LIST_BYTES: usize = 4 << 20;

/// TCP, as one rank uses it.
pub struct Tcp {
    pub(crate) shared: Arc<Shared>,
    card: Vec<u8>,
    pub(crate) capabilities: Capabilities,
    pub(crate) wait_fd: WaitFd,
}

/// What regions refer to as well.
#[derive(Debug)]
pub(crate) struct Shared {
    pub port: Mutex<Port>,
    /// Who slept is awake, and could not say so to the port: who looks next does.
    pub woken: AtomicU8,
}

/// Values of `woken`.
const WOKEN: u8 = 1;
const WOKEN_READABLE: u8 = 2;

impl Shared {
    /// The sleeper is awake. Who is at the port meanwhile is not waited for: on one core that one may be waiting for this thread.
    pub fn disarm(&self, readable: bool) {
        match self.port.try_lock() {
            Some(mut port) => port.disarm(readable),
            None => self.woken.store(if readable { WOKEN_READABLE } else { WOKEN }, Ordering::Relaxed),
        }
    }

    #[cold]
    fn disarm_late(&self, port: &mut Port) {
        port.disarm(self.woken.swap(0, Ordering::Relaxed) == WOKEN_READABLE);
    }
}

impl fmt::Debug for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tcp").field("provider", &self.capabilities.provider).finish_non_exhaustive()
    }
}

fn secret() -> TransportResult<Secret> {
    let mut secret = Secret([0; 32]);
    getrandom::fill(&mut secret.0).map_err(|e| TransportError::System {
        operation: "getrandom",
        reason: format!("no random numbers for a secret: {e}"),
    })?;
    Ok(secret)
}

impl Tcp {
    /// The transport of one rank.
    pub fn new(options: &Options) -> TransportResult<Self> {
        let interfaces = interface::choose(options.interface.as_deref(), options.loopback)?;
        let listeners = listen(&interfaces)?;
        let addresses: Vec<_> = listeners.iter().map(|(_, address)| *address).collect();
        let provider = format!(
            "TCP of the kernel, at {}",
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        let card = Card { secret: secret()?, machine: Machine::own(), addresses };
        let port = Port::new(options, (&card, Nonces::new(secret()?)), interfaces, listeners)?;
        let lists = Lists { put: PARTS, get: PARTS, bytes: LIST_BYTES };
        Ok(Self {
            card: card.encode(),
            capabilities: Capabilities {
                max_message: MAX_MESSAGE,
                max_transfer: MAX_TRANSFER,
                rma: true,
                immediate: false,
                registration_is_free: true,
                moves: Some(Moves { inline: 0, copied: COPIED, lists: Some(lists) }),
                copied_put: COPIED,
                ordered: true,
                atomics: AtomicScope::None,
                provider,
            },
            wait_fd: port.wait.fd(),
            shared: Arc::new(Shared { port: Mutex::new(port), woken: AtomicU8::new(0) }),
        })
    }

    /// The business card.
    pub(crate) fn card(&self) -> Vec<u8> {
        self.card.clone()
    }

    /// Receives from all peers that have sent something, serves their puts and gets, and hands out what is for the caller. How
    /// much there was.
    pub(crate) fn look(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        // Else another thread is at it, possibly for as long as the kernel takes for megabytes.
        let Some(mut port) = self.shared.port.try_lock() else { return Ok(0) };
        port.check_open()?;
        if self.shared.woken.load(Ordering::Relaxed) != 0 {
            self.shared.disarm_late(&mut port);
        }
        if port.tells_unreachable()
            && let Some((_, error)) = port.unreachable.take()
        {
            return Err(error);
        }
        // Else another thread hands out what it has found.
        let Some(mut inbox) = port.inbox.take() else { return Ok(0) };
        port.looks += 1;
        if !port.listed.is_empty() {
            port.flush_listed();
        }
        let mut count = 0;
        let mut readable = std::mem::take(&mut inbox.readable);
        port.readable(&mut readable);
        for peer in &readable {
            port.read(*peer, &mut inbox);
            let served = std::mem::take(&mut inbox.found.served);
            if !inbox.found.is_empty() {
                port.is_handing_out = true;
                drop(port);
                count += inbox.hand_out(sink);
                port = self.shared.port.lock();
                port.is_handing_out = false;
                port.recent = Some(*peer);
            }
            count += served;
        }
        inbox.readable = readable;
        if !port.ended.is_empty() || !port.own.is_empty() {
            let (mut ended, own) = (std::mem::take(&mut port.ended), std::mem::take(&mut port.own));
            drop(port);
            count += ended.len() + own.len();
            ended.drain(..).for_each(|completion| sink(Event::Complete(completion)));
            own.iter().for_each(|message| sink(Event::Message(message)));
            port = self.shared.port.lock();
        }
        if !port.listed.is_empty() {
            port.flush_listed();
        }
        port.inbox = Some(inbox);
        Ok(count)
    }
}

impl Drop for Tcp {
    /// What was accepted goes, and the peers' hosts have it, unless that takes too long.
    fn drop(&mut self) {
        let most = {
            let port = self.shared.port.lock();
            let in_doubt = port.is_distrusted || std::thread::panicking();
            if in_doubt { LINGER } else { LINGER.max(port.connect_timeout) }
        };
        self.linger(most, |port| !port.is_sent());
        self.shared.port.lock().end_connections();
        self.linger(LINGER, |port| port.discard_input());
        self.shared.port.lock().close();
    }
}

impl Tcp {
    /// Makes progress as long as `waits` says, and there is time. That a peer cannot be reached, who may have left, is no reason
    /// not to send the others what is theirs.
    fn linger(&self, most: Duration, waits: impl Fn(&mut Port) -> bool) {
        let start = Instant::now();
        while start.elapsed() < most && waits(&mut self.shared.port.lock()) {
            if self.look(&mut |_| ()).is_err() && !self.shared.port.lock().is_open {
                break;
            }
            // Who takes long to be connected is not waited for at full speed.
            match start.elapsed() < LINGER {
                true => std::thread::yield_now(),
                false => std::thread::sleep(PAUSE),
            }
        }
    }
}
