//! Reductions of teams, and of active sets, whose names are old (OpenSHMEM 1.5 §9.10.10).

use std::ffi::{c_int, c_long};

use transom::shmem::collective;
use transom::{Basic, Communicator, ReduceOp};

use super::collective::{ActiveSet, check};
use crate::buffer::bytes_mut;
use crate::failure::{or_end, unsigned};
use crate::handles::TeamHandle;
use crate::world::world;

/// `dest`, with the elements of `source` in it, which may be the same.
unsafe fn filled<'a, T: Basic>(
    call: &'static str,
    dest: *mut T,
    source: *const T,
    count: usize,
) -> &'a mut [u8] {
    check(call, dest, count);
    check(call, source, count);
    // SAFETY: valid for so many elements each, by the caller of the exported function; they are the same or do not overlap (§9.10.10).
    unsafe {
        if count > 0 {
            std::ptr::copy(source.cast::<u8>(), dest.cast::<u8>(), count * size_of::<T>());
        }
        bytes_mut(dest, count)
    }
}

/// The sum up to this PE, or before it.
unsafe fn scan<T: Basic>(
    call: &'static str,
    team: TeamHandle,
    (dest, source, count): (*mut T, *const T, usize),
    exclusive: bool,
) -> c_int {
    let Some(team) = world(call).team(call, team) else { return -1 };
    // SAFETY: by contract.
    let data = unsafe { filled(call, dest, source, count) };
    or_end(call, collective::scan_sum(team.comm(), T::TYPE, data, exclusive));
    0
}

/// `shmem_sum_inscan`.
pub unsafe fn sum_inscan<T: Basic>(
    call: &'static str,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    // SAFETY: by contract.
    unsafe { scan(call, team, (dest, source, nelems), false) }
}

/// `shmem_sum_exscan`.
pub unsafe fn sum_exscan<T: Basic>(
    call: &'static str,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    // SAFETY: by contract.
    unsafe { scan(call, team, (dest, source, nelems), true) }
}

/// Every PE's elements combined, in `dest` of each, which may be `source`.
unsafe fn reduce<T: Basic>(
    (call, comm): (&'static str, &Communicator),
    op: ReduceOp,
    dest: *mut T,
    source: *const T,
    nreduce: usize,
) {
    // SAFETY: by contract.
    let data = unsafe { filled(call, dest, source, nreduce) };
    or_end(call, collective::reduce(comm, op, T::TYPE, data));
}

macro_rules! reductions {
    ($($name:ident $active:ident: $op:ident;)*) => { $(
        #[doc = concat!("`shmem_", stringify!($name), "`.")]
        pub unsafe fn $name<T: Basic>(
            call: &'static str,
            team: TeamHandle,
            dest: *mut T,
            source: *const T,
            nreduce: usize,
        ) -> c_int {
            let Some(team) = world(call).team(call, team) else { return -1 };
            // SAFETY: by contract.
            unsafe { reduce((call, team.comm()), ReduceOp::$op, dest, source, nreduce) };
            0
        }

        #[doc = "The same of an active set."]
        #[expect(clippy::too_many_arguments, reason = "the specification's")]
        pub unsafe fn $active<T: Basic>(
            call: &'static str,
            dest: *mut T,
            source: *const T,
            nreduce: c_int,
            start: c_int,
            log_stride: c_int,
            size: c_int,
            _work: *mut T,
            _sync: *mut c_long,
        ) {
            let world = world(call);
            let comm = ActiveSet { start, log_stride, size }.comm(world, call);
            let nreduce = unsigned(call, "nreduce", nreduce);
            // SAFETY: by contract.
            unsafe { reduce((call, &comm), ReduceOp::$op, dest, source, nreduce) };
        }
    )* };
}

reductions! {
    and_reduce and_to_all_active: Band;
    or_reduce or_to_all_active: Bor;
    xor_reduce xor_to_all_active: Bxor;
    max_reduce max_to_all_active: Max;
    min_reduce min_to_all_active: Min;
    sum_reduce sum_to_all_active: Sum;
    prod_reduce prod_to_all_active: Prod;
}
