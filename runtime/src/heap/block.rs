//! A block of this rank's heap, held by the windows over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transom_transport::{Span, TransportError, TransportResult};

use super::Heap;

/// A block of this rank's heap. When it is dropped its pages go back to the system, so that the next block there is zeroed.
#[derive(Debug)]
pub(crate) struct Block {
    heap: Arc<Heap>,
    start: usize,
    len: usize,
    /// It is never allocated again.
    quarantined: AtomicBool,
}

impl Block {
    pub(super) fn new(heap: Arc<Heap>, start: usize, len: usize) -> Self {
        let this = Self { heap, start, len, quarantined: AtomicBool::new(false) };
        this.dump(true);
        this
    }

    /// Whether core dumps have it.
    fn dump(&self, wanted: bool) {
        if self.len <= Span::DUMPED
            && let Ok(memory) = self.memory(self.len)
        {
            memory.dump(wanted);
        }
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

    /// Peers may still access it, since they have not agreed to free it: no other window may be allocated there.
    pub fn quarantine(&self) {
        self.quarantined.store(true, Ordering::Relaxed);
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        self.dump(false);
        match self.memory(self.len).and_then(|memory| memory.discard()) {
            Ok(()) if !*self.quarantined.get_mut() => {
                self.heap.free_list.lock().release(self.start, self.len)
            }
            Ok(()) => {}
            // A block that is not zero is never allocated again.
            Err(error) => tracing::error!(%error, "memory of a window could not be given back"),
        }
    }
}
