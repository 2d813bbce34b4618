//! Teams: PEs that do something together (OpenSHMEM 1.5 §9.4). All are regular: every `stride`th PE of the world from one on.

use std::sync::Arc;

use super::Shmem;
use crate::{Class, Communicator, Error, RankRange, Result};

/// A team of PEs, which count from 0 in it.
#[derive(Debug)]
pub struct Team {
    comm: Communicator,
    start: usize,
    stride: isize,
}

impl Team {
    pub(super) fn new(comm: Communicator, start: usize, stride: isize) -> Self {
        Self { comm, start, stride }
    }

    /// The first PE, the step to the next, and how many there are.
    pub(super) fn regular(&self) -> (usize, isize, usize) {
        (self.start, self.stride, self.n_pes())
    }

    /// This PE's number in the team.
    pub fn my_pe(&self) -> usize {
        self.comm.rank()
    }

    /// Number of PEs.
    pub fn n_pes(&self) -> usize {
        self.comm.size()
    }

    /// The world's number of a PE of the team, if there is such a one.
    #[inline]
    pub fn world_pe(&self, pe: usize) -> Option<usize> {
        (pe < self.n_pes()).then(|| self.start.wrapping_add_signed(self.stride.wrapping_mul(pe as isize)))
    }

    /// The team's number of a PE of the world, if it is in the team.
    pub fn pe_of(&self, world: usize) -> Option<usize> {
        self.comm.group().rank_of(world)
    }

    /// The team as a communicator, whose collectives are the team's.
    pub fn comm(&self) -> &Communicator {
        &self.comm
    }

    /// A team of `size` PEs of this one, every `stride`th from `start` on (`shmem_team_split_strided`). Collective over this
    /// team; PEs that are not in the new one get none.
    ///
    /// # Errors
    /// [`Class::Argument`]: such PEs are not all in this team. As [`Communicator::barrier`].
    pub fn split_strided(&self, start: usize, stride: isize, size: usize) -> Result<Option<Self>> {
        let end = isize::try_from(size).ok().and_then(|size| stride.checked_mul(size - 1));
        let last = end.and_then(|end| start.checked_add_signed(end));
        let inside = size > 0 && start < self.n_pes() && last.is_some_and(|last| last < self.n_pes());
        let (Some(last), true) = (last, inside && (stride != 0 || size == 1)) else {
            let message = format!(
                "{size} PEs from {start} on in steps of {stride} are not PEs of a team of {}",
                self.n_pes()
            );
            return Err(Error::new(Class::Argument, "team_split_strided", message));
        };
        let step = if size == 1 { 1 } else { stride };
        let group = self.comm.group().range_incl(&[RankRange { first: start, last, stride: step }])?;
        let group = if group.rank().is_some() { group } else { group.incl(&[])? };
        let made = self.comm.create_communicator(&group)?;
        let first = self.start.wrapping_add_signed(self.stride.wrapping_mul(start as isize));
        Ok(made.map(|comm| Self::new(comm, first, self.stride.wrapping_mul(step))))
    }

    /// Two teams that this PE is in when those of this team are laid out in rows of `xrange` PEs: the row's and the column's
    /// (`shmem_team_split_2d`). Collective.
    ///
    /// # Errors
    /// [`Class::Argument`]: `xrange` is 0. As [`Communicator::barrier`].
    pub fn split_2d(&self, xrange: usize) -> Result<(Self, Self)> {
        if xrange == 0 {
            return Err(Error::new(Class::Argument, "team_split_2d", "rows of 0 PEs"));
        }
        let xrange = xrange.min(self.n_pes());
        let (row, column) = (self.my_pe() / xrange, self.my_pe() % xrange);
        let of = |color: usize, start: usize, stride: usize| {
            let color = u32::try_from(color).map_err(|_| too_many())?;
            let comm = self.comm.split(Some(color), 0)?.ok_or_else(too_many)?;
            let first = self.start.wrapping_add_signed(self.stride.wrapping_mul(start as isize));
            Ok(Self::new(comm, first, self.stride.wrapping_mul(stride as isize)))
        };
        Ok((of(row, row * xrange, 1)?, of(column, column, xrange)?))
    }
}

fn too_many() -> Error {
    Error::new(Class::Argument, "team_split_2d", "more rows or columns than can be counted")
}

impl Shmem {
    /// The team of all PEs.
    pub fn world(&self) -> &Arc<Team> {
        &self.world
    }

    /// The PEs that load and store each other's symmetric heaps (`SHMEM_TEAM_SHARED`); this PE alone where those are no
    /// regular set.
    pub fn shared(&self) -> &Arc<Team> {
        &self.shared
    }

    /// The communicator of an active set: `size` PEs, every `stride`th from `start` on. Collective over these at the first call.
    ///
    /// # Errors
    /// [`Class::Argument`]: there are no such PEs, or this one is not among them. As [`Communicator::barrier`].
    pub fn active_set(
        &self,
        call: &'static str,
        (start, stride, size): (usize, usize, usize),
    ) -> Result<Communicator> {
        if (start, stride, size) == (0, 1, self.n_pes()) {
            return Ok(self.world.comm.clone());
        }
        if let Some(known) = self.sets.lock().get(&(start, stride, size)) {
            return Ok(known.clone());
        }
        let last = size.checked_sub(1).and_then(|n| n.checked_mul(stride)?.checked_add(start));
        let last = last.filter(|last| *last < self.n_pes() && stride > 0).ok_or_else(|| {
            let message = format!(
                "an active set of {size} PEs from {start} on in steps of {stride}: there are {} PEs",
                self.n_pes()
            );
            self.error(Class::Argument, call, message)
        })?;
        let range = RankRange { first: start, last, stride: stride as isize };
        let group = self.world.comm.group().range_incl(&[range])?;
        if group.rank().is_none() {
            let message =
                format!("this PE is not in the active set of {size} PEs from {start} in steps of {stride}");
            return Err(self.error(Class::Argument, call, message));
        }
        let comm = self.world.comm.create_from_group(&group, "SHMEM active set")?;
        self.sets.lock().insert((start, stride, size), comm.clone());
        Ok(comm)
    }
}

/// The PEs that share memory, if they are a regular set of the world's.
pub(super) fn shared(world: &Communicator) -> Result<Team> {
    let near = world.split_shared()?;
    let ranks: Vec<usize> = near.group().job_ranks().collect();
    let stride = ranks.get(1).map_or(1, |second| second.wrapping_sub(ranks[0]));
    let regular = ranks.iter().enumerate().all(|(index, rank)| *rank == ranks[0] + index * stride);
    let regular = world.allreduce(crate::Min, &[u8::from(regular)])? == [1];
    if regular {
        return Ok(Team::new(near, ranks[0], stride as isize));
    }
    let own = world.rank();
    let alone = world.split(Some(own as u32), 0)?.ok_or_else(too_many)?;
    Ok(Team::new(alone, own, 1))
}
