//! Intercommunicators (MPI-4.1 §7.6): two groups without a common member. Underneath is a communicator of both, over
//! which messages go; ranks of the other side are translated.

use std::ffi::c_int;

use transom::{Communicator, Comparison, Group as Ranks, Source};

use super::{CommObject, add};
use crate::abi::{Comm, ERR_ARG, ERR_COMM, ERR_RANK, Group};
use crate::failure::{Failure, Result, fail};
use crate::group;
use crate::place::{Place, flag};
use crate::world::comm as get;

/// The other side of an intercommunicator.
#[derive(Debug)]
pub struct Inter {
    remote: Ranks,
    /// Both sides.
    all: Communicator,
    /// Whether this side comes first in `all`.
    first: bool,
}

impl Inter {
    /// The same with another context.
    pub fn dup(&self) -> Result<Self> {
        Ok(Self { remote: self.remote.clone(), all: self.all.dup()?, first: self.first })
    }

    /// How alike two are whose local sides are `here`.
    pub fn compare(&self, other: &Self, here: Comparison) -> Comparison {
        let there = self.remote.compare(&other.remote);
        match (here, there) {
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
            (Comparison::Similar, _) | (_, Comparison::Similar) => Comparison::Similar,
            _ => here,
        }
    }
}

impl CommObject {
    /// The communicator that messages go over.
    pub fn messages(&self) -> &Communicator {
        self.inter.as_ref().map_or(&self.comm, |inter| &inter.all)
    }

    /// The rank there of a rank that the program names.
    pub fn peer(&self, rank: usize) -> Result<usize> {
        let Some(inter) = &self.inter else { return Ok(rank) };
        if rank == transom::NULL_RANK {
            return Ok(rank);
        }
        match inter.remote.job_rank(rank).and_then(|rank| inter.all.group().rank_of(rank)) {
            Some(rank) => Ok(rank),
            None => {
                fail(ERR_RANK, format!("the other side has {} ranks, not rank {rank}", inter.remote.size()))
            }
        }
    }

    /// The source there of one that the program names.
    pub fn from(&self, source: Source) -> Result<Source> {
        match source {
            Source::Any => Ok(Source::Any),
            Source::Rank(rank) => self.peer(rank).map(Source::Rank),
        }
    }

    /// The rank as the program knows it of a source there.
    pub fn named(&self, rank: usize) -> usize {
        let Some(inter) = &self.inter else { return rank };
        let named = inter.all.group().job_rank(rank).and_then(|rank| inter.remote.rank_of(rank));
        named.unwrap_or(rank)
    }

    /// Collectives are for one group.
    pub fn check_intra(&self) -> Result<()> {
        if self.inter.is_none() {
            return Ok(());
        }
        fail(ERR_COMM, "collectives of intercommunicators are not there: merge it first")
    }
}

/// `MPI_Comm_test_inter`.
pub fn comm_test_inter(comm: Comm, inter: Place<c_int>) -> Result<()> {
    inter.set(flag(get(comm)?.inter.is_some()))
}

fn other_side(comm: &CommObject) -> Result<&Inter> {
    comm.inter.as_ref().ok_or_else(|| Failure::new(ERR_COMM, "this is no intercommunicator"))
}

/// `MPI_Comm_remote_size`.
pub fn comm_remote_size(comm: Comm, size: Place<c_int>) -> Result<()> {
    size.set(c_int::try_from(other_side(&*get(comm)?)?.remote.size()).unwrap_or(c_int::MAX))
}

/// `MPI_Comm_remote_group`.
pub fn comm_remote_group(comm: Comm, members: Place<Group>) -> Result<()> {
    members.set(group::handle(other_side(&*get(comm)?)?.remote.clone())?)
}

/// The leaders tell each other their groups, and everybody on their side.
fn tell(local: &Communicator, leader: usize, peer: Option<(&CommObject, usize, c_int)>) -> Result<Vec<u64>> {
    let own: Vec<u64> = local.group().job_ranks().map(|rank| rank as u64).collect();
    let mut told = Vec::new();
    if let Some((bridge, other, tag)) = peer {
        let bridge_ranks = bridge.messages();
        (told, _) = bridge_ranks.sendrecv::<u64, u64>(other, tag, &own, other, tag)?;
    }
    let mut len = [told.len() as u64];
    local.broadcast(leader, &mut len)?;
    told.resize(usize::try_from(len[0]).unwrap_or(0), 0);
    local.broadcast(leader, &mut told)?;
    Ok(told)
}

/// `MPI_Intercomm_create`.
pub fn intercomm_create(
    local: Comm,
    leader: c_int,
    bridge: Comm,
    remote_leader: c_int,
    tag: c_int,
    new: Place<Comm>,
) -> Result<()> {
    let local = get(local)?;
    local.check_intra()?;
    let leader = usize::try_from(leader).ok().filter(|leader| *leader < local.comm.size());
    let Some(leader) = leader else { return fail(ERR_RANK, "the local leader is not a rank") };
    let is_leader = local.comm.rank() == leader;
    let peer = if is_leader {
        let other =
            usize::try_from(remote_leader).or_else(|_| fail(ERR_RANK, "the remote leader is not a rank"))?;
        let bridge = get(bridge)?;
        let other = bridge.peer(other)?;
        Some((bridge, other))
    } else {
        None
    };
    let told = tell(&local.comm, leader, peer.as_ref().map(|(bridge, other)| (&**bridge, *other, tag)))?;
    let members: Vec<usize> = told.into_iter().filter_map(|rank| usize::try_from(rank).ok()).collect();
    let world = get(crate::abi::COMM_WORLD)?;
    let remote = world.comm.group().incl(&members)?;
    let own = local.comm.group();
    if own.intersection(&remote).size() > 0 {
        return fail(ERR_COMM, "the two groups have members in common");
    }
    // The side with the lower first rank comes first.
    let first = own.job_rank(0) < remote.job_rank(0);
    let both = if first { own.union(&remote) } else { remote.union(&own) };
    let all = world.comm.create_from_group(&both, &format!("intercommunicator {tag}"))?;
    let mut object = CommObject::new(local.comm.dup()?, local.handler.read().clone());
    object.inter = Some(Inter { remote, all, first });
    new.set(add(object)?)
}

/// `MPI_Intercomm_merge`.
pub fn intercomm_merge(comm: Comm, high: c_int, new: Place<Comm>) -> Result<()> {
    let object = get(comm)?;
    let inter = other_side(&object)?;
    // Each side says the same; if both do, the first side comes first.
    let flags = inter.all.allgather(&[u8::from(high != 0)])?;
    let (own, theirs) = (object.comm.group(), &inter.remote);
    let says = |group: &Ranks| {
        let rank = group.job_rank(0).and_then(|rank| inter.all.group().rank_of(rank));
        rank.and_then(|rank| flags.get(rank)).and_then(|flags| flags.first()).copied()
    };
    let (Some(here), Some(there)) = (says(&own), says(theirs)) else {
        return fail(ERR_ARG, "a side is empty");
    };
    let own_first = if here == there { inter.first } else { here < there };
    let key = match (own_first, object.comm.rank()) {
        (true, rank) => rank,
        (false, rank) => theirs.size() + rank,
    };
    let merged = inter.all.split(Some(0), key as i64)?;
    new.set(super::handle(merged, &object)?)
}
