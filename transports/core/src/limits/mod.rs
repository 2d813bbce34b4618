//! Limits of the system that stand in the way: what a mapping that is refused can be tried with, and what an error is to say.

pub mod cgroup;

use std::fmt::Display;

use nix::errno::Errno;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::{TransportError, TransportResult};

/// What mappings that take address space only are to be measured by under valgrind, whose tools read all that is mapped: so pages
/// come to it.
const UNDER_VALGRIND: usize = 1 << 30;

/// Whether valgrind runs this program.
pub fn is_under_valgrind() -> bool {
    // Its own libraries come first in each program that it runs.
    std::env::var_os("LD_PRELOAD").is_some_and(|list| list.to_string_lossy().contains("/vgpreload_"))
}

/// Bytes of address space that this process is to be content with, if there is a limit.
pub fn address_space() -> Option<usize> {
    let under_tool = is_under_valgrind().then_some(UNDER_VALGRIND);
    soft(Resource::RLIMIT_AS).into_iter().chain(under_tool).min()
}

/// Bytes of private memory that this process may map, if there is a limit (`RLIMIT_DATA`).
pub fn data() -> Option<usize> {
    soft(Resource::RLIMIT_DATA)
}

/// Bytes that a file may have, a memory file too, if there is a limit (`RLIMIT_FSIZE`).
pub fn file_size() -> Option<usize> {
    soft(Resource::RLIMIT_FSIZE)
}

/// A limit of this process, if there is one (getrlimit(2)).
pub fn soft(resource: Resource) -> Option<usize> {
    match getrlimit(resource) {
        Ok((limit, _)) if limit != RLIM_INFINITY => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        _ => None,
    }
}

/// A limit as people know it, if there is one: `the limit on open files is 16 (ulimit -n)`.
pub fn text(resource: Resource) -> Option<String> {
    let limit = soft(resource)?;
    let (what, option) = match resource {
        Resource::RLIMIT_AS => ("address space", 'v'),
        Resource::RLIMIT_DATA => ("data", 'd'),
        Resource::RLIMIT_STACK => ("stacks", 's'),
        Resource::RLIMIT_FSIZE => ("the size of files", 'f'),
        Resource::RLIMIT_CORE => ("core dumps", 'c'),
        Resource::RLIMIT_MEMLOCK => ("locked memory", 'l'),
        Resource::RLIMIT_NOFILE => ("open files", 'n'),
        Resource::RLIMIT_NPROC => ("this user's processes and threads", 'u'),
        Resource::RLIMIT_CPU => ("seconds of CPU time", 't'),
        _ => return None,
    };
    let limit = match resource {
        Resource::RLIMIT_NOFILE | Resource::RLIMIT_NPROC | Resource::RLIMIT_CPU => limit.to_string(),
        _ if limit >= 1 << 20 => format!("{} MiB", limit >> 20),
        _ => format!("{} KiB", limit >> 10),
    };
    Some(format!("the limit on {what} is {limit} (ulimit -{option})"))
}

/// The limits that may be what a system call failed by, and what to do; none of an error that no limit makes.
pub fn behind(errno: Errno) -> Option<String> {
    match errno {
        Errno::EMFILE => Some(format!("{}: raise it", text(Resource::RLIMIT_NOFILE)?)),
        Errno::ENFILE => Some("the system's limit on open files (fs.file-max) is reached: raise it".into()),
        Errno::EFBIG => Some(format!("{}: raise it", text(Resource::RLIMIT_FSIZE)?)),
        Errno::ENOMEM => {
            let limits: Vec<String> =
                [Resource::RLIMIT_AS, Resource::RLIMIT_DATA].into_iter().filter_map(text).collect();
            (!limits.is_empty()).then(|| format!("{}: raise it", limits.join(" and ")))
        }
        _ => None,
    }
}

/// An error of the system's, with the limit that may be behind it.
pub fn named(error: &std::io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw).and_then(behind) {
        Some(limit) => format!("{error}; {limit}"),
        None => error.to_string(),
    }
}

/// An error of the start of a process or thread, with all that limits their number. `wanted`: how many more there are to be.
pub fn no_process(error: &std::io::Error, wanted: usize) -> String {
    if error.raw_os_error() != Some(Errno::EAGAIN as i32) {
        return named(error);
    }
    // A thread's stack is private memory: EAGAIN means that, too (pthread_create(3)).
    let memory = [Resource::RLIMIT_DATA, Resource::RLIMIT_AS].into_iter().filter_map(text);
    let of_user = text(Resource::RLIMIT_NPROC).filter(|_| !nix::unistd::geteuid().is_root());
    let of_group =
        cgroup::lowest(cgroup::Limit::Processes).map(|limit| format!("the cgroup's pids.max is {limit}"));
    let limits: Vec<String> = of_user.into_iter().chain(of_group).chain(memory).collect();
    match limits.is_empty() {
        true => format!(
            "{error}; the system's limits (kernel.pid_max, kernel.threads-max) leave no more processes: raise them"
        ),
        false => format!(
            "{error}; {}: raise what is too low, for {wanted} processes or threads more",
            limits.join(", ")
        ),
    }
}

/// The error of a mapping of `bytes` bytes that the system refused, with what may limit it.
pub fn refused(bytes: usize, error: impl Display) -> TransportError {
    let limits: Vec<String> =
        [Resource::RLIMIT_AS, Resource::RLIMIT_DATA].into_iter().filter_map(text).collect();
    let remedy = match limits.is_empty() {
        false => format!("{}: raise it by {} MiB or more", limits.join(" and "), (bytes >> 20) + 1),
        true => "there is no limit on address space (ulimit -v), so a tool that runs the program (valgrind, a sanitizer) or \
                 the system (vm.overcommit_memory, vm.max_map_count) leaves no more"
            .into(),
    };
    TransportError::NoMemory { bytes, reason: format!("mmap: {error}; {remedy}") }
}

/// Fails if a file may not have so many bytes. To be asked before: the system does not refuse a larger one, it sends SIGXFSZ, which
/// ends the process (setrlimit(2)).
///
/// # Errors
/// [`TransportError::NoMemory`], with the limit.
pub fn allow_file(bytes: usize) -> TransportResult<()> {
    match file_size().filter(|limit| *limit < bytes).and_then(|_| text(Resource::RLIMIT_FSIZE)) {
        None => Ok(()),
        Some(limit) => {
            let wanted = bytes.div_ceil(1 << 10);
            let reason = format!("{limit}, for files in memory, too: raise it to {wanted} KiB or more");
            Err(TransportError::NoMemory { bytes, reason })
        }
    }
}

/// Maps `most` bytes by `map`; as long as the system refuses that, a sixteenth of it, but never less than `least`. Tools and
/// limits leave little address space, most of which is to stay the program's.
///
/// # Errors
/// `least` bytes are refused, too; or `map` fails otherwise.
pub fn as_much<T>(
    most: usize,
    least: usize,
    map: impl Fn(usize) -> TransportResult<T>,
) -> TransportResult<T> {
    let mut bytes = most.max(least);
    loop {
        match map(bytes) {
            Err(TransportError::NoMemory { .. }) if bytes > least => {
                bytes = (bytes / 16).next_multiple_of(1 << 16).min(bytes / 2).max(least);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_mapping_is_tried_smaller() {
        let up_to = |limit| move |bytes| if bytes <= limit { Ok(bytes) } else { Err(refused(bytes, "no")) };
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(64 << 30)).unwrap(), 64 << 30);
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(63 << 30)).unwrap(), 4 << 30);
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(1 << 20)).unwrap(), 1 << 20);
        assert_eq!(as_much(0, 5, up_to(5)).unwrap(), 5);
        let error = as_much(64 << 30, 1 << 20, up_to(9)).unwrap_err();
        assert!(matches!(error, TransportError::NoMemory { bytes, .. } if bytes == 1 << 20), "{error}");
        assert!(error.to_string().contains("ulimit -v"), "{error}");
    }

    #[test]
    fn a_limit_is_named() {
        let files = soft(Resource::RLIMIT_NOFILE).unwrap();
        let error = named(&std::io::Error::from_raw_os_error(Errno::EMFILE as i32));
        assert!(
            error.ends_with(&format!("the limit on open files is {files} (ulimit -n): raise it")),
            "{error}"
        );
        assert_eq!(behind(Errno::EINVAL), None);
        let error = no_process(&std::io::Error::from_raw_os_error(Errno::EAGAIN as i32), 3);
        assert!(error.contains("raise"), "{error}");
        assert!(allow_file(1).is_ok());
    }
}
