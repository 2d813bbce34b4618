//! What the process has shared, and what it takes to share more, or less.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::maps::{self, Kind};
use super::protect::Protector;
use super::ranges::{edges_of, holds_thread, meet, pages_of, take_apart, without};
use super::replace::Pages;
use super::stack::{grow_stack, stack};
use super::users::Users;
use super::{Caution, PAGE, Quiet, fork, silent};
use crate::file;

/// Bytes of address space of a process, and so of the file: Linux gives no more to who does not ask for it.
pub const ADDRESSES: usize = 1 << 47;

/// Time between two looks whether other threads have ended, and how many there are.
const ENDING: (Duration, u32) = (Duration::from_micros(50), 5);

/// What is shared, and for whom.
pub struct State {
    pub file: Option<File>,
    /// What the file is to be, if it is not there yet.
    pub adopted: Option<Arc<OwnedFd>>,
    /// Pages of the file that are where they belong, by their users.
    pub shared: Users,
    /// The memory in them, to the byte.
    pub contents: Users,
    /// Memory that peers reach by cross-memory attach.
    pub attached: Users,
    /// Keeps the runtime's threads quiet, for those who cannot ask.
    quiet: Option<Arc<dyn Quiet>>,
    pub fork: fork::Prepared,
}

/// The file whose pages replace others.
pub struct File {
    pub fd: Arc<OwnedFd>,
    inode: u64,
    pub protector: Option<Protector>,
}

impl State {
    /// Nothing.
    pub const fn new() -> Self {
        Self {
            file: None,
            adopted: None,
            shared: Users::new(),
            contents: Users::new(),
            attached: Users::new(),
            quiet: None,
            fork: fork::Prepared::new(),
        }
    }

    /// [`super::InPlace::share`]: the file in which the memory is then.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn share(
        &mut self,
        memory: &Range<usize>,
        caution: Caution,
        quiet: &Arc<dyn Quiet>,
    ) -> Result<Arc<OwnedFd>, String> {
        if memory.is_empty() {
            return Err("it has no bytes".into());
        }
        if memory.end > ADDRESSES - PAGE {
            return Err("its address is beyond those of 47 bits".into());
        }
        let refused = |e: io::Error| format!("the system refuses: {e}");
        self.open()?;
        self.quiet = Some(quiet.clone());
        let pages = pages_of(memory);
        let kinds = self.kinds(&pages, memory, caution)?;
        let gaps = self.shared.gaps(&pages);
        let mut done = Vec::new();
        for gap in &gaps {
            for (part, kind) in kinds.iter().filter_map(|(part, kind)| Some((meet(part, gap)?, kind))) {
                // SAFETY: private memory, or static data, as just seen; the calling thread's stack and data can be at the edges
                // only, since all else is the caller's memory.
                let shared = self.quietly(*kind, |pages| unsafe { share_part(pages, &part, memory, *kind) });
                done.push(part);
                if let Err(e) = shared.and_then(|shared| shared.map_err(refused)) {
                    self.undo(&done, memory);
                    return Err(e);
                }
            }
        }
        self.shared.add(&pages);
        self.contents.add(memory);
        fork::prepare_for_forks();
        self.file.as_ref().map(|file| file.fd.clone()).ok_or_else(|| "there is no file".into())
    }

    /// Makes the file, if there is none.
    pub fn open(&mut self) -> Result<(), String> {
        if self.file.is_some() {
            return Ok(());
        }
        if !silent::AVAILABLE {
            return Err("not implemented for this processor".into());
        }
        if let Some(limited) = file::limit_below(ADDRESSES) {
            return Err(limited);
        }
        let fd = match self.adopted.take() {
            Some(fd) => fd,
            None => Arc::new(file::sealed("transom-memory", ADDRESSES).map_err(|e| e.to_string())?),
        };
        let inode = file::inode(fd.as_fd()).map_err(|e| e.to_string())?;
        self.file = Some(File { fd, inode, protector: Protector::new() });
        Ok(())
    }

    /// What the pages are that are not shared yet, if they can be.
    fn kinds(
        &self,
        pages: &Range<usize>,
        memory: &Range<usize>,
        caution: Caution,
    ) -> Result<Vec<(Range<usize>, Kind)>, String> {
        let unread = |e: io::Error| format!("/proc/self: {e}");
        let gaps = self.shared.gaps(pages);
        let mut found = maps::all().map_err(unread)?;
        if grow_stack(&found, pages) {
            found = maps::all().map_err(unread)?;
        }
        let stack_end = stack(&found).map(|stack| stack.start);
        if found.len() > maps::most() / 2 {
            return Err(format!("the process has {} mappings (vm.max_map_count)", found.len()));
        }
        let Some(File { inode, protector, .. }) = &self.file else { return Err("there is no file".into()) };
        let mut kinds = Vec::new();
        let mut at = pages.start;
        for mapping in &found {
            let Some(part) = meet(&mapping.pages, pages) else { continue };
            if part.start != at {
                break;
            }
            at = part.end;
            let in_place = matches!(mapping.kind, Kind::File(of, offset)
                if of == *inode && offset == mapping.pages.start);
            match mapping.kind {
                _ if in_place => {}
                _ if !self.shared.within(&part).is_empty() => {
                    return Err("it was mapped anew while another window is over it".into());
                }
                _ if stack_end == Some(part.start) => return Err("it is at the end of the stack".into()),
                Kind::Private | Kind::Stack | Kind::Static => kinds.push((part, mapping.kind)),
                Kind::File(..) => return Err("it is shared memory of the program's".into()),
                Kind::Other(what) => return Err(format!("it is {what}")),
            }
        }
        if at < pages.end {
            return Err("some of it is not mapped".into());
        }
        if kinds.is_empty() {
            return Ok(kinds);
        }
        if gaps.iter().any(holds_thread) {
            return Err("it shares a page with what the kernel writes of this thread".into());
        }
        if caution.edges && gaps.iter().any(|gap| !edges_of(gap, memory).is_empty()) {
            return Err("it shares pages with other memory, and a device may be at work there".into());
        }
        match maps::held().map_err(unread)? {
            _ if !caution.held => {}
            (0, 0) => {}
            (0, _) => return Err("the process has memory pinned for devices".into()),
            _ => return Err("the process has locked memory (mlock)".into()),
        }
        if protector.is_none() && gaps.iter().any(|gap| self.attached.any(gap)) {
            return Err("peers reach it by cross-memory attach, for another window".into());
        }
        Ok(kinds)
    }

    /// Calls `body` while nobody writes pages that it replaces, or they wait: which the kernel offers for no static data.
    pub fn quietly<R>(&self, kind: Kind, mut body: impl FnMut(Pages<'_>) -> R) -> Result<R, String> {
        let Some(File { fd, protector, .. }) = &self.file else { return Err("there is no file".into()) };
        if protector.is_some() && kind != Kind::Static {
            return Ok(body(Pages { file: fd, protector: protector.as_ref() }));
        }
        let quiet = self.quiet.as_ref().ok_or("the runtime has ended")?;
        let several = match kind {
            Kind::Static => "it is static data, and the process has several threads",
            _ => {
                "the process has several threads, and the kernel cannot have them wait (vm.unprivileged_userfaultfd, Linux 6.4)"
            }
        };
        let is_alone = || maps::threads().is_ok_and(|threads| threads <= 1 + quiet.threads());
        // A thread that has been joined counts until the kernel is done with it (pthread_join(3) comes back before).
        for _ in 0..ENDING.1 {
            if is_alone() {
                break;
            }
            std::thread::sleep(ENDING.0);
        }
        let mut result = Err(several.to_owned());
        let mut alone = || {
            if is_alone() {
                result = Ok(body(Pages { file: fd, protector: None }));
            }
        };
        match quiet.keep(&mut alone) {
            true => result,
            false => Err("the progress thread is busy".into()),
        }
    }

    /// Takes back what was shared in vain.
    fn undo(&self, parts: &[Range<usize>], memory: &Range<usize>) {
        // What cannot be taken back stays shared, with its contents: that harms nobody.
        for part in parts {
            let _ = self.restore(part, memory);
        }
    }

    /// One user less of some memory.
    pub fn release(&mut self, memory: &Range<usize>) {
        let _ = self.contents.remove(memory);
        for pages in self.shared.remove(&pages_of(memory)) {
            let _ = self.restore(&pages, memory);
        }
    }

    /// Makes those of some pages private that are still the file's, at their place; and gives the file's memory back. Pages that
    /// stay hold other memory, too, if they are not wholly in `memory`.
    fn restore(&self, pages: &Range<usize>, memory: &Range<usize>) -> Result<(), String> {
        let gone = |e: io::Error| e.to_string();
        let Some(inode) = self.file.as_ref().map(|file| file.inode) else { return Ok(()) };
        // The program may have moved or unmapped some: what is in use elsewhere stays.
        let mut unused = vec![pages.clone()];
        for mapping in maps::all().map_err(gone)? {
            let Kind::File(of, offset) = mapping.kind else { continue };
            if of != inode {
                continue;
            }
            if offset != mapping.pages.start {
                let kept = offset..offset + mapping.pages.len();
                unused = unused.into_iter().flat_map(|range| without(range, kept.clone())).collect();
            } else if let Some(part) = meet(&mapping.pages, pages) {
                // SAFETY: pages of the file at their place, as just seen. Whoever had them from here has ended all access.
                self.quietly(mapping.kind, |pages| unsafe { restore_part(pages, &part, memory) })?
                    .map_err(gone)?;
            }
        }
        let Some(file) = &self.file else { return Ok(()) };
        unused
            .iter()
            .try_for_each(|range| Pages { file: &file.fd, protector: None }.discard(range))
            .map_err(gone)
    }
}

/// # Safety
/// As [`Pages::share`]; the calling thread's stack and data may be in pages that are not wholly in `memory`.
unsafe fn share_part(
    pages: Pages<'_>,
    part: &Range<usize>,
    memory: &Range<usize>,
    kind: Kind,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    let edge = |page| unsafe { pages.share_edge(page) };
    // SAFETY: the caller's promise.
    take_apart(part, memory, edge, |inner| unsafe { pages.share(inner, kind == Kind::Static) })
}

/// # Safety
/// As [`share_part`], for pages of the file.
unsafe fn restore_part(pages: Pages<'_>, part: &Range<usize>, memory: &Range<usize>) -> io::Result<()> {
    // SAFETY: the caller's promise.
    let edge = |page| unsafe { pages.restore_edge(page) };
    // SAFETY: the caller's promise.
    take_apart(part, memory, edge, |inner| unsafe { pages.restore(inner) })
}
