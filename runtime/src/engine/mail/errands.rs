//! What takes several polls: long messages on their way.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::engine::Engine;

/// Something that goes on a bit with each poll, and never blocks.
pub(crate) trait Errand: Send {
    fn go(self: Box<Self>, engine: &Engine) -> Turn;
}

/// What has come of one turn of an errand.
pub(crate) enum Turn {
    /// It is over, or goes on by completions.
    Over,
    /// It can go on.
    Moved(Box<dyn Errand>),
    /// It waits for room in a queue.
    Stuck(Box<dyn Errand>),
}

/// Errands that are not over.
#[derive(Default)]
pub(crate) struct Errands {
    waiting: Mutex<VecDeque<Box<dyn Errand>>>,
    len: AtomicUsize,
}

impl Errands {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Leaves an errand to later polls.
    pub fn put_off(&self, errand: Box<dyn Errand>) {
        let mut waiting = self.waiting.lock();
        waiting.push_back(errand);
        self.len.store(waiting.len(), Ordering::Release);
    }

    fn take(&self) -> VecDeque<Box<dyn Errand>> {
        let mut waiting = self.waiting.lock();
        self.len.store(0, Ordering::Release);
        std::mem::take(&mut *waiting)
    }

    /// One turn of each; returns how many have gone on.
    pub fn retry(&self, engine: &Engine) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut moved = 0;
        for errand in self.take() {
            match errand.go(engine) {
                Turn::Over => moved += 1,
                Turn::Moved(rest) => {
                    moved += 1;
                    self.put_off(rest);
                }
                Turn::Stuck(rest) => self.put_off(rest),
            }
        }
        moved
    }

    /// Drops all.
    pub fn clear(&self) {
        drop(self.take());
    }
}
