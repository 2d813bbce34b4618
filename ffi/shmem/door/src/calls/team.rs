//! Teams and contexts (OpenSHMEM 1.5 §9.4, §9.5).

use std::ffi::{c_int, c_long, c_void};
use std::sync::Arc;

use transom::shmem::Team;
use transom::{Class, Result};

use crate::failure::{end_because, end_by, or_end};
use crate::handles::{Ctx, TeamConfig, TeamHandle};
use crate::world::{TeamObject, World, world};

const NUM_CONTEXTS: c_long = 1;
const FAILED: c_int = -1;

/// `shmem_team_my_pe`.
pub unsafe fn team_my_pe(call: &'static str, team: TeamHandle) -> c_int {
    world(call).team(call, team).map_or(-1, |team| team.my_pe() as c_int)
}

/// `shmem_team_n_pes`.
pub unsafe fn team_n_pes(call: &'static str, team: TeamHandle) -> c_int {
    world(call).team(call, team).map_or(-1, |team| team.n_pes() as c_int)
}

/// `shmem_team_get_config`.
pub unsafe fn team_get_config(
    call: &'static str,
    team: TeamHandle,
    mask: c_long,
    config: *mut TeamConfig,
) -> c_int {
    let world = world(call);
    if world.team(call, team).is_none() {
        return FAILED;
    }
    if mask & NUM_CONTEXTS != 0 && !config.is_null() {
        let num_contexts = world.teams.get(team.0).map_or(0, |object| object.contexts);
        // SAFETY: valid for a configuration, by contract.
        unsafe { config.write(TeamConfig { num_contexts }) };
    }
    0
}

/// `shmem_team_translate_pe`.
pub unsafe fn team_translate_pe(call: &'static str, from: TeamHandle, pe: c_int, to: TeamHandle) -> c_int {
    let world = world(call);
    let (Some(from), Some(to)) = (world.team(call, from), world.team(call, to)) else { return -1 };
    let found = from.world_pe(pe as usize).and_then(|pe| to.pe_of(pe));
    found.map_or(-1, |pe| pe as c_int)
}

/// `shmem_team_ptr`.
pub unsafe fn team_ptr(
    call: &'static str,
    team: TeamHandle,
    address: *const c_void,
    pe: c_int,
) -> *mut c_void {
    let world = world(call);
    let pe = world.team(call, team).and_then(|team| team.world_pe(pe as usize));
    pe.and_then(|pe| world.shmem.address_at(address as usize, pe)).unwrap_or(0) as *mut c_void
}

/// How many contexts a configuration announces.
///
/// # Safety
/// Null, or valid for reads.
unsafe fn contexts(config: *const TeamConfig, mask: c_long) -> c_int {
    if config.is_null() || mask & NUM_CONTEXTS == 0 {
        return 0;
    }
    // SAFETY: by contract.
    unsafe { config.read() }.num_contexts
}

/// Gives the program the handle of a new team, or that of none.
///
/// # Safety
/// `place` is valid for a handle.
unsafe fn give(world: &World, place: *mut TeamHandle, team: Option<Team>, contexts: c_int) -> c_int {
    let object = team.map(|team| TeamObject { team: Arc::new(team), contexts });
    let (handle, code) = match object.map(|object| world.teams.insert(object)) {
        Some(Some(number)) => (TeamHandle(number), 0),
        Some(None) => (TeamHandle::INVALID, FAILED),
        None => (TeamHandle::INVALID, 0),
    };
    // SAFETY: by contract.
    unsafe { place.write(handle) };
    code
}

/// A new team, or none if the arguments are wrong, which all PEs find alike.
fn made<T>(call: &'static str, result: Result<T>) -> Option<T> {
    match result {
        Ok(team) => Some(team),
        Err(error) if error.class() == Class::Argument => None,
        Err(error) => end_by(call, &error),
    }
}

/// `shmem_team_split_strided`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn team_split_strided(
    call: &'static str,
    parent: TeamHandle,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    mask: c_long,
    new: *mut TeamHandle,
) -> c_int {
    let world = world(call);
    let sizes = usize::try_from(start).ok().zip(usize::try_from(size).ok());
    let team = world
        .team(call, parent)
        .zip(sizes)
        .and_then(|(parent, (start, size))| made(call, parent.split_strided(start, stride as isize, size)));
    // SAFETY: by contract.
    unsafe {
        match team {
            Some(team) => give(world, new, team, contexts(config, mask)),
            None => {
                new.write(TeamHandle::INVALID);
                FAILED
            }
        }
    }
}

/// `shmem_team_split_2d`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn team_split_2d(
    call: &'static str,
    parent: TeamHandle,
    xrange: c_int,
    x_config: *const TeamConfig,
    x_mask: c_long,
    x_team: *mut TeamHandle,
    y_config: *const TeamConfig,
    y_mask: c_long,
    y_team: *mut TeamHandle,
) -> c_int {
    let world = world(call);
    let xrange = usize::try_from(xrange).unwrap_or(0);
    let teams = world.team(call, parent).and_then(|parent| made(call, parent.split_2d(xrange)));
    // SAFETY: by contract.
    unsafe {
        match teams {
            Some((x, y)) => {
                let x = give(world, x_team, Some(x), contexts(x_config, x_mask));
                let y = give(world, y_team, Some(y), contexts(y_config, y_mask));
                x | y
            }
            None => {
                x_team.write(TeamHandle::INVALID);
                y_team.write(TeamHandle::INVALID);
                FAILED
            }
        }
    }
}

/// `shmem_team_destroy`: with the contexts that were made of it.
pub unsafe fn team_destroy(call: &'static str, team: TeamHandle) {
    let world = world(call);
    match team {
        TeamHandle::INVALID => return,
        TeamHandle::WORLD | TeamHandle::SHARED => end_because(call, "a predefined team cannot be destroyed"),
        _ => {}
    }
    let Some(object) = world.team(call, team).cloned() else { return };
    or_end(call, world.shmem.barrier(object.comm()));
    for number in world.contexts.numbers(|context| Arc::ptr_eq(context.team(), &object)) {
        drop(world.contexts.remove(number));
    }
    drop(world.teams.remove(team.0));
}

/// A context of a team.
///
/// # Safety
/// `place` is valid for a handle.
unsafe fn create(world: &World, team: Option<&Arc<Team>>, place: *mut Ctx) -> c_int {
    let number = team.and_then(|team| world.contexts.insert(world.shmem.context(team)));
    let (handle, code) = number.map_or((Ctx::INVALID, FAILED), |number| (Ctx(number), 0));
    // SAFETY: by contract.
    unsafe { place.write(handle) };
    code
}

/// `shmem_ctx_create`. What the options promise costs nothing if it is not promised.
pub unsafe fn ctx_create(call: &'static str, _options: c_long, ctx: *mut Ctx) -> c_int {
    let world = world(call);
    // SAFETY: by contract.
    unsafe { create(world, Some(world.shmem.world()), ctx) }
}

/// `shmem_team_create_ctx`.
pub unsafe fn team_create_ctx(
    call: &'static str,
    team: TeamHandle,
    _options: c_long,
    ctx: *mut Ctx,
) -> c_int {
    let world = world(call);
    // SAFETY: by contract.
    unsafe { create(world, world.team(call, team), ctx) }
}

/// `shmem_ctx_destroy`, when everything in it is complete.
pub unsafe fn ctx_destroy(call: &'static str, ctx: Ctx) {
    let world = world(call);
    match ctx {
        Ctx::INVALID => return,
        Ctx::DEFAULT => end_because(call, "the default context cannot be destroyed"),
        _ => {}
    }
    or_end(call, world.shmem.quiet(world.context(call, ctx)));
    drop(world.contexts.remove(ctx.0));
}

/// `shmem_ctx_get_team`.
pub unsafe fn ctx_get_team(call: &'static str, ctx: Ctx, place: *mut TeamHandle) -> c_int {
    let world = world(call);
    let team = if ctx == Ctx::INVALID { None } else { Some(world.context(call, ctx).team()) };
    let is = |other: &Arc<Team>| team.is_some_and(|team| Arc::ptr_eq(team, other));
    let handle = if team.is_none() {
        TeamHandle::INVALID
    } else if is(world.shmem.world()) {
        TeamHandle::WORLD
    } else if is(world.shmem.shared()) {
        TeamHandle::SHARED
    } else {
        let found = world.teams.numbers(|object| is(&object.team));
        found.first().map_or(TeamHandle::INVALID, |number| TeamHandle(*number))
    };
    // SAFETY: valid for a handle, by contract.
    unsafe { place.write(handle) };
    if handle == TeamHandle::INVALID { FAILED } else { 0 }
}
