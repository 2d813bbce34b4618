//! Handles of a program's own objects: numbers that lead to table entries, checked by generation.
//!
//! A handle is `kind (4 bits) | generation (6) | index (21)`: an `int` as well, so that the forms for Fortran are the
//! same number, and never one of the ABI's predefined ones, which are below 4096. A look-up is three loads and two
//! comparisons without a lock or a counter; what is stale, null or of another kind is found out and never followed.
//! Boxes behind tagged addresses would save a load, but a stale address has to be looked up in a registry before it is
//! followed, which costs more; and they are no `int`.
//!
//! Objects are reference-counted. [`Table::get`] counts; [`Table::peek`] does not, for the calls that take
//! nanoseconds: a program that frees an object while another thread gives it to a call is erroneous (MPI-4.1 §11.6.2).

use std::collections::VecDeque;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::failure::{Result, fail};

const INDEX_BITS: u32 = 21;
const GENERATION_BITS: u32 = 6;
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;
const GENERATIONS: u32 = (1 << GENERATION_BITS) - 1;
/// Entries of the first chunk; each chunk has twice as many as the one before, and none ever moves.
const FIRST: usize = 64;
const CHUNKS: usize = (INDEX_BITS - FIRST.ilog2()) as usize;
/// Entries that rest before the first of them is used again, so that stale handles stay stale for longer.
const RESTING: usize = 64;

struct Slot<T> {
    object: AtomicPtr<T>,
    generation: AtomicU32,
}

struct Places {
    used: usize,
    free: VecDeque<usize>,
}

/// The objects of one kind.
pub struct Table<T> {
    kind: usize,
    what: &'static str,
    /// The error class of handles that lead nowhere.
    class: c_int,
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    places: Mutex<Places>,
}

/// A handle that no other object gets. It can be used again when this goes.
pub struct Reserved<'t, T> {
    table: &'t Table<T>,
    handle: usize,
}

impl<T> Table<T> {
    /// An empty table. Every kind (1 to 15) has its own.
    pub const fn new(kind: usize, what: &'static str, class: c_int) -> Self {
        let chunks = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];
        Self { kind, what, class, chunks, places: Mutex::new(Places { used: 0, free: VecDeque::new() }) }
    }

    /// A handle of a new object.
    pub fn insert(&self, object: Arc<T>) -> Result<usize> {
        Ok(self.reserve()?.fill(object))
    }

    /// A handle for an object that comes later.
    pub fn reserve(&self) -> Result<Reserved<'_, T>> {
        let mut places = self.places.lock();
        let index = match places.free.len() {
            0..RESTING if places.used < FIRST << (CHUNKS - 1) => {
                places.used += 1;
                places.used - 1
            }
            _ => match places.free.pop_front() {
                Some(index) => index,
                None => return fail(crate::abi::ERR_NO_MEM, format!("there are too many {}s", self.what)),
            },
        };
        let generation = self.make_slot(index).generation.load(Ordering::Relaxed);
        let handle = self.kind << KIND_SHIFT | (generation as usize) << INDEX_BITS | index;
        Ok(Reserved { table: self, handle })
    }

    /// The entry of a handle may be used again, by another handle.
    fn vacate(&self, places: &mut Places, handle: usize) {
        let generation = &self.make_slot(index(handle)).generation;
        generation.store((generation.load(Ordering::Relaxed) + 1) & GENERATIONS, Ordering::Release);
        places.free.push_back(index(handle));
    }

    /// Takes an object out; its handle is stale from now on.
    pub fn remove(&self, handle: usize) -> Result<Arc<T>> {
        let mut places = self.places.lock();
        let Some((slot, _)) = self.slot(handle) else { return self.stale(handle) };
        let object = slot.object.swap(std::ptr::null_mut(), Ordering::AcqRel);
        self.vacate(&mut places, handle);
        drop(places);
        // SAFETY: made by Arc::into_raw in `insert`, and taken out once, under the lock.
        Ok(unsafe { Arc::from_raw(object) })
    }

    /// The object of a handle.
    pub fn get(&self, handle: usize) -> Result<Arc<T>> {
        let object = std::ptr::from_ref(self.peek(handle)?);
        // SAFETY: the table holds one count, which nobody gives up during the call (see the module); this adds one.
        unsafe {
            Arc::increment_strong_count(object);
            Ok(Arc::from_raw(object))
        }
    }

    /// The object of a handle, for the length of a call that does not free it.
    #[inline]
    pub fn peek(&self, handle: usize) -> Result<&T> {
        match self.slot(handle) {
            // SAFETY: not null (see `slot`), and kept by the table's count, which nobody gives up during the call: an
            // object that another thread's call is using must not be freed (MPI-4.1 §11.6.2).
            Some((_, object)) => Ok(unsafe { &*object }),
            None => self.stale(handle),
        }
    }

    /// The entry of a handle that leads to an object, and that.
    #[inline]
    fn slot(&self, handle: usize) -> Option<(&Slot<T>, *const T)> {
        if handle >> KIND_SHIFT != self.kind {
            return None;
        }
        let (chunk, place) = place(index(handle));
        let start = self.chunks.get(chunk)?.load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: a chunk has as many entries as `place` counts, and is never freed.
        let slot = unsafe { &*start.add(place) };
        let generation = (handle >> INDEX_BITS) as u32 & GENERATIONS;
        let object = slot.object.load(Ordering::Acquire).cast_const();
        let there = !object.is_null() && slot.generation.load(Ordering::Relaxed) == generation;
        there.then_some((slot, object))
    }

    /// The entry at `index`, whose chunk is made if need be. Under the lock.
    fn make_slot(&self, index: usize) -> &Slot<T> {
        let (chunk, place) = place(index);
        let mut start = self.chunks[chunk].load(Ordering::Acquire);
        if start.is_null() {
            let vacant =
                || Slot { object: AtomicPtr::new(std::ptr::null_mut()), generation: AtomicU32::new(0) };
            let slots: Box<[Slot<T>]> = (0..FIRST << chunk).map(|_| vacant()).collect();
            start = Box::into_raw(slots).cast();
            self.chunks[chunk].store(start, Ordering::Release);
        }
        // SAFETY: as in `slot`.
        unsafe { &*start.add(place) }
    }

    #[cold]
    fn stale<R>(&self, handle: usize) -> Result<R> {
        fail(self.class, format!("{handle:#x} is no {}: it is null, was freed, or never was one", self.what))
    }
}

impl<T> Reserved<'_, T> {
    /// The handle. It leads nowhere yet.
    pub fn handle(&self) -> usize {
        self.handle
    }

    /// Gives it its object.
    pub fn fill(self, object: Arc<T>) -> usize {
        let this = ManuallyDrop::new(self);
        let slot = this.table.make_slot(index(this.handle));
        slot.object.store(Arc::into_raw(object).cast_mut(), Ordering::Release);
        this.handle
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.table.vacate(&mut self.table.places.lock(), self.handle);
    }
}

#[inline]
fn index(handle: usize) -> usize {
    handle & ((1 << INDEX_BITS) - 1)
}

/// Chunk of an index, and place in it.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2();
    (chunk as usize, index - FIRST * ((1 << chunk) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_object_and_nowhere_once_it_is_freed() {
        let table = Table::new(3, "thing", 7);
        let mut handles: Vec<usize> = (0..5000).map(|i| table.insert(Arc::new(i)).unwrap()).collect();
        for (i, handle) in handles.iter().enumerate() {
            assert_eq!(*table.peek(*handle).unwrap(), i);
            assert!(*handle > 4096 && i32::try_from(*handle).is_ok());
        }
        let first = handles.swap_remove(0);
        assert_eq!(*table.remove(first).unwrap(), 0);
        for stale in [first, 0, 4 << KIND_SHIFT, usize::MAX, first + 7000] {
            assert_eq!(table.get(stale).unwrap_err().code(), 7);
            assert_eq!(table.remove(stale).unwrap_err().code(), 7);
        }
    }

    #[test]
    fn a_handle_that_is_reserved_leads_to_an_object_once_it_has_one() {
        let table = Table::new(3, "thing", 7);
        let (kept, released) = (table.reserve().unwrap(), table.reserve().unwrap());
        let handle = kept.handle();
        assert_eq!(table.get(handle).unwrap_err().code(), 7);
        assert_eq!(kept.fill(Arc::new(5)), handle);
        let unused = released.handle();
        drop(released);
        assert_eq!((*table.peek(handle).unwrap(), table.get(unused).unwrap_err().code()), (5, 7));
        assert_eq!(*table.remove(handle).unwrap(), 5);
    }

    #[test]
    fn a_place_that_is_used_again_has_another_handle() {
        let table = Table::new(1, "thing", 7);
        let mut seen = std::collections::HashSet::new();
        for i in 0..4096 {
            let handle = table.insert(Arc::new(i)).unwrap();
            assert!(seen.insert(handle), "handle {handle:#x} came again after {i} others");
            table.remove(handle).unwrap();
        }
        assert!(table.places.lock().used <= RESTING + 1);
    }
}
