//! One rank: posts operations, keeps their buffers, and counts their ends.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use transom_transport::{
    AtomicScope, Event, NativeAtomic, Posted, ReduceOp, Remote, Span, Transfer, Transport, TransportError,
};

use crate::Effort;

/// After so long an operation is taken for lost.
const LOST: Duration = Duration::from_secs(10);

/// What keeps a test from being done.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
    #[error(transparent)]
    Failed(#[from] TransportError),
    #[error("no end of {what} within {} s", LOST.as_secs())]
    Lost { what: &'static str },
}

/// A rank.
#[derive(Debug)]
pub(crate) struct Side {
    pub transport: Arc<dyn Transport>,
    ledger: Mutex<Ledger>,
    contexts: AtomicU64,
}

/// What was posted and has not ended, and what has ended and was not asked for.
#[derive(Debug, Default)]
struct Ledger {
    /// The buffers, which stay as long as the transport may use them.
    pending: HashMap<u64, Option<Span>>,
    ended: HashMap<u64, Result<u64, TransportError>>,
    /// Completions of what was not pending: ended twice, or never posted.
    strays: u64,
}

/// An operation that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// It has ended already, and found this.
    Done(u64),
    /// It ends with this context.
    Pending(u64),
}

/// What became of the beginning of an operation.
pub(crate) type Start = Result<Started, Trouble>;

impl Side {
    pub fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, ledger: Mutex::default(), contexts: AtomicU64::new(1) }
    }

    /// Makes progress once, and hands messages to `sink`.
    pub fn poll_into(&self, sink: &mut dyn FnMut(&[u8])) -> Result<usize, TransportError> {
        self.transport.progress(&mut |event| match event {
            Event::Message(message) => sink(message),
            Event::Long(start, rest) => sink(&rest.behind(start)),
            Event::Complete(completion) => {
                let mut ledger = self.ledger.lock();
                match ledger.pending.remove(&completion.context) {
                    Some(_) => {
                        let end = completion.result.map(|()| completion.value);
                        ledger.ended.insert(completion.context, end);
                    }
                    None => ledger.strays += 1,
                }
            }
        })
    }

    /// Makes progress once.
    pub fn poll(&self) -> Result<(), TransportError> {
        if self.poll_into(&mut |_| ())? == 0 {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Begins to put the first `len` bytes of `local`.
    pub fn start_put(&self, remote: &Remote, offset: usize, local: &Span, len: usize) -> Start {
        let from = local.part(0, len)?;
        if let Some(direct) = &remote.direct {
            direct.copy_in(offset, &bytes(&from)?)?;
            return Ok(Started::Done(0));
        }
        let local = from.address() as *mut u8;
        self.start("a put", Some(from), |transport, context| {
            // SAFETY: the ledger has the span, which is of a mapping of its own (`Pair::buffer`), until the completion, or
            // until the transport was abandoned (`Drop`).
            unsafe { transport.put(&Transfer { remote, offset, local, len, context }) }
        })
    }

    /// Begins to get `len` bytes into the start of `local`.
    pub fn start_get(&self, remote: &Remote, offset: usize, local: &Span, len: usize) -> Start {
        let to = local.part(0, len)?;
        if let Some(direct) = &remote.direct {
            let mut data = vec![0; len];
            direct.copy_out(offset, &mut data)?;
            to.copy_in(0, &data)?;
            return Ok(Started::Done(0));
        }
        let local = to.address() as *mut u8;
        self.start("a get", Some(to), |transport, context| {
            // SAFETY: as in `start_put`.
            unsafe { transport.get(&Transfer { remote, offset, local, len, context }) }
        })
    }

    /// Begins an atomic on 8 bytes; on mapped memory it is the CPU's.
    pub fn start_atomic(&self, remote: &Remote, offset: usize, operation: NativeAtomic) -> Start {
        if let Some(direct) = &remote.direct {
            return Ok(Started::Done(match operation {
                NativeAtomic::FetchAdd(add) => direct.fetch_op(offset, ReduceOp::Sum, add)?,
                NativeAtomic::CompareSwap { compare, swap } => direct.compare_swap(offset, compare, swap)?,
            }));
        }
        self.start("an atomic", None, |transport, context| {
            transport.atomic(remote, offset, operation, context)
        })
    }

    /// Begins operations one after the other, with no more than `depth` under way. Returns how many, and those that have not
    /// been waited for.
    pub fn pipelined(
        &self,
        effort: Effort,
        depth: usize,
        post: impl Fn(u64) -> Result<Started, Trouble>,
    ) -> Result<(u64, VecDeque<Started>), Trouble> {
        let mut under_way = VecDeque::new();
        let mut posted = 0;
        let begin = Instant::now();
        while posted == 0 || (posted < effort.rounds && begin.elapsed() < effort.time) {
            if under_way.len() == depth
                && let Some(first) = under_way.pop_front()
            {
                self.wait(first)?;
            }
            under_way.push_back(post(posted)?);
            posted += 1;
        }
        Ok((posted, under_way))
    }

    fn start(
        &self,
        what: &'static str,
        buffer: Option<Span>,
        post: impl Fn(&dyn Transport, u64) -> Result<Posted, TransportError>,
    ) -> Result<Started, Trouble> {
        let context = self.contexts.fetch_add(1, Ordering::Relaxed);
        self.ledger.lock().pending.insert(context, buffer);
        let begin = Instant::now();
        loop {
            let posted = post(&*self.transport, context);
            if !matches!(posted, Ok(Posted::Pending | Posted::Again)) {
                self.ledger.lock().pending.remove(&context);
            }
            match posted? {
                Posted::Pending => return Ok(Started::Pending(context)),
                Posted::Complete => return Ok(Started::Done(0)),
                Posted::Again if begin.elapsed() > LOST => {
                    self.ledger.lock().pending.remove(&context);
                    return Err(Trouble::Lost { what });
                }
                Posted::Again => self.poll()?,
            }
        }
    }

    /// What a started operation has come to; `None` while it is under way. Makes no progress.
    pub fn ended(&self, started: Started) -> Result<Option<u64>, Trouble> {
        match started {
            Started::Done(value) => Ok(Some(value)),
            Started::Pending(context) => Ok(self.ledger.lock().ended.remove(&context).transpose()?),
        }
    }

    /// Polls until the end of an operation, for as long as `time`.
    pub fn wait_for(&self, started: Started, time: Duration) -> Result<Option<u64>, Trouble> {
        let begin = Instant::now();
        loop {
            if let Some(value) = self.ended(started)? {
                return Ok(Some(value));
            }
            if begin.elapsed() > time {
                return Ok(None);
            }
            self.poll()?;
        }
    }

    /// Polls until the end of an operation.
    pub fn wait(&self, started: Started) -> Result<u64, Trouble> {
        self.wait_for(started, LOST)?.ok_or(Trouble::Lost { what: "an operation" })
    }

    /// Polls until `ready`.
    pub fn until(&self, what: &'static str, mut ready: impl FnMut() -> bool) -> Result<(), Trouble> {
        let begin = Instant::now();
        while !ready() {
            if begin.elapsed() > LOST {
                return Err(Trouble::Lost { what });
            }
            self.poll()?;
        }
        Ok(())
    }

    /// Sends a message; polls while there is no room.
    pub fn send(&self, to: usize, message: &[u8]) -> Result<(), Trouble> {
        let begin = Instant::now();
        while self.transport.message(to, message, &[])? == Posted::Again {
            if begin.elapsed() > LOST {
                return Err(Trouble::Lost { what: "a message" });
            }
            self.poll()?;
        }
        Ok(())
    }

    /// How many operations have not ended, and how many completions were of none that was under way.
    pub fn unbalanced(&self) -> (usize, u64) {
        let ledger = self.ledger.lock();
        (ledger.pending.len(), ledger.strays)
    }

    /// What the transport's atomics on this region exclude.
    pub fn scope(&self, remote: &Remote) -> AtomicScope {
        if remote.direct.is_some() { AtomicScope::System } else { self.transport.capabilities().atomics }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if !self.ledger.get_mut().pending.is_empty() {
            // Others may hold the transport for longer than the buffers live.
            self.transport.abandon();
        }
    }
}

/// The bytes of a span.
pub(crate) fn bytes(span: &Span) -> Result<Vec<u8>, TransportError> {
    let mut bytes = vec![0; span.len()];
    span.copy_out(0, &mut bytes)?;
    Ok(bytes)
}
