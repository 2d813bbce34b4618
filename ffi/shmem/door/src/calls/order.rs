//! Contexts as arguments, and the order of operations (OpenSHMEM 1.5 §9.12).

use std::ffi::{c_int, c_long, c_void};

use transom::shmem::Context;

use crate::failure::{end_because, or_end};
use crate::handles::{Ctx, SessionConfig};
use crate::world::{World, world};

/// The context of a handle, and the world's number of a PE that it knows. A number that is none of the default context's stays one.
#[inline(always)]
pub fn target(world: &'static World, call: &'static str, ctx: Ctx, pe: c_int) -> (&'static Context, usize) {
    if ctx == Ctx::DEFAULT {
        return (world.shmem.default_context(), pe as usize);
    }
    let context = world.context(call, ctx);
    match context.pe(pe as usize) {
        Some(pe) => (context, pe),
        None => no_such_pe(call, pe, context),
    }
}

#[cold]
fn no_such_pe(call: &'static str, pe: c_int, context: &Context) -> ! {
    end_because(
        call,
        &format!("PE {pe} does not exist: there are {} in the context's team", context.team().n_pes()),
    )
}

/// `shmem_quiet`. Of no context nothing is complete (§9.10.2).
#[inline(always)]
pub unsafe fn quiet(call: &'static str, ctx: Ctx) {
    let world = world(call);
    if ctx == Ctx::INVALID {
        return;
    }
    or_end(call, world.shmem.quiet(world.context(call, ctx)));
}

/// `shmem_pe_quiet`: PEs are those of the context's team.
pub unsafe fn pe_quiet(call: &'static str, ctx: Ctx, pes: *const c_int, count: usize) {
    let world = world(call);
    if ctx == Ctx::INVALID || count == 0 {
        return;
    }
    if pes.is_null() {
        end_because(call, &format!("target_pes is NULL, of {count} PEs"));
    }
    // SAFETY: valid for so many numbers, by contract.
    let pes = unsafe { std::slice::from_raw_parts(pes, count) };
    let of_world = pes.iter().map(|pe| target(world, call, ctx, *pe).1);
    or_end(call, world.shmem.pe_quiet(world.context(call, ctx), call, of_world));
}

/// `shmem_ctx_session_start`: hints, which change nothing here.
pub unsafe fn ctx_session_start(
    call: &'static str,
    ctx: Ctx,
    _options: c_long,
    _config: *const SessionConfig,
    _mask: c_long,
) {
    // SAFETY: by contract.
    unsafe { ctx_session_stop(call, ctx) }
}

/// `shmem_ctx_session_stop`.
pub unsafe fn ctx_session_stop(call: &'static str, ctx: Ctx) {
    let world = world(call);
    if ctx != Ctx::INVALID {
        world.context(call, ctx);
    }
}

/// `shmem_fence`, likewise.
#[inline(always)]
pub unsafe fn fence(call: &'static str, ctx: Ctx) {
    let world = world(call);
    if ctx == Ctx::INVALID {
        return;
    }
    or_end(call, world.shmem.fence(world.context(call, ctx)));
}

macro_rules! caches {
    ($($name:ident($($line:ident)?);)*) => { $(
        #[doc = concat!("`shmem_", stringify!($name), "`: caches of processors are coherent, so that nothing is to be done (OpenSHMEM 1.4, annex F).")]
        pub unsafe fn $name(_call: &'static str $(, $line: *mut c_void)?) {}
    )* };
}

caches! {
    clear_cache_inv();
    set_cache_inv();
    clear_cache_line_inv(_line);
    set_cache_line_inv(_line);
    udcflush();
    udcflush_line(_line);
}
