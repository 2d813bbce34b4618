//! Collectives of intercommunicators (MPI-4.1 §6.2.3): data goes from each group to the other. Underneath is a collective of
//! both groups together, in which a rank exchanges nothing with its own group.

use std::ffi::c_int;
use std::sync::Arc;

use super::reduction::Reduction;
use super::{Parts, Plan, pack_all, run, unpack_all};
use crate::abi::{Datatype, ERR_COUNT, ERR_ROOT, Op, PROC_NULL, ROOT};
use crate::buffer::Buffer;
use crate::comm::CommObject;
use crate::comm::inter::other_side;
use crate::failure::{Result, fail};

/// What a rank does in a collective with a root, and the buffer that only this role has.
#[derive(Clone)]
pub enum Role<R> {
    Root(R),
    /// In the root's group: it has no part.
    Beside,
    /// In the other group: the root there.
    Inter(usize, Buffer),
}

/// The role that the root argument says.
pub fn roles<R>(
    comm: &CommObject,
    root: c_int,
    inter: impl FnOnce() -> Result<Buffer>,
    at_root: impl FnOnce() -> Result<R>,
) -> Result<Role<R>> {
    match (root, usize::try_from(root)) {
        (ROOT, _) => at_root().map(Role::Root),
        (PROC_NULL, _) => Ok(Role::Beside),
        (_, Ok(rank)) if rank < comm.partners() => Ok(Role::Inter(rank, inter()?)),
        _ => fail(ERR_ROOT, format!("{root} as a root: the other group has {} ranks", comm.partners())),
    }
}

/// One block for each rank of the other group, or none for any, and what is done with theirs.
fn exchange(
    comm: Arc<CommObject>,
    blocks: impl Fn() -> Result<Vec<Vec<u8>>> + Send + Sync + 'static,
    fill: impl Fn(Vec<Vec<u8>>) -> Result<()> + Clone + Send + Sync + 'static,
) -> Plan {
    Plan::new(move |how| {
        let inter = other_side(&comm)?;
        let theirs = inter.theirs();
        let mut all = vec![Vec::new(); inter.all().size()];
        for (rank, block) in theirs.iter().zip(blocks()?) {
            all[*rank] = block;
        }
        let fill = fill.clone();
        let fill = move |all| fill(chosen(&theirs, all));
        run!(how, alltoall, ialltoall, (inter.all(), all), fill)
    })
}

/// The same block for each rank of the other group.
fn share(
    comm: Arc<CommObject>,
    block: impl Fn() -> Result<Vec<u8>> + Send + Sync + 'static,
    fill: impl Fn(Vec<Vec<u8>>) -> Result<()> + Clone + Send + Sync + 'static,
) -> Plan {
    Plan::new(move |how| {
        let inter = other_side(&comm)?;
        let (theirs, fill) = (inter.theirs(), fill.clone());
        let fill = move |all| fill(chosen(&theirs, all));
        run!(how, allgather, iallgather, (inter.all(), block()?), fill)
    })
}

fn chosen(ranks: &[usize], mut all: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    ranks.iter().map(|rank| std::mem::take(&mut all[*rank])).collect()
}

/// A block for one rank of the other group.
fn only(comm: &CommObject, rank: usize, block: Vec<u8>) -> Vec<Vec<u8>> {
    let mut blocks = vec![Vec::new(); comm.partners()];
    blocks[rank] = block;
    blocks
}

/// `MPI_Barrier`.
pub fn barrier(comm: Arc<CommObject>) -> Plan {
    Plan::new(move |how| {
        let inter = other_side(&comm)?;
        run!(how, barrier, ibarrier, (inter.all()), |()| -> Result<()> { Ok(()) })
    })
}

/// `MPI_Bcast`.
pub fn broadcast(comm: Arc<CommObject>, role: Role<Buffer>) -> Plan {
    let (object, sender) = (comm.clone(), role.clone());
    let blocks = move || match &sender {
        Role::Root(buffer) => Ok(vec![buffer.pack()?; object.partners()]),
        _ => Ok(Vec::new()),
    };
    exchange(comm, blocks, move |all| match &role {
        Role::Inter(root, buffer) => buffer.unpack(&all[*root]),
        _ => Ok(()),
    })
}

/// `MPI_Gather` and `MPI_Gatherv`.
pub fn gather(comm: Arc<CommObject>, role: Role<Parts>) -> Plan {
    let (object, sender) = (comm.clone(), role.clone());
    let blocks = move || match &sender {
        Role::Inter(root, buffer) => Ok(only(&object, *root, buffer.pack()?)),
        _ => Ok(Vec::new()),
    };
    exchange(comm, blocks, move |all| match &role {
        Role::Root(parts) => unpack_all(parts, &all),
        _ => Ok(()),
    })
}

/// `MPI_Scatter` and `MPI_Scatterv`.
pub fn scatter(comm: Arc<CommObject>, role: Role<Parts>) -> Plan {
    let sender = role.clone();
    let blocks = move || match &sender {
        Role::Root(parts) => pack_all(parts),
        _ => Ok(Vec::new()),
    };
    exchange(comm, blocks, move |all| match &role {
        Role::Inter(root, buffer) => buffer.unpack(&all[*root]),
        _ => Ok(()),
    })
}

/// `MPI_Allgather` and `MPI_Allgatherv`.
pub fn allgather(comm: Arc<CommObject>, own: Buffer, parts: Parts) -> Plan {
    share(comm, move || own.pack(), move |all| unpack_all(&parts, &all))
}

/// `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw`.
pub fn alltoall(comm: Arc<CommObject>, from: Parts, to: Parts) -> Plan {
    exchange(comm, move || pack_all(&from), move |all| unpack_all(&to, &all))
}

/// `MPI_Reduce`.
pub fn reduce(comm: Arc<CommObject>, role: Role<Buffer>, ty: Datatype, op: Op) -> Result<Plan> {
    let reduction = match &role {
        Role::Root(buffer) | Role::Inter(_, buffer) => Some(Reduction::new(op, ty, buffer)?),
        Role::Beside => None,
    };
    let (object, sender, loader) = (comm.clone(), role.clone(), reduction.clone());
    let blocks = move || match (&sender, &loader) {
        (Role::Inter(root, buffer), Some(reduction)) => Ok(only(&object, *root, reduction.load(buffer)?)),
        _ => Ok(Vec::new()),
    };
    Ok(exchange(comm, blocks, move |all| match (&role, &reduction) {
        (Role::Root(buffer), Some(reduction)) => reduction.store(buffer, &combined(reduction, all)?),
        _ => Ok(()),
    }))
}

/// `MPI_Allreduce`; with the elements before `skip` left out, `MPI_Reduce_scatter`.
pub fn allreduce(
    comm: Arc<CommObject>,
    from: Buffer,
    to: Buffer,
    ty: Datatype,
    op: Op,
    skip: usize,
) -> Result<Plan> {
    let reduction = Reduction::new(op, ty, &from)?;
    let before = reduction.bytes(&from, skip);
    let len = reduction.bytes(&to, to.count());
    let loader = reduction.clone();
    Ok(share(
        comm,
        move || loader.load(&from),
        move |all| {
            let result = combined(&reduction, all)?;
            match result.get(before..).and_then(|result| result.get(..len)) {
                Some(part) => reduction.store(&to, part),
                None => fail(ERR_COUNT, "the two groups give different numbers of elements"),
            }
        },
    ))
}

/// All operands combined in the order of ranks.
fn combined(reduction: &Reduction, all: Vec<Vec<u8>>) -> Result<Vec<u8>> {
    let mut operands = all.into_iter();
    let first = operands.next().unwrap_or_default();
    operands.try_fold(first, |left, mut right| {
        if left.len() != right.len() {
            return fail(ERR_COUNT, "ranks of the other group give different numbers of elements");
        }
        (reduction.combine)(&left, &mut right);
        Ok(right)
    })
}
