//! Collectives that compute (MPI-4.1 §6.9 to §6.11).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::reduction::Reduction;
use super::{Plan, across, collectives, in_place, root, run};
use crate::abi::{Comm, Datatype, ERR_COMM, Info, Op, Request};
use crate::buffer::{Buffer, count};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::place::{Counts, Place};

/// Operands and results: two buffers of one datatype; with `MPI_IN_PLACE`, one.
#[derive(Clone)]
struct Operands {
    from: Buffer,
    to: Option<Buffer>,
    reduction: Reduction,
}

impl Operands {
    fn new(
        from: *const c_void,
        to: Option<*mut c_void>,
        n: i64,
        ty: Datatype,
        op: Op,
        results: i64,
    ) -> Result<Self> {
        let to = to.map(|to| Buffer::new(to, results, ty)).transpose()?;
        let from = match &to {
            Some(to) if in_place(from) => to.part(0, n)?,
            _ => Buffer::new(from, n, ty)?,
        };
        let reduction = Reduction::new(op, ty, &from)?;
        Ok(Self { from, to, reduction })
    }

    fn load(&self) -> Result<Vec<u8>> {
        self.reduction.load(&self.from)
    }

    fn store(&self, data: &[u8]) -> Result<()> {
        self.to.as_ref().map_or(Ok(()), |to| self.reduction.store(to, data))
    }
}

fn reduce_plan(comm: Arc<CommObject>, at: usize, operands: Operands) -> Plan {
    Plan::new(move |how| {
        let (data, combine) = (operands.load()?, operands.reduction.combine.clone());
        let operands = operands.clone();
        let fill = move |data: Option<Vec<u8>>| data.map_or(Ok(()), |data| operands.store(&data));
        run!(how, reduce, ireduce, (&comm.comm, at, data, combine), fill)
    })
}

fn allreduce_plan(comm: Arc<CommObject>, operands: Operands) -> Plan {
    Plan::new(move |how| {
        let (data, combine) = (operands.load()?, operands.reduction.combine.clone());
        let operands = operands.clone();
        let fill = move |data: Vec<u8>| operands.store(&data);
        run!(how, allreduce, iallreduce, (&comm.comm, data, combine), fill)
    })
}

fn scan_plan(comm: Arc<CommObject>, operands: Operands) -> Plan {
    Plan::new(move |how| {
        let (data, combine) = (operands.load()?, operands.reduction.combine.clone());
        let operands = operands.clone();
        let fill = move |data: Vec<u8>| operands.store(&data);
        run!(how, scan, iscan, (&comm.comm, data, combine), fill)
    })
}

fn exscan_plan(comm: Arc<CommObject>, operands: Operands) -> Plan {
    Plan::new(move |how| {
        let (data, combine) = (operands.load()?, operands.reduction.combine.clone());
        let operands = operands.clone();
        let fill = move |data: Option<Vec<u8>>| data.map_or(Ok(()), |data| operands.store(&data));
        run!(how, exscan, iexscan, (&comm.comm, data, combine), fill)
    })
}

/// The results of each rank: so many instances.
fn reduce_scatter_plan(
    comm: Arc<CommObject>,
    from: *const c_void,
    to: *mut c_void,
    counts: &[i64],
    ty: Datatype,
    op: Op,
) -> Result<Plan> {
    let all = counts.iter().fold(0i64, |sum, n| sum.saturating_add(*n));
    let own = counts.get(comm.comm.rank()).copied().unwrap_or(0);
    let operands = Operands::new(from, Some(to), all, ty, op, own)?;
    let length = |n: &i64| Ok(operands.reduction.bytes(&operands.from, count(*n)?));
    let lengths: Vec<usize> = counts.iter().map(length).collect::<Result<_>>()?;
    Ok(Plan::new(move |how| {
        let (data, combine) = (operands.load()?, operands.reduction.combine.clone());
        let (operands, lengths) = (operands.clone(), lengths.clone());
        let fill = move |data: Vec<u8>| operands.store(&data);
        run!(how, reduce_scatter, ireduce_scatter, (&comm.comm, data, lengths, combine), fill)
    }))
}

/// The other side's operands, combined and dealt out on this side, where `counts` are its ranks'.
fn reduce_scatter_across(
    comm: Arc<CommObject>,
    from: *const c_void,
    to: *mut c_void,
    counts: &[i64],
    ty: Datatype,
    op: Op,
) -> Result<Plan> {
    let (before, rest) = counts.split_at(comm.comm.rank());
    let sum = |counts: &[i64]| counts.iter().fold(0i64, |sum, n| sum.saturating_add(*n));
    let own = rest.first().copied().unwrap_or(0);
    let (from, to) = (Buffer::new(from, sum(counts), ty)?, Buffer::new(to, own, ty)?);
    across::allreduce(comm, from, to, ty, op, count(sum(before))?)
}

fn one_group() -> Result<Plan> {
    fail(ERR_COMM, "scans are for one group: merge the intercommunicator first")
}

collectives! {
    /// `MPI_Reduce`.
    reduce, ireduce, reduce_init:
    (from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op, at: c_int) |object| {
        let at = root(&object, at)?;
        let to = (object.comm.rank() == at).then_some(to);
        reduce_plan(object, at, Operands::new(from, to, n, ty, op, n)?)
    }, across {
        let roles = across::roles(&object, at, || Buffer::new(from, n, ty), || Buffer::new(to, n, ty))?;
        across::reduce(object, roles, ty, op)?
    };

    /// `MPI_Allreduce`.
    allreduce, iallreduce, allreduce_init:
    (from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op) |object| {
        allreduce_plan(object, Operands::new(from, Some(to), n, ty, op, n)?)
    }, across {
        across::allreduce(object, Buffer::new(from, n, ty)?, Buffer::new(to, n, ty)?, ty, op, 0)?
    };

    /// `MPI_Scan`.
    scan, iscan, scan_init: (from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op) |object| {
        scan_plan(object, Operands::new(from, Some(to), n, ty, op, n)?)
    }, across one_group()?;

    /// `MPI_Exscan`.
    exscan, iexscan, exscan_init: (from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op) |object| {
        exscan_plan(object, Operands::new(from, Some(to), n, ty, op, n)?)
    }, across one_group()?;

    /// `MPI_Reduce_scatter`.
    reduce_scatter, ireduce_scatter, reduce_scatter_init:
    (from: *const c_void, to: *mut c_void, counts: Counts, ty: Datatype, op: Op) |object| {
        let counts = counts.list(object.comm.size())?;
        reduce_scatter_plan(object, from, to, &counts, ty, op)?
    }, across {
        let counts = counts.list(object.comm.size())?;
        reduce_scatter_across(object, from, to, &counts, ty, op)?
    };

    /// `MPI_Reduce_scatter_block`.
    reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init:
    (from: *const c_void, to: *mut c_void, n: i64, ty: Datatype, op: Op) |object| {
        let counts = vec![n; object.comm.size()];
        reduce_scatter_plan(object, from, to, &counts, ty, op)?
    }, across {
        let counts = vec![n; object.comm.size()];
        reduce_scatter_across(object, from, to, &counts, ty, op)?
    };
}
