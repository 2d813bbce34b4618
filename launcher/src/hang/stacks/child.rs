//! `transom stacks`: the process that looks at stacks.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::alarm;

use super::process::{Files, Process};
use super::snapshot::{self, Snapshot};
use super::{LONGEST_LINE, Place, Thread};

/// Seconds after which this process ends, whatever it does; the agent has stopped listening before.
const LIFETIME: u32 = 4;
/// Bytes of memory that it may take.
const MEMORY: u64 = 1 << 30;

/// Takes `PROCESS:THREAD:WAITS…` and prints a line of JSON for each thread whose place can be had.
pub fn main(args: &[std::ffi::OsString]) -> ExitCode {
    alarm::set(LIFETIME);
    let _ = set_pdeathsig(Signal::SIGKILL);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = setrlimit(Resource::RLIMIT_DATA, MEMORY, MEMORY);
    let threads = args.iter().filter_map(|arg| arg.to_str()?.parse::<Thread>().ok());
    let (mut files, mut processes) = (Files::default(), BTreeMap::new());
    for thread in threads {
        let process = processes.entry(thread.process).or_insert_with(|| Process::open(thread.process).ok());
        let place = process.as_mut().and_then(|process| place(thread, process, &mut files));
        let line = place.and_then(|place| serde_json::to_string(&place.clean()).ok());
        let Some(line) = line.filter(|line| line.len() < LONGEST_LINE) else { continue };
        let mut out = std::io::stdout().lock();
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Of a thread that sleeps from outside; where that does not lead to the user's code, and of one that runs, it is stopped for a moment.
/// That may cut short what it sleeps in, which only Transom is known to be used to.
fn place(thread: Thread, process: &mut Process, files: &mut Files) -> Option<Place> {
    let mut find = |snapshot: &Snapshot, sure| process.place(snapshot, thread, sure, files);
    match snapshot::asleep(thread) {
        Some(snapshot) => {
            let place = find(&snapshot, true);
            let may = thread.waits || snapshot.can_be_stopped;
            place.or_else(|| {
                find(&may.then(|| snapshot::stopped(thread)).flatten().unwrap_or(snapshot), false)
            })
        }
        None => find(&snapshot::stopped(thread)?, false),
    }
}
