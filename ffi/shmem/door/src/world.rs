//! The one job of the process, and its symmetric memory.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use transom::shmem::{Context, Options, Shmem, Team};

use crate::failure::{end_because, end_by};
use crate::handles::{Ctx, Table, TeamHandle};
use crate::{end, host, statics, variables};

/// Between `shmem_init` and `shmem_finalize`.
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
static STARTED: AtomicBool = AtomicBool::new(false);

/// What is there between start and end.
pub struct World {
    pub shmem: Shmem,
    pub contexts: Table<Context>,
    pub teams: Table<TeamObject>,
    pub thread_level: AtomicI32,
    /// The process that joined: a child of it is no PE.
    pub process: u32,
}

/// A team, and what its configuration was.
pub struct TeamObject {
    pub team: std::sync::Arc<Team>,
    pub contexts: c_int,
}

/// Whether these functions have joined the job of the process.
pub extern "C" fn has_job() -> bool {
    STARTED.load(Ordering::Acquire)
}

/// Whether shmem_finalize has been called.
pub fn has_ended() -> bool {
    STARTED.load(Ordering::Acquire) && WORLD.load(Ordering::Acquire).is_null()
}

/// The world, if it is there.
#[inline(always)]
pub fn peek() -> Option<&'static World> {
    // SAFETY: null, or leaked by `start` and freed by `take` in shmem_finalize, during and after which no thread makes a call
    // (OpenSHMEM 1.5 §9.1.4).
    unsafe { WORLD.load(Ordering::Acquire).as_ref() }
}

/// The world; without it the program has made a call too early or too late.
#[inline(always)]
pub fn world(call: &'static str) -> &'static World {
    match peek() {
        Some(world) => world,
        None => outside(call),
    }
}

#[cold]
#[inline(never)]
fn outside(call: &'static str) -> ! {
    end_because(call, "called before shmem_init or after shmem_finalize")
}

impl World {
    /// A context, or the default one.
    #[inline(always)]
    pub fn context(&'static self, call: &'static str, handle: Ctx) -> &'static Context {
        if handle == Ctx::DEFAULT { self.shmem.default_context() } else { self.made_context(call, handle) }
    }

    #[inline(always)]
    fn made_context(&'static self, call: &'static str, handle: Ctx) -> &'static Context {
        match self.contexts.get(handle.0) {
            Some(context) => context,
            None => no_context(call, handle),
        }
    }

    /// A team, none if it is `SHMEM_TEAM_INVALID`.
    pub fn team(
        &'static self,
        call: &'static str,
        handle: TeamHandle,
    ) -> Option<&'static std::sync::Arc<Team>> {
        match handle {
            TeamHandle::INVALID => None,
            TeamHandle::WORLD => Some(self.shmem.world()),
            TeamHandle::SHARED => Some(self.shmem.shared()),
            TeamHandle(number) => match self.teams.get(number) {
                Some(object) => Some(&object.team),
                None => {
                    end_because(call, &format!("{number:#x} is no team: it was destroyed, or never created"))
                }
            },
        }
    }
}

#[cold]
#[inline(never)]
fn no_context(call: &'static str, handle: Ctx) -> ! {
    end_because(call, &format!("{:#x} is no context: it was destroyed, or never created", handle.0))
}

/// Starts the job. Ends it if that fails.
pub fn start(call: &'static str, level: c_int) {
    if STARTED.swap(true, Ordering::AcqRel) {
        end_because(call, "called twice: a process joins one job, once");
    }
    let settings = variables::read().unwrap_or_else(|why| end_because(call, &why));
    let multiple = level == crate::calls::THREAD_MULTIPLE;
    let job = (host::get().join)(multiple).unwrap_or_else(|why| end_because(call, &why));
    settings.tell(job.rank());
    let options =
        Options { heap: settings.symmetric_size, statics: statics::find(), multiple, checks: settings.debug };
    let shmem = Shmem::start_with(&job, &options).unwrap_or_else(|error| end_by(call, &error));
    let world = World {
        shmem,
        contexts: Table::default(),
        teams: Table::default(),
        thread_level: AtomicI32::new(level),
        process: std::process::id(),
    };
    WORLD.store(Box::into_raw(Box::new(world)), Ordering::Release);
    end::at_exit();
}

/// The world, which is there for nobody else from now on.
pub fn take() -> Option<Box<World>> {
    let world = WORLD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: made by Box::into_raw in `start`; the swap gives it to one caller, and no other thread is in a call (see `peek`).
    (!world.is_null()).then(|| unsafe { Box::from_raw(world) })
}
