//! Puts, gets and signals (OpenSHMEM 1.5 §9.6 to §9.8).

use std::ffi::c_int;
use std::mem::MaybeUninit;

use transom::RawBuffer;
use transom::shmem::{Context, SignalOp, Strides};

use super::order::target;
use crate::buffer::{is_sound, raw};
use crate::failure::{end_because, or_end};
use crate::handles::Ctx;
use crate::world::{World, world};

const SIGNAL_SET: c_int = 0;
const SIGNAL_ADD: c_int = 1;

/// A buffer that is given to the pipeline.
fn sound<T>(call: &'static str, start: *const T, count: usize) -> RawBuffer {
    match raw(start, count).filter(|_| is_sound(start, count)) {
        Some(buffer) => buffer,
        None => end_because(call, &format!("{count} elements at {start:p} cannot be in memory")),
    }
}

#[cold]
#[inline(never)]
fn put_long<T>(
    call: &'static str,
    (world, context): (&World, &Context),
    dest: *mut T,
    source: *const T,
    (nelems, pe): (usize, usize),
    blocking: bool,
) {
    let buffer = sound(call, source, nelems);
    or_end(call, world.shmem.put_raw(context, call, (dest as usize, pe), buffer, blocking));
}

#[cold]
#[inline(never)]
fn get_long<T>(
    call: &'static str,
    (world, context): (&World, &Context),
    dest: *mut T,
    source: *const T,
    (nelems, pe): (usize, usize),
    blocking: bool,
) {
    let buffer = sound(call, dest, nelems);
    or_end(call, world.shmem.get_raw(context, call, (source as usize, pe), buffer, blocking));
}

#[inline(always)]
fn put_as<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
    blocking: bool,
) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    // No closure, which would not always be compiled into its place.
    let done = match raw(source, nelems) {
        Some(buffer) => world.shmem.put_now(dest as usize, buffer, pe),
        None => false,
    };
    if !done {
        put_long(call, (world, context), dest, source, (nelems, pe), blocking);
    }
}

#[inline(always)]
fn get_as<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
    blocking: bool,
) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    let done = match raw(dest, nelems) {
        Some(buffer) => world.shmem.get_now(source as usize, buffer, pe),
        None => false,
    };
    if !done {
        get_long(call, (world, context), dest, source, (nelems, pe), blocking);
    }
}

/// `shmem_put`.
#[inline(always)]
pub unsafe fn put<T>(call: &'static str, ctx: Ctx, dest: *mut T, source: *const T, nelems: usize, pe: c_int) {
    put_as(call, ctx, dest, source, nelems, pe, true);
}

/// `shmem_put_nbi`.
#[inline(always)]
pub unsafe fn put_nbi<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    put_as(call, ctx, dest, source, nelems, pe, false);
}

/// `shmem_get`.
#[inline(always)]
pub unsafe fn get<T>(call: &'static str, ctx: Ctx, dest: *mut T, source: *const T, nelems: usize, pe: c_int) {
    get_as(call, ctx, dest, source, nelems, pe, true);
}

/// `shmem_get_nbi`.
#[inline(always)]
pub unsafe fn get_nbi<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    get_as(call, ctx, dest, source, nelems, pe, false);
}

/// `shmem_p`.
#[inline(always)]
pub unsafe fn p<T>(call: &'static str, ctx: Ctx, dest: *mut T, value: T, pe: c_int) {
    put_as(call, ctx, dest, &raw const value, 1, pe, true);
}

/// `shmem_g`.
#[inline(always)]
pub unsafe fn g<T>(call: &'static str, ctx: Ctx, source: *const T, pe: c_int) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    get_as(call, ctx, value.as_mut_ptr(), source, 1, pe, true);
    // SAFETY: the get has filled it, or has ended the job; every pattern of bits is a T, which are numbers.
    unsafe { value.assume_init() }
}

fn strides<T>(here: isize, there: isize, (block, count): (usize, usize)) -> Strides {
    Strides { size: size_of::<T>(), block, here, there, count }
}

/// One element, or all that a call is about: valid by the caller of the exported function.
fn part(start: *mut u8, bytes: usize) -> RawBuffer {
    // SAFETY: as in `buffer::raw`.
    unsafe { RawBuffer::new(start, bytes) }
}

/// `shmem_iput`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn iput<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: by contract.
    unsafe { ibput(call, ctx, dest, source, dst, sst, 1, nelems, pe) };
}

/// `shmem_ibput`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn ibput<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    let here = (source.cast_mut().cast(), strides::<T>(sst, dst, (bsize, nblocks)));
    or_end(call, world.shmem.iput_raw(context, call, (dest as usize, pe), here, part));
}

/// `shmem_iget`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn iget<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    // SAFETY: by contract.
    unsafe { ibget(call, ctx, dest, source, dst, sst, 1, nelems, pe) };
}

/// `shmem_ibget`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn ibget<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    let here = (dest.cast(), strides::<T>(dst, sst, (bsize, nblocks)));
    or_end(call, world.shmem.iget_raw(context, call, (source as usize, pe), here, part));
}

fn signal_op(call: &'static str, op: c_int) -> SignalOp {
    match op {
        SIGNAL_SET => SignalOp::Set,
        SIGNAL_ADD => SignalOp::Add,
        _ => end_because(
            call,
            &format!("a signal operation of {op}: SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD is meant"),
        ),
    }
}

/// `shmem_put_signal`.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn put_signal<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    word: *mut u64,
    signal: u64,
    op: c_int,
    pe: c_int,
) {
    let world = world(call);
    let (context, pe) = target(world, call, ctx, pe);
    let what = (word as usize, signal, signal_op(call, op));
    let data = sound(call, source, nelems);
    or_end(call, world.shmem.put_signal_raw(context, call, (dest as usize, pe), data, what));
}

/// `shmem_put_signal_nbi`: complete at once is soon enough.
#[expect(clippy::too_many_arguments, reason = "the specification's")]
pub unsafe fn put_signal_nbi<T>(
    call: &'static str,
    ctx: Ctx,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    word: *mut u64,
    signal: u64,
    op: c_int,
    pe: c_int,
) {
    // SAFETY: by contract.
    unsafe { put_signal(call, ctx, dest, source, nelems, word, signal, op, pe) };
}
