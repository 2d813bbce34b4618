//! A piece of this rank's heap, held by the windows over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transom_transport::{Span, TransportError, TransportResult};

use super::Heap;

/// A piece of this rank's heap. When it goes, its pages go back to the system, and what takes its place is zeroed.
#[derive(Debug)]
pub(crate) struct Piece {
    heap: Arc<Heap>,
    start: usize,
    len: usize,
    /// Its place is not given to anybody any more.
    retired: AtomicBool,
}

impl Piece {
    pub(super) fn new(heap: Arc<Heap>, start: usize, len: usize) -> Self {
        Self { heap, start, len, retired: AtomicBool::new(false) }
    }

    /// Offset in the heap.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The first `bytes` bytes.
    pub fn memory(&self, bytes: usize) -> TransportResult<Span> {
        if bytes > self.len {
            return Err(TransportError::Range { offset: 0, bytes, len: self.len });
        }
        match self.heap.own() {
            Some(own) => own.memory.part(self.start, bytes),
            None => Ok(Span::empty()),
        }
    }

    /// Peers may still access it, since they have not agreed to its end: no other window may take the place.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        match self.memory(self.len).and_then(|memory| memory.discard()) {
            Ok(()) if !*self.retired.get_mut() => self.heap.pieces.lock().give(self.start, self.len),
            Ok(()) => {}
            // Bytes that are not zero are given to nobody.
            Err(error) => tracing::error!(%error, "memory of a window could not be given back"),
        }
    }
}
