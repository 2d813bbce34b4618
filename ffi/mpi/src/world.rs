//! The one job of the process, and its predefined communicators.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use parking_lot::Mutex;
use transom::{Communicator, Job};

use crate::abi::{self, COMM_SELF, COMM_WORLD, Comm, ERR_OTHER, Win};
use crate::comm::{self, CommObject};
use crate::failure::{Failure, Result, fail};
use crate::handlers::Handler;

const RUNNING: u8 = 1;
const FINALIZED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(0);
static MULTIPLE: AtomicBool = AtomicBool::new(false);
static WORLD: OnceLock<World> = OnceLock::new();

struct World {
    world: Arc<CommObject>,
    own: Arc<CommObject>,
    /// Taken by `MPI_Finalize`.
    job: Mutex<Option<Job>>,
    thread_level: c_int,
    main_thread: ThreadId,
}

/// Whether `MPI_Init` has been called, and `MPI_Finalize` has not.
#[inline]
pub fn is_running() -> bool {
    STATE.load(Ordering::Acquire) == RUNNING
}

/// Whether `MPI_Init` has been called.
pub fn was_started() -> bool {
    STATE.load(Ordering::Acquire) != 0
}

/// Whether `MPI_Finalize` has been called.
pub fn was_finalized() -> bool {
    STATE.load(Ordering::Acquire) == FINALIZED
}

/// Whether several threads may be in calls at once.
#[inline]
pub fn is_multiple() -> bool {
    MULTIPLE.load(Ordering::Relaxed)
}

/// Joins the job. Returns the level of thread support: what was asked for, as every level is there.
pub fn init(required: c_int) -> Result<c_int> {
    if was_started() {
        return fail(ERR_OTHER, "called twice");
    }
    let job = transom::init()?;
    let own = job.group().incl(&[job.rank()])?;
    let own = job.create_from_group(&own, "MPI_COMM_SELF")?;
    let level = required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE);
    let world = World {
        world: comm::predefined(Communicator::clone(&job), "MPI_COMM_WORLD"),
        own: comm::predefined(own, "MPI_COMM_SELF"),
        job: Mutex::new(Some(job)),
        thread_level: level,
        main_thread: std::thread::current().id(),
    };
    if WORLD.set(world).is_err() {
        return fail(ERR_OTHER, "called by two threads at once");
    }
    MULTIPLE.store(level == abi::THREAD_MULTIPLE, Ordering::Relaxed);
    STATE.store(RUNNING, Ordering::Release);
    Ok(level)
}

/// Leaves the job. Attributes of `MPI_COMM_SELF` are deleted first (MPI-4.1 §11.2.4).
pub fn finalize() -> Result<()> {
    let world = world()?;
    world.own.attributes.delete_all(COMM_SELF.0)?;
    world.world.attributes.delete_all(COMM_WORLD.0)?;
    let job = world.job.lock().take();
    let ended = job.map_or(Ok(()), Job::finalize);
    STATE.store(FINALIZED, Ordering::Release);
    ended.map_err(Failure::from)
}

fn world() -> Result<&'static World> {
    WORLD.get().ok_or_else(|| Failure::new(ERR_OTHER, "MPI_Init has not been called"))
}

/// The level of thread support.
pub fn thread_level() -> Result<c_int> {
    Ok(world()?.thread_level)
}

/// Whether this is the thread that called `MPI_Init`.
pub fn is_main_thread() -> Result<bool> {
    Ok(world()?.main_thread == std::thread::current().id())
}

/// The communicator of a handle.
pub fn comm(handle: Comm) -> Result<Arc<CommObject>> {
    match handle {
        COMM_WORLD => Ok(world()?.world.clone()),
        COMM_SELF => Ok(world()?.own.clone()),
        Comm(handle) => comm::COMMS.get(handle),
    }
}

/// The error handler of a communicator, or that for errors of no object if there is no such one (§9.3).
pub fn comm_handler(handle: Comm) -> Handler {
    comm(handle).map_or_else(|_| default_handler(), |comm| comm.handler.read().clone())
}

/// The error handler for errors of no object: that of `MPI_COMM_SELF` (MPI-4.0 §9.3); that of `MPI_COMM_WORLD`, as it was
/// before MPI-4, if the program has set this one only.
pub fn default_handler() -> Handler {
    let handler = |handle| comm(handle).map_or(Handler::Fatal, |comm| comm.handler.read().clone());
    match handler(COMM_SELF) {
        Handler::Fatal => handler(COMM_WORLD),
        other => other,
    }
}

/// The error handler of a window, or that for errors of no object if there is no such one (§9.3).
pub fn win_handler(handle: Win) -> Handler {
    match crate::win::get(handle) {
        Ok(win) => win.handler.read().clone(),
        Err(_) => default_handler(),
    }
}

/// This process in messages.
pub fn who() -> String {
    WORLD.get().map_or("before MPI_Init".into(), |world| format!("rank {}", world.world.comm.rank()))
}

/// Ends this process, and with it the job: the launcher ends the others.
pub fn abort(code: c_int) -> ! {
    let code = if code & 0xff == 0 { 1 } else { code & 0xff };
    // SAFETY: null flushes all of the program's output streams (fflush(3)).
    unsafe { libc::fflush(std::ptr::null_mut()) };
    // SAFETY: ends the process without running handlers, which might wait for peers that wait for this one.
    unsafe { libc::_exit(code) }
}
