//! Replaces pages at their place, with the same contents: private ones by those of a memory file, and back.
//!
//! The replacement of a mapping by another is one step for whoever reads it: mremap(2) moves a filled mapping to where the old one
//! was. Who writes has to wait from before the copy until after it ([`Protector`]), or there must be nobody who does.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use super::protect::{Protected, Protector};
use super::silent::{self, Call};
use super::users::Users;
use super::{PAGE, maps};

/// Bytes that are copied before they are replaced: so much memory there is twice.
const AT_ONCE: usize = 64 << 20;

/// The file whose pages replace others: that of an address is at this offset.
#[derive(Debug, Clone, Copy)]
pub struct Pages<'a> {
    pub file: &'a OwnedFd,
    pub protector: Option<&'a Protector>,
}

/// What is mapped to begin with, somewhere: to be moved.
#[derive(Debug, Clone, Copy)]
pub enum New<'a> {
    /// Zeroes.
    Private,
    /// The file's bytes from an offset on, for all who map it.
    Shared(&'a OwnedFd, usize),
    /// The same until they are written.
    Copied(&'a OwnedFd, usize),
}

/// A mapping that has not found its place.
#[derive(Debug)]
pub struct Mapping(Range<usize>);

impl Mapping {
    pub fn new(len: usize, what: New<'_>) -> io::Result<Self> {
        let (flags, fd, offset) = match what {
            New::Private => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
            New::Shared(file, offset) => (libc::MAP_SHARED, file.as_raw_fd(), offset),
            New::Copied(file, offset) => (libc::MAP_PRIVATE, file.as_raw_fd(), offset),
        };
        let offset =
            libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses a free place (mmap(2)): no memory that exists is affected.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(start as usize..start as usize + len))
    }

    pub fn start(&self) -> usize {
        self.0.start
    }

    /// The call that replaces as much memory from `to` on by this mapping.
    pub fn replace_call(&self, to: usize) -> Call {
        let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
        Call::new(libc::SYS_mremap, [self.0.start, self.0.len(), self.0.len(), flags, to], to)
    }

    /// It has found its place.
    pub fn forget(self) {
        std::mem::forget(self);
    }

    /// Replaces as much memory from `to` on.
    ///
    /// # Safety
    /// What is there may be replaced by what is here.
    pub unsafe fn replace(self, to: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { silent::run(&[self.replace_call(to)], &[])? };
        self.forget();
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, known to nobody else, and not moved (munmap(2)).
        unsafe { libc::munmap(self.0.start as *mut libc::c_void, self.0.len()) };
    }
}

/// A call that copies memory of this process to a file. The offset is the address if nothing else is said.
pub fn write_call(file: &OwnedFd, from: &Range<usize>, offset: usize) -> Call {
    let fd = file.as_raw_fd() as usize;
    Call::new(libc::SYS_pwrite64, [fd, from.start, from.len(), offset], from.len())
}

/// A call that copies from a file to memory of this process.
pub fn read_call(file: &OwnedFd, to: &Range<usize>, offset: usize) -> Call {
    let fd = file.as_raw_fd() as usize;
    Call::new(libc::SYS_pread64, [fd, to.start, to.len(), offset], to.len())
}

impl Pages<'_> {
    /// Has pages wait for writers, where it can.
    pub fn register(&self, pages: Range<usize>) -> io::Result<Option<Protected<'_>>> {
        self.protector.map(|protector| protector.register(pages)).transpose()
    }

    /// Replaces private pages, which only the owner of the memory writes, but no more than it writes elsewhere while this runs.
    ///
    /// # Safety
    /// The pages are private memory, or static data, of this process; the calling thread's stack and data are elsewhere. If there is no
    /// protector, nobody writes them meanwhile.
    pub unsafe fn share(&self, pages: &Range<usize>, is_static: bool) -> io::Result<()> {
        in_parts(pages, |part| {
            let touched = if is_static { vec![part.clone()] } else { maps::touched(&part)? };
            let new = Mapping::new(part.len(), New::Shared(self.file, part.start))?;
            let protected = self.register(part.clone())?;
            if let Some(protected) = &protected {
                protected.protect()?;
            }
            // And pages that were first written in between.
            let mut contents = Users::new();
            touched.iter().chain(&maps::present(&part)?).for_each(|run| contents.add(run));
            let contents = contents.all();
            for run in &contents {
                // SAFETY: pwrite reads memory of ours.
                unsafe { silent::run(&[write_call(self.file, run, run.start)], &[])? };
            }
            // SAFETY: the new pages have the contents of the old ones, by the caller's promise.
            unsafe { new.replace(part.start)? };
            drop(protected);
            contents.iter().for_each(populate);
            if maps::has_huge_pages() {
                contents.iter().for_each(collapse);
            }
            Ok(())
        })
    }

    /// Replaces a page that may hold the calling thread's stack, its data, and anything else of this process.
    ///
    /// # Safety
    /// It is a page of private memory of this process. If there is no protector, no other thread writes it meanwhile.
    pub unsafe fn share_edge(&self, page: usize) -> io::Result<()> {
        let pages = page..page + PAGE;
        let new = Mapping::new(PAGE, New::Shared(self.file, page))?;
        // SAFETY: the new page has the contents of the old one: nobody writes between the calls.
        unsafe { self.replace_silently(&pages, &new, &[write_call(self.file, &pages, page)])? };
        new.forget();
        Ok(())
    }

    /// Replaces pages of the file by private ones.
    ///
    /// # Safety
    /// As [`Pages::share`], for pages of the file; no peer writes them any more.
    pub unsafe fn restore(&self, pages: &Range<usize>) -> io::Result<()> {
        in_parts(pages, |part| {
            let new = Mapping::new(part.len(), New::Private)?;
            let protected = self.register(part.clone())?;
            if let Some(protected) = &protected {
                protected.protect()?;
            }
            self.read(&part, new.start())?;
            // SAFETY: the new pages have the contents of the old ones, by the caller's promise.
            unsafe { new.replace(part.start) }
        })
    }

    /// Replaces a page of the file as [`Pages::share_edge`].
    ///
    /// # Safety
    /// As [`Pages::share_edge`], for a page of the file; no peer writes it any more.
    pub unsafe fn restore_edge(&self, page: usize) -> io::Result<()> {
        let new = Mapping::new(PAGE, New::Private)?;
        let to = new.start()..new.start() + PAGE;
        // SAFETY: as in `share_edge`.
        unsafe { self.replace_silently(&(page..page + PAGE), &new, &[read_call(self.file, &to, page)])? };
        new.forget();
        Ok(())
    }

    /// Copies what the file has of some pages to `to`, where there are zeroes.
    pub fn read(&self, pages: &Range<usize>, to: usize) -> io::Result<()> {
        for run in self.data(pages)? {
            let to = to + (run.start - pages.start);
            // SAFETY: into a mapping that the caller has made for it.
            unsafe { silent::run(&[read_call(self.file, &(to..to + run.len()), run.start)], &[])? };
        }
        Ok(())
    }

    /// The parts of some pages of which the file has memory.
    fn data(&self, pages: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
        let mut runs = Vec::new();
        let seek = |from: usize, what| {
            // SAFETY: lseek touches no memory; nobody reads this file by its position.
            let found = unsafe { libc::lseek(self.file.as_raw_fd(), from as libc::off_t, what) };
            usize::try_from(found).map_err(|_| io::Error::last_os_error())
        };
        let mut at = pages.start;
        while at < pages.end {
            let start = match seek(at, libc::SEEK_DATA) {
                Ok(start) => start,
                Err(e) if e.raw_os_error() == Some(libc::ENXIO) => break,
                Err(e) => return Err(e),
            };
            if start >= pages.end {
                break;
            }
            at = seek(start, libc::SEEK_HOLE)?.min(pages.end);
            runs.push(start.max(pages.start)..at);
        }
        Ok(runs)
    }

    /// Makes calls, and has `new` replace pages, while nobody writes these.
    ///
    /// # Safety
    /// After the calls `new` has what the pages have. If there is no protector, no other thread writes them meanwhile.
    pub unsafe fn replace_silently(
        &self,
        pages: &Range<usize>,
        new: &Mapping,
        calls: &[Call],
    ) -> io::Result<()> {
        let protected = self.register(pages.clone())?;
        let protect = protected.as_ref().map(Protected::protect_call);
        let release: Vec<Call> = protected.as_ref().map(Protected::release_call).into_iter().collect();
        let calls: Vec<Call> =
            protect.into_iter().chain(calls.iter().copied()).chain([new.replace_call(pages.start)]).collect();
        // SAFETY: the caller's promise.
        let made = unsafe { silent::run(&calls, &release) };
        // Whoever waits for an edge of the heap may have the allocator's lock: nothing is freed before it goes on.
        drop(protected);
        made
    }

    /// Gives the file's memory of some pages back.
    pub fn discard(&self, pages: &Range<usize>) -> io::Result<()> {
        let how = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (start, len) = (pages.start as libc::off_t, pages.len() as libc::off_t);
        // SAFETY: fallocate(2) changes bytes of the file that nothing maps, by the caller's word; others see zeroes.
        match unsafe { libc::fallocate(self.file.as_raw_fd(), how, start, len) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn in_parts(pages: &Range<usize>, mut each: impl FnMut(Range<usize>) -> io::Result<()>) -> io::Result<()> {
    pages.clone().step_by(AT_ONCE).try_for_each(|start| each(start..pages.end.min(start + AT_ONCE)))
}

/// Has huge pages take the place of small ones, where the kernel can.
fn collapse(pages: &Range<usize>) {
    const HUGE: usize = 2 << 20;
    let (start, end) = (pages.start.next_multiple_of(HUGE), pages.end / HUGE * HUGE);
    if start < end {
        // SAFETY: the advice changes no contents; a kernel that does not know it leaves the pages as they are (madvise(2)).
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_COLLAPSE) };
    }
}

/// Has the pages of a memory file there before they are touched.
fn populate(pages: &Range<usize>) {
    // SAFETY: the advice changes no contents; a kernel that does not know it leaves it to the first touch (madvise(2)).
    unsafe { libc::madvise(pages.start as *mut libc::c_void, pages.len(), libc::MADV_POPULATE_WRITE) };
}
