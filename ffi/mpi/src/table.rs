//! Handles of a program's own objects: numbers that lead to table entries, checked by generation.
//!
//! A handle is `kind (4 bits) | generation (6) | index (21)`: an `int` as well, so that the forms for Fortran are the
//! same number, and never one of the ABI's predefined ones, which are below 4096. A look-up is two loads and two
//! comparisons without a lock or a counter; what is stale, null or of another kind is found out and never followed.
//! Boxes behind tagged addresses would save a load, but a stale address has to be looked up in a registry before it is
//! followed, which costs more; and they are no `int`.
//!
//! Objects are reference-counted. [`Table::get`] counts; [`Table::peek`] does not, for the calls that take
//! nanoseconds: a program that frees an object while another thread gives it to a call is erroneous (MPI-4.1 §11.6.2).

use std::collections::VecDeque;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::abi::{TABLE, Word, narrow, wide};
use crate::failure::{Result, fail};

const INDEX_BITS: u32 = 21;
const GENERATION_BITS: u32 = 6;
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;
const GENERATIONS: u8 = (1 << GENERATION_BITS) - 1;
/// Entries that are there from the beginning: a power of two. Chunks follow, each with twice as many as the one before; none ever moves.
const FIRST: usize = 256;
const CHUNKS: usize = (INDEX_BITS - FIRST.ilog2()) as usize - 1;
/// Free entries that are kept in quarantine before the first of them is reused, so that stale handles stay stale for
/// longer.
const QUARANTINE: usize = 64;

struct Slot<T> {
    /// The handle that leads to the object; of a slot without one a number that leads to its neighbour.
    handle: AtomicUsize,
    object: AtomicPtr<T>,
}

impl<T> Slot<T> {
    /// The slot at `index`, without an object.
    const fn vacant(index: usize) -> Self {
        Self { handle: AtomicUsize::new(index ^ 1), object: AtomicPtr::new(std::ptr::null_mut()) }
    }
}

struct Places {
    used: usize,
    free: VecDeque<usize>,
    /// By index: the next object's, or this one's.
    generations: Vec<u8>,
}

/// The objects of one kind.
pub struct Table<T> {
    kind: usize,
    what: &'static str,
    /// The error class of handles that lead nowhere.
    class: c_int,
    first: [Slot<T>; FIRST],
    /// Behind the first.
    chunks: [AtomicPtr<Slot<T>>; CHUNKS],
    places: Mutex<Places>,
}

/// A handle that no other object gets. It can be used again when this goes.
pub struct Reserved<'t, T> {
    table: &'t Table<T>,
    handle: usize,
}

/// An object that was found. A pointer, which is compared with nothing once more, as a reference would be in an `Option`.
pub struct Found<'t, T> {
    object: *const T,
    table: PhantomData<&'t Table<T>>,
}

impl<T> Deref for Found<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as in `Table::peek`.
        unsafe { &*self.object }
    }
}

impl<T> Table<T> {
    /// An empty table. Every kind (1 to 15) has its own.
    pub const fn new(kind: usize, what: &'static str, class: c_int) -> Self {
        let chunks = [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS];
        let mut first = [const { Slot::vacant(0) }; FIRST];
        let mut index = 0;
        while index < FIRST {
            first[index].handle = AtomicUsize::new(index ^ 1);
            index += 1;
        }
        let places = Places { used: 0, free: VecDeque::new(), generations: Vec::new() };
        Self { kind, what, class, first, chunks, places: Mutex::new(places) }
    }

    /// A handle of a new object.
    pub fn insert(&self, object: Arc<T>) -> Result<Word> {
        Ok(self.reserve()?.fill(object))
    }

    /// A handle for an object that comes later.
    pub fn reserve(&self) -> Result<Reserved<'_, T>> {
        let mut places = self.places.lock();
        let index = match places.free.len() {
            0..QUARANTINE if places.used < FIRST << CHUNKS => {
                places.used += 1;
                places.generations.push(0);
                places.used - 1
            }
            _ => match places.free.pop_front() {
                Some(index) => index,
                None => return fail(crate::abi::ERR_NO_MEM, format!("there are too many {}s", self.what)),
            },
        };
        self.make_slot(index);
        let handle = wide(TABLE)
            | self.kind << KIND_SHIFT
            | usize::from(places.generations[index]) << INDEX_BITS
            | index;
        Ok(Reserved { table: self, handle })
    }

    /// The entry of a handle may be used again, by another handle.
    fn vacate(places: &mut Places, handle: usize) {
        if let Some(generation) = places.generations.get_mut(index(handle)) {
            *generation = (*generation + 1) & GENERATIONS;
        }
        places.free.push_back(index(handle));
    }

    /// Takes an object out; its handle is stale from now on.
    pub fn remove(&self, handle: Word) -> Result<Arc<T>> {
        let handle = wide(handle);
        let mut places = self.places.lock();
        let Some(slot) = self.slot(handle) else { return self.stale(handle) };
        slot.handle.store(index(handle) ^ 1, Ordering::Release);
        let object = slot.object.load(Ordering::Acquire);
        slot.object.store(std::ptr::null_mut(), Ordering::Release);
        Self::vacate(&mut places, handle);
        drop(places);
        // SAFETY: made by Arc::into_raw in `fill`, and taken out once, under the lock.
        Ok(unsafe { Arc::from_raw(object) })
    }

    /// The object of a handle.
    pub fn get(&self, handle: Word) -> Result<Arc<T>> {
        let object = std::ptr::from_ref(self.peek(handle)?);
        // SAFETY: the table holds one count, which is not released during the call (see the module); this adds one.
        unsafe {
            Arc::increment_strong_count(object);
            Ok(Arc::from_raw(object))
        }
    }

    /// The object of a handle, for the length of a call that does not free it.
    #[inline]
    pub fn peek(&self, handle: Word) -> Result<&T> {
        let handle = wide(handle);
        match self.slot(handle) {
            // SAFETY: it is there while the slot has its handle, kept by the table's count, which is not released during
            // the call: an object that another thread's call is using must not be freed (MPI-4.1 §11.6.2).
            Some(slot) => Ok(unsafe { &*slot.object.load(Ordering::Acquire) }),
            None => self.stale(handle),
        }
    }

    /// The same without an error, and only of the first slots.
    #[inline(always)]
    pub fn find(&self, handle: Word) -> Option<Found<'_, T>> {
        let handle = wide(handle);
        let slot = &self.first[handle % FIRST];
        // Both before the comparison: it takes an instruction less.
        let object = slot.object.load(Ordering::Acquire);
        (slot.handle.load(Ordering::Acquire) == handle).then_some(Found { object, table: PhantomData })
    }

    /// The slot of a handle that leads to an object.
    fn slot(&self, handle: usize) -> Option<&Slot<T>> {
        let slot = self.first.get(index(handle)).or_else(|| self.slot_behind(index(handle)))?;
        (slot.handle.load(Ordering::Acquire) == handle).then_some(slot)
    }

    /// The slot at an index behind the first ones, if its chunk is there.
    #[inline(never)]
    fn slot_behind(&self, index: usize) -> Option<&Slot<T>> {
        let (chunk, place) = place(index);
        let start = self.chunks.get(chunk)?.load(Ordering::Acquire);
        // SAFETY: a chunk has as many slots as `place` counts, and is never freed.
        (!start.is_null()).then(|| unsafe { &*start.add(place) })
    }

    /// The slot at `index`, whose chunk is made if need be. Under the lock.
    fn make_slot(&self, index: usize) -> &Slot<T> {
        if let Some(slot) = self.first.get(index) {
            return slot;
        }
        let (chunk, place) = place(index);
        let mut start = self.chunks[chunk].load(Ordering::Acquire);
        if start.is_null() {
            let begin = index - place;
            let slots: Box<[Slot<T>]> = (0..FIRST << (chunk + 1)).map(|i| Slot::vacant(begin + i)).collect();
            start = Box::into_raw(slots).cast();
            self.chunks[chunk].store(start, Ordering::Release);
        }
        // SAFETY: as in `slot_behind`.
        unsafe { &*start.add(place) }
    }

    #[cold]
    fn stale<R>(&self, handle: usize) -> Result<R> {
        fail(self.class, format!("{handle:#x} is no {}: it is null, was freed, or never was one", self.what))
    }
}

impl<T> Reserved<'_, T> {
    /// The handle. It leads nowhere yet.
    pub fn handle(&self) -> Word {
        narrow(self.handle)
    }

    /// Gives it its object.
    pub fn fill(self, object: Arc<T>) -> Word {
        let this = ManuallyDrop::new(self);
        let slot = this.table.make_slot(index(this.handle));
        slot.object.store(Arc::into_raw(object).cast_mut(), Ordering::Release);
        slot.handle.store(this.handle, Ordering::Release);
        narrow(this.handle)
    }
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        Table::<T>::vacate(&mut self.table.places.lock(), self.handle);
    }
}

#[inline]
fn index(handle: usize) -> usize {
    handle & ((1 << INDEX_BITS) - 1)
}

/// Chunk of an index behind the first ones, and place in it.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2();
    (chunk as usize - 1, index - FIRST * ((1 << chunk) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_object_and_nowhere_once_it_is_freed() {
        let table = Table::new(3, "thing", 7);
        let mut handles: Vec<Word> = (0..5000).map(|i| table.insert(Arc::new(i)).unwrap()).collect();
        for (i, handle) in handles.iter().enumerate() {
            assert_eq!(*table.peek(*handle).unwrap(), i);
            assert!((4096..1 << 32).contains(&wide(*handle)));
        }
        let first = handles.swap_remove(0);
        assert_eq!(*table.remove(first).unwrap(), 0);
        for stale in [first, 0, 4 << KIND_SHIFT, TABLE, Word::MAX, first + 7000] {
            assert_eq!(table.get(stale).unwrap_err().code(), 7);
            assert_eq!(table.remove(stale).unwrap_err().code(), 7);
        }
    }

    #[test]
    fn no_predefined_datatype_is_a_handle_of_a_table() {
        let kind = |handle: Word| wide(handle) >> KIND_SHIFT;
        for (ty, name) in crate::abi::DATATYPES {
            assert_ne!(kind(ty.0), kind(TABLE) | 8, "{name}");
        }
        for null in [crate::abi::REQUEST_NULL.0, crate::abi::MESSAGE_NULL.0, crate::abi::MESSAGE_NO_PROC.0] {
            assert!(wide(null) < 4096 || wide(null) < 1 << 31 && wide(TABLE) == 1 << 31, "{null:#x}");
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
        assert!(table.places.lock().used <= QUARANTINE + 1);
    }
}
