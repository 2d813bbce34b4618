//! Which limit is behind a rank's end, where the signal alone does not say so.

use nix::sys::resource::Resource;
use nix::sys::signal::Signal;
use transom_transport::limits::{self, cgroup};

use crate::facts;
use crate::frames::Status;
use crate::info::host::bytes;

/// A limit on stacks below this is unusual.
const SMALL_STACK: usize = 2 << 20;

/// The limits of this process and of those that it starts which end one by a signal.
pub fn by_process(signal: Signal) -> Option<String> {
    let raise = |resource| Some(format!("{}: raise it", limits::text(resource)?));
    match signal {
        Signal::SIGXFSZ => raise(Resource::RLIMIT_FSIZE),
        Signal::SIGXCPU => raise(Resource::RLIMIT_CPU),
        // A stack that is full, or memory that a program does not go on without.
        Signal::SIGSEGV | Signal::SIGBUS | Signal::SIGABRT | Signal::SIGILL => {
            let small = |limit: &usize| *limit < SMALL_STACK;
            let stack = limits::soft(Resource::RLIMIT_STACK)
                .filter(small)
                .and_then(|_| limits::text(Resource::RLIMIT_STACK));
            let memory = [Resource::RLIMIT_DATA, Resource::RLIMIT_AS].into_iter().filter_map(limits::text);
            let low: Vec<String> =
                stack.map(|text| text + ", where 8 MiB are usual").into_iter().chain(memory).collect();
            (!low.is_empty()).then(|| format!("{}: raise what is too low", low.join(", ")))
        }
        _ => None,
    }
}

/// What was so when the ranks were started.
#[derive(Debug)]
pub struct Causes {
    /// Processes that were ended for lack of memory, in this cgroup and on this host.
    of_group: Option<u64>,
    of_host: Option<u64>,
}

impl Causes {
    /// As it is now, before ranks are started.
    pub fn now() -> Self {
        Self { of_group: cgroup::memory_kills(), of_host: facts::memory_kills() }
    }

    /// What is behind the end of a rank that nobody asked to end.
    pub fn of(&self, status: Status) -> Option<String> {
        let Status::Signal { number, .. } = status else { return None };
        match Signal::try_from(number).ok()? {
            Signal::SIGKILL => self.no_memory(),
            signal => by_process(signal),
        }
    }

    fn no_memory(&self) -> Option<String> {
        let more =
            |now: Option<u64>, before: Option<u64>| now.zip(before).is_some_and(|(now, was)| now > was);
        if more(cgroup::memory_kills(), self.of_group) {
            let limit = cgroup::lowest(cgroup::Limit::Memory);
            let limit = limit.map_or_else(String::new, |limit| format!(" of {}", bytes(limit)));
            return Some(format!(
                "out of memory: its cgroup's limit{limit} was reached (memory.max): raise it (sbatch --mem, docker --memory), or use \
                 fewer ranks or less memory"
            ));
        }
        more(facts::memory_kills(), self.of_host).then(|| {
            "out of memory, as it seems: the kernel ended a process of this host for lack of it meanwhile; use fewer ranks or less memory"
                .into()
        })
    }
}
