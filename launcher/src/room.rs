//! Whether the limits of this host leave room for what is to be started: asked before, since half a job is started in vain.

use std::process::ExitCode;

use nix::sys::resource::{Resource, getrlimit};
use transom_transport::limits;

use crate::facts;

/// Descriptors of a launcher or an agent: standard streams, the event loop, signals, what it looks up in /proc, and what the start of a
/// process takes.
const FILES: u64 = 24;
/// Those of the launcher for each agent, and of an agent for each rank: pipes, a socket, and an event descriptor.
const FILES_EACH: u64 = 4;
/// A stack that this command's code is content with, and its thread's where the main one may be smaller.
const STACK: usize = 1 << 20;

/// Calls `main` where there is a stack for it, whatever the limit is.
pub fn with_stack(main: fn(Vec<std::ffi::OsString>) -> ExitCode, args: Vec<std::ffi::OsString>) -> ExitCode {
    if limits::soft(Resource::RLIMIT_STACK).is_none_or(|limit| limit >= STACK) {
        return main(args);
    }
    // The process ends with this thread, and so do those who would die with the thread that started them.
    let thread = std::thread::Builder::new().stack_size(2 * STACK).spawn(move || main(args));
    match thread.map_err(|error| limits::no_process(&error, 1)) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        Err(error) => {
            crate::tell(&error);
            ExitCode::FAILURE
        }
    }
}

/// Whether a launcher may have the files for so many agents, or an agent its own without ranks.
///
/// # Errors
/// The limit, and what to do.
pub fn for_files(what: &str, agents: u64) -> Result<(), String> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| e.to_string())?;
    let wanted = FILES + FILES_EACH * agents;
    if soft >= wanted {
        return Ok(());
    }
    let whose = if hard < wanted { ", which the administrator limits" } else { "" };
    Err(format!("{what} needs {wanted} open files, and the limit is {soft} (ulimit -n){whose}: raise it"))
}

/// Whether this host lets an agent have the files and processes for so many ranks. (It raises its soft limit of files.)
///
/// # Errors
/// The limit, and what to do.
pub fn for_ranks(count: u32) -> Result<(), String> {
    let fewer = "raise it, or give fewer ranks (-n) or more hosts";
    let (_, files) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| e.to_string())?;
    let wanted = FILES + FILES_EACH * u64::from(count);
    if files < wanted {
        return Err(format!(
            "{count} ranks on one host need {wanted} open files in their agent, and the limit is {files} (ulimit -Hn): {fewer}"
        ));
    }
    let (processes, what) = facts::processes();
    if processes < u64::from(count) + 1 {
        return Err(format!(
            "{count} ranks on one host are {count} processes at least, and the limit is {processes} ({what}): {fewer}"
        ));
    }
    Ok(())
}
