//! The epochs that calls have opened and not closed yet: one thread's, or all threads'.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use super::access::Access;
use crate::{NULL_RANK, Result};

/// What is open on a window.
#[derive(Debug, Default)]
pub(super) struct Epochs<'w> {
    /// By target. Kept when they go: a lock should not cost an allocation.
    locks: Vec<(usize, Arc<Access<'w>>)>,
    pub all: Option<Arc<Access<'w>>>,
    pub started: Option<Arc<Access<'w>>>,
    pub fenced: Option<Arc<Access<'w>>>,
    /// Operations were started since the last fence: only then it has begun an epoch (§12.5.1).
    pub used: bool,
    /// The ranks to which the window is posted.
    pub posted: Option<Box<[usize]>>,
    /// A closed epoch, whose memory the next one takes.
    spare: Option<Arc<Access<'w>>>,
}

/// [`Epochs`] of one thread, or of several.
#[derive(Debug)]
pub(super) enum Opened<'w> {
    Alone(RefCell<Epochs<'w>>),
    Shared(Shared<'w>),
}

/// [`Epochs`] behind a lock that nobody holds while anything is awaited: a thread that waits for a peer must not keep
/// another from the call that the peer waits for.
#[derive(Debug, Default)]
pub(super) struct Shared<'w> {
    epochs: Mutex<Epochs<'w>>,
    /// The epoch of lock_all once more: threads that access the window in it write no memory that they share.
    all: ArcSwapOption<Access<'w>>,
}

/// The epoch that covers a target.
pub(super) enum Found<A> {
    /// That of a fence, which an operation begins.
    Fence(A),
    Other(A),
}

impl<'w> Epochs<'w> {
    /// The epoch of a lock of `target`.
    #[inline]
    pub fn lock(&self, target: usize) -> Option<&Arc<Access<'w>>> {
        match &self.locks[..] {
            [(locked, access)] => (*locked == target).then_some(access),
            locks => Some(&locks[locks.binary_search_by_key(&target, |(locked, _)| *locked).ok()?].1),
        }
    }

    /// Takes it out.
    pub fn take_lock(&mut self, target: usize) -> Option<Arc<Access<'w>>> {
        let at = self.locks.binary_search_by_key(&target, |(locked, _)| *locked).ok()?;
        Some(self.locks.remove(at).1)
    }

    /// The epoch that covers `target`; any epoch of a lock will do for the null rank.
    #[inline]
    pub fn find(&self, target: usize) -> Option<Found<&Arc<Access<'w>>>> {
        let any = || self.locks.first().filter(|_| target == NULL_RANK).map(|(_, access)| access);
        let passive = self.all.as_ref().or_else(|| self.lock(target)).or_else(any);
        match passive.or(self.started.as_ref()) {
            Some(access) => Some(Found::Other(access)),
            None => self.fenced.as_ref().map(Found::Fence),
        }
    }

    /// All epochs of locks.
    pub fn passive(&self) -> impl Iterator<Item = &Arc<Access<'w>>> {
        self.all.iter().chain(self.locks.iter().map(|(_, access)| access))
    }

    /// Whether no epoch is open but an unused one of a fence.
    pub fn is_closed(&self) -> bool {
        let passive = self.all.is_some() || !self.locks.is_empty();
        let active = self.started.is_some() || self.posted.is_some();
        !passive && !active && !self.used
    }
}

impl<'w> Opened<'w> {
    /// Of one thread.
    pub fn alone() -> Self {
        Self::Alone(RefCell::default())
    }

    /// Of several threads.
    pub fn shared() -> Self {
        Self::Shared(Shared::default())
    }

    /// Looks at what is open, or changes it. Waits for nobody: `work` does not block.
    #[inline]
    pub fn with<R>(&self, work: impl FnOnce(&mut Epochs<'w>) -> R) -> R {
        match self {
            Self::Alone(epochs) => work(&mut epochs.borrow_mut()),
            Self::Shared(shared) => work(&mut shared.epochs.lock()),
        }
    }

    fn keep(&self, mut access: Access<'w>) -> Arc<Access<'w>> {
        match self {
            Self::Shared(_) => access.share(),
            Self::Alone(epochs) => {
                let spare = epochs.borrow_mut().spare.take();
                if let Some(mut spare) = spare
                    && let Some(place) = Arc::get_mut(&mut spare)
                {
                    *place = access;
                    return spare;
                }
            }
        }
        Arc::new(access)
    }

    /// Closes an epoch, and keeps its memory for the next.
    pub fn close(&self, access: Arc<Access<'w>>) -> Result<()> {
        let closed = access.close();
        // What has counted passes its counts on when it goes.
        if let Self::Alone(epochs) = self
            && access.counting().is_none()
        {
            epochs.borrow_mut().spare = Some(access);
        }
        closed
    }

    /// Keeps the epoch of a lock.
    pub fn keep_lock(&self, target: usize, access: Access<'w>) {
        let access = self.keep(access);
        self.with(|epochs| {
            let at = epochs.locks.partition_point(|(locked, _)| *locked < target);
            epochs.locks.insert(at, (target, access));
        });
    }

    /// Keeps that of lock_all.
    pub fn keep_all(&self, access: Access<'w>) {
        let access = self.keep(access);
        self.with(|epochs| epochs.all = Some(access.clone()));
        if let Self::Shared(shared) = self {
            shared.all.store(Some(access));
        }
    }

    /// Takes it out.
    pub fn take_all(&self) -> Option<Arc<Access<'w>>> {
        if let Self::Shared(shared) = self {
            shared.all.store(None);
        }
        self.with(|epochs| epochs.all.take())
    }

    /// Keeps that of a start.
    pub fn keep_started(&self, access: Access<'w>) {
        let access = self.keep(access);
        self.with(|epochs| epochs.started = Some(access));
    }

    /// Keeps that of a fence.
    pub fn keep_fence(&self, access: Access<'w>) {
        let access = self.keep(access);
        self.with(|epochs| epochs.fenced = Some(access));
    }
}

impl<'w> Shared<'w> {
    /// The epoch of lock_all, if one is open.
    #[inline]
    pub fn all(&self) -> Guard<Option<Arc<Access<'w>>>> {
        self.all.load()
    }
}

impl<A> Found<A> {
    /// Whether it is that of a fence.
    pub fn is_fence(&self) -> bool {
        matches!(self, Self::Fence(_))
    }
}

impl<'w> Found<&Arc<Access<'w>>> {
    /// The epoch.
    #[inline]
    pub fn access(&self) -> &Access<'w> {
        match self {
            Self::Fence(access) | Self::Other(access) => access,
        }
    }

    /// The same, to be used when what is open may change.
    pub fn share(self) -> Found<Arc<Access<'w>>> {
        match self {
            Self::Fence(access) => Found::Fence(access.clone()),
            Self::Other(access) => Found::Other(access.clone()),
        }
    }
}

impl<'w> Found<Arc<Access<'w>>> {
    /// The epoch.
    pub fn access(&self) -> &Access<'w> {
        match self {
            Self::Fence(access) | Self::Other(access) => access,
        }
    }
}
