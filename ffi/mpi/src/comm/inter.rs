//! Intercommunicators (MPI-4.1 §7.6): two groups without a common member. Underneath is a communicator of both, over
//! which messages go; ranks of the other side are translated.

use std::ffi::c_int;

use transom::{Communicator, Comparison, Group as Ranks, Source};

use super::CommObject;
use crate::abi::{Comm, ERR_COMM, ERR_RANK, Group};
use crate::failure::{Failure, Result, fail};
use crate::group;
use crate::pointer::{Pointer, flag};
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
    /// `remote` is the other side of `all`, of which this side is the first if `first`.
    pub fn new(remote: Ranks, all: Communicator, first: bool) -> Self {
        Self { remote, all, first }
    }

    /// Both sides.
    pub fn all(&self) -> &Communicator {
        &self.all
    }

    /// The other side.
    pub fn remote(&self) -> &Ranks {
        &self.remote
    }

    /// Whether this side comes first.
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// The ranks in [`Inter::all`] of the other side's.
    pub fn theirs(&self) -> Vec<usize> {
        let all = self.all.group();
        self.remote.job_ranks().filter_map(|rank| all.rank_of(rank)).collect()
    }

    /// The rank on the other side of one in [`Inter::all`].
    pub fn named(&self, rank: usize) -> usize {
        let named = self.all.group().job_rank(rank).and_then(|rank| self.remote.rank_of(rank));
        named.unwrap_or(rank)
    }

    /// The same over another communicator of both sides.
    pub fn with(&self, all: Communicator) -> Self {
        Self { remote: self.remote.clone(), all, first: self.first }
    }

    /// The same for one persistent collective.
    pub fn again(&self) -> Self {
        self.with(self.all.again())
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

    /// Ranks that one exchanges data with in a collective.
    pub fn partners(&self) -> usize {
        self.inter.as_ref().map_or(self.comm.size(), |inter| inter.remote.size())
    }

    /// Some calls are for one group.
    pub fn check_intra(&self) -> Result<()> {
        if self.inter.is_none() {
            return Ok(());
        }
        fail(ERR_COMM, "this is an intercommunicator: merge it first")
    }
}

/// `MPI_Comm_test_inter`.
pub fn comm_test_inter(comm: Comm, inter: Pointer<c_int>) -> Result<()> {
    inter.set(flag(get(comm)?.inter.is_some()))
}

/// The other side; an error where there is none.
pub fn other_side(comm: &CommObject) -> Result<&Inter> {
    comm.inter.as_deref().ok_or_else(|| Failure::new(ERR_COMM, "this is no intercommunicator"))
}

/// `MPI_Comm_remote_size`.
pub fn comm_remote_size(comm: Comm, size: Pointer<c_int>) -> Result<()> {
    size.set(c_int::try_from(other_side(&*get(comm)?)?.remote.size()).unwrap_or(c_int::MAX))
}

/// `MPI_Comm_remote_group`.
pub fn comm_remote_group(comm: Comm, members: Pointer<Group>) -> Result<()> {
    let object = get(comm)?;
    members.set(group::handle(other_side(&object)?.remote.clone(), object.origin.clone())?)
}
