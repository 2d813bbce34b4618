//! Collectives of teams, and of active sets, whose names are old (OpenSHMEM 1.5 §9.10).

use std::ffi::{c_int, c_long};

use transom::Communicator;
use transom::shmem::collective;

use crate::buffer::{bytes, bytes_mut, is_sound};
use crate::failure::{end_because, or_end, unsigned};
use crate::handles::TeamHandle;
use crate::world::{World, world};

const FAILED: c_int = -1;

/// The PEs of a collective of an active set.
#[derive(Debug, Clone, Copy)]
pub struct ActiveSet {
    pub start: c_int,
    pub log_stride: c_int,
    pub size: c_int,
}

impl ActiveSet {
    /// Their communicator.
    pub fn comm(self, world: &World, call: &'static str) -> Communicator {
        let Self { start, log_stride, size } = self;
        let stride = 1usize.checked_shl(unsigned(call, "logPE_stride", log_stride) as u32).unwrap_or(0);
        let set = (unsigned(call, "PE_start", start), stride, unsigned(call, "PE_size", size));
        or_end(call, world.shmem.active_set(call, set))
    }
}

/// Ends the job if so many elements cannot be in memory.
pub fn check<T>(call: &'static str, start: *const T, count: usize) {
    if !is_sound(start, count) {
        end_because(call, &format!("{count} elements at {start:p} cannot be in memory"));
    }
}

/// Elements of all PEs of a collective together.
fn total(call: &'static str, comm: &Communicator, nelems: usize) -> usize {
    match nelems.checked_mul(comm.size()) {
        Some(total) => total,
        None => end_because(
            call,
            &format!("{nelems} elements of each of {} PEs cannot be in memory", comm.size()),
        ),
    }
}

/// `shmem_barrier_all`.
pub unsafe fn barrier_all(call: &'static str) {
    or_end(call, world(call).shmem.barrier_all());
}

/// `shmem_sync_all`.
pub unsafe fn sync_all(call: &'static str) {
    or_end(call, world(call).shmem.world().comm().barrier());
}

/// `shmem_team_sync`.
pub unsafe fn team_sync(call: &'static str, team: TeamHandle) -> c_int {
    let Some(team) = world(call).team(call, team) else { return FAILED };
    or_end(call, team.comm().barrier());
    0
}

/// `shmem_barrier`.
pub unsafe fn barrier_active(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _sync: *mut c_long,
) {
    let world = world(call);
    or_end(call, world.shmem.barrier(&ActiveSet { start, log_stride, size }.comm(world, call)));
}

/// `shmem_sync`.
pub unsafe fn sync_active(
    call: &'static str,
    start: c_int,
    log_stride: c_int,
    size: c_int,
    _sync: *mut c_long,
) {
    let world = world(call);
    or_end(call, ActiveSet { start, log_stride, size }.comm(world, call).barrier());
}

/// The bodies, which teams and active sets share.
mod body {
    use super::*;

    /// `EVERYWHERE`: in the root's `dest`, too.
    pub unsafe fn broadcast<const EVERYWHERE: bool, T>(
        (call, comm): (&'static str, &Communicator),
        dest: *mut T,
        source: *const T,
        nelems: usize,
        root: c_int,
    ) {
        let root = unsigned(call, "PE_root", root);
        if root >= comm.size() {
            end_because(call, &format!("PE_root is {root}: there are {} PEs", comm.size()));
        }
        let is_root = comm.rank() == root;
        if is_root {
            check(call, source, nelems);
            // SAFETY: by the caller of the exported function.
            or_end(call, collective::broadcast_from(comm, unsafe { bytes(source, nelems) }));
        } else {
            check(call, dest, nelems);
            // SAFETY: by the caller of the exported function.
            or_end(call, collective::broadcast_to(comm, root, unsafe { bytes_mut(dest, nelems) }));
        }
        if is_root && EVERYWHERE && nelems > 0 {
            // SAFETY: valid for so many elements each, which may be the same (§9.10.7).
            unsafe { std::ptr::copy(source.cast::<u8>(), dest.cast::<u8>(), nelems * size_of::<T>()) };
        }
    }

    pub unsafe fn fcollect<T>(
        (call, comm): (&'static str, &Communicator),
        dest: *mut T,
        source: *const T,
        nelems: usize,
    ) {
        let total = total(call, comm, nelems);
        check(call, dest, total);
        check(call, source, nelems);
        // SAFETY: by the caller of the exported function: they do not overlap.
        or_end(call, unsafe { collective::fcollect(comm, bytes(source, nelems), bytes_mut(dest, total)) });
    }

    pub unsafe fn collect<T>(
        (call, comm): (&'static str, &Communicator),
        dest: *mut T,
        source: *const T,
        nelems: usize,
    ) {
        check(call, source, nelems);
        let lengths = or_end(call, collective::lengths(comm, nelems * size_of::<T>()));
        let total = lengths.iter().fold(0usize, |sum, length| sum.saturating_add(*length)) / size_of::<T>();
        check(call, dest, total);
        // SAFETY: by the caller of the exported function: they do not overlap.
        or_end(call, unsafe {
            collective::collect(comm, &lengths, bytes(source, nelems), bytes_mut(dest, total))
        });
    }

    pub unsafe fn alltoall<T>(
        (call, comm): (&'static str, &Communicator),
        dest: *mut T,
        source: *const T,
        nelems: usize,
    ) {
        let total = total(call, comm, nelems);
        check(call, dest, total);
        check(call, source, total);
        // SAFETY: by the caller of the exported function: they do not overlap.
        or_end(call, unsafe { collective::alltoall(comm, bytes(source, total), bytes_mut(dest, total)) });
    }

    pub unsafe fn alltoalls<T>(
        (call, comm): (&'static str, &Communicator),
        dest: *mut T,
        source: *const T,
        dst: isize,
        sst: isize,
        nelems: usize,
    ) {
        let total = total(call, comm, nelems);
        if dst < 1 || sst < 1 {
            end_because(call, &format!("distances of {dst} and {sst} elements: they are 1 or more"));
        }
        check(call, dest, total.saturating_mul(dst.unsigned_abs()));
        check(call, source, total.saturating_mul(sst.unsigned_abs()));
        let size = size_of::<T>();
        let (mut given, mut got) = (vec![0u8; total * size], vec![0u8; total * size]);
        for (index, element) in given.chunks_mut(size).enumerate() {
            // SAFETY: by the caller of the exported function: every `sst`th element is valid.
            element.copy_from_slice(unsafe { bytes(source.offset(index as isize * sst), 1) });
        }
        or_end(call, collective::alltoall(comm, &given, &mut got));
        for (index, element) in got.chunks(size).enumerate() {
            // SAFETY: by the caller of the exported function: every `dst`th element is valid.
            unsafe { bytes_mut(dest.offset(index as isize * dst), 1) }.copy_from_slice(element);
        }
    }
}

/// `name, name_active(arguments…) |call, dest, source| body of teams, |…| body of active sets;`
macro_rules! collectives {
    ($($name:ident, $active:ident($($argument:ident: $ty:ty),*) $team_body:expr, $active_body:expr;)*) => { $(
        #[doc = concat!("`shmem_", stringify!($name), "`.")]
        pub unsafe fn $name<T>(
            call: &'static str,
            team: TeamHandle,
            dest: *mut T,
            source: *const T,
            $($argument: $ty),*
        ) -> c_int {
            let Some(team) = world(call).team(call, team) else { return FAILED };
            // SAFETY: by contract.
            unsafe { $team_body((call, team.comm()), dest, source, $($argument),*) };
            0
        }

        #[doc = "The same of an active set."]
        #[expect(clippy::too_many_arguments, reason = "the specification's")]
        pub unsafe fn $active<T>(
            call: &'static str,
            dest: *mut T,
            source: *const T,
            $($argument: $ty,)*
            start: c_int,
            log_stride: c_int,
            size: c_int,
            _sync: *mut c_long,
        ) {
            let comm = ActiveSet { start, log_stride, size }.comm(world(call), call);
            // SAFETY: by contract.
            unsafe { $active_body((call, &comm), dest, source, $($argument),*) };
        }
    )* };
}

collectives! {
    broadcast, broadcast_active(nelems: usize, root: c_int) body::broadcast::<true, T>, body::broadcast::<false, T>;
    fcollect, fcollect_active(nelems: usize) body::fcollect, body::fcollect;
    collect, collect_active(nelems: usize) body::collect, body::collect;
    alltoall, alltoall_active(nelems: usize) body::alltoall, body::alltoall;
    alltoalls, alltoalls_active(dst: isize, sst: isize, nelems: usize) body::alltoalls, body::alltoalls;
}
