//! A rank's own page, as the rank writes it.

use std::fs::{File, OpenOptions};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::page::{PAGE_BYTES, Page, WAITS};
use super::{
    Awaits, Deaths, FILE_NAME, Held, LISTED, LONGEST, Notes, ON_FAILURE, VARIABLE, Wait, Way, now_ms,
};
use crate::explain::Tally;

/// What may hold a lock of another rank.
pub(crate) trait Holds: std::fmt::Debug + Send + Sync {
    /// The lock that is held, if it is.
    fn held(&self) -> Option<Held>;
}

/// A rank's page.
#[derive(Debug)]
pub(crate) struct Board {
    file: File,
    local: u64,
    /// Ranks of this host.
    ranks: u32,
    pid: i32,
    thread: i32,
    pid_namespace: u64,
    /// A bit for each area of a wait that is in use.
    used: AtomicU8,
    holders: Mutex<Vec<Weak<dyn Holds>>>,
    tally: Arc<Tally>,
    ways: Vec<Way>,
}

/// Where a call has noted what it waits for, until it is dropped.
#[derive(Debug)]
pub(crate) struct WaitSlot<'a> {
    board: &'a Board,
    slot: u64,
    since_ms: u64,
    last: Wait,
}

impl Board {
    /// That of this process, if its launcher keeps one; and the descriptor by which it is asked for notes.
    pub fn from_env(tally: Arc<Tally>, ways: Vec<Way>) -> Option<(Self, OwnedFd)> {
        let value = std::env::var(VARIABLE).ok()?;
        let local: u64 = std::env::var("TRANSOM_LOCAL_RANK").ok()?.parse().ok()?;
        let ranks =
            std::env::var("TRANSOM_LOCAL_SIZE").ok().and_then(|ranks| ranks.parse().ok()).unwrap_or(0);
        let (file, event) = value.split_once(',')?;
        let (file, event): (RawFd, RawFd) = (file.parse().ok()?, event.parse().ok()?);
        let path = |fd: RawFd| format!("/proc/self/fd/{fd}");
        // A variable that has come here from another job may name any descriptors.
        let name = |fd| std::fs::read_link(path(fd)).ok()?.into_os_string().into_string().ok();
        let is_ours =
            name(file)?.starts_with(&format!("/memfd:{FILE_NAME}")) && name(event)?.contains("[eventfd]");
        if !is_ours {
            return None;
        }
        let opened = OpenOptions::new().read(true).write(true).open(path(file)).ok()?;
        if opened.metadata().ok()?.len() < (local + 1) * PAGE_BYTES {
            return None;
        }
        // The process's own number for it is given up with this.
        drop(transom_pmi::take_descriptor(file)?);
        let board = Self {
            file: opened,
            local,
            ranks,
            pid: nix::unistd::getpid().as_raw(),
            thread: nix::unistd::gettid().as_raw(),
            pid_namespace: std::fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino()),
            used: AtomicU8::new(0),
            holders: Mutex::default(),
            tally,
            ways,
        };
        board.write_notes();
        Some((board, transom_pmi::take_descriptor(event)?))
    }

    /// Whether the launcher tells of deaths in a job of so many ranks.
    pub fn tells_deaths(&self, job_ranks: usize) -> bool {
        let Ok(mortal) = u32::try_from(job_ranks) else { return false };
        let bytes = u64::from(self.ranks) * PAGE_BYTES + Deaths::bytes(mortal);
        let is_long_enough = || self.file.metadata().is_ok_and(|file| file.len() >= bytes);
        std::env::var_os(ON_FAILURE).is_some_and(|value| value == "notify") && is_long_enough()
    }

    /// The ranks that are gone, behind the first so many.
    pub fn deaths_behind(&self, known: usize) -> Vec<usize> {
        let known = u32::try_from(known).unwrap_or(u32::MAX);
        Deaths::new(&self.file, self.ranks).behind(known).into_iter().map(|rank| rank as usize).collect()
    }

    fn page(&self) -> Page<'_> {
        Page::new(&self.file, self.local)
    }

    /// Whom to ask for locks from now on.
    pub fn add_holder(&self, holder: Weak<dyn Holds>) {
        let mut holders = self.holders.lock();
        if holders.len() == holders.capacity() {
            holders.retain(|holder| holder.strong_count() > 0);
        }
        holders.push(holder);
    }

    /// Says what this rank holds.
    pub fn write_notes(&self) {
        self.write(false);
    }

    fn write(&self, left: bool) {
        let holders: Vec<_> = self.holders.lock().iter().filter_map(Weak::upgrade).collect();
        let held = holders.iter().filter_map(|holder| holder.held()).take(LISTED).collect();
        let Self { pid, thread, pid_namespace, .. } = *self;
        let network = self.ways.iter().map(|way| way.transport.as_str()).find(|name| *name != "shm");
        let mut traffic = self.tally.traffic(network.unwrap_or("shm"));
        if let Some(traffic) = &mut traffic {
            traffic.truncate(LISTED);
        }
        let ways = self.ways.clone();
        self.page().write_notes(&Notes {
            at_ms: now_ms(),
            pid,
            thread,
            pid_namespace,
            held,
            left,
            ways,
            traffic,
        });
    }

    /// A call has waited for so long: notes for what. `None` where as many threads wait already as have room.
    pub fn note(&self, call: &str, awaits: Awaits, waited: Duration) -> Option<WaitSlot<'_>> {
        let take = |used: u8| {
            (0..WAITS as u8).map(|slot| 1 << slot).find(|bit| used & bit == 0).map(|bit| used | bit)
        };
        let before = self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        let slot = u64::from((!before).trailing_zeros());
        let since_ms = now_ms().saturating_sub(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
        let last = wait(call, awaits, since_ms);
        self.page().write_wait(slot, &last);
        self.write_notes();
        Some(WaitSlot { board: self, slot, since_ms, last })
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.write(true);
    }
}

fn wait(call: &str, awaits: Awaits, since_ms: u64) -> Wait {
    let mut what = awaits.text;
    while what.len() > LONGEST {
        what.pop();
    }
    let on = awaits.on.into_iter().filter_map(|rank| u32::try_from(rank).ok()).collect();
    let thread = nix::unistd::gettid().as_raw();
    Wait { thread, call: call.to_owned(), what, since_ms, on, subject: awaits.subject }
}

impl WaitSlot<'_> {
    /// The call still waits, maybe for something else now.
    pub fn update(&mut self, call: &str, awaits: Awaits) {
        let now = wait(call, awaits, self.since_ms);
        if now != self.last {
            self.board.page().write_wait(self.slot, &now);
            self.last = now;
        }
    }
}

impl Drop for WaitSlot<'_> {
    fn drop(&mut self) {
        self.board.page().clear_wait(self.slot);
        self.board.used.fetch_and(!(1 << self.slot), Ordering::AcqRel);
    }
}
