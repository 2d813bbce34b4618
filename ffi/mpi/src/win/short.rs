//! The way of operations that are nothing but a copy or an atomic instruction, and of uncontended locks. Tried before all
//! else; what it does not do goes the long way, and is done or refused there with the reason. A window that is found, and
//! in whose epoch the target is covered, means that MPI is initialised.

use std::ffi::{c_int, c_void};
use std::ops::Deref;

use transom::{DataType, LockKind, NotYet, ShortCut, Ticket};

use super::scope::{One, There};
use super::{WINS, WinObject};
use crate::abi::{Aint, Datatype, LOCK_EXCLUSIVE, LOCK_SHARED, Op, Request, SUCCESS, SUM, Win, wide};
use crate::buffer::{Triple, load_word, plain, word_place};
use crate::call::{When, call};
use crate::handlers::ErrorObject;
use crate::pointer::Pointer;
use crate::table::Found;
use crate::{op, request, types};

/// The short cut of a window.
#[derive(Clone, Copy)]
struct Lines<'a>(&'a Found<'static, WinObject>);

impl Deref for Lines<'_> {
    type Target = ShortCut;

    #[inline(always)]
    fn deref(&self) -> &ShortCut {
        self.0.epochs().short_cut()
    }
}

/// Numbers that no target or displacement is when they are negative.
#[inline(always)]
fn unsigned(rank: c_int, displacement: Aint) -> (usize, usize) {
    (rank as usize, displacement.cast_unsigned())
}

/// Bytes of a transfer of the same predefined datatype on both sides: 0 of others, and more than an address space holds of a
/// negative count.
#[inline(always)]
fn same(here: Triple, there: There) -> Option<usize> {
    if (here.n ^ there.n).cast_unsigned() as usize | wide(here.ty.0 ^ there.ty.0) != 0 {
        return None;
    }
    let size = i64::from(types::size_or_zero(here.ty)?);
    Some(here.n.checked_mul(size)?.cast_unsigned() as usize)
}

#[inline(always)]
fn done(done: bool) -> Option<c_int> {
    done.then_some(SUCCESS)
}

#[inline(always)]
fn put_to<const PASSIVELY: bool>(lines: Lines<'_>, here: Triple, there: There) -> Option<bool> {
    let (rank, at) = unsigned(there.rank, there.displacement);
    let len = same(here, there)?;
    Some(lines.put_raw::<PASSIVELY>(rank, at, plain(here.address, len)?))
}

#[inline(always)]
fn get_from<const PASSIVELY: bool>(lines: Lines<'_>, here: Triple, there: There) -> Option<bool> {
    let (rank, at) = unsigned(there.rank, there.displacement);
    let len = same(here, there)?;
    Some(lines.get_raw::<PASSIVELY>(rank, at, plain(here.address, len)?))
}

/// `MPI_Put`.
#[inline(always)]
pub fn put(origin: Triple, there: There, win: Win) -> Option<c_int> {
    done(put_to::<false>(Lines(&WINS.find(win.0)?), origin, there)?)
}

/// `MPI_Get`.
#[inline(always)]
pub fn get(origin: Triple, there: There, win: Win) -> Option<c_int> {
    done(get_from::<false>(Lines(&WINS.find(win.0)?), origin, there)?)
}

/// `MPI_Rput`.
#[inline(always)]
pub fn rput(origin: Triple, there: There, win: Win, request: Pointer<Request>) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let window = WINS.find(win.0)?;
    complete(put_to::<true>(Lines(&window), origin, there)?, request)
}

/// `MPI_Rget`.
#[inline(always)]
pub fn rget(origin: Triple, there: There, win: Win, request: Pointer<Request>) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let window = WINS.find(win.0)?;
    complete(get_from::<true>(Lines(&window), origin, there)?, request)
}

/// Gives the program the request of what is complete.
#[inline(always)]
fn complete(done: bool, request: Pointer<Request>) -> Option<c_int> {
    if !done {
        return None;
    }
    request.replace(request::COMPLETE);
    Some(SUCCESS)
}

/// Adds to an integer of 8 bytes: the update that programs make most, compiled for itself.
#[inline(always)]
fn add(
    win: Win,
    (ty, op): (Datatype, Op),
    (rank, at): (c_int, Aint),
    origin: *const c_void,
    result: Option<*mut c_void>,
) -> Option<c_int> {
    if op != SUM || !types::is_word(ty) {
        return None;
    }
    let operand = load_word(origin)?;
    let old = match result {
        Some(result) => Some(word_place(result)?),
        None => None,
    };
    let (rank, at) = unsigned(rank, at);
    let found = Lines(&WINS.find(win.0)?).add(rank, at, operand)?;
    if let Some(old) = old {
        *old = found.to_ne_bytes();
    }
    Some(SUCCESS)
}

/// `MPI_Accumulate`.
#[inline(always)]
pub fn accumulate(origin: Triple, there: There, op: Op, win: Win) -> Option<c_int> {
    if (origin.n ^ 1) | (there.n ^ 1) != 0 || origin.ty != there.ty {
        return None;
    }
    add(win, (origin.ty, op), (there.rank, there.displacement), origin.address, None)
}

/// `MPI_Get_accumulate`.
#[inline(always)]
pub fn get_accumulate(origin: Triple, result: Triple, there: There, op: Op, win: Win) -> Option<c_int> {
    let Triple { address, n, ty } = origin;
    if n != 1 || there.n != 1 || result.n != 1 || ty != there.ty || ty != result.ty {
        return None;
    }
    add(win, (ty, op), (there.rank, there.displacement), address, Some(result.address))
}

/// `MPI_Fetch_and_op`.
#[inline(always)]
pub fn fetch_and_op(one: One, op: Op, win: Win) -> Option<c_int> {
    add(win, (one.ty, op), (one.rank, one.displacement), one.operand, Some(one.result))
}

/// `MPI_Compare_and_swap`.
#[inline(always)]
pub fn compare_and_swap(value: *const c_void, one: One, win: Win) -> Option<c_int> {
    if !types::is_word(one.ty) {
        return None;
    }
    let (value, compare, old) = (load_word(value)?, load_word(one.operand)?, word_place(one.result)?);
    let (rank, at) = unsigned(one.rank, one.displacement);
    *old = Lines(&WINS.find(win.0)?).swap(rank, at, compare, value)?.to_ne_bytes();
    Some(SUCCESS)
}

/// `MPI_Win_flush`.
#[inline(always)]
pub fn win_flush(rank: c_int, win: Win) -> Option<c_int> {
    let window = WINS.find(win.0)?;
    done(Lines(&window).flush(rank as usize) || window.epochs().is_flushed(rank as usize))
}

/// `MPI_Win_flush_local`.
#[inline(always)]
pub fn win_flush_local(rank: c_int, win: Win) -> Option<c_int> {
    win_flush(rank, win)
}

/// `MPI_Win_lock`.
#[inline(always)]
pub fn win_lock(kind: c_int, rank: c_int, assert: c_int, win: Win) -> Option<c_int> {
    if assert != 0 {
        return None;
    }
    let window = WINS.find(win.0)?;
    // Compiled for each.
    let taken = match kind {
        LOCK_EXCLUSIVE => window.epochs().lock_now(LockKind::Exclusive, rank as usize),
        LOCK_SHARED => window.epochs().lock_now(LockKind::Shared, rank as usize),
        _ => return None,
    };
    match taken {
        Ok(()) => Some(SUCCESS),
        Err(NotYet::Begun(Some(ticket))) => Some(lock_later(win, Some(ticket), rank)),
        Err(NotYet::Taken) => Some(lock_later(win, None, rank)),
        Err(_) => None,
    }
}

#[inline(never)]
fn lock_later(win: Win, ticket: Option<Ticket>, rank: c_int) -> c_int {
    call("MPI_Win_lock", When::Always, ErrorObject::Win(win), || {
        Ok(super::peek(win)?.epochs().lock_later(ticket, rank as usize)?)
    })
}

/// `MPI_Win_unlock`.
#[inline(always)]
pub fn win_unlock(rank: c_int, win: Win) -> Option<c_int> {
    match WINS.find(win.0)?.epochs().unlock_now(rank as usize) {
        Ok(()) => Some(SUCCESS),
        Err(NotYet::Released(rank)) => Some(unlock_later("MPI_Win_unlock", win, rank)),
        Err(_) => None,
    }
}

#[inline(never)]
fn unlock_later(name: &'static str, win: Win, rank: usize) -> c_int {
    call(name, When::Always, ErrorObject::Win(win), || Ok(super::peek(win)?.epochs().unlock_later(rank)?))
}

/// `MPI_Win_lock_all`.
#[inline(always)]
pub fn win_lock_all(assert: c_int, win: Win) -> Option<c_int> {
    done(assert == 0 && WINS.find(win.0)?.epochs().lock_all_now())
}

/// `MPI_Win_unlock_all`.
#[inline(always)]
pub fn win_unlock_all(win: Win) -> Option<c_int> {
    match WINS.find(win.0)?.epochs().unlock_all_now() {
        Ok(()) => Some(SUCCESS),
        Err(NotYet::Released(rank)) => Some(unlock_later("MPI_Win_unlock_all", win, rank)),
        Err(_) => None,
    }
}

/// `MPI_Win_sync`.
#[inline(always)]
pub fn win_sync(win: Win) -> Option<c_int> {
    done(WINS.find(win.0)?.epochs().sync_now())
}

/// Updates of any predefined elements, and as many as there are: tried by the long way first of all.
pub mod any {
    use super::*;
    use crate::buffer::{bytes, bytes_mut};

    /// Elements of an update: predefined, without padding, of the same datatype on both sides.
    fn elements(here: Triple, there: There) -> Option<(usize, DataType)> {
        let len = same(here, there).filter(|len| *len > 0 && isize::try_from(*len).is_ok())?;
        Some((len, types::basic(here.ty)?))
    }

    /// `MPI_Accumulate`.
    pub fn accumulate(origin: Triple, there: There, op: Op, win: Win) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let (rank, at) = unsigned(there.rank, there.displacement);
        let (len, basic) = elements(origin, there)?;
        let operands = bytes(origin.address, len).ok()?;
        done(Lines(&window).update(rank, at, (op::predefined(op)?, basic), operands, None))
    }

    /// `MPI_Get_accumulate`.
    pub fn get_accumulate(origin: Triple, result: Triple, there: There, op: Op, win: Win) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let (rank, at) = unsigned(there.rank, there.displacement);
        let alike = (origin.n, origin.ty) == (result.n, result.ty);
        let (len, basic) = elements(origin, there).filter(|_| alike)?;
        let (operands, old) = (bytes(origin.address, len).ok()?, bytes_mut(result.address, len).ok()?);
        done(Lines(&window).update(rank, at, (op::predefined(op)?, basic), operands, Some(old)))
    }

    /// `MPI_Fetch_and_op`.
    pub fn fetch_and_op(one: One, op: Op, win: Win) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let (rank, at) = unsigned(one.rank, one.displacement);
        let (len, basic) = (types::plain_size(one.ty)?, types::basic(one.ty)?);
        let (operand, old) = (bytes(one.operand, len).ok()?, bytes_mut(one.result, len).ok()?);
        done(Lines(&window).update(rank, at, (op::predefined(op)?, basic), operand, Some(old)))
    }

    /// `MPI_Compare_and_swap`.
    pub fn compare_and_swap(value: *const c_void, one: One, win: Win) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let (rank, at) = unsigned(one.rank, one.displacement);
        let (len, basic) = (types::plain_size(one.ty)?, types::basic(one.ty)?);
        let values = (bytes(one.operand, len).ok()?, bytes(value, len).ok()?);
        done(Lines(&window).compare_swap(rank, at, basic, values, bytes_mut(one.result, len).ok()?))
    }
}
