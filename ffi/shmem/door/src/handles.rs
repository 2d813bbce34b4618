//! Handles of contexts and teams: numbers that stand for objects, found without a lock.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::Mutex;

/// `shmem_ctx_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ctx(pub usize);

impl Ctx {
    pub const INVALID: Self = Self(0);
    pub const DEFAULT: Self = Self(1);
}

/// `shmem_team_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct TeamHandle(pub usize);

impl TeamHandle {
    pub const INVALID: Self = Self(0);
    pub const WORLD: Self = Self(1);
    pub const SHARED: Self = Self(2);
}

/// `shmem_team_config_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TeamConfig {
    pub num_contexts: c_int,
}

/// `shmem_ctx_session_config_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct SessionConfig {
    pub total_ops: usize,
}

/// The first number that a table gives: those below are constants of shmem.h.
const FIRST: usize = 16;
/// As many objects as there can be at once.
const PLACES: usize = 4096;

/// Objects by number. A number is used again after its object has gone.
pub struct Table<T> {
    objects: Box<[AtomicPtr<T>]>,
    free: Mutex<Vec<usize>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        let objects = (0..PLACES).map(|_| AtomicPtr::default()).collect();
        Self { objects, free: Mutex::new((0..PLACES).rev().collect()) }
    }
}

impl<T> Table<T> {
    /// A number for an object; none if all are in use.
    pub fn insert(&self, object: T) -> Option<usize> {
        let place = self.free.lock().pop()?;
        self.objects[place].store(Box::into_raw(Box::new(object)), Ordering::Release);
        Some(place + FIRST)
    }

    #[inline(always)]
    fn place(&self, number: usize) -> Option<&AtomicPtr<T>> {
        self.objects.get(number.checked_sub(FIRST)?)
    }

    /// The object of a number.
    #[inline(always)]
    pub fn get(&self, number: usize) -> Option<&T> {
        // SAFETY: null, or a box that `remove` takes. Nobody uses a context or team while it is destroyed, or later (OpenSHMEM 1.5
        // §9.4.9, §9.5.4).
        unsafe { self.place(number)?.load(Ordering::Acquire).as_ref() }
    }

    /// Takes the object of a number out.
    pub fn remove(&self, number: usize) -> Option<Box<T>> {
        let object = self.place(number)?.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if object.is_null() {
            return None;
        }
        self.free.lock().push(number - FIRST);
        // SAFETY: made by Box::into_raw in `insert`; the swap gives it to one caller.
        Some(unsafe { Box::from_raw(object) })
    }

    /// The numbers in use whose objects are as wanted.
    pub fn numbers(&self, wanted: impl Fn(&T) -> bool) -> Vec<usize> {
        (FIRST..FIRST + PLACES).filter(|number| self.get(*number).is_some_and(&wanted)).collect()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for number in self.numbers(|_| true) {
            drop(self.remove(number));
        }
    }
}
