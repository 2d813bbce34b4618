//! The one job of the process, and its predefined communicators.

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::thread::ThreadId;

use parking_lot::Mutex;
use transom::{Communicator, Job};

use crate::abi::{self, COMM_SELF, COMM_WORLD, Comm, ERR_OTHER, Win};
use crate::comm::{self, CommObject};
use crate::failure::{Failure, Result, fail};
use crate::handlers::Handler;
use crate::shmem;

/// Whether the job is up.
static UP: AtomicBool = AtomicBool::new(false);
/// Whether `MPI_Init` has been called.
static INITIALIZED: AtomicBool = AtomicBool::new(false);
/// Whether `MPI_Finalize` has been called.
static FINALIZED: AtomicBool = AtomicBool::new(false);
static MULTIPLE: AtomicBool = AtomicBool::new(false);
static WORLD: OnceLock<World> = OnceLock::new();
/// The users of the job: `MPI_Init`, sessions, and OpenSHMEM. Locked while it starts and ends.
static USERS: Mutex<usize> = Mutex::new(0);

struct World {
    world: Arc<CommObject>,
    own: Arc<CommObject>,
    /// Taken when the job ends.
    job: Mutex<Option<Job>>,
    process: u32,
    thread_level: AtomicI32,
    main_thread: ThreadId,
}

/// Whether the job is up: between `MPI_Init` and `MPI_Finalize`, or while there is a session.
#[inline]
pub fn is_running() -> bool {
    UP.load(Ordering::Acquire)
}

/// Whether `MPI_Init` has been called.
pub fn was_started() -> bool {
    INITIALIZED.load(Ordering::Acquire)
}

/// Whether `MPI_Finalize` has been called.
pub fn was_finalized() -> bool {
    FINALIZED.load(Ordering::Acquire)
}

/// Whether several threads may be in calls at once.
#[inline]
pub fn is_multiple() -> bool {
    MULTIPLE.load(Ordering::Relaxed)
}

/// Starts the job unless it is up, for one more user.
pub fn join(level: c_int) -> Result<()> {
    let mut users = USERS.lock();
    if *users == 0 {
        start(level)?;
        UP.store(true, Ordering::Release);
    }
    if level == abi::THREAD_MULTIPLE {
        MULTIPLE.store(true, Ordering::Relaxed);
    }
    *users += 1;
    Ok(())
}

fn start(level: c_int) -> Result<()> {
    if let Some(world) = WORLD.get() {
        // Sessions have been here before.
        return match *world.job.lock() {
            Some(_) => Ok(()),
            None => fail(ERR_OTHER, "the job has ended by MPI_Finalize, and a process joins one job only"),
        };
    }
    if let Some(why) = shmem::LIBRARY.joined_elsewhere() {
        return fail(ERR_OTHER, why);
    }
    let job = transom::init()?;
    let own = job.group().incl(&[job.rank()])?;
    let own = job.create_from_group(&own, "MPI_COMM_SELF")?;
    let world = World {
        world: comm::predefined(Communicator::clone(&job), "MPI_COMM_WORLD"),
        own: comm::predefined(own, "MPI_COMM_SELF"),
        job: Mutex::new(Some(job)),
        process: std::process::id(),
        thread_level: AtomicI32::new(level),
        main_thread: std::thread::current().id(),
    };
    WORLD.set(world).or_else(|_| fail(ERR_OTHER, "the job was started twice"))
}

/// Ends the job after its last user; after sessions alone when the process ends, for there may be more of them.
pub fn leave() -> Result<()> {
    let mut users = USERS.lock();
    *users = users.saturating_sub(1);
    if *users > 0 {
        return Ok(());
    }
    if !was_started() {
        UP.store(false, Ordering::Release);
        static AT_EXIT: Once = Once::new();
        // SAFETY: `end_with_process` is a function of this library, whose handlers run before it is unloaded (atexit(3)).
        AT_EXIT.call_once(|| _ = unsafe { libc::atexit(end_with_process) });
        return Ok(());
    }
    end()
}

fn end() -> Result<()> {
    let job = world()?.job.lock().take();
    let ended = job.map_or(Ok(()), Job::finalize);
    UP.store(false, Ordering::Release);
    ended.map_err(Failure::from)
}

/// Ends the job at the end of the process, whoever uses it still: OpenSHMEM lets programs end so (OpenSHMEM 1.5 §9.1.4).
pub fn end_at_exit() -> Result<()> {
    *USERS.lock() = 0;
    end()
}

/// Whether this library has joined the job.
pub fn has_job() -> bool {
    WORLD.get().is_some()
}

/// The job, for who has joined it.
pub fn job() -> Result<Job> {
    let job = world()?.job.lock().clone();
    job.ok_or_else(|| Failure::new(ERR_OTHER, "the job has ended"))
}

/// Ends a job that only sessions have used. Not in a child of the process, which is no rank, nor while a session is open: who exits
/// then has not left the job, and the launcher says so.
extern "C" fn end_with_process() {
    if is_running() {
        return;
    }
    let Some(world) = WORLD.get().filter(|world| world.process == std::process::id()) else { return };
    let Some(job) = world.job.try_lock().and_then(|mut job| job.take()) else { return };
    // This thread's variables are gone by now.
    let ended = std::thread::Builder::new().spawn(|| job.finalize()).map(std::thread::JoinHandle::join);
    match ended {
        Ok(Ok(Ok(()))) => (),
        Ok(Ok(Err(error))) => {
            eprintln!("transom: {}: the end of the job: {error}", who());
            abort(ERR_OTHER);
        }
        Ok(Err(_)) | Err(_) => abort(ERR_OTHER),
    }
}

/// `MPI_Init`. Returns the level of thread support: what was asked for, as every level is there.
pub fn init(required: c_int) -> Result<c_int> {
    if INITIALIZED.swap(true, Ordering::AcqRel) {
        return fail(ERR_OTHER, "called twice");
    }
    let level = required.clamp(abi::THREAD_SINGLE, abi::THREAD_MULTIPLE);
    if let Err(failure) = join(level) {
        INITIALIZED.store(false, Ordering::Release);
        return Err(failure);
    }
    world()?.thread_level.store(level, Ordering::Relaxed);
    Ok(level)
}

/// `MPI_Finalize`. Attributes of `MPI_COMM_SELF` are deleted first (MPI-4.1 §11.2.4).
pub fn finalize() -> Result<()> {
    let world = world()?;
    if !was_started() || was_finalized() {
        return fail(ERR_OTHER, "called without MPI_Init, or twice");
    }
    world.own.attributes.delete_all(COMM_SELF.0)?;
    world.world.attributes.delete_all(COMM_WORLD.0)?;
    FINALIZED.store(true, Ordering::Release);
    leave()
}

fn world() -> Result<&'static World> {
    WORLD.get().ok_or_else(|| Failure::new(ERR_OTHER, "MPI_Init has not been called"))
}

/// The communicator of all ranks, if this library has joined a job.
#[inline]
pub fn all() -> Option<&'static CommObject> {
    WORLD.get().map(|world| &*world.world)
}

/// The level of thread support.
pub fn thread_level() -> Result<c_int> {
    Ok(world()?.thread_level.load(Ordering::Relaxed))
}

/// Whether this is the thread that called `MPI_Init`.
pub fn is_main_thread() -> Result<bool> {
    Ok(world()?.main_thread == std::thread::current().id())
}

/// The predefined communicator that a handle names, if it names one.
#[inline]
fn predefined(handle: Comm) -> Result<Option<&'static Arc<CommObject>>> {
    match handle {
        COMM_WORLD => Ok(Some(&world()?.world)),
        COMM_SELF => Ok(Some(&world()?.own)),
        _ => Ok(None),
    }
}

/// The communicator of a handle.
pub fn comm(handle: Comm) -> Result<Arc<CommObject>> {
    match predefined(handle)? {
        Some(comm) => Ok(comm.clone()),
        None => comm::COMMS.get(handle.0),
    }
}

/// A communicator for the length of a call that waits: the program may free it meanwhile, unless it is predefined (§7.4.3).
pub enum Held {
    Predefined(&'static CommObject),
    Own(Arc<CommObject>),
}

impl Deref for Held {
    type Target = CommObject;

    #[inline]
    fn deref(&self) -> &CommObject {
        match self {
            Self::Predefined(comm) => comm,
            Self::Own(comm) => comm,
        }
    }
}

/// The communicator of a handle, for a call that waits.
#[inline]
pub fn hold(handle: Comm) -> Result<Held> {
    match predefined(handle)? {
        Some(comm) => Ok(Held::Predefined(comm)),
        None => comm::COMMS.get(handle.0).map(Held::Own),
    }
}

/// The communicator of a handle, for the length of a call that waits for nothing (as [`crate::table::Table::peek`]).
#[inline]
pub fn peek(handle: Comm) -> Result<&'static CommObject> {
    match predefined(handle)? {
        Some(comm) => Ok(comm),
        None => comm::COMMS.peek(handle.0),
    }
}

/// The error handler of a communicator, or that for errors of no object if there is no such one (§9.3).
pub fn comm_handler(handle: Comm) -> Handler {
    match (comm(handle), comm::pending::handler(handle)) {
        (Ok(comm), _) => comm.handler.read().clone(),
        (Err(_), Some(handler)) => handler.read().clone(),
        (Err(_), None) => default_handler(),
    }
}

/// The error handler for errors of no object: that of `MPI_COMM_SELF` (MPI-4.0 §9.3); that of `MPI_COMM_WORLD`, as it was
/// before MPI-4, if the program has set this one only.
pub fn default_handler() -> Handler {
    let handler =
        |handle| comm(handle).map_or_else(|_| Handler::initial(), |comm| comm.handler.read().clone());
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

/// Whether the job goes on when a rank dies.
pub fn outlives_ranks() -> bool {
    WORLD.get().is_some_and(|world| world.world.comm.outlives_ranks())
}

/// This process in messages.
pub fn who() -> String {
    WORLD.get().map_or("before MPI_Init".into(), |world| format!("rank {}", world.world.comm.rank()))
}

/// Which of the programs that were started together this is; 0 where nobody says.
pub fn program() -> c_int {
    let job = WORLD.get().and_then(|world| world.job.lock().clone());
    let program = job.and_then(|job| job.program().ok()).unwrap_or(0);
    c_int::try_from(program).unwrap_or(0)
}

/// Ends this process, and has the launcher end the job with that exit code, 0 included.
pub fn end_job(code: c_int) -> ! {
    // The launcher may end this process, too, as soon as it is told.
    flush();
    let job = WORLD.get().and_then(|world| world.job.try_lock()?.clone());
    if let Some(Err(error)) = job.map(|job| job.abort(code)) {
        eprintln!("transom: {}: {error}", who());
    }
    exit(if code == 0 { 0 } else { failing(code) })
}

/// Ends this process by an error, and with it the job: the launcher ends the others.
pub fn abort(code: c_int) -> ! {
    if outlives_ranks() {
        // By its death alone the others would go on.
        end_job(failing(code));
    }
    flush();
    exit(failing(code))
}

/// An exit code, of which the system keeps one byte, that is not 0.
fn failing(code: c_int) -> c_int {
    if code & 0xff == 0 { 1 } else { code & 0xff }
}

fn flush() {
    // SAFETY: null flushes all of the program's output streams (fflush(3)).
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends the process without running handlers, which might wait for peers that wait for this one.
    unsafe { libc::_exit(code) }
}
