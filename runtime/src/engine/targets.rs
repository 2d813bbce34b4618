//! Counters of outstanding operations for each target, by number: the completion of a plain put or get names its target by
//! that and needs no table entry of its own.

use std::ops::Deref;
use std::sync::OnceLock;

use super::sync::{Arc, Mutex};
use super::target_state::TargetState;

/// States in the first bucket; each of the next has twice as many as the one before.
pub(super) const FIRST: usize = 64;
const BUCKETS: usize = 26;

type Bucket = OnceLock<Box<[OnceLock<Arc<TargetState>>]>>;

/// All states that have a number. Looking one up takes no lock.
#[derive(Debug)]
pub(super) struct Targets {
    /// The states with the lowest numbers, where most look-ups end; bucket 0 is not used.
    first: [OnceLock<Arc<TargetState>>; FIRST],
    buckets: [Bucket; BUCKETS],
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// Given back.
    free: Vec<u32>,
    /// Of targets that have gone while something was under way there.
    lingering: Vec<u32>,
    /// The first that was never given out.
    next: u32,
}

/// What is outstanding at one target, in one window. Its number goes to another when this is dropped.
#[derive(Debug)]
pub(crate) struct Target {
    state: Arc<TargetState>,
    /// None if there are too many: then every operation has a table entry.
    number: Option<u32>,
    all: Arc<Targets>,
}

impl Default for Targets {
    fn default() -> Self {
        Self {
            first: std::array::from_fn(|_| OnceLock::new()),
            buckets: std::array::from_fn(|_| OnceLock::new()),
            numbers: Mutex::default(),
        }
    }
}

/// Bucket and place in it.
pub(super) fn place(number: u32) -> (usize, usize) {
    let number = number as usize + FIRST;
    let bucket = (number / FIRST).ilog2() as usize;
    (bucket, number - (FIRST << bucket))
}

impl Targets {
    /// A state of its own for another target.
    pub fn open(all: &Arc<Self>) -> Target {
        let number = all.numbers.lock().take(|number| all.get(number).is_some_and(TargetState::is_idle));
        if let Some(state) = number.and_then(|number| all.get(number)) {
            state.forget();
        }
        let state = number.and_then(|number| all.make(number));
        Target {
            number: state.is_some().then_some(number).flatten(),
            state: state.unwrap_or_default(),
            all: all.clone(),
        }
    }

    fn make(&self, number: u32) -> Option<Arc<TargetState>> {
        if let Some(first) = self.first.get(number as usize) {
            return Some(first.get_or_init(Arc::default).clone());
        }
        let (bucket, at) = place(number);
        let bucket_of = || (0..FIRST << bucket).map(|_| OnceLock::new()).collect();
        let bucket = self.buckets.get(bucket)?.get_or_init(bucket_of);
        Some(bucket.get(at)?.get_or_init(Arc::default).clone())
    }

    /// The state of that number, if there is one.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&TargetState> {
        if let Some(first) = self.first.get(number as usize) {
            return Some(first.get()?);
        }
        let (bucket, at) = place(number);
        Some(self.buckets.get(bucket)?.get()?.get(at)?.get()?)
    }
}

impl Numbers {
    /// A number that is not used. `idle` says whether nothing is under way at the last target that had one.
    fn take(&mut self, idle: impl Fn(u32) -> bool) -> Option<u32> {
        if self.free.is_empty() && !self.lingering.is_empty() {
            self.free.extend(self.lingering.extract_if(.., |number| idle(*number)));
        }
        self.free.pop().or_else(|| {
            let number = self.next;
            self.next = self.next.checked_add(1)?;
            Some(number)
        })
    }
}

impl Target {
    /// The state, to be kept by an operation.
    pub fn share(&self) -> Arc<TargetState> {
        self.state.clone()
    }

    /// Its number.
    #[inline]
    pub fn number(&self) -> Option<u32> {
        self.number
    }
}

impl Deref for Target {
    type Target = TargetState;

    #[inline]
    fn deref(&self) -> &TargetState {
        &self.state
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let mut numbers = self.all.numbers.lock();
        // Operations that end later count at this number: those of an epoch whose end was not theirs, or of a transport that
        // was abandoned, which may never end.
        let numbers = if self.state.is_idle() { &mut numbers.free } else { &mut numbers.lingering };
        numbers.push(number);
    }
}
