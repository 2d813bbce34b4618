//! The agent's part: a memory file that its ranks write to, and a look at them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::Resource;
use nix::unistd::{SysconfVar, sysconf};
use transom::waits::{ASK, Deaths, FILE_NAME, Notes, PAGE_BYTES, Page, now_ms};
use transom_transport::limits;

use super::stacks::{self, Thread};
use super::{Load, RankView, State};

/// How long ranks may take to answer: those that run do so in microseconds.
const PATIENCE: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(5);

/// What the agent shares with the ranks of its host.
#[derive(Debug)]
pub struct Pages {
    file: File,
    /// One for each rank that was started.
    events: Mutex<Vec<EventFd>>,
    /// Ranks that the file has room for.
    count: u32,
    /// Ranks of the job that have died.
    died: Mutex<u32>,
}

/// A rank to look at.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its number.
    pub rank: u32,
    /// Its process.
    pub pid: i32,
    /// Whether that has ended.
    pub ended: bool,
    /// Whether it waits for the others to join.
    pub joining: bool,
}

impl Pages {
    /// For so many ranks, which hear of the deaths of so many ranks of the job.
    ///
    /// # Errors
    /// The host has no memory files, or no room for one.
    pub fn new(count: u32, mortal: u32) -> io::Result<Self> {
        let bytes = u64::from(count) * PAGE_BYTES + Deaths::bytes(mortal);
        // Who makes a file longer than that is ended (setrlimit(2)).
        if limits::soft(Resource::RLIMIT_FSIZE).is_some_and(|limit| (limit as u64) < bytes) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = File::from(memfd_create(FILE_NAME, MFdFlags::MFD_CLOEXEC)?);
        file.set_len(bytes)?;
        Ok(Self { file, events: Mutex::default(), count, died: Mutex::default() })
    }

    /// What the next rank is to inherit.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub fn pass(&self) -> io::Result<[OwnedFd; 2]> {
        let event = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let passed = [self.file.as_fd().try_clone_to_owned()?, event.as_fd().try_clone_to_owned()?];
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        Ok(passed)
    }

    /// Tells all ranks that one of the job has died.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_death(&self, rank: u32) -> io::Result<()> {
        let mut died = self.died.lock().unwrap_or_else(PoisonError::into_inner);
        Deaths::new(&self.file, self.count).add(*died, rank)?;
        *died += 1;
        drop(died);
        self.ask();
        Ok(())
    }

    /// Has all ranks say what they hold, and look who has died.
    fn ask(&self) {
        for event in &*self.events.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = event.write(ASK);
        }
    }

    fn page(&self, local: usize) -> Page<'_> {
        Page::new(&self.file, local as u64)
    }
}

/// Looks at the ranks of this host, and waits a moment for those that can answer; `places`: also where in their program they are.
pub async fn look(pages: Option<Arc<Pages>>, subjects: Vec<Subject>, places: bool) -> Vec<RankView> {
    let asked = now_ms();
    if let Some(pages) = &pages {
        pages.ask();
    }
    let give_up = tokio::time::Instant::now() + PATIENCE;
    let views = loop {
        let views: Vec<(RankView, Option<i32>)> =
            subjects.iter().enumerate().map(|(local, of)| view(pages.as_deref(), local, of, asked)).collect();
        let open = |(view, _): &(RankView, Option<i32>)| {
            view.joined && !view.answered && matches!(view.state, State::Runs | State::Sleeps)
        };
        if !views.iter().any(open) || tokio::time::Instant::now() >= give_up {
            break views;
        }
        tokio::time::sleep(PAUSE).await;
    };
    let threads: Vec<Thread> = if places { views.iter().flat_map(threads).collect() } else { Vec::new() };
    let found = stacks::places(&threads).await;
    let with_places = |(mut view, first): (RankView, Option<i32>)| {
        let own = threads_of(&view, first);
        view.places = found.iter().filter(|sight| own.contains(&sight.thread)).cloned().collect();
        view
    };
    views.into_iter().map(with_places).collect()
}

/// The threads of a rank that say where it is: those in calls, else its first, if they are of this namespace.
fn threads_of(view: &RankView, first: Option<i32>) -> Vec<i32> {
    let waiting = view.waits.iter().map(|(wait, _)| wait.thread);
    match (first, view.state) {
        (None, _) | (_, State::Ended) => Vec::new(),
        (Some(first), _) if view.waits.is_empty() => vec![first],
        _ => waiting.collect(),
    }
}

fn threads((view, first): &(RankView, Option<i32>)) -> Vec<Thread> {
    let waits = view.joining || !view.waits.is_empty();
    threads_of(view, *first).into_iter().map(|thread| Thread { process: view.pid, thread, waits }).collect()
}

/// A rank, and its first thread unless that has another number here.
fn view(pages: Option<&Pages>, local: usize, of: &Subject, asked: u64) -> (RankView, Option<i32>) {
    let (mut notes, mut waits) = (None, Vec::new());
    if let Some(pages) = pages {
        let page = pages.page(local);
        (notes, waits) = (page.notes(), page.waits());
    }
    let now = now_ms();
    let since = |since_ms: u64| Duration::from_millis(now.saturating_sub(since_ms));
    let own = notes.as_ref().map_or(Some((of.pid, of.pid)), own_numbers);
    let (pid, thread) = own.unwrap_or((of.pid, of.pid));
    let (state, sleeps_in) = match of.ended {
        true => (State::Ended, None),
        // A rank may be started by a script, which is stopped with it or without it.
        false if state(of.pid) == State::Stopped => (State::Stopped, None),
        false => (state(pid), sleeps_in(pid, thread)),
    };
    let mut load = if of.ended { Load::default() } else { used(pid) };
    load.at = Duration::from_millis(now);
    if let Some(notes) = &notes {
        (load.ways, load.traffic) = (notes.ways.clone(), notes.traffic.clone());
    }
    let view = RankView {
        rank: of.rank,
        host: String::new(),
        pid,
        state,
        sleeps_in,
        joined: notes.is_some(),
        answered: notes.as_ref().is_some_and(|notes| notes.left || notes.at_ms >= asked),
        left: notes.as_ref().is_some_and(|notes| notes.left),
        joining: of.joining,
        held: notes.map(|notes| notes.held).unwrap_or_default(),
        waits: waits.into_iter().map(|wait| (wait.clone(), since(wait.since_ms))).collect(),
        places: Vec::new(),
        load,
    };
    (view, own.map(|_| thread))
}

/// What a process uses: proc_pid_stat(5), fields 14, 15 and 24.
fn used(pid: i32) -> Load {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let Some((_, rest)) = stat.rsplit_once(") ") else { return Load::default() };
    let fields: Vec<&str> = rest.split(' ').collect();
    let field = |number: usize| fields.get(number - 3).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let system =
        |var, default| sysconf(var).ok().flatten().and_then(|v| u64::try_from(v).ok()).unwrap_or(default);
    let ticks = system(SysconfVar::CLK_TCK, 100).max(1);
    Load {
        cpu: Duration::from_millis(field(14).saturating_add(field(15)).saturating_mul(1000) / ticks),
        resident: field(24).saturating_mul(system(SysconfVar::PAGE_SIZE, 4096)),
        ..Load::default()
    }
}

/// The numbers of the rank's process and of its first thread, if they are of this namespace.
fn own_numbers(notes: &Notes) -> Option<(i32, i32)> {
    let here = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    (here == notes.pid_namespace).then_some((notes.pid, notes.thread))
}

/// What a process does: it runs if any of its threads does, but for those of Transom.
fn state(pid: i32) -> State {
    let main = state_of(format!("/proc/{pid}/stat"));
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let runs = |thread: std::fs::DirEntry| {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        !name.starts_with("transom-") && state_of(thread.path().join("stat")) == State::Runs
    };
    if main == State::Sleeps && threads.into_iter().any(runs) { State::Runs } else { main }
}

/// proc_pid_stat(5): the state stands behind the command's name, which may hold anything.
fn state_of(stat: impl AsRef<Path>) -> State {
    let stat = std::fs::read(stat).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
        Some('R') => State::Runs,
        Some('T' | 't') => State::Stopped,
        Some('S' | 'D' | 'I') => State::Sleeps,
        _ => State::Ended,
    }
}

fn sleeps_in(pid: i32, thread: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/wchan")).ok()?;
    (name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then_some(name)
}
