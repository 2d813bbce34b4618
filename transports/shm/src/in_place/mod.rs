//! The program's own memory becomes shared memory, where it is: its pages are replaced, with the same contents, by pages of a
//! memory file that other processes map.
//!
//! One file for the process, sparse, and as long as its address space: the page at an address has the address as its offset. So
//! ranges that overlap, or lie next to each other, are what they are in memory, and each is one mapping at a peer.
//!
//! What shares a page with the memory (*edges*: the heap's neighbours, a caller's frame) becomes shared with it, and is nobody else's
//! business: peers stay within the range that they were told. Pages become private again with their last user. A child of fork
//! gets private copies ([`fork`]).
//!
//! Nobody may write a page between the copy of its contents and its replacement. Other threads, and the kernel on behalf of
//! whoever else, wait ([`protect`]) or do not exist (then the runtime's own thread is kept quiet, [`Quiet`]); the calling thread makes
//! the system calls one behind the other without touching memory ([`silent`]).

mod fork;
mod maps;
mod protect;
mod ranges;
mod replace;
mod silent;
mod stack;
mod state;
#[cfg(test)]
mod tests;
mod users;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::Span;

pub(crate) use state::ADDRESSES;
use state::State;

/// Bytes of a page, on the processors where system calls can be made silently.
const PAGE: usize = 4096;

/// Threads of the runtime's own.
pub trait Quiet: Send + Sync {
    /// How many there are.
    fn threads(&self) -> usize;

    /// Calls `body` while they write nothing. False if they could not be kept quiet; then `body` is not called.
    fn keep(&self, body: &mut dyn FnMut()) -> bool;
}

/// What is refused though it could be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caution {
    /// Memory that shares a page with other memory: a device may be at work there.
    pub edges: bool,
    /// All memory, while the process has some that is locked or pinned: nothing tells which.
    pub held: bool,
}

/// Memory of the program's that windows are over: shared in place, or known to be not. To be dropped when nobody accesses it
/// any more from elsewhere: without other users it is private memory again then.
#[derive(Debug)]
pub struct InPlace {
    memory: Range<usize>,
    shared: bool,
}

/// What the process has shared. The address space is the process's, and so is this: ranks that are threads share it.
static STATE: Mutex<State> = Mutex::new(State::new());

impl InPlace {
    /// Shares memory in place. If that cannot be, peers reach it by cross-memory attach, and the reason is returned, too.
    ///
    /// # Safety
    /// It is memory of the program's that may be read and written until the result is dropped. No device works in it.
    pub unsafe fn share(
        memory: &Span,
        caution: Caution,
        quiet: &Arc<dyn Quiet>,
    ) -> (Self, Result<Span, String>) {
        let range = memory.address()..memory.address() + memory.len();
        let mut state = STATE.lock();
        // SAFETY: the caller's promise.
        let shared = unsafe { state.share(&range, caution, quiet) };
        let shared =
            shared.and_then(|fd| memory.in_place(fd).ok_or_else(|| "it is in a file already".into()));
        let this = match shared {
            Ok(_) => Self { memory: range, shared: true },
            Err(_) => Self::attached_in(&mut state, range),
        };
        (this, shared)
    }

    /// Memory that peers reach by cross-memory attach.
    pub fn attach(memory: &Span) -> Self {
        Self::attached_in(&mut STATE.lock(), memory.address()..memory.address() + memory.len())
    }

    /// Pages will be those of `file`, which has [`ADDRESSES`] bytes for them, unless there is one already.
    pub(crate) fn adopt(file: &Arc<OwnedFd>) {
        STATE.lock().adopted = Some(file.clone());
    }

    fn attached_in(state: &mut State, memory: Range<usize>) -> Self {
        if !memory.is_empty() {
            state.attached.add(&memory);
        }
        Self { memory, shared: false }
    }

    /// Whether memory of this process can be shared in place at all, and if so, while it has other threads, too.
    ///
    /// # Errors
    /// Why not.
    pub fn is_possible() -> Result<bool, String> {
        let mut state = STATE.lock();
        state.open()?;
        Ok(state.file.as_ref().is_some_and(|file| file.protector.is_some()))
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        let mut state = STATE.lock();
        match self.shared {
            true => state.release(&self.memory),
            false if self.memory.is_empty() => {}
            false => drop(state.attached.remove(&self.memory)),
        }
    }
}
