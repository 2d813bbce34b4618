//! Long messages that both ends copy: the receiver shows its buffer, and gets parts from the first on, while the sender, if it polls,
//! puts parts from the last on, until they meet ([`Claims`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::{
    Payload, Posted, Region, RegionKey, Remote, Span, Transport, TransportError, TransportResult, limits,
};

use super::agent::MAX_KEY;
use super::{Advance, Transfer, TwoSided};
use crate::engine::claims::{Claims, Theirs};
use crate::engine::{Engine, Route};
use crate::memory::{LocalBuffer, ResultBuffer, Source};
use crate::protocol::wire::{Header, Kind};

/// Shorter messages are got as soon by one end alone (measured on Intel's Emerald Rapids).
const LEAST: usize = 128 << 10;
/// Sends under way of a rank that takes no time to look whether one is to a peer.
const FEW: usize = 8;
/// A message has about so many parts, of so many bytes each.
const PARTS: usize = 8;
const PART: std::ops::RangeInclusive<usize> = 16 << 10..=256 << 10;
/// Bytes after which a poll goes on with other things.
const AT_ONCE: usize = 1 << 20;
/// How often who has nothing left to copy looks whether the other end is ready, before it does something else.
const LOOKS: u32 = 500;

/// How long it is waited after an error for a sender to put its last part, which takes it a moment if it has a core; and between looks.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(100);

/// Messages of a rank that both ends copy at once; others are only fetched.
const LINES: usize = 64;
const LINE_BYTES: usize = 64;

/// What a receiver and its senders share: a cache line of claims for each message.
#[derive(Debug)]
struct Lines {
    memory: Span,
    key: RegionKey,
    _region: Box<dyn Region>,
    /// Which are free, and the numbers of their next uses.
    free: Mutex<Vec<(u8, u32)>>,
}

/// The claims of this rank, and those of peers that it has helped.
#[derive(Debug, Default)]
pub(super) struct Joints {
    own: OnceLock<Option<Arc<Lines>>>,
    peers: Mutex<HashMap<usize, Option<Span>>>,
}

impl Lines {
    /// None where there is no memory for them; and under valgrind, which takes what another process writes for uninitialised.
    fn new(transport: &dyn Transport) -> Option<Arc<Self>> {
        if limits::is_under_valgrind() {
            return None;
        }
        let memory = transport.allocate(LINES * LINE_BYTES).ok()??;
        let region = transport.register(&memory).ok()?;
        let free = (0..LINES as u8).map(|line| (line, 1)).collect();
        Some(Arc::new(Self { memory, key: region.key(), _region: region, free: Mutex::new(free) }))
    }
}

/// The claims of a line.
fn claims(lines: &Span, line: usize) -> TransportResult<Claims<'_>> {
    Ok(Claims::new(lines.word64(line * LINE_BYTES)?, lines.word64(line * LINE_BYTES + size_of::<u64>())?))
}

/// A line in use.
#[derive(Debug)]
struct Line {
    lines: Arc<Lines>,
    line: u8,
    number: u32,
}

impl Line {
    fn take(lines: &Arc<Lines>) -> Option<Self> {
        let (line, number) = lines.free.lock().pop()?;
        Some(Self { lines: lines.clone(), line, number })
    }

    fn claims(&self) -> TransportResult<Claims<'_>> {
        claims(&self.lines.memory, self.line.into())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // After an error the sender may still put a part to the buffer, which goes now. One that takes so long for it is dead or stopped.
        let (is_idle, start) = (|| self.claims().is_ok_and(Claims::close), Instant::now());
        let mut ended = is_idle();
        while !ended && start.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
            ended = is_idle();
        }
        // A line that its sender may still write to is nobody's any more.
        if ended {
            self.lines.free.lock().push((self.line, self.number.wrapping_add(1)));
        }
    }
}

/// The receiver's side of such a message.
#[derive(Debug)]
pub(super) struct Joint {
    line: Line,
    parts: Layout,
    /// Shows the buffer, until nothing is put to it any more.
    _shown: Box<dyn Region>,
}

/// Of how many bytes each part is.
#[derive(Debug, Clone, Copy)]
struct Layout {
    each: usize,
    bytes: usize,
}

impl Layout {
    fn new(bytes: usize) -> Self {
        const PAGE: usize = 4 << 10;
        let each = (bytes / PARTS).clamp(*PART.start(), *PART.end()).max(bytes.div_ceil(Claims::MOST));
        Self { each: each.next_multiple_of(PAGE), bytes }
    }

    /// As a peer has said.
    fn checked(each: u64, bytes: u64) -> Option<Self> {
        let parts = Self { each: usize::try_from(each).ok()?, bytes: usize::try_from(bytes).ok()? };
        (parts.each > 0 && parts.bytes.div_ceil(parts.each) <= Claims::MOST).then_some(parts)
    }

    fn count(self) -> u64 {
        self.bytes.div_ceil(self.each) as u64
    }

    /// Where a part begins, and how long it is.
    fn place(self, part: u64) -> (usize, usize) {
        let at = part as usize * self.each;
        (at, self.each.min(self.bytes - at))
    }
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// There are parts to get.
    Some,
    /// All that can be got: the sender puts the rest.
    Own,
    All,
    /// The bytes up to here: what is behind them the sender could not put.
    UpTo(usize),
}

impl Joint {
    /// Asks the sender of message `number` to copy parts of it to `memory`, if that is worth it.
    pub fn offer(engine: &Engine, from: usize, number: Option<u64>, memory: &Span) -> Option<Self> {
        let Route { transport, capabilities } = engine.routes.route(from);
        let number = number.filter(|_| {
            let copies = capabilities.registration_is_free && capabilities.immediate;
            // In an exchange both have enough to do.
            let alone = memory.len() >= LEAST && copies && !engine.two_sided.may_send_to(from);
            alone && engine.progress.backoff().has_cores()
        })?;
        let lines = engine.two_sided.joints.own.get_or_init(|| Lines::new(transport)).as_ref()?;
        let shown = transport.register(memory).ok()?;
        let line = Line::take(lines)?;
        line.claims().ok()?.open(line.number);
        let parts = Layout::new(memory.len());
        let header = Header {
            value: number,
            compare: line.number.into(),
            window: line.line.into(),
            count: parts.bytes as u64,
            offset: parts.each as u64,
            ty: u8::try_from(lines.key.0.len()).ok()?,
            ..engine.header(Kind::Join)
        };
        let keys = [lines.key.0.as_slice(), &shown.key().0].concat();
        // A sender that sleeps is not woken for it.
        let asked = engine.has_sent_before(from, &header, &keys);
        asked.then_some(Self { line, parts, _shown: shown })
    }

    /// Gets parts, until there are none or a poll should go on.
    pub fn get(
        &self,
        transport: &dyn Transport,
        remote: &Remote,
        result: &ResultBuffer<'_>,
    ) -> TransportResult<Copied> {
        let (claims, mut copied) = (self.line.claims()?, 0);
        while let Some(part) = claims.first(self.parts.count()) {
            let (at, len) = self.parts.place(part);
            let posted = LocalBuffer::Result(result).transfer(transport, (remote, at), (at, len), 0)?;
            at_once(remote.peer, posted)?;
            copied += len;
            if copied >= AT_ONCE {
                return Ok(Copied::Some);
            }
        }
        for _ in 0..LOOKS {
            match claims.theirs() {
                Theirs::Put => return Ok(Copied::All),
                Theirs::Failed(parts) => {
                    return Ok(Copied::UpTo(self.parts.place(self.parts.count() - parts).0));
                }
                Theirs::UnderWay => std::hint::spin_loop(),
            }
        }
        Ok(Copied::Own)
    }
}

fn at_once(peer: usize, posted: Posted) -> TransportResult<()> {
    match posted {
        Posted::Complete => Ok(()),
        _ => Err(TransportError::Malformed { peer, what: "copy of a message" }),
    }
}

/// The sender's side.
struct Help {
    source: Arc<Source>,
    buffer: Remote,
    parts: Layout,
    /// The receiver's claims: where, and the number of their use.
    lines: Span,
    line: usize,
    number: u32,
}

/// A receiver asks for help with a message of this rank's. `None` if what it says cannot be.
pub(super) fn join(engine: &Engine, header: &Header, payload: Payload<'_>) -> Option<()> {
    let peer = header.origin as usize;
    // It may have ended.
    let Some(source) = engine.two_sided.source(peer, header.value) else { return Some(()) };
    let parts = Layout::checked(header.offset, header.count).filter(|parts| parts.bytes == source.len())?;
    let line = usize::try_from(header.window).ok().filter(|line| *line < LINES)?;
    let number = u32::try_from(header.compare).ok()?;
    let Route { transport, capabilities } = engine.routes.route(peer);
    if payload.len() > 2 * MAX_KEY || !capabilities.immediate {
        return None;
    }
    let keys = payload.with(<[u8]>::to_vec);
    let (lines_key, buffer_key) = keys.split_at_checked(header.ty.into())?;
    let Some(lines) = engine.two_sided.joints.of_peer(transport, peer, lines_key) else { return Some(()) };
    let buffer = transport.attach(peer, &RegionKey(buffer_key.to_vec())).ok()?;
    let help = Help { source, buffer, parts, lines, line, number };
    (help.buffer.len == parts.bytes).then(|| engine.start_transfer(Box::new(help)))
}

impl TwoSided {
    /// Whether a send to `peer` awaits an answer; or many sends do.
    fn may_send_to(&self, peer: usize) -> bool {
        let sends = self.sends.lock();
        sends.len() > FEW || sends.values().any(|send| send.peer == peer)
    }
}

impl Joints {
    /// The claims of a peer's messages, if they can be mapped.
    fn of_peer(&self, transport: &dyn Transport, peer: usize, key: &[u8]) -> Option<Span> {
        let attach = || transport.attach(peer, &RegionKey(key.to_vec())).ok()?.direct;
        let fits = |lines: &Span| lines.len() >= LINES * LINE_BYTES;
        match self.peers.lock().entry(peer) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(attach().filter(fits)).clone(),
        }
    }
}

impl Help {
    /// Puts a part. False if there is none, or it cannot be.
    fn put(&self, transport: &dyn Transport) -> TransportResult<bool> {
        let claims = claims(&self.lines, self.line)?;
        let Some(part) = claims.last(self.number, self.parts.count()) else { return Ok(false) };
        let (at, len) = self.parts.place(part);
        let put = self.source.put(transport, (&self.buffer, at), (at, len));
        let succeeded = put.is_some_and(|put| put.is_ok_and(|posted| posted == Posted::Complete));
        claims.end_put(succeeded);
        Ok(succeeded)
    }
}

impl Transfer for Help {
    fn advance(self: Box<Self>, engine: &Engine) -> Advance {
        let transport = engine.routes.to(self.buffer.peer);
        let mut put = 0;
        while put < AT_ONCE {
            match self.put(transport) {
                Ok(true) => put += self.parts.each,
                _ => return Advance::Done,
            }
        }
        Advance::Progressed(self)
    }
}

#[cfg(test)]
#[path = "joint_tests.rs"]
mod tests;
