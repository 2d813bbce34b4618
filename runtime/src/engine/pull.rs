//! Large accumulates: the agent gets the operands itself, straight into a buffer, and applies them when they are there.
//!
//! That spares the copies and the many small receptions of a long series of messages, most of all at the target, whose
//! core computes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use transom_transport::{DataType, Posted, ReduceOp, Remote};

use super::agent::{Answer, reply};
use super::{Engine, Exposure, Pending};
use crate::memory::{LocalBuffer, Staging};
use crate::protocol::wire::Header;

/// One such accumulate at its target.
#[derive(Debug)]
pub(crate) struct Pull {
    /// What was asked, to be replied to.
    pub request: Header,
    /// The window, kept until the end.
    pub exposure: Arc<Exposure>,
    pub op: ReduceOp,
    pub ty: DataType,
    /// Byte offset in the window.
    pub offset: usize,
    /// Bytes of operands.
    pub len: usize,
    /// The operands at the origin, and where in that region they start.
    pub remote: Remote,
    pub start: usize,
    /// The operands here.
    pub staging: Staging,
}

impl Pull {
    /// Most bytes of one: bounds what a peer can make the agent allocate.
    pub const MOST: usize = 1 << 20;

    /// Posts the get; finishes at once, later by its completion, or tries again later.
    pub fn start(self: Box<Self>, engine: &Engine) {
        let (result, remote, start) = (self.staging.result(), self.remote.clone(), self.start);
        let transport = engine.routes.to(remote.peer);
        let pending =
            Pending { target: Arc::default(), buffer: None, done: None, pull: Some(self), value: None };
        let context = engine.pendings.begin(pending);
        let posted =
            LocalBuffer::Result(&result).transfer(transport, (&remote, start), (0, result.len()), context);
        if matches!(posted, Ok(Posted::Pending)) {
            return;
        }
        let Some(pull) = engine.pendings.cancel(context).and_then(|pending| pending.pull) else { return };
        match posted {
            Ok(Posted::Again) => engine.pulls.defer(pull),
            Ok(_) => pull.finish(engine, true),
            Err(error) => {
                tracing::warn!(peer = remote.peer, %error, "the operands of an accumulate cannot be had");
                pull.finish(engine, false);
            }
        }
    }

    /// The operands are there, or will not be.
    pub fn finish(self, engine: &Engine, succeeded: bool) {
        let Self { request, exposure, op, ty, offset, len, staging, .. } = self;
        let buffer = staging.take();
        let done = succeeded && exposure.accumulate(op, ty, offset, &buffer[..len]).is_some();
        engine.pulls.give_back(buffer);
        reply(engine, &request, done.then_some(Answer::Value(0)));
    }
}

/// Pulls that found the transport's queue full, and buffers for all.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    waiting: Mutex<VecDeque<Box<Pull>>>,
    len: AtomicUsize,
    /// Buffers to be used again: fresh ones cost a page fault per page.
    spare: Mutex<Vec<Box<[u8]>>>,
}

/// Buffers that are kept.
const SPARE: usize = 2;

impl Pulls {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// A buffer for one pull.
    pub fn buffer(&self) -> Box<[u8]> {
        self.spare.lock().pop().unwrap_or_else(|| vec![0; Pull::MOST].into_boxed_slice())
    }

    fn give_back(&self, buffer: Box<[u8]>) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE {
            spare.push(buffer);
        }
    }

    fn defer(&self, pull: Box<Pull>) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(pull);
        self.len.store(waiting.len(), Ordering::Release);
    }

    /// Retries the deferred ones; returns how many were posted.
    pub fn retry(&self, engine: &Engine) -> usize {
        if self.is_empty() {
            return 0;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        self.len.store(0, Ordering::Release);
        let before = waiting.len();
        for pull in waiting {
            pull.start(engine);
        }
        before - self.len.load(Ordering::Acquire).min(before)
    }
}
