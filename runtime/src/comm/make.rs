//! New communicators. The first rank of the new group makes the context, from its job rank and a counter of its own: no
//! agreement over free contexts is needed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;

use super::channel::{Channel, FOUNDING};
use super::group::digest;
use super::{Communicator, Group};
use crate::collective::{self, Kind};
use crate::{Class, Error, NULL_RANK, Request, Result};

/// What a rank says when a communicator is split.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Choice {
    color: Option<u32>,
    key: i64,
    /// A new context, for the case that this rank is the first of a part.
    context: u64,
}

/// What a rank says when a communicator is made of a group: a new context, the group's digest, and whether this rank is
/// in it; or what is wrong with the group.
type Proposal = std::result::Result<(u64, u64, bool), String>;

impl Communicator {
    /// A communicator of the members of `group`, which this process is one of.
    pub(super) fn derive(&self, operation: &'static str, group: Group, context: u64) -> Result<Self> {
        let channel = self.channel();
        let Some(rank) = group.rank() else {
            return Err(channel.error(Class::Group, operation, "this rank is not in the group"));
        };
        let channel = Channel::new(channel.engine.clone(), context, group, rank);
        Ok(Self::new(self.member().clone(), Arc::new(channel), ""))
    }

    /// A communicator with the same members and a context that all have agreed on.
    pub(crate) fn with_context(&self, context: u64) -> Self {
        let Channel { engine, group, rank, .. } = &**self.channel();
        let channel = Channel::new(engine.clone(), context, group.clone(), *rank);
        Self::new(self.member().clone(), Arc::new(channel), "")
    }

    /// A new context.
    pub(crate) fn new_context(&self) -> u64 {
        Channel::new_context(&self.channel().engine)
    }

    /// Every rank's contribution to a new communicator or window, by rank. Collective.
    pub(crate) fn exchange<T: Serialize + for<'a> Deserialize<'a>>(
        &self,
        kind: Kind,
        own: &T,
    ) -> Result<Vec<T>> {
        let malformed = |e: postcard::Error| {
            let message = format!("a peer's part makes no sense: {e}");
            self.channel().error(Class::Collective, Kind::name(kind as u8), message)
        };
        let own = postcard::to_stdvec(own).map_err(malformed)?;
        let all = collective::allgather_bytes(self.channel(), kind, own)?;
        all.iter().map(|bytes| postcard::from_bytes(bytes).map_err(malformed)).collect()
    }

    /// The same members in another context (`MPI_Comm_dup`, MPI-4.1 §7.4.2). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    pub fn dup(&self) -> Result<Self> {
        let context = self.own_contexts::<1>();
        let context = collective::broadcast_bytes(self.channel(), Kind::Duplicate, 0, context)?;
        let [context] = self.contexts(&context)?;
        Ok(self.with_context(context))
    }

    /// [`Communicator::dup`], nonblocking (`MPI_Comm_idup`, §7.4.2).
    pub fn idup(&self) -> Request<Self> {
        let this = self.clone();
        self.start_contexts::<1>().map(move |context| {
            let [context] = this.contexts(&context)?;
            Ok(this.with_context(context))
        })
    }

    /// As many new contexts as are wanted, of rank 0.
    fn start_contexts<const N: usize>(&self) -> Request<Vec<u8>> {
        collective::start_broadcast(self, Kind::Duplicate, 0, self.own_contexts::<N>())
    }

    /// What this rank has to say of new contexts: nothing, if it is not the first.
    fn own_contexts<const N: usize>(&self) -> Vec<u8> {
        let new = |_| if self.rank() == 0 { self.new_context() } else { 0 };
        (0..N).map(new).flat_map(u64::to_le_bytes).collect()
    }

    /// Contexts that rank 0 has sent.
    pub(super) fn contexts<const N: usize>(&self, sent: &[u8]) -> Result<[u64; N]> {
        <[u64; N]>::read_from_bytes(sent)
            .map(|contexts| contexts.map(u64::from_le))
            .map_err(|_| self.channel().error(Class::Collective, "dup", "what rank 0 sent makes no sense"))
    }

    /// A communicator for each colour, of the ranks that name it, in the order of their keys, then of their ranks
    /// (`MPI_Comm_split`, §7.4.2). A rank without a colour (`MPI_UNDEFINED`) gets none. Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    pub fn split(&self, color: Option<u32>, key: i64) -> Result<Option<Self>> {
        let own = Choice { color, key, context: self.new_context() };
        let choices: Vec<Choice> = self.exchange(Kind::Split, &own)?;
        if color.is_none() {
            return Ok(None);
        }
        let mut part: Vec<usize> = (0..choices.len()).filter(|rank| choices[*rank].color == color).collect();
        part.sort_by_key(|rank| choices[*rank].key);
        let context = choices[part[0]].context;
        let channel = self.channel();
        let group = channel.group.of(part.into_iter().map(|rank| channel.job_rank(rank)).collect());
        self.derive("split", group, context).map(Some)
    }

    /// A communicator of the ranks that share memory with this one, in the same order (`MPI_Comm_split_type` with
    /// `MPI_COMM_TYPE_SHARED`, §7.4.2). Collective.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    pub fn split_shared(&self) -> Result<Self> {
        let channel = self.channel();
        let routes = &channel.engine.routes;
        let shares =
            |rank: &usize| *rank == channel.rank || routes.to(channel.job_rank(*rank)).name() == "shm";
        let first = (0..channel.size).find(shares).unwrap_or(channel.rank);
        let color = u32::try_from(first).map_err(|_| {
            channel.error(Class::Size, "split_shared", "there are more ranks than can be named")
        })?;
        self.split(Some(color), 0)?
            .ok_or_else(|| channel.error(Class::System, "split_shared", "this rank has no colour"))
    }

    /// A communicator of the members of `group` (`MPI_Comm_create`, §7.4.2). Collective over this communicator: every rank
    /// names the group that it is in, or any other; groups that are named do not overlap. A rank that is not in the
    /// group that it names gets none.
    ///
    /// # Errors
    /// [`Class::Group`], at every rank: a group has members that this communicator does not have, or members of one
    /// group name different ones. As [`Communicator::barrier`].
    pub fn create_communicator(&self, group: &Group) -> Result<Option<Self>> {
        const NAME: &str = "create_communicator";
        let channel = self.channel();
        let stranger = group.job_ranks().find(|rank| channel.group.rank_of(*rank).is_none());
        let own: Proposal = match stranger {
            Some(rank) => {
                Err(format!("rank {rank} of the job is in the group, but not in {}", channel.title()))
            }
            None => Ok((self.new_context(), group.digest(), group.rank().is_some())),
        };
        let proposals: Vec<Proposal> = self.exchange(Kind::Create, &own)?;
        let wrong =
            |rank: usize, what: &str| Err(channel.error(Class::Group, NAME, format!("rank {rank}: {what}")));
        for (rank, proposal) in proposals.iter().enumerate() {
            if let Err(what) = proposal {
                return wrong(rank, what);
            }
        }
        if group.rank().is_none() {
            return Ok(None);
        }
        let mut context = None;
        for rank in group.job_ranks().filter_map(|rank| channel.group.rank_of(rank)) {
            match &proposals[rank] {
                Ok((new, digest, true)) if *digest == group.digest() => context = context.or(Some(*new)),
                _ => return wrong(rank, "its group is another one: all members must name the same group"),
            }
        }
        context.map(|context| self.derive(NAME, group.clone(), context)).transpose()
    }

    /// A communicator of the members of `group`, made by them alone (`MPI_Comm_create_from_group`, §7.4.2, and
    /// `MPI_Comm_create_group`). Collective over the group. `tag` tells apart what is made of one group at the same time by
    /// several threads.
    ///
    /// # Errors
    /// [`Class::Group`]: this rank is not in the group, or the group has members that the job does not have. As
    /// [`Communicator::barrier`].
    pub fn create_from_group(&self, group: &Group, tag: &str) -> Result<Self> {
        const NAME: &str = "create_from_group";
        let engine = &self.channel().engine;
        let wrong = |what: &str| Error::new(Class::Group, NAME, what).at_rank(engine.rank);
        let rank =
            group.rank().ok_or_else(|| wrong("this rank is not in the group: only members call this"))?;
        if group.job_ranks().any(|rank| rank >= engine.size || rank == NULL_RANK) {
            return Err(wrong("the group has members that the job does not have"));
        }
        let founding = FOUNDING | (group.digest() ^ digest(tag.as_bytes()));
        let sequence = self.member().next_founding(founding);
        let channel = Channel::new(engine.clone(), founding, group.clone(), rank);
        channel.start_at(sequence);
        let context = if rank == 0 { self.new_context() } else { 0 }.to_le_bytes().to_vec();
        let context = collective::broadcast_bytes(&channel, Kind::Create, 0, context)?;
        let context = context.try_into().map_err(|_| wrong("what its first rank sent makes no sense"))?;
        self.derive(NAME, group.clone(), u64::from_le_bytes(context))
    }
}

/// Duplicates of the two sides of an intercommunicator and of the communicator of both, nonblocking: `both`, and the one that
/// this rank is in, the first or the second. Collective over both.
pub fn idup_sides(
    both: &Communicator,
    side: &Communicator,
    first: bool,
) -> Request<(Communicator, Communicator)> {
    let (all, side) = (both.clone(), side.clone());
    both.start_contexts::<3>().map(move |contexts| {
        let [context, one, other] = all.contexts(&contexts)?;
        Ok((all.with_context(context), side.with_context(if first { one } else { other })))
    })
}
