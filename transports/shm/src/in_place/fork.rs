//! fork(2) while memory is shared in place: the child gets private copies, and nothing that it writes is seen by anybody else.
//!
//! Whole pages of windows are copied before the fork, and put in place by the child before it returns. Pages that hold other memory,
//! too, may be the stack on which parent and child return from the fork, so these are private in both while it lasts; then the
//! parent's are shared again: what was written to the other memory is kept, and of the window's bytes those that were changed
//! here. So where another thread forks, peers and this process see each other's changes to such a page when the fork is over.
//! Where many pages are shared ([`COPIED`]) the child gets the file's, private once it writes them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Once;

use nix::sys::memfd::{MFdFlags, memfd_create};
use parking_lot::MutexGuard;

use super::maps::Kind;
use super::ranges::holds_thread;
use super::replace::{Mapping, New, Pages, write_call};
use super::state::{File, State};
use super::{PAGE, STATE};

/// Bytes that are copied for a child.
const COPIED: usize = 1 << 30;

/// What was prepared for the child, and has to be taken back in the parent.
#[derive(Debug)]
pub struct Prepared {
    /// Copies, and where they belong.
    copies: Vec<(Option<Mapping>, Range<usize>)>,
    edges: Vec<usize>,
    /// What is in the edges before the fork, and after it.
    snapshots: Option<[OwnedFd; 2]>,
}

impl Prepared {
    pub const fn new() -> Self {
        Self { copies: Vec::new(), edges: Vec::new(), snapshots: None }
    }
}

/// From now on children of fork get private copies.
pub fn prepare_for_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: three functions that are there as long as this library (pthread_atfork(3)). Without memory for the entry children
        // share what their parents do.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    });
}

unsafe extern "C" fn before() {
    let mut state = STATE.lock();
    state.before_fork();
    // Held until the fork is over: by `end`, in both processes.
    std::mem::forget(state);
}

unsafe extern "C" fn in_parent() {
    // SAFETY: the lock is held, since `before`, by this thread.
    let mut state = unsafe { held() };
    state.after_fork();
}

unsafe extern "C" fn in_child() {
    // SAFETY: as in `in_parent`: the child's only thread is the one that called fork.
    let mut state = unsafe { held() };
    state.in_child();
}

/// # Safety
/// The calling thread holds the lock, and has forgotten its guard.
unsafe fn held() -> MutexGuard<'static, State> {
    // SAFETY: the caller's promise.
    unsafe { STATE.make_guard_unchecked() }
}

impl State {
    fn before_fork(&mut self) {
        let mut prepared = Prepared::new();
        // What cannot be prepared is as shared in the child as it is here.
        let _ = self.copy_pages(&mut prepared);
        let _ = self.make_edges_private(&mut prepared);
        self.fork = prepared;
    }

    /// Copies whole pages of windows.
    fn copy_pages(&self, prepared: &mut Prepared) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut left = COPIED;
        for pages in self.whole_pages() {
            let copy = match left.checked_sub(pages.len()) {
                Some(rest) => {
                    left = rest;
                    let copy = Mapping::new(pages.len(), New::Private)?;
                    Pages { file: &file.fd, protector: None }.read(&pages, copy.start())?;
                    Some(copy)
                }
                None => None,
            };
            prepared.copies.push((copy, pages));
        }
        Ok(())
    }

    /// Has the pages that hold other memory, too, be private.
    fn make_edges_private(&self, prepared: &mut Prepared) -> io::Result<()> {
        let mut edges = self.edges();
        edges.retain(|page| !holds_thread(&(*page..page + PAGE)));
        if edges.is_empty() {
            return Ok(());
        }
        let snapshot = || -> io::Result<OwnedFd> {
            let file = memfd_create("transom-fork", MFdFlags::MFD_CLOEXEC)?;
            nix::unistd::ftruncate(&file, (edges.len() * PAGE) as i64)?;
            Ok(file)
        };
        let [earlier, later] = [snapshot()?, snapshot()?];
        prepared.edges.reserve(edges.len());
        for (i, page) in edges.iter().enumerate() {
            let pages = *page..page + PAGE;
            let new = Mapping::new(PAGE, New::Copied(&earlier, i * PAGE))?;
            let copy = [write_call(&earlier, &pages, i * PAGE)];
            // SAFETY: the new page has, of the snapshot, what the old one has.
            let replaced =
                self.quietly(Kind::Private, |all| unsafe { all.replace_silently(&pages, &new, &copy) });
            if matches!(replaced, Ok(Ok(()))) {
                new.forget();
                prepared.edges.push(*page);
            } else if prepared.edges.len() < i + 1 {
                // Its place among the snapshots is not used.
                prepared.edges.push(0);
            }
        }
        prepared.snapshots = Some([earlier, later]);
        Ok(())
    }

    fn after_fork(&mut self) {
        let Prepared { copies, edges, snapshots } = std::mem::replace(&mut self.fork, Prepared::new());
        drop(copies);
        let Some(snapshots) = snapshots else { return };
        for (i, page) in edges.into_iter().enumerate().filter(|(_, page)| *page != 0) {
            // A page that cannot be shared again is private from now on.
            let _ = self.share_edge_again(page, i * PAGE, &snapshots);
        }
    }

    /// Shares a page again. Other memory in it is as it was written here; the windows' as in the file, but for what was changed here.
    fn share_edge_again(&self, page: usize, slot: usize, snapshots: &[OwnedFd; 2]) -> Result<(), String> {
        let failed = |e: io::Error| e.to_string();
        let [earlier, later] = snapshots;
        let pages = page..page + PAGE;
        let Some(file) = &self.file else { return Ok(()) };
        let new = Mapping::new(PAGE, New::Shared(&file.fd, page)).map_err(failed)?;
        let mut calls = vec![write_call(later, &pages, slot)];
        calls.extend(self.contents.gaps(&pages).iter().map(|other| write_call(&file.fd, other, other.start)));
        // SAFETY: the new page has the old one's bytes, where these are not the windows'.
        self.quietly(Kind::Private, |all| unsafe { all.replace_silently(&pages, &new, &calls) })?
            .map_err(failed)?;
        new.forget();
        self.merge(page, slot, [earlier, later]).map_err(failed)
    }

    /// Stores the windows' bytes that were changed in a page between two snapshots of it.
    fn merge(&self, page: usize, slot: usize, snapshots: [&OwnedFd; 2]) -> io::Result<()> {
        let read = |file: &OwnedFd| -> io::Result<[u8; PAGE]> {
            let mut bytes = [0; PAGE];
            let file = std::fs::File::from(file.as_fd().try_clone_to_owned()?);
            file.read_exact_at(&mut bytes, slot as u64)?;
            Ok(bytes)
        };
        let [earlier, later] = [read(snapshots[0])?, read(snapshots[1])?];
        for at in self.contents.within(&(page..page + PAGE)).into_iter().flatten() {
            if earlier[at - page] != later[at - page] {
                // SAFETY: a byte of a window that is in use, which programs and peers access without references.
                unsafe { (at as *mut u8).write_volatile(later[at - page]) };
            }
        }
        Ok(())
    }

    fn in_child(&mut self) {
        let Prepared { copies, .. } = std::mem::replace(&mut self.fork, Prepared::new());
        for (copy, pages) in copies {
            // SAFETY: the pages are the file's, and the new ones have what they had at the fork. What fails stays shared.
            let _ = match (copy, &self.file) {
                // SAFETY: as above.
                (Some(copy), _) => unsafe { copy.replace(pages.start) },
                // SAFETY: as above.
                (None, Some(file)) => unsafe { put_private(file, &pages) },
                (None, None) => Ok(()),
            };
        }
        // The child is no rank of the job.
        *self = Self::new();
    }

    /// Shared pages that hold nothing but memory of windows.
    fn whole_pages(&self) -> Vec<Range<usize>> {
        let edges = self.edges();
        let mut whole = Vec::new();
        for mut pages in self.shared.all() {
            for edge in edges.iter().filter(|edge| pages.contains(edge)).copied().collect::<Vec<_>>() {
                if pages.start < edge {
                    whole.push(pages.start..edge);
                }
                pages.start = edge + PAGE;
            }
            whole.extend((!pages.is_empty()).then_some(pages));
        }
        whole
    }

    /// Shared pages that hold other memory, too, in order.
    fn edges(&self) -> Vec<usize> {
        let mut edges = Vec::new();
        for pages in self.shared.all() {
            let others = self.contents.gaps(&pages).into_iter();
            edges.extend(others.flat_map(|other| [other.start / PAGE * PAGE, (other.end - 1) / PAGE * PAGE]));
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

/// Replaces pages of the file by private ones that have its contents until they are written.
///
/// # Safety
/// The pages are the file's.
unsafe fn put_private(file: &File, pages: &Range<usize>) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
    let (start, fd, offset) =
        (pages.start as *mut libc::c_void, file.fd.as_raw_fd(), pages.start as libc::off_t);
    // SAFETY: replaces pages by others with the same contents (mmap(2)), by the caller's promise.
    match unsafe { libc::mmap(start, pages.len(), access, flags, fd, offset) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
