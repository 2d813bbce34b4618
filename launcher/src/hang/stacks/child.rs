//! `transom stacks`: the process that looks at stacks.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::alarm;

use super::process::{Files, Process};
use super::{LONGEST_LINE, Place, Sight, Thread, Unseen};

/// Seconds after which this process ends, whatever it does; the agent has stopped listening before.
const LIFETIME: u32 = 4;
/// Bytes of memory that it may take.
const MEMORY: u64 = 1 << 30;
/// How long threads that run are looked at again: who waits in Transom sleeps most of the time, but not all of it.
const PATIENCE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

/// Takes `PROCESS:THREAD:WAITS…` and prints a line of JSON for each thread of which there is something to say.
pub fn main(args: &[std::ffi::OsString]) -> ExitCode {
    alarm::set(LIFETIME);
    let _ = set_pdeathsig(Signal::SIGKILL);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = setrlimit(Resource::RLIMIT_DATA, MEMORY, MEMORY);
    let mut threads: Vec<Thread> = args.iter().filter_map(|arg| arg.to_str()?.parse().ok()).collect();
    let (mut files, mut processes) = (Files::default(), BTreeMap::new());
    let give_up = Instant::now() + PATIENCE;
    loop {
        let is_last = Instant::now() >= give_up;
        let mut running = Vec::new();
        for thread in threads {
            let process = processes.entry(thread.process).or_insert_with(|| Process::open(thread.process));
            let sight = match place(thread, process, &mut files) {
                Ok(Some(place)) => Sight { thread: thread.thread, place: Ok(place) },
                Ok(None) => continue,
                Err(Unseen::Runs) if !is_last => {
                    running.push(thread);
                    continue;
                }
                Err(unseen) => Sight { thread: thread.thread, place: Err(unseen) },
            };
            if say(&sight.clean()).is_err() {
                return ExitCode::SUCCESS;
            }
        }
        if running.is_empty() {
            return ExitCode::SUCCESS;
        }
        threads = running;
        std::thread::sleep(PAUSE);
    }
}

fn say(sight: &Sight) -> io::Result<()> {
    let line = serde_json::to_string(sight)?;
    if line.len() >= LONGEST_LINE {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// None: it has ended, or its program tells no function.
fn place(
    thread: Thread,
    process: &mut io::Result<Process>,
    files: &mut Files,
) -> Result<Option<Place>, Unseen> {
    let found = match process {
        Ok(process) => process.look(thread),
        Err(error) => Err(io::Error::from(error.kind())),
    };
    match (found, process) {
        (Ok(Some(snapshot)), Ok(process)) => Ok(process.place(&snapshot, thread, files)),
        (Ok(_), _) => Err(Unseen::Runs),
        (Err(error), _) if error.kind() == io::ErrorKind::PermissionDenied => Err(Unseen::Forbidden),
        (Err(_), _) => Ok(None),
    }
}
