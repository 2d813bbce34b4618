//! Waiting for several words of this PE's (OpenSHMEM 1.5 §9.11.2 to §9.11.12): all, any or some of them, each with the same value or with
//! one of its own.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::wait::{Compare, Word, holds, look_twice};
use crate::failure::or_end;
use crate::world::world;

/// The index that was found last by a call that wants any.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// No index: `SIZE_MAX`.
const NONE: usize = usize::MAX;

/// What a call is about.
struct Words<T> {
    call: &'static str,
    words: *mut T,
    count: usize,
    /// Words that are left out, where that is not 0; none if it is null.
    status: *const c_int,
    compare: Compare,
    /// One value, or with `vector` one for each.
    values: *const T,
    vector: bool,
}

impl<T: Word> Words<T> {
    /// The indices that count.
    fn indices(&self) -> impl Iterator<Item = usize> {
        // SAFETY: as many as there are words, or null, by the caller of the exported function.
        (0..self.count).filter(|index| self.status.is_null() || unsafe { *self.status.add(*index) } == 0)
    }

    fn holds(&self, index: usize) -> bool {
        // SAFETY: as many words and values as there are, by the caller of the exported function.
        unsafe {
            let value = if self.vector { *self.values.add(index) } else { *self.values };
            holds(self.call, self.words.add(index), self.compare, value)
        }
    }

    fn all(&self) -> Option<()> {
        self.indices().all(|index| self.holds(index)).then_some(())
    }

    /// One that holds, and of several not always the same (§9.11.9, note to implementors).
    fn any(&self) -> Option<usize> {
        let last = LAST.load(Ordering::Relaxed);
        let behind = self.indices().find(|index| *index > last && self.holds(*index));
        let found = behind.or_else(|| self.indices().find(|index| self.holds(*index)))?;
        LAST.store(found, Ordering::Relaxed);
        Some(found)
    }

    fn some(&self, indices: *mut usize) -> Option<usize> {
        let mut found = 0;
        for index in self.indices().filter(|index| self.holds(*index)) {
            // SAFETY: room for as many as there are words, by the caller of the exported function.
            unsafe { *indices.add(found) = index };
            found += 1;
        }
        (found > 0).then_some(found)
    }

    /// What `look` finds, when it does.
    fn wait<R>(&self, mut look: impl FnMut() -> Option<R>) -> Option<R> {
        let mut found = look();
        if found.is_none() && self.indices().next().is_some() {
            let what = || {
                format!("{} words at {:p} to be {:?} what is wanted", self.count, self.words, self.compare)
            };
            let ready = || {
                found = look();
                Ok(found.is_some())
            };
            or_end(self.call, world(self.call).shmem.await_that(self.call, &what, ready));
        }
        found
    }
}

macro_rules! many {
    ($($all:ident $any:ident $some:ident $test_all:ident $test_any:ident $test_some:ident, $ty:ty, $vector:literal, $address:expr;)*) => { $(
        many! { @ $ty, $vector, $address;
            $all() -> (), |words| { words.wait(|| words.all()); };
            $any() -> usize, |words| words.wait(|| words.any()).unwrap_or(NONE);
            $some(indices: *mut usize) -> usize, |words| words.wait(|| words.some(indices)).unwrap_or(0);
            $test_all() -> c_int, |words| c_int::from(look_twice(words.call, || words.all()).is_some());
            $test_any() -> usize, |words| look_twice(words.call, || words.any()).unwrap_or(NONE);
            $test_some(indices: *mut usize) -> usize, |words| look_twice(words.call, || words.some(indices)).unwrap_or(0);
        }
    )* };
    (@ $ty:ty, $vector:literal, $address:expr; $($name:ident($($more:ident: $more_ty:ty)?) -> $out:ty, |$words:ident| $body:expr;)*) => { $(
        #[doc = concat!("`shmem_", stringify!($name), "`.")]
        #[allow(clippy::too_many_arguments, reason = "the specification's")]
        pub unsafe fn $name<T: Word>(
            call: &'static str,
            ivars: *mut T,
            nelems: usize,
            $($more: $more_ty,)?
            status: *const c_int,
            cmp: c_int,
            value: $ty,
        ) -> $out {
            let (compare, address) = (Compare::new(call, cmp), $address);
            let values: *const T = address(&value);
            let $words = Words { call, words: ivars, count: nelems, status, compare, values, vector: $vector };
            $body
        }
    )* };
}

many! {
    wait_until_all wait_until_any wait_until_some test_all test_any test_some,
        T, false, |value: &T| std::ptr::from_ref(value);
    wait_until_all_vector wait_until_any_vector wait_until_some_vector test_all_vector test_any_vector test_some_vector,
        *mut T, true, |values: &*mut T| values.cast_const();
}
