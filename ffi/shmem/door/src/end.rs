//! The ways to end: shmem_finalize, return from main and exit without it, shmem_global_exit, and errors.

use std::ffi::{c_int, c_void};

use transom::Job;

use crate::failure::{end_because, end_by};
use crate::host;
use crate::world::{self, World};

unsafe extern "C" {
    /// on_exit(3): as atexit(3), with the exit code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Completes everything, waits for all PEs, and leaves the job (`shmem_finalize`).
pub fn finalize(call: &'static str) {
    end(call, host::get().leave);
}

/// Ends symmetric memory, and then the job by `leave`.
fn end(call: &'static str, leave: fn(Job) -> Result<(), String>) {
    let Some(world) = world::take() else { return };
    let World { shmem, contexts, teams, .. } = *world;
    drop((contexts, teams));
    let job = shmem.job().clone();
    if let Err(error) = shmem.finalize() {
        end_by(call, &error);
    }
    if let Err(why) = leave(job) {
        end_because(call, &why);
    }
}

/// Has the process leave the job in good order when it ends without shmem_finalize (OpenSHMEM 1.5 §9.1.4).
pub fn at_exit() {
    // SAFETY: a function of this library, whose handlers run before it is unloaded (on_exit(3)).
    unsafe { on_exit(end_with_process, std::ptr::null_mut()) };
}

/// A process that fails leaves the job to its launcher, which ends the others. A child of the process is no PE.
extern "C" fn end_with_process(code: c_int, _argument: *mut c_void) {
    if code != 0 || world::peek().is_none_or(|world| world.process != std::process::id()) {
        return;
    }
    // This thread's variables are gone by now.
    let ended = std::thread::Builder::new()
        .spawn(|| end("the end of the program", host::get().exit))
        .map(std::thread::JoinHandle::join);
    if !matches!(ended, Ok(Ok(()))) {
        exit(1);
    }
}

/// Ends this process, and has the launcher end the job with that exit code, 0 included (`shmem_global_exit`).
pub fn end_job(code: c_int) -> ! {
    // The launcher may end this process, too, as soon as it is told.
    flush();
    if let Some(world) = world::peek()
        && let Err(error) = world.shmem.job().abort(code)
    {
        eprintln!("transom: PE {}: the launcher was not told: {error}", world.shmem.my_pe());
    }
    exit(code)
}

fn flush() {
    // SAFETY: null flushes all of the program's output streams (fflush(3)).
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running handlers, which might wait for peers that wait for this one.
    unsafe { libc::_exit(code) }
}
