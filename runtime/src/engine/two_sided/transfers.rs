//! Transfers: what takes several polls, such as long messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::engine::Engine;

/// A transfer, which each poll advances, and which never blocks.
pub(crate) trait Transfer: Send {
    fn advance(self: Box<Self>, engine: &Engine) -> Advance;
}

/// The state of a transfer that has been advanced.
pub(crate) enum Advance {
    /// Complete, or continued by completions.
    Done,
    /// It can be advanced again.
    Progressed(Box<dyn Transfer>),
    /// A queue is full.
    Blocked(Box<dyn Transfer>),
}

/// Transfers that are not complete.
#[derive(Default)]
pub(crate) struct Transfers {
    waiting: Mutex<VecDeque<Box<dyn Transfer>>>,
    len: AtomicUsize,
}

impl Transfers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Leaves a transfer to later polls.
    pub fn defer(&self, transfer: Box<dyn Transfer>) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(transfer);
        self.len.store(waiting.len(), Ordering::Release);
    }

    fn take(&self) -> VecDeque<Box<dyn Transfer>> {
        let mut waiting = self.waiting.lock();
        self.len.store(0, Ordering::Release);
        std::mem::take(&mut *waiting)
    }

    /// Advances each once; returns how many have progressed.
    pub fn retry(&self, engine: &Engine) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut moved = 0;
        for transfer in self.take() {
            match transfer.advance(engine) {
                Advance::Done => moved += 1,
                Advance::Progressed(rest) => {
                    moved += 1;
                    self.defer(rest);
                }
                Advance::Blocked(rest) => self.defer(rest),
            }
        }
        moved
    }

    /// Drops all.
    pub fn clear(&self) {
        drop(self.take());
    }
}
