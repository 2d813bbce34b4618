//! The way of operations that are nothing but a copy or an atomic instruction, and of locks that nobody else holds. Tried before all
//! else; what it does not do goes the long way, and is done or refused there with the reason. A window that is found, and in whose
//! epoch the target is covered, means that MPI is initialised.

use std::ffi::{c_int, c_void};
use std::ops::Deref;

use transom::{DataType, LockKind, NotYet, ShortCut, Ticket};

use super::{WINS, WinObject};
use crate::abi::{Aint, Datatype, LOCK_EXCLUSIVE, Op, Request, SUCCESS, SUM, Win};
use crate::buffer::{load_word, plain, word_place};
use crate::call::{When, call};
use crate::handlers::Site;
use crate::place::Place;
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
fn same(here: (i64, Datatype), there: (i64, Datatype)) -> Option<usize> {
    if (here.0 ^ there.0).cast_unsigned() as usize | (here.1.0 ^ there.1.0) != 0 {
        return None;
    }
    let size = i64::from(types::size_or_zero(here.1)?);
    Some(here.0.checked_mul(size)?.cast_unsigned() as usize)
}

#[inline(always)]
fn done(done: bool) -> Option<c_int> {
    done.then_some(SUCCESS)
}

/// A buffer of the program's.
type Here<T> = (T, i64, Datatype);
/// Rank, displacement, count and datatype at the target.
type There = (c_int, Aint, i64, Datatype);

#[inline(always)]
fn put_to<const PASSIVELY: bool>(lines: Lines<'_>, here: Here<*const c_void>, there: There) -> Option<bool> {
    let (rank, at) = unsigned(there.0, there.1);
    let len = same((here.1, here.2), (there.2, there.3))?;
    Some(lines.put_foreign::<PASSIVELY>(rank, at, plain(here.0, len)?))
}

#[inline(always)]
fn get_from<const PASSIVELY: bool>(lines: Lines<'_>, here: Here<*mut c_void>, there: There) -> Option<bool> {
    let (rank, at) = unsigned(there.0, there.1);
    let len = same((here.1, here.2), (there.2, there.3))?;
    Some(lines.get_foreign::<PASSIVELY>(rank, at, plain(here.0, len)?))
}

/// `MPI_Put`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn put(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    win: Win,
) -> Option<c_int> {
    done(put_to::<false>(Lines(&WINS.find(win.0)?), (origin, n, ty), (rank, at, there, there_ty))?)
}

/// `MPI_Get`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn get(
    origin: *mut c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    win: Win,
) -> Option<c_int> {
    done(get_from::<false>(Lines(&WINS.find(win.0)?), (origin, n, ty), (rank, at, there, there_ty))?)
}

/// `MPI_Rput`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn rput(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    win: Win,
    request: Place<Request>,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let window = WINS.find(win.0)?;
    let lines = Lines(&window);
    complete(put_to::<true>(lines, (origin, n, ty), (rank, at, there, there_ty))?, request)
}

/// `MPI_Rget`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn rget(
    origin: *mut c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    win: Win,
    request: Place<Request>,
) -> Option<c_int> {
    if request.is_null() {
        return None;
    }
    let window = WINS.find(win.0)?;
    let lines = Lines(&window);
    complete(get_from::<true>(lines, (origin, n, ty), (rank, at, there, there_ty))?, request)
}

/// Gives the program the request of what is complete.
#[inline(always)]
fn complete(done: bool, request: Place<Request>) -> Option<c_int> {
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
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn accumulate(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    op: Op,
    win: Win,
) -> Option<c_int> {
    if (n ^ 1) | (there ^ 1) != 0 || ty != there_ty {
        return None;
    }
    add(win, (ty, op), (rank, at), origin, None)
}

/// `MPI_Get_accumulate`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
#[inline(always)]
pub fn get_accumulate(
    origin: *const c_void,
    n: i64,
    ty: Datatype,
    result: *mut c_void,
    result_n: i64,
    result_ty: Datatype,
    rank: c_int,
    at: Aint,
    there: i64,
    there_ty: Datatype,
    op: Op,
    win: Win,
) -> Option<c_int> {
    if n != 1 || there != 1 || result_n != 1 || ty != there_ty || ty != result_ty {
        return None;
    }
    add(win, (ty, op), (rank, at), origin, Some(result))
}

/// `MPI_Fetch_and_op`.
#[inline(always)]
pub fn fetch_and_op(
    origin: *const c_void,
    result: *mut c_void,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    op: Op,
    win: Win,
) -> Option<c_int> {
    add(win, (ty, op), (rank, at), origin, Some(result))
}

/// `MPI_Compare_and_swap`.
#[inline(always)]
pub fn compare_and_swap(
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    ty: Datatype,
    rank: c_int,
    at: Aint,
    win: Win,
) -> Option<c_int> {
    if !types::is_word(ty) {
        return None;
    }
    let (value, compare, old) = (load_word(origin)?, load_word(compare)?, word_place(result)?);
    let (rank, at) = unsigned(rank, at);
    *old = Lines(&WINS.find(win.0)?).swap(rank, at, compare, value)?.to_ne_bytes();
    Some(SUCCESS)
}

/// `MPI_Win_flush`.
#[inline(always)]
pub fn win_flush(rank: c_int, win: Win) -> Option<c_int> {
    done(Lines(&WINS.find(win.0)?).flush(rank as usize))
}

/// `MPI_Win_flush_local`.
#[inline(always)]
pub fn win_flush_local(rank: c_int, win: Win) -> Option<c_int> {
    win_flush(rank, win)
}

/// `MPI_Win_lock`, exclusive.
#[inline(always)]
pub fn win_lock(kind: c_int, rank: c_int, assert: c_int, win: Win) -> Option<c_int> {
    if kind != LOCK_EXCLUSIVE || assert != 0 {
        return None;
    }
    match WINS.find(win.0)?.epochs().lock_now(LockKind::Exclusive, rank as usize) {
        Ok(()) => Some(SUCCESS),
        Err(NotYet::Begun(Some(ticket))) => Some(lock_later(win, ticket, rank)),
        Err(_) => None,
    }
}

#[inline(never)]
fn lock_later(win: Win, ticket: Ticket, rank: c_int) -> c_int {
    call("MPI_Win_lock", When::Always, Site::Win(win), || {
        Ok(super::peek(win)?.epochs().lock_later(ticket, rank as usize)?)
    })
}

/// `MPI_Win_unlock`.
#[inline(always)]
pub fn win_unlock(rank: c_int, win: Win) -> Option<c_int> {
    match WINS.find(win.0)?.epochs().unlock_now(rank as usize) {
        Ok(()) => Some(SUCCESS),
        Err(NotYet::Released) => Some(unlock_later(win, rank)),
        Err(_) => None,
    }
}

#[inline(never)]
fn unlock_later(win: Win, rank: c_int) -> c_int {
    call("MPI_Win_unlock", When::Always, Site::Win(win), || {
        Ok(super::peek(win)?.epochs().unlock_later(rank as usize)?)
    })
}

/// Updates of any predefined elements, and as many as there are: tried by the long way first of all.
pub mod any {
    use super::*;
    use crate::buffer::{bytes, bytes_mut};

    /// Elements of an update: predefined, without padding, of the same datatype on both sides.
    fn elements(here: (i64, Datatype), there: (i64, Datatype)) -> Option<(usize, DataType)> {
        let len = same(here, there).filter(|len| *len > 0 && isize::try_from(*len).is_ok())?;
        Some((len, types::basic(here.1)?))
    }

    /// `MPI_Accumulate`.
    #[expect(clippy::too_many_arguments, reason = "the standard's")]
    pub fn accumulate(
        origin: *const c_void,
        n: i64,
        ty: Datatype,
        rank: c_int,
        at: Aint,
        there: i64,
        there_ty: Datatype,
        op: Op,
        win: Win,
    ) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let lines = Lines(&window);
        let (rank, at) = unsigned(rank, at);
        let (len, basic) = elements((n, ty), (there, there_ty))?;
        done(lines.update(rank, at, (op::predefined(op)?, basic), bytes(origin, len).ok()?, None))
    }

    /// `MPI_Get_accumulate`.
    #[expect(clippy::too_many_arguments, reason = "the standard's")]
    pub fn get_accumulate(
        origin: *const c_void,
        n: i64,
        ty: Datatype,
        result: *mut c_void,
        result_n: i64,
        result_ty: Datatype,
        rank: c_int,
        at: Aint,
        there: i64,
        there_ty: Datatype,
        op: Op,
        win: Win,
    ) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let lines = Lines(&window);
        let (rank, at) = unsigned(rank, at);
        let (len, basic) =
            elements((n, ty), (there, there_ty)).filter(|_| (n, ty) == (result_n, result_ty))?;
        let (operands, old) = (bytes(origin, len).ok()?, bytes_mut(result, len).ok()?);
        done(lines.update(rank, at, (op::predefined(op)?, basic), operands, Some(old)))
    }

    /// `MPI_Fetch_and_op`.
    pub fn fetch_and_op(
        origin: *const c_void,
        result: *mut c_void,
        ty: Datatype,
        rank: c_int,
        at: Aint,
        op: Op,
        win: Win,
    ) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let lines = Lines(&window);
        let (rank, at) = unsigned(rank, at);
        let (len, basic) = (types::plain_size(ty)?, types::basic(ty)?);
        let (operand, old) = (bytes(origin, len).ok()?, bytes_mut(result, len).ok()?);
        done(lines.update(rank, at, (op::predefined(op)?, basic), operand, Some(old)))
    }

    /// `MPI_Compare_and_swap`.
    pub fn compare_and_swap(
        origin: *const c_void,
        compare: *const c_void,
        result: *mut c_void,
        ty: Datatype,
        rank: c_int,
        at: Aint,
        win: Win,
    ) -> Option<c_int> {
        let window = WINS.find(win.0)?;
        let lines = Lines(&window);
        let (rank, at) = unsigned(rank, at);
        let (len, basic) = (types::plain_size(ty)?, types::basic(ty)?);
        let (value, compare) = (bytes(origin, len).ok()?, bytes(compare, len).ok()?);
        done(lines.compare_swap(rank, at, basic, (compare, value), bytes_mut(result, len).ok()?))
    }
}
