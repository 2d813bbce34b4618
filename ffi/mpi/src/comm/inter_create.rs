//! Making intercommunicators, and communicators of them (MPI-4.1 §7.4.2, §7.6.2).

use std::ffi::c_int;
use std::sync::Arc;

use transom::{Communicator, Group as Ranks};

use super::calls::of_groups;
use super::inter::other_side;
use super::{CommObject, Inter, add, handle};
use crate::abi::{
    COMM_NULL, COMM_WORLD, Comm, ERR_ARG, ERR_COMM, ERR_GROUP, ERR_RANK, Errhandler, Group, Info,
};
use crate::failure::{Result, fail};
use crate::group;
use crate::handlers::Handler;
use crate::pointer::{Pointer, Text};
use crate::world::comm as get;

/// What the leader says, at every rank of its group.
fn spread(local: &Communicator, leader: usize, mut said: Vec<u64>) -> Result<Vec<u64>> {
    let mut len = [said.len() as u64];
    local.broadcast(leader, &mut len)?;
    said.resize(usize::try_from(len[0]).unwrap_or(0), 0);
    local.broadcast(leader, &mut said)?;
    Ok(said)
}

/// Ranks of the job as numbers for messages.
fn numbers(group: &Ranks) -> Vec<u64> {
    group.job_ranks().map(|rank| rank as u64).collect()
}

fn ranks(world: &Communicator, numbers: Vec<u64>) -> Result<Ranks> {
    let members: Vec<usize> = numbers.into_iter().filter_map(|rank| usize::try_from(rank).ok()).collect();
    Ok(world.group().incl(&members)?)
}

/// An intercommunicator of this side and another, made by both.
fn join(mut side: CommObject, remote: Ranks, tag: &str) -> Result<Comm> {
    let own = side.comm.group();
    if own.intersection(&remote).size() > 0 {
        return fail(ERR_COMM, "the two groups have members in common");
    }
    // The side with the lower first rank comes first.
    let first = own.job_rank(0) < remote.job_rank(0);
    let both = if first { own.union(&remote) } else { remote.union(&own) };
    let all = get(COMM_WORLD)?.comm.create_from_group(&both, tag)?;
    side.inter = Some(Arc::new(Inter::new(remote, all, first)));
    add(side)
}

fn leader(rank: c_int, size: usize) -> Result<usize> {
    match usize::try_from(rank) {
        Ok(rank) if rank < size => Ok(rank),
        _ => fail(ERR_RANK, format!("rank {rank} as the local leader: there are {size} ranks")),
    }
}

/// `MPI_Intercomm_create`.
pub fn intercomm_create(
    local: Comm,
    local_leader: c_int,
    bridge: Comm,
    remote_leader: c_int,
    tag: c_int,
    new: Pointer<Comm>,
) -> Result<()> {
    let local = get(local)?;
    local.check_intra()?;
    let leader = leader(local_leader, local.comm.size())?;
    let mut told = Vec::new();
    if local.comm.rank() == leader {
        let other =
            usize::try_from(remote_leader).or_else(|_| fail(ERR_RANK, "the remote leader is not a rank"))?;
        let bridge = get(bridge)?;
        let other = bridge.peer(other)?;
        let own = numbers(&local.comm.group());
        (told, _) = bridge.messages().sendrecv::<u64, u64>(other, tag, &own, other, tag)?;
    }
    let remote = ranks(&get(COMM_WORLD)?.comm, spread(&local.comm, leader, told)?)?;
    let side = CommObject::of(local.comm.dup()?, &local);
    new.set(join(side, remote, &format!("intercommunicator {tag}"))?)
}

/// `MPI_Intercomm_create_from_groups`: the other group is what this side's leader says.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn intercomm_create_from_groups(
    local: Group,
    local_leader: c_int,
    remote: Group,
    _remote_leader: c_int,
    tag: Text,
    info: Info,
    handler: Errhandler,
    new: Pointer<Comm>,
) -> Result<()> {
    let make = |handler: &Handler| from_groups(local, local_leader, remote, &tag.get()?, handler);
    of_groups(info, handler, new, make)
}

fn from_groups(local: Group, first: c_int, remote: Group, tag: &str, handler: &Handler) -> Result<Comm> {
    let (origin, members) = (group::origin(local)?, group::members(local)?);
    if members.size() == 0 {
        return Ok(COMM_NULL);
    }
    let leader = leader(first, members.size())?;
    let said = if members.rank() == Some(leader) { numbers(&group::members(remote)?) } else { Vec::new() };
    let world = get(COMM_WORLD)?;
    let side = world.comm.create_from_group(&members, &format!("one side of {tag}"))?;
    let remote = ranks(&world.comm, spread(&side, leader, said)?)?;
    let side = CommObject::new(side, handler.clone(), origin);
    if remote.size() == 0 { Ok(COMM_NULL) } else { join(side, remote, tag) }
}

/// The intercommunicators of the ranks of both sides that name one colour; none where a side has no such rank.
pub fn split(comm: &CommObject, color: Option<u32>, key: c_int) -> Result<Comm> {
    let inter = other_side(comm)?;
    let local = comm.comm.split(color, key.into())?;
    // The sides keep their order.
    let behind = if inter.is_first() { 0 } else { i64::from(u32::MAX) + 1 };
    let all = inter.all().split(color, i64::from(key) + behind)?;
    let (Some(local), Some(all)) = (local, all) else { return Ok(COMM_NULL) };
    let remote = all.group().difference(&local.group());
    if remote.size() == 0 {
        return Ok(COMM_NULL);
    }
    let mut object = CommObject::of(local, comm);
    object.inter = Some(Arc::new(Inter::new(remote, all, inter.is_first())));
    add(object)
}

/// The intercommunicator of the members of a group on each side (`MPI_Comm_create`).
pub fn create(comm: &CommObject, members: &Ranks) -> Result<Comm> {
    if members.difference(&comm.comm.group()).size() > 0 {
        return fail(
            ERR_GROUP,
            "the group has members that this side of the intercommunicator does not have",
        );
    }
    let key = members.rank().and_then(|rank| c_int::try_from(rank).ok());
    split(comm, key.map(|_| 0), key.unwrap_or(0))
}

/// The intercommunicators of ranks that share memory (`MPI_Comm_split_type`); none for ranks that want none.
pub fn split_shared(comm: &CommObject, wanted: bool, key: c_int) -> Result<Comm> {
    let shared = other_side(comm)?.all().split_shared()?;
    let first = shared.group().job_rank(0).and_then(|rank| u32::try_from(rank).ok());
    split(comm, first.filter(|_| wanted), key)
}

/// `MPI_Intercomm_merge`.
pub fn intercomm_merge(comm: Comm, high: c_int, new: Pointer<Comm>) -> Result<()> {
    let object = get(comm)?;
    let inter = other_side(&object)?;
    // Each side says the same; if both do, the first side comes first.
    let flags = inter.all().allgather(&[u8::from(high != 0)])?;
    let (own, theirs) = (object.comm.group(), inter.remote());
    let says = |group: &Ranks| {
        let rank = group.job_rank(0).and_then(|rank| inter.all().group().rank_of(rank));
        rank.and_then(|rank| flags.get(rank)).and_then(|flags| flags.first()).copied()
    };
    let (Some(here), Some(there)) = (says(&own), says(theirs)) else {
        return fail(ERR_ARG, "a side is empty");
    };
    let own_first = if here == there { inter.is_first() } else { here < there };
    let key = match (own_first, object.comm.rank()) {
        (true, rank) => rank,
        (false, rank) => theirs.size() + rank,
    };
    let merged = inter.all().split(Some(0), key as i64)?;
    new.set(handle(merged, &object)?)
}
