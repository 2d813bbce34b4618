//! Collectives that compute (MPI-4.1 §6.9 to §6.11).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::raw::Combine;

use super::reduction::Reduction;
use super::{Plan, collectives, in_place, inter, root, run};
use crate::abi::{Comm, Datatype, ERR_COMM, Info, Op, Request};
use crate::buffer::{Buffer, Triple, count};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer};

/// Operands and results: two buffers of one datatype; with `MPI_IN_PLACE`, one.
#[derive(Clone)]
struct Operands {
    from: Buffer,
    to: Option<Buffer>,
    reduction: Reduction,
}

impl Operands {
    /// Operands like `data`, at `from`; results, if this rank has any, where `to` says.
    fn new(from: *const c_void, data: Triple, to: Option<Triple>, op: Op) -> Result<Self> {
        let to = to.map(Buffer::new).transpose()?;
        let from = match &to {
            Some(to) if in_place(from) => to.part(0, data.n)?,
            _ => Buffer::new(data.at(from))?,
        };
        let reduction = Reduction::new(op, data.ty, &from)?;
        Ok(Self { from, to, reduction })
    }

    /// The operands, and how two are combined.
    fn given(&self) -> Result<(Vec<u8>, Combine)> {
        Ok((self.reduction.load(&self.from)?, self.reduction.combine.clone()))
    }

    /// Stores the result, if there is one and this rank has it.
    fn store<R: Into<Option<Vec<u8>>>>(&self) -> impl FnOnce(R) -> Result<()> + use<R> {
        let (to, reduction) = (self.to.clone(), self.reduction.clone());
        move |result| match (to, result.into()) {
            (Some(to), Some(result)) => reduction.store(&to, &result),
            _ => Ok(()),
        }
    }
}

/// The plan of a reduction of the runtime's, which may have a root.
macro_rules! reduction {
    ($blocking:ident, $nonblocking:ident, $comm:expr, $operands:expr $(, root $root:expr)?) => {{
        let (comm, operands): (Arc<CommObject>, Operands) = ($comm, $operands);
        Plan::new(move |how| {
            let (data, combine) = operands.given()?;
            run!(how, $blocking, $nonblocking, (&comm.comm, $($root,)? data, combine), operands.store())
        })
    }};
}

/// So many instances for each rank, whose counts are `counts`.
struct Dealt<'a> {
    counts: &'a [i64],
    /// This rank's; `n` is that of its results.
    to: Triple,
}

impl<'a> Dealt<'a> {
    fn new(comm: &CommObject, counts: &'a [i64], to: *const c_void, ty: Datatype) -> Self {
        let own = counts.get(comm.comm.rank()).copied().unwrap_or(0);
        Self { counts, to: Triple::new(to, own, ty) }
    }

    /// The operands: the instances of all ranks.
    fn all(&self) -> Triple {
        Triple { n: sum(self.counts), ..self.to }
    }

    fn plan(&self, comm: Arc<CommObject>, from: *const c_void, op: Op) -> Result<Plan> {
        let operands = Operands::new(from, self.all(), Some(self.to), op)?;
        let length = |n: &i64| Ok(operands.reduction.bytes(&operands.from, count(*n)?));
        let lengths: Vec<usize> = self.counts.iter().map(length).collect::<Result<_>>()?;
        Ok(Plan::new(move |how| {
            let (data, combine) = operands.given()?;
            let lengths = lengths.clone();
            run!(how, reduce_scatter, ireduce_scatter, (&comm.comm, data, lengths, combine), operands.store())
        }))
    }

    /// The other side's operands, combined and dealt out on this side.
    fn inter(&self, comm: Arc<CommObject>, from: *const c_void, op: Op) -> Result<Plan> {
        let before = count(sum(&self.counts[..comm.comm.rank()]))?;
        let (from, to) = (Buffer::new(self.all().at(from))?, Buffer::new(self.to)?);
        inter::allreduce(comm, from, to, self.to.ty, op, before)
    }
}

fn sum(counts: &[i64]) -> i64 {
    counts.iter().fold(0i64, |sum, n| sum.saturating_add(*n))
}

fn one_group() -> Result<Plan> {
    fail(ERR_COMM, "scans are for one group: merge the intercommunicator first")
}

collectives! {
    /// `MPI_Reduce`.
    reduce, ireduce, reduce_init:
    (from: *const c_void, to: Triple, op: Op, at: c_int) |object| {
        let at = root(&object, at)?;
        let results = (object.comm.rank() == at).then_some(to);
        reduction!(reduce, ireduce, object, Operands::new(from, to, results, op)?, root at)
    }, inter {
        let roles = inter::roles(&object, at, || Buffer::new(to.at(from)), || Buffer::new(to))?;
        inter::reduce(object, roles, to.ty, op)?
    };

    /// `MPI_Allreduce`.
    allreduce, iallreduce, allreduce_init:
    (from: *const c_void, to: Triple, op: Op) |object| {
        reduction!(allreduce, iallreduce, object, Operands::new(from, to, Some(to), op)?)
    }, inter {
        inter::allreduce(object, Buffer::new(to.at(from))?, Buffer::new(to)?, to.ty, op, 0)?
    };

    /// `MPI_Scan`.
    scan, iscan, scan_init: (from: *const c_void, to: Triple, op: Op) |object| {
        reduction!(scan, iscan, object, Operands::new(from, to, Some(to), op)?)
    }, inter one_group()?;

    /// `MPI_Exscan`.
    exscan, iexscan, exscan_init: (from: *const c_void, to: Triple, op: Op) |object| {
        reduction!(exscan, iexscan, object, Operands::new(from, to, Some(to), op)?)
    }, inter one_group()?;

    /// `MPI_Reduce_scatter`.
    reduce_scatter, ireduce_scatter, reduce_scatter_init:
    (from: *const c_void, to: *mut c_void, counts: Counts, ty: Datatype, op: Op) |object| {
        let counts = counts.list(object.comm.size())?;
        Dealt::new(&object, &counts, to, ty).plan(object, from, op)?
    }, inter {
        let counts = counts.list(object.comm.size())?;
        Dealt::new(&object, &counts, to, ty).inter(object, from, op)?
    };

    /// `MPI_Reduce_scatter_block`.
    reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init:
    (from: *const c_void, to: Triple, op: Op) |object| {
        let counts = vec![to.n; object.comm.size()];
        Dealt { counts: &counts, to }.plan(object, from, op)?
    }, inter {
        let counts = vec![to.n; object.comm.size()];
        Dealt { counts: &counts, to }.inter(object, from, op)?
    };
}
