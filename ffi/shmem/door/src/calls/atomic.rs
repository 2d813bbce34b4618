//! Atomic operations (OpenSHMEM 1.5 §9.9), and their old names.

use std::ffi::c_int;

use transom::shmem::Context;
use transom::{Basic, Integer, ReduceOp, Swappable};

use super::order::target;
use crate::failure::or_end;
use crate::handles::Ctx;
use crate::world::{World, world};

/// Integers that can be counted up.
pub trait Count: Integer {
    const ONE: Self;
}

macro_rules! count {
    ($($ty:ty)*) => { $(
        impl Count for $ty {
            const ONE: Self = 1;
        }
    )* };
}
count! { i32 i64 u32 u64 }

#[inline(always)]
fn fetch_update<T: Basic>(
    call: &'static str,
    ctx: Ctx,
    dest: *const T,
    op: ReduceOp,
    value: T,
    pe: c_int,
) -> T {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    match world.shmem.update_now(dest as usize, op, value, pe) {
        Some(old) => old,
        None => fetch_update_long(call, (world, context), dest, (op, value), pe),
    }
}

#[cold]
#[inline(never)]
fn fetch_update_long<T: Basic>(
    call: &'static str,
    (world, context): (&World, &Context),
    dest: *const T,
    (op, value): (ReduceOp, T),
    pe: usize,
) -> T {
    or_end(call, world.shmem.fetch_update(context, call, (dest as usize, pe), op, value))
}

#[inline(always)]
fn update<T: Basic>(call: &'static str, ctx: Ctx, dest: *mut T, op: ReduceOp, value: T, pe: c_int) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    if world.shmem.update_now(dest as usize, op, value, pe).is_none() {
        update_long(call, (world, context), dest, (op, value), pe);
    }
}

#[cold]
#[inline(never)]
fn update_long<T: Basic>(
    call: &'static str,
    (world, context): (&World, &Context),
    dest: *const T,
    (op, value): (ReduceOp, T),
    pe: usize,
) {
    or_end(call, world.shmem.update(context, call, (dest as usize, pe), op, value));
}

/// `shmem_atomic_fetch_add`.
#[inline(always)]
pub unsafe fn atomic_fetch_add<T: Count>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    value: T,
    pe: c_int,
) -> T {
    fetch_update(call, ctx, dest, ReduceOp::Sum, value, pe)
}

/// `shmem_atomic_compare_swap`.
#[inline(always)]
pub unsafe fn atomic_compare_swap<T: Count>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    match world.shmem.swap_now(dest as usize, (cond, value), pe) {
        Some(old) => old,
        None => compare_swap_long(call, (world, context), dest, (cond, value), pe),
    }
}

#[cold]
#[inline(never)]
fn compare_swap_long<T: Swappable>(
    call: &'static str,
    (world, context): (&World, &Context),
    dest: *mut T,
    values: (T, T),
    pe: usize,
) -> T {
    or_end(call, world.shmem.compare_swap(context, call, (dest as usize, pe), values))
}

/// `shmem_atomic_add`.
#[inline(always)]
pub unsafe fn atomic_add<T: Count>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    update(call, ctx, dest, ReduceOp::Sum, value, pe);
}

/// `shmem_atomic_fetch_inc`.
#[inline(always)]
pub unsafe fn atomic_fetch_inc<T: Count>(call: &'static str, ctx: Ctx, dest: *mut T, pe: c_int) -> T {
    // SAFETY: by contract.
    unsafe { atomic_fetch_add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_inc`.
#[inline(always)]
pub unsafe fn atomic_inc<T: Count>(call: &'static str, ctx: Ctx, dest: *mut T, pe: c_int) {
    // SAFETY: by contract.
    unsafe { atomic_add(call, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_fetch`.
#[inline(always)]
pub unsafe fn atomic_fetch<T: Basic>(call: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    fetch_update(call, ctx, source, ReduceOp::NoOp, T::new_zeroed(), pe)
}

macro_rules! fetching {
    ($($(#[$doc:meta])* $name:ident, $nbi:ident: $op:ident, $bound:ident;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name<T: $bound>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) -> T {
            fetch_update(call, ctx, dest, ReduceOp::$op, value, pe)
        }

        #[doc = concat!("[`", stringify!($name), "`], nonblocking: complete at once is soon enough.")]
        pub unsafe fn $nbi<T: $bound>(call: &'static str, ctx: Ctx, fetch: *mut T, dest: *mut T, value: T, pe: c_int) {
            let old = fetch_update(call, ctx, dest, ReduceOp::$op, value, pe);
            // SAFETY: valid for an element, by the caller of the exported function.
            unsafe { fetch.write_unaligned(old) };
        }
    )* };
}

fetching! {
    /// `shmem_atomic_swap`.
    atomic_swap, atomic_swap_nbi: Replace, Basic;
    /// `shmem_atomic_fetch_and`.
    atomic_fetch_and, atomic_fetch_and_nbi: Band, Integer;
    /// `shmem_atomic_fetch_or`.
    atomic_fetch_or, atomic_fetch_or_nbi: Bor, Integer;
    /// `shmem_atomic_fetch_xor`.
    atomic_fetch_xor, atomic_fetch_xor_nbi: Bxor, Integer;
}

macro_rules! updating {
    ($($(#[$doc:meta])* $name:ident: $op:ident, $bound:ident;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name<T: $bound>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
            update(call, ctx, dest, ReduceOp::$op, value, pe);
        }
    )* };
}

updating! {
    /// `shmem_atomic_set`.
    atomic_set: Replace, Basic;
    /// `shmem_atomic_and`.
    atomic_and: Band, Integer;
    /// `shmem_atomic_or`.
    atomic_or: Bor, Integer;
    /// `shmem_atomic_xor`.
    atomic_xor: Bxor, Integer;
}

macro_rules! nonblocking {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $ty:ty),*): $bound:ident, $of:ident;)*) => { $(
        $(#[$doc])*
        pub unsafe fn $name<T: $bound>(call: &'static str, ctx: Ctx, fetch: *mut T, $($argument: $ty),*) {
            // SAFETY: by contract; `fetch` is valid for an element, by the caller of the exported function.
            unsafe { fetch.write_unaligned($of(call, ctx, $($argument),*)) };
        }
    )* };
}

nonblocking! {
    /// `shmem_atomic_fetch_nbi`.
    atomic_fetch_nbi(source: *const T, pe: c_int): Basic, atomic_fetch;
    /// `shmem_atomic_fetch_inc_nbi`.
    atomic_fetch_inc_nbi(dest: *mut T, pe: c_int): Count, atomic_fetch_inc;
    /// `shmem_atomic_fetch_add_nbi`.
    atomic_fetch_add_nbi(dest: *mut T, value: T, pe: c_int): Count, atomic_fetch_add;
    /// `shmem_atomic_compare_swap_nbi`.
    atomic_compare_swap_nbi(dest: *mut T, cond: T, value: T, pe: c_int): Count, atomic_compare_swap;
}

macro_rules! old_names {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $ty:ty),*) $(-> $out:ty)?: $bound:ident, $of:ident;)*) => { $(
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name<T: $bound>(call: &'static str, $($argument: $ty),*) $(-> $out)? {
            // SAFETY: by contract.
            unsafe { $of(call, Ctx::DEFAULT, $($argument),*) }
        }
    )* };
}

old_names! {
    /// `shmem_fetch`.
    fetch(source: *const T, pe: c_int) -> T: Basic, atomic_fetch;
    /// `shmem_set`.
    set(dest: *mut T, value: T, pe: c_int): Basic, atomic_set;
    /// `shmem_cswap`.
    cswap(dest: *mut T, cond: T, value: T, pe: c_int) -> T: Count, atomic_compare_swap;
    /// `shmem_swap`.
    swap(dest: *mut T, value: T, pe: c_int) -> T: Basic, atomic_swap;
    /// `shmem_finc`.
    finc(dest: *mut T, pe: c_int) -> T: Count, atomic_fetch_inc;
    /// `shmem_inc`.
    inc(dest: *mut T, pe: c_int): Count, atomic_inc;
    /// `shmem_fadd`.
    fadd(dest: *mut T, value: T, pe: c_int) -> T: Count, atomic_fetch_add;
    /// `shmem_add`.
    add(dest: *mut T, value: T, pe: c_int): Count, atomic_add;
}

/// `shmem_signal_add`.
pub unsafe fn signal_add(call: &'static str, ctx: Ctx, word: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: by contract.
    unsafe { atomic_add(call, ctx, word, signal, pe) };
}

/// `shmem_signal_set`.
pub unsafe fn signal_set(call: &'static str, ctx: Ctx, word: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: by contract.
    unsafe { atomic_set(call, ctx, word, signal, pe) };
}
