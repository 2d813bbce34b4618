//! Synchronisation of windows (MPI-4.1 §12.5).

use std::ffi::c_int;

use transom::{Assert, LockKind};

use super::scope::target;
use super::{WinObject, peek};
use crate::abi::{
    ERR_ASSERT, ERR_GROUP, ERR_LOCKTYPE, Group, LOCK_EXCLUSIVE, LOCK_SHARED, MODE_NOCHECK, MODE_NOPRECEDE,
    MODE_NOPUT, MODE_NOSTORE, MODE_NOSUCCEED, Win,
};
use crate::failure::{Result, fail};
use crate::group;
use crate::pointer::{Pointer, flag};

/// The assertions that an argument names.
#[inline]
fn assertions(assert: c_int) -> Result<Assert> {
    if assert == 0 { Ok(Assert::NONE) } else { named(assert) }
}

#[inline(never)]
fn named(assert: c_int) -> Result<Assert> {
    const ALL: [(c_int, Assert); 5] = [
        (MODE_NOCHECK, Assert::NOCHECK),
        (MODE_NOSTORE, Assert::NOSTORE),
        (MODE_NOPUT, Assert::NOPUT),
        (MODE_NOPRECEDE, Assert::NOPRECEDE),
        (MODE_NOSUCCEED, Assert::NOSUCCEED),
    ];
    let given = ALL.into_iter().filter(|(bit, _)| assert & bit != 0);
    let (bits, named) = given.fold((0, Assert::NONE), |(bits, all), (bit, one)| (bits | bit, all | one));
    if bits != assert {
        return fail(ERR_ASSERT, format!("{assert:#x} has bits that are no assertion"));
    }
    Ok(named)
}

/// Groups of so many ranks need no list of their own.
const FEW: usize = 16;

/// Calls `work` with the ranks in the window of a group's members.
fn with_ranks(
    win: &WinObject,
    members: Group,
    work: impl FnOnce(&[usize]) -> transom::Result<()>,
) -> Result<()> {
    let window = win.window();
    group::with_members(members, |members| {
        let (mut few, mut many) = ([0; FEW], Vec::new());
        let ranks = match few.get_mut(..members.size()) {
            Some(few) => few,
            None => {
                many.resize(members.size(), 0);
                &mut many[..]
            }
        };
        for (place, rank) in ranks.iter_mut().zip(members.job_ranks()) {
            *place = match window.rank_of(rank) {
                Some(rank) => rank,
                None => return fail(ERR_GROUP, "the group has members that the window does not have"),
            };
        }
        Ok(work(ranks)?)
    })
}

/// `MPI_Win_fence`.
pub fn win_fence(assert: c_int, win: Win) -> Result<()> {
    let assert = assertions(assert)?;
    Ok(peek(win)?.epochs().fence(assert)?)
}

/// `MPI_Win_post`.
pub fn win_post(members: Group, assert: c_int, win: Win) -> Result<()> {
    let (win, assert) = (peek(win)?, assertions(assert)?);
    with_ranks(win, members, |ranks| win.epochs().post(ranks, assert))
}

/// `MPI_Win_start`.
pub fn win_start(members: Group, assert: c_int, win: Win) -> Result<()> {
    let (win, assert) = (peek(win)?, assertions(assert)?);
    with_ranks(win, members, |ranks| win.epochs().start(ranks, assert))
}

/// `MPI_Win_complete`.
pub fn win_complete(win: Win) -> Result<()> {
    Ok(peek(win)?.epochs().complete()?)
}

/// `MPI_Win_wait`.
pub fn win_wait(win: Win) -> Result<()> {
    Ok(peek(win)?.epochs().wait()?)
}

/// `MPI_Win_test`.
pub fn win_test(win: Win, ended: Pointer<c_int>) -> Result<()> {
    let win = peek(win)?;
    ended.check()?;
    ended.set(flag(win.epochs().test()?))
}

/// `MPI_Win_lock`.
pub fn win_lock(kind: c_int, rank: c_int, assert: c_int, win: Win) -> Result<()> {
    let win = peek(win)?;
    let kind = match kind {
        LOCK_EXCLUSIVE => LockKind::Exclusive,
        LOCK_SHARED => LockKind::Shared,
        _ => {
            return fail(
                ERR_LOCKTYPE,
                format!("{kind} is no type of lock: use MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED"),
            );
        }
    };
    let (rank, assert) = (target(rank)?, assertions(assert)?);
    Ok(win.epochs().lock(kind, rank, assert)?)
}

/// `MPI_Win_lock_all`.
pub fn win_lock_all(assert: c_int, win: Win) -> Result<()> {
    let assert = assertions(assert)?;
    Ok(peek(win)?.epochs().lock_all(assert)?)
}

/// Functions of one target of a window, or of all.
macro_rules! forwarded {
    ($($name:ident $of:literal: $method:ident($($rank:ident)?);)*) => {$(
        #[doc = concat!("`", $of, "`.")]
        #[inline]
        pub fn $name($($rank: c_int,)? win: Win) -> Result<()> {
            $(let $rank = target($rank)?;)?
            Ok(peek(win)?.epochs().$method($($rank)?)?)
        }
    )*};
}

forwarded! {
    win_unlock "MPI_Win_unlock": unlock(rank);
    win_unlock_all "MPI_Win_unlock_all": unlock_all();
    win_flush "MPI_Win_flush": flush(rank);
    win_flush_all "MPI_Win_flush_all": flush_all();
    win_flush_local "MPI_Win_flush_local": flush_local(rank);
    win_flush_local_all "MPI_Win_flush_local_all": flush_local_all();
}

/// `MPI_Win_sync`.
pub fn win_sync(win: Win) -> Result<()> {
    Ok(peek(win)?.window().sync()?)
}
