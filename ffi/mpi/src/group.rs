//! Groups (MPI-4.1 §7.3).

use std::ffi::c_int;
use std::sync::Arc;

use transom::{Comparison, Group as Ranks, NULL_RANK, RankRange};

use crate::abi::{
    self, CONGRUENT, ERR_ARG, ERR_GROUP, ERR_RANK, GROUP_EMPTY, GROUP_NULL, Group, IDENT, PROC_NULL, SIMILAR,
    UNDEFINED, UNEQUAL,
};
use crate::failure::{Result, fail};
use crate::message::buffered::Slot;
use crate::pointer::Pointer;
use crate::table::Table;
use crate::world;

/// The buffer for sends of the session that something comes from (§3.6); nothing outside of sessions.
pub type Origin = Option<Arc<Slot>>;

struct GroupObject {
    ranks: Ranks,
    origin: Origin,
}

static GROUPS: Table<GroupObject> = Table::new(2, "group", ERR_GROUP);

/// A handle of a group.
pub fn handle(ranks: Ranks, origin: Origin) -> Result<Group> {
    if ranks.size() == 0 {
        return Ok(GROUP_EMPTY);
    }
    GROUPS.insert(Arc::new(GroupObject { ranks, origin })).map(Group)
}

/// A handle of a group made of another.
fn derived(from: Group, ranks: Ranks) -> Result<Group> {
    handle(ranks, origin(from)?)
}

/// Where a group comes from.
pub fn origin(group: Group) -> Result<Origin> {
    if group == GROUP_EMPTY {
        return Ok(None);
    }
    Ok(GROUPS.peek(group.0)?.origin.clone())
}

/// The group of a handle.
pub fn members(group: Group) -> Result<Ranks> {
    if group == GROUP_EMPTY {
        return Ok(world::comm(abi::COMM_WORLD)?.comm.group().incl(&[])?);
    }
    Ok(GROUPS.peek(group.0)?.ranks.clone())
}

/// Calls `work` with the group of a handle, where it is.
pub fn with_members<R>(group: Group, work: impl FnOnce(&Ranks) -> Result<R>) -> Result<R> {
    if group == GROUP_EMPTY { work(&members(group)?) } else { work(&GROUPS.peek(group.0)?.ranks) }
}

/// A rank, or `MPI_UNDEFINED`.
fn rank(rank: Option<usize>) -> c_int {
    match rank {
        Some(NULL_RANK) => PROC_NULL,
        Some(rank) => c_int::try_from(rank).unwrap_or(UNDEFINED),
        None => UNDEFINED,
    }
}

/// What the standard calls it.
pub fn comparison(comparison: Comparison) -> c_int {
    match comparison {
        Comparison::Identical => IDENT,
        Comparison::Congruent => CONGRUENT,
        Comparison::Similar => SIMILAR,
        Comparison::Unequal => UNEQUAL,
    }
}

/// A number of entries that a caller gives.
pub fn count(n: c_int) -> Result<usize> {
    usize::try_from(n).or_else(|_| fail(ERR_ARG, format!("{n} entries")))
}

/// Ranks that a caller lists.
pub fn ranks(n: c_int, ranks: Pointer<c_int>) -> Result<Vec<usize>> {
    let checked = |rank: c_int| usize::try_from(rank).or_else(|_| fail(ERR_RANK, format!("rank {rank}")));
    ranks.list(count(n)?)?.into_iter().map(checked).collect()
}

fn ranges(n: c_int, ranges: Pointer<[c_int; 3]>) -> Result<Vec<RankRange>> {
    let checked = |[first, last, stride]: [c_int; 3]| match (usize::try_from(first), usize::try_from(last)) {
        (Ok(first), Ok(last)) => Ok(RankRange { first, last, stride: stride as isize }),
        _ => fail(ERR_RANK, format!("a range from rank {first} to {last}")),
    };
    ranges.list(count(n)?)?.into_iter().map(checked).collect()
}

/// `MPI_Group_size`.
pub fn group_size(group: Group, size: Pointer<c_int>) -> Result<()> {
    size.set(rank(Some(members(group)?.size())))
}

/// `MPI_Group_rank`.
pub fn group_rank(group: Group, own: Pointer<c_int>) -> Result<()> {
    own.set(rank(members(group)?.rank()))
}

/// `MPI_Group_translate_ranks`.
pub fn group_translate_ranks(
    one: Group,
    n: c_int,
    list: Pointer<c_int>,
    other: Group,
    translated: Pointer<c_int>,
) -> Result<()> {
    let (one, other) = (members(one)?, members(other)?);
    for place in 0..count(n)? {
        let from = match list.at(place)? {
            PROC_NULL => NULL_RANK,
            rank => usize::try_from(rank).or_else(|_| fail(ERR_RANK, format!("rank {rank}")))?,
        };
        let to = one.translate_ranks(&[from], &other)?;
        translated.set_at(place, rank(to.first().copied().flatten()))?;
    }
    Ok(())
}

/// `MPI_Group_compare`.
pub fn group_compare(one: Group, other: Group, result: Pointer<c_int>) -> Result<()> {
    result.set(comparison(members(one)?.compare(&members(other)?)))
}

/// `MPI_Group_union`.
pub fn group_union(one: Group, other: Group, new: Pointer<Group>) -> Result<()> {
    new.set(derived(one, members(one)?.union(&members(other)?))?)
}

/// `MPI_Group_intersection`.
pub fn group_intersection(one: Group, other: Group, new: Pointer<Group>) -> Result<()> {
    new.set(derived(one, members(one)?.intersection(&members(other)?))?)
}

/// `MPI_Group_difference`.
pub fn group_difference(one: Group, other: Group, new: Pointer<Group>) -> Result<()> {
    new.set(derived(one, members(one)?.difference(&members(other)?))?)
}

/// `MPI_Group_incl`.
pub fn group_incl(group: Group, n: c_int, list: Pointer<c_int>, new: Pointer<Group>) -> Result<()> {
    new.set(derived(group, members(group)?.incl(&ranks(n, list)?)?)?)
}

/// `MPI_Group_excl`.
pub fn group_excl(group: Group, n: c_int, list: Pointer<c_int>, new: Pointer<Group>) -> Result<()> {
    new.set(derived(group, members(group)?.excl(&ranks(n, list)?)?)?)
}

/// `MPI_Group_range_incl`.
pub fn group_range_incl(
    group: Group,
    n: c_int,
    list: Pointer<[c_int; 3]>,
    new: Pointer<Group>,
) -> Result<()> {
    new.set(derived(group, members(group)?.range_incl(&ranges(n, list)?)?)?)
}

/// `MPI_Group_range_excl`.
pub fn group_range_excl(
    group: Group,
    n: c_int,
    list: Pointer<[c_int; 3]>,
    new: Pointer<Group>,
) -> Result<()> {
    new.set(derived(group, members(group)?.range_excl(&ranges(n, list)?)?)?)
}

/// `MPI_Group_free`.
pub fn group_free(group: Pointer<Group>) -> Result<()> {
    if group.get()? != GROUP_EMPTY {
        GROUPS.remove(group.get()?.0)?;
    }
    group.set(GROUP_NULL)
}
