//! The runtime's only unsafe code: where borrowed memory meets transports that work on raw addresses.

#![allow(
    unsafe_code,
    reason = "this module is the one place for it in the runtime; each block says why it is sound"
)]

mod room;
mod source;

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use transom_shm::{Caution, Direction, InPlace, Quiet, copy_own};
use transom_transport::memory::Parts;
use transom_transport::{
    ListTransfer, Memory, Part, Posted, Remote, Span, Transfer, Transport, TransportResult,
};
use zerocopy::{FromBytes, IntoBytes};

pub use room::Room;
pub(crate) use source::Source;

/// A raw buffer: memory that the caller has promised to keep valid. For language bindings, whose buffers and windows are
/// not borrowed.
#[derive(Debug, Clone, Copy)]
pub struct RawBuffer {
    start: *mut u8,
    len: usize,
}

// SAFETY: an address and a length; the caller that gives them to an operation has made the promise of `new`, for any
// thread.
unsafe impl Send for RawBuffer {}
// SAFETY: as above.
unsafe impl Sync for RawBuffer {}

impl RawBuffer {
    /// `len` bytes from `start` on.
    ///
    /// # Safety
    /// They are valid for reads, and for writes where something is to be written, until whatever they are given to has
    /// ended: an operation by its flush or the end of its epoch, a message by its request, a window by its free, attached memory
    /// by its detach. Until then nobody else writes them but as MPI-4.1 §12.7 lets programs access window memory.
    pub unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len: if start.is_null() { 0 } else { len } }
    }

    /// [`RawBuffer::new`] of an address that is not null, and of a length that need not be of a buffer: the short cut alone finds
    /// out whether it can be.
    ///
    /// # Safety
    /// As of [`RawBuffer::new`], if the length is no more than an address space holds.
    #[inline(always)]
    pub unsafe fn unchecked(start: *mut u8, len: usize) -> Self {
        Self { start, len }
    }

    /// Bytes of the program's in a call that blocks: it does not return before nobody reads them any more.
    #[inline]
    pub(crate) fn lent(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr().cast_mut(), len: bytes.len() }
    }

    /// The same of bytes that are written.
    #[inline]
    pub(crate) fn lent_mut(bytes: &mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len() }
    }

    /// No bytes.
    pub(crate) fn none() -> Self {
        Self { start: std::ptr::null_mut(), len: 0 }
    }

    /// Copies the bytes to mapped memory.
    #[inline(always)]
    pub(crate) fn put_to(self, memory: &Memory, displacement: usize) -> bool {
        // SAFETY: valid for reads of as many bytes, by the promise at `new`; more than an address space holds is in no memory.
        unsafe { memory.put_from(displacement, self.start, self.len) }
    }

    /// Copies mapped memory to the bytes.
    #[inline(always)]
    pub(crate) fn get_from(self, memory: &Memory, displacement: usize) -> bool {
        // SAFETY: as in `put_to`, for writes.
        unsafe { memory.get_to(displacement, self.start, self.len) }
    }

    /// Copies the bytes to a part of memory that is mapped. False, and nothing is done, if they do not fit or there are none.
    #[inline(always)]
    pub(crate) fn put_to_part(self, parts: &Parts, part: usize, offset: usize) -> bool {
        let Some(place) = parts.place(part, offset, self.len) else { return false };
        // SAFETY: the place has as many bytes; valid for reads of them, by the promise at `new`.
        unsafe { place.put_from(self.start, self.len) };
        true
    }

    /// Copies from a part of memory that is mapped to the bytes, likewise.
    #[inline(always)]
    pub(crate) fn get_from_part(self, parts: &Parts, part: usize, offset: usize) -> bool {
        let Some(place) = parts.place(part, offset, self.len) else { return false };
        // SAFETY: as in `put_to_part`, for writes.
        unsafe { place.get_to(self.start, self.len) };
        true
    }

    /// How many there are.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Address of the first byte.
    pub(crate) fn address(self) -> usize {
        self.start as usize
    }

    /// Some of the bytes, if there are so many.
    #[must_use]
    pub fn part(self, start: usize, len: usize) -> Option<Self> {
        let inside = start <= self.len && len <= self.len - start;
        inside.then(|| Self { start: self.start.wrapping_add(start), len })
    }

    /// The bytes as memory that peers may access.
    pub(crate) fn span(self) -> Span {
        // SAFETY: valid until the window has gone, the memory is detached, or the message has been received, by the promise at `new`;
        // accessed by Transom through the span only, and of a message that is sent only read.
        unsafe { Span::from_raw(self.start, self.len) }
    }

    /// The bytes as what an operation reads until its epoch ends.
    #[inline]
    pub(crate) fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: valid, and not written, until the operation is complete, by the promise at `new`.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// The bytes as what an operation writes until its epoch ends.
    #[inline]
    pub(crate) fn bytes_mut<'a>(self) -> &'a mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: valid, and accessed by nobody else, until the operation is complete, by the promise at `new`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

/// The promise that memory which is detached may be accessed for a while after that, if it is there still: for language bindings
/// whose programs do not wait for their peers before they detach, as other implementations of MPI let them.
#[derive(Debug, Clone, Copy)]
pub struct Lingering(());

impl Lingering {
    /// The promise.
    ///
    /// # Safety
    /// Whatever is mapped where the memory was, may be read and written for peers that access the memory that was detached, until this
    /// rank's next fence of the window, or until it attaches other memory there or frees the window. (What they access is up to the
    /// program, as that of attached memory is: MPI-4.1 §12.2.4 makes such an access erroneous.)
    pub unsafe fn new() -> Self {
        Self(())
    }

    /// Such memory.
    pub(crate) fn of(self, address: usize, len: usize) -> Left {
        Left { address, len, _promise: self }
    }
}

/// Memory that has been detached, and may be there still. Only the kernel touches it, which says so if it is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    address: usize,
    len: usize,
    _promise: Lingering,
}

impl Left {
    /// An access is made to a copy whose address has the same remainder: of the widest element, and of a cache line.
    const ALIGNMENT: usize = 64;
    /// Bytes of which it is tried at once whether they are there.
    const PAGE: usize = 4096;

    /// Where it was.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.address..self.address + self.len
    }

    /// Whether there is memory at all of an access's pages, as far as can be told.
    pub fn is_there(&self, address: usize, bytes: usize) -> bool {
        let mut byte = [0];
        let last = bytes.checked_sub(1).map(|last| address + last);
        (address..address + bytes)
            .step_by(Self::PAGE)
            .chain(last)
            .all(|at| self.copy(Direction::Read, at, &mut byte))
    }

    /// Calls `access` with a copy of the memory that holds `bytes` bytes at `address`, and their offset there; what has changed
    /// then is written back. `None` if the memory is not there.
    pub fn with<R>(&self, address: usize, bytes: usize, access: impl FnOnce(&Span, usize) -> R) -> Option<R> {
        let mut before = vec![0; bytes];
        if !self.copy(Direction::Read, address, &mut before) {
            return None;
        }
        let at = address % Self::ALIGNMENT;
        let copy = Span::anonymous(at + bytes).ok()?;
        copy.copy_in(at, &before).ok()?;
        let answer = access(&copy, at);
        let mut after = vec![0; bytes];
        copy.copy_out(at, &mut after).ok()?;
        (after == before || self.copy(Direction::Write, address, &mut after)).then_some(answer)
    }

    /// Copies between the memory and bytes here. False if it is not there, or not all of it.
    fn copy(&self, direction: Direction, address: usize, bytes: &mut [u8]) -> bool {
        let range = self.range();
        let inside = range.contains(&address) && bytes.len() <= range.end - address;
        // SAFETY: the bytes are a slice; the memory is inside the range of which `Lingering::new` has promised that it may be read
        // and written.
        inside && unsafe { copy_own(direction, bytes.as_mut_ptr(), address as u64, bytes.len()) }.is_ok()
    }
}

/// The descriptor of a transport to sleep on.
pub(crate) fn wait_fd(transport: &dyn Transport) -> BorrowedFd<'_> {
    // SAFETY: the transport, which is borrowed for as long, keeps it open (Transport::wait_fd).
    unsafe { BorrowedFd::borrow_raw(transport.wait_fd()) }
}

/// The user's memory as a span that peers may access.
///
/// The caller drops the result, and every region registered on it, and makes sure that no peer accesses the memory any
/// more, before it lets the exclusive borrow end: by a scope that cannot be left otherwise.
pub(crate) fn expose<T: FromBytes + IntoBytes>(memory: &mut [T]) -> Span {
    let bytes = size_of_val(memory);
    // SAFETY: exclusively borrowed while the span lives (see above), and reached only through it; every bit pattern
    // that a peer writes is a T (FromBytes), and every byte is initialised (IntoBytes).
    unsafe { Span::from_raw(memory.as_mut_ptr().cast(), bytes) }
}

/// Makes the user's memory shared memory, where it is: [`InPlace::share`]. The span is one of [`expose`] or [`RawBuffer::span`], and the first
/// result is dropped before the memory goes.
pub(crate) fn share_in_place(
    memory: &Span,
    caution: Caution,
    quiet: &Arc<dyn Quiet>,
) -> (InPlace, std::result::Result<Span, String>) {
    // SAFETY: such memory may be read and written until its owner has it back, which is after the window or attachment that
    // keeps the result has gone. Transports that work in it register it later than this.
    unsafe { InPlace::share(memory, caution, quiet) }
}

/// A vector whose elements peers access: nobody here can. If it is forgotten, so is the memory.
#[derive(Debug)]
pub(crate) struct ExposedVec<T> {
    start: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns its elements like a Vec, and gives no access to them.
unsafe impl<T: Send> Send for ExposedVec<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for ExposedVec<T> {}

impl<T: FromBytes + IntoBytes> ExposedVec<T> {
    /// The vector, out of reach, and a span over its elements.
    ///
    /// The span and its regions go, and no peer accesses them any more, before this value is dropped or taken.
    pub fn new(memory: Vec<T>) -> (Self, Span) {
        let mut memory = std::mem::ManuallyDrop::new(memory);
        let span = expose(&mut memory[..]);
        (Self { start: memory.as_mut_ptr(), len: memory.len(), capacity: memory.capacity() }, span)
    }

    /// Its bytes, to be put by an operation that owns it.
    pub fn origin(self: &Arc<Self>) -> OriginBuffer<'static>
    where
        T: Send + Sync + 'static,
    {
        let (start, len) = (self.start.cast_const().cast(), self.len * size_of::<T>());
        OriginBuffer::Vector(VectorBytes { start, len, vector: self.clone() })
    }

    /// Its bytes, to be filled by one get that owns it, or several of disjoint parts.
    pub fn result(self: &Arc<Self>) -> ResultBuffer<'static>
    where
        T: Send + Sync + 'static,
    {
        let (start, len) = (self.start.cast(), self.len * size_of::<T>());
        ResultBuffer { start, len, vector: Some(self.clone()), _bytes: std::marker::PhantomData }
    }

    /// The vector again.
    pub fn take(self) -> Vec<T> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the parts of a Vec that was not dropped; every bit pattern in it is a T (FromBytes).
        unsafe { Vec::from_raw_parts(this.start, this.len, this.capacity) }
    }
}

impl<T> Drop for ExposedVec<T> {
    fn drop(&mut self) {
        // SAFETY: as in `take`; drop runs once, and not after `take`.
        drop(unsafe { Vec::from_raw_parts(self.start, self.len, self.capacity) });
    }
}

/// Bytes that a peer may get while the caller waits, or keeps them: a span to be registered for reading only.
pub(crate) fn expose_read_only(bytes: &[u8]) -> Span {
    // SAFETY: valid for the borrow, during which the caller waits, or for as long as it keeps the bytes with the region. If the wait fails, the registration ends first; a
    // peer on this node that reads later reads what is there, through the kernel, and writes nothing.
    unsafe { Span::from_raw(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// A buffer of the agent's own, the first bytes of which a transport fills.
#[derive(Debug)]
pub(crate) struct Staging {
    start: *mut u8,
    capacity: usize,
    len: usize,
}

// SAFETY: it owns its bytes like a Box, and gives access to them only by value.
unsafe impl Send for Staging {}

impl Staging {
    /// The first `len` bytes of a buffer, or all of it.
    pub fn new(buffer: Box<[u8]>, len: usize) -> Self {
        let capacity = buffer.len();
        Self { start: Box::into_raw(buffer).cast(), capacity, len: len.min(capacity) }
    }

    /// Where a get into it goes. The caller keeps the staging until the get is complete.
    pub fn result(&self) -> ResultBuffer<'static> {
        ResultBuffer { start: self.start, len: self.len, vector: None, _bytes: std::marker::PhantomData }
    }

    /// The buffer, once no get is under way.
    pub fn take(self) -> Box<[u8]> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the parts of a boxed slice that was not dropped.
        unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(this.start, this.capacity)) }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: as in `take`; drop runs once, and not after `take`.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.capacity)) });
    }
}

/// The side of a put or a get that is here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LocalBuffer<'a> {
    /// A put reads it.
    Origin(&'a OriginBuffer<'a>),
    /// A get fills it.
    Result(&'a ResultBuffer<'a>),
}

impl<'a> From<&'a OriginBuffer<'_>> for LocalBuffer<'a> {
    #[inline(always)]
    fn from(origin: &'a OriginBuffer<'_>) -> Self {
        Self::Origin(origin)
    }
}

impl<'a> From<&'a ResultBuffer<'_>> for LocalBuffer<'a> {
    #[inline(always)]
    fn from(result: &'a ResultBuffer<'_>) -> Self {
        Self::Result(result)
    }
}

impl LocalBuffer<'_> {
    /// What the operation must keep until it is complete.
    #[inline]
    pub fn owner(self) -> Option<BufferOwner> {
        match self {
            Self::Origin(origin) => origin.owner(),
            Self::Result(result) => result.owner(),
        }
    }

    /// The first byte, if there are so many and they outlive the call.
    #[inline(always)]
    fn first(self, bytes: usize) -> *mut u8 {
        let (start, len, stays) = match self {
            Self::Origin(origin) => {
                let bytes = origin.bytes();
                (bytes.as_ptr().cast_mut(), bytes.len(), !origin.is_copied())
            }
            Self::Result(result) => (result.start, result.len, true),
        };
        assert!(
            bytes <= len && stays,
            "a transfer outside its own buffer, or of bytes that do not outlive the call"
        );
        start
    }

    /// Starts a put or a get of `len` bytes from `start` on. The memory outlives the operation: the epoch's scope does not
    /// end before the completion is reported.
    #[inline(always)]
    pub fn transfer(
        self,
        transport: &dyn Transport,
        remote: (&Remote, usize),
        (start, len): (usize, usize),
        context: u64,
    ) -> TransportResult<Posted> {
        let local = self.first(start.saturating_add(len)).wrapping_add(start);
        let transfer = Transfer { remote: remote.0, offset: remote.1, local, len, context };
        // SAFETY: in bounds as just checked. An OriginBuffer that is not copied is either owned by the pending operation, or
        // borrowed for longer than the epoch's scope, which waits for completions before it ends; either way valid and unchanged
        // until the completion. A ResultBuffer is exclusively borrowed for as long, and gives no other access.
        unsafe {
            match self {
                Self::Origin(_) => transport.put(&transfer),
                Self::Result(_) => transport.get(&transfer),
            }
        }
    }

    /// As [`LocalBuffer::transfer`], of parts of the buffer, one after the other.
    pub fn transfer_list(
        self,
        transport: &dyn Transport,
        remote: (&Remote, usize),
        parts: &[Part],
        context: u64,
    ) -> TransportResult<Posted> {
        let local = self.first(Part::measure(parts).1);
        let transfer = ListTransfer { remote: remote.0, offset: remote.1, local, parts, context };
        // SAFETY: in bounds as just checked; otherwise as in `transfer`.
        unsafe {
            match self {
                Self::Origin(_) => transport.put_list(&transfer),
                Self::Result(_) => transport.get_list(&transfer),
            }
        }
    }
}

/// A buffer that an operation owns until it is complete.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "what is in it is dropped with it, and not read")]
pub(crate) enum BufferOwner {
    /// A copy.
    Bytes(Arc<[u8]>),
    /// The user's vector ([`ExposedVec`]).
    Vector(Arc<dyn Any + Send + Sync>),
}

/// The bytes that a put reads.
#[derive(Debug)]
pub(crate) enum OriginBuffer<'a> {
    /// Borrowed for longer than the scope of the epoch.
    Scope(&'a [u8]),
    /// Borrowed for the call, which copies them.
    Copied(&'a [u8]),
    /// Owned by the operation.
    Owned(Arc<[u8]>),
    /// In a vector that the operation owns.
    Vector(VectorBytes),
}

/// The bytes of a vector, and the vector.
#[derive(Debug)]
pub(crate) struct VectorBytes {
    start: *const u8,
    len: usize,
    vector: Arc<dyn Any + Send + Sync>,
}

impl<'a> OriginBuffer<'a> {
    /// Bytes borrowed for longer than the scope of the epoch that they are put in.
    pub fn borrowed(bytes: &'a [u8]) -> Self {
        Self::Scope(bytes)
    }

    /// A copy of bytes, kept by the operation.
    pub fn owned(bytes: &[u8]) -> Self {
        Self::Owned(bytes.into())
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Scope(bytes) | Self::Copied(bytes) => bytes,
            Self::Owned(bytes) => bytes,
            // SAFETY: start and length are those of the vector's elements, all of whose bytes are initialised (IntoBytes);
            // the vector lives as long as `self`, and gives no access to them.
            Self::Vector(bytes) => unsafe { std::slice::from_raw_parts(bytes.start, bytes.len) },
        }
    }

    /// Whether the call copies them, after which they may go.
    #[inline]
    pub fn is_copied(&self) -> bool {
        matches!(self, Self::Copied(_))
    }

    /// Some of the bytes, to be put by an operation of their own.
    pub fn part(&self, range: std::ops::Range<usize>) -> Option<OriginBuffer<'_>> {
        let bytes = self.bytes().get(range)?;
        Some(match self {
            Self::Scope(_) => OriginBuffer::Scope(bytes),
            Self::Copied(_) => OriginBuffer::Copied(bytes),
            Self::Owned(_) | Self::Vector(_) => OriginBuffer::owned(bytes),
        })
    }

    /// What the operation must keep until it is complete.
    #[inline]
    pub fn owner(&self) -> Option<BufferOwner> {
        match self {
            Self::Scope(_) | Self::Copied(_) => None,
            Self::Owned(bytes) => Some(BufferOwner::Bytes(bytes.clone())),
            Self::Vector(bytes) => Some(BufferOwner::Vector(bytes.vector.clone())),
        }
    }
}

/// The bytes that a get writes.
#[derive(Debug)]
pub(crate) struct ResultBuffer<'a> {
    start: *mut u8,
    len: usize,
    /// The vector that the bytes are in, if the operation owns it.
    vector: Option<Arc<dyn Any + Send + Sync>>,
    _bytes: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a> ResultBuffer<'a> {
    /// Bytes borrowed exclusively for longer than the scope of the epoch that they are got in, or until the caller has
    /// awaited the get.
    pub fn borrowed(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), vector: None, _bytes: std::marker::PhantomData }
    }

    /// What the operation must keep until it is complete.
    pub fn owner(&self) -> Option<BufferOwner> {
        self.vector.clone().map(BufferOwner::Vector)
    }

    /// Whether the operation owns the buffer.
    #[inline]
    pub fn is_owned(&self) -> bool {
        self.vector.is_some()
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Some of the bytes, for a get of their own.
    pub fn part(&mut self, range: std::ops::Range<usize>) -> Option<ResultBuffer<'_>> {
        let inside = range.start <= range.end && range.end <= self.len;
        inside.then(|| ResultBuffer {
            start: self.start.wrapping_add(range.start),
            len: range.len(),
            vector: self.vector.clone(),
            _bytes: std::marker::PhantomData,
        })
    }

    /// The bytes, while no get into them is under way.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: made from an exclusive borrow of this length that lasts for 'a, or of a vector that is kept and gives no
        // other access.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}
