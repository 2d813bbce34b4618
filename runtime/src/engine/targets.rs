//! Whom operations are counted at, by number: the completion of a plain put or get names its target by that and needs no
//! table entry of its own.

use std::ops::Deref;
use std::sync::OnceLock;

use super::pending::TargetState;
use super::sync::{Arc, Mutex};

/// States in the first bucket; each of the next has twice as many as the one before.
const FIRST: usize = 64;
const BUCKETS: usize = 26;

type Bucket = OnceLock<Box<[OnceLock<Arc<TargetState>>]>>;

/// All states that have a number. Looking one up takes no lock.
#[derive(Debug)]
pub(super) struct Targets {
    buckets: [Bucket; BUCKETS],
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    /// Given back.
    free: Vec<u32>,
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
        Self { buckets: std::array::from_fn(|_| OnceLock::new()), numbers: Mutex::default() }
    }
}

/// Bucket and place in it.
fn place(number: u32) -> (usize, usize) {
    let number = number as usize + FIRST;
    let bucket = (number / FIRST).ilog2() as usize;
    (bucket, number - (FIRST << bucket))
}

impl Targets {
    /// A state of its own for another target.
    pub fn open(all: &Arc<Self>) -> Target {
        let number = all.numbers.lock().take();
        let state = number.and_then(|number| all.make(number));
        Target {
            number: state.is_some().then_some(number).flatten(),
            state: state.unwrap_or_default(),
            all: all.clone(),
        }
    }

    fn make(&self, number: u32) -> Option<Arc<TargetState>> {
        let (bucket, at) = place(number);
        let bucket_of = || (0..FIRST << bucket).map(|_| OnceLock::new()).collect();
        let bucket = self.buckets.get(bucket)?.get_or_init(bucket_of);
        Some(bucket.get(at)?.get_or_init(Arc::default).clone())
    }

    /// The state of that number, if there is one.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&TargetState> {
        let (bucket, at) = place(number);
        Some(self.buckets.get(bucket)?.get()?.get(at)?.get()?)
    }
}

impl Numbers {
    fn take(&mut self) -> Option<u32> {
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
        // Of a transport that was abandoned operations may still end: their number is never used again.
        if let Some(number) = self.number
            && self.state.is_idle()
        {
            self.state.forget();
            self.all.numbers.lock().free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for number in 0..10_000 {
            assert_eq!(place(number), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn a_number_is_one_targets_until_that_goes() {
        let all = Arc::<Targets>::default();
        let some: Vec<Target> = (0..200).map(|_| Targets::open(&all)).collect();
        for (i, target) in some.iter().enumerate() {
            assert_eq!(target.number(), Some(i as u32));
            assert!(std::ptr::eq(all.get(i as u32).unwrap(), &**target));
        }
        assert!(all.get(200).is_none() && all.get(u32::MAX - 100).is_none());
        some[7].begin();
        some[8].sent();
        drop(some);
        let next: Vec<Target> = (0..200).map(|_| Targets::open(&all)).collect();
        assert!(next.iter().all(|target| target.number() != Some(7)), "something is under way there");
        assert!(next.iter().all(|target| target.is_idle() && target.unconfirmed().is_none()));
    }
}
