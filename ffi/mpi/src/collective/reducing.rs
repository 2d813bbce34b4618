//! Collectives that compute (MPI-4.1 §6.9 to §6.11).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::raw::{self, Combine};
use transom::{Communicator, RawBuffer};

use super::held::Held;
use super::reduction::Reduction;
use super::{How, Plan, collectives, in_place, inter, nonblocking, root, run};
use crate::abi::{self, Comm, Datatype, ERR_BUFFER, ERR_COMM, Info, Op, Request};
use crate::buffer::{Buffer, Triple, count};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer};
use crate::request::Pending;

/// Operands and results: two buffers of one datatype; with `MPI_IN_PLACE`, one.
#[derive(Clone)]
struct Operands {
    from: Buffer,
    to: Option<Buffer>,
    reduction: Reduction,
}

impl Operands {
    /// Operands like `data`, elsewhere; results, if this rank has any, where `to` says.
    fn new(operands: *const c_void, data: Triple, to: Option<Triple>, op: Op) -> Result<Self> {
        let same = |to: &Triple| to.address.cast_const() == operands && abi::is_address(operands.addr());
        if data.n > 0 && to.as_ref().is_some_and(same) {
            return fail(ERR_BUFFER, "operands and results are in one buffer: say MPI_IN_PLACE, or use two");
        }
        let to = to.map(Buffer::new).transpose()?;
        let from = match &to {
            Some(to) if in_place(operands) => to.part(0, data.n)?,
            _ => Buffer::new(data.at(operands))?,
        };
        let reduction = Reduction::new(op, data.ty, &from)?;
        Ok(Self { from, to, reduction })
    }

    /// The operands, and how two are combined.
    fn given(&self) -> Result<(Vec<u8>, Combine)> {
        Ok((self.reduction.load(&self.from)?, self.reduction.combine.clone()))
    }

    /// Bytes of this rank's operands.
    fn bytes(&self) -> usize {
        self.reduction.bytes(&self.from, self.from.count())
    }

    /// Bytes of an element.
    fn unit(&self) -> usize {
        self.reduction.bytes(&self.from, 1)
    }

    /// Has `combine` store the results of the operands, of so many bytes each; without operands they are where the results will be.
    fn combine(
        &self,
        combine: impl FnOnce(Option<&[u8]>, &mut [u8], usize, &Combine) -> transom::Result<()>,
    ) -> Result<()> {
        let Some(to) = &self.to else { return Ok(()) };
        let (reduction, unit) = (&self.reduction, self.unit());
        reduction.write(&self.from, to, |operands, results| {
            Ok(combine(operands, results, unit, &reduction.combine)?)
        })
    }

    /// Has `start` start to make the results, with what [`combine`](Self::combine) gives.
    fn start(
        &self,
        to: &Buffer,
        start: impl FnOnce(Option<RawBuffer>, RawBuffer, usize, Combine) -> transom::Request<()>,
    ) -> Result<Option<Pending>> {
        let (operands, held) = self.reduction.hold(&self.from, to)?;
        let request = start(operands, held.raw(), self.unit(), self.reduction.combine.clone());
        let (to, reduction) = (to.clone(), self.reduction.clone());
        Ok(Some(nonblocking(request, move |()| held.end(|data| reduction.store(&to, data)))))
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

/// The plan of a reduction of the runtime's.
macro_rules! reduction {
    ($blocking:ident, $nonblocking:ident, $comm:expr, $operands:expr) => {{
        let (comm, operands): (Arc<CommObject>, Operands) = ($comm, $operands);
        Plan::new(move |how| {
            let (data, combine) = operands.given()?;
            run!(how, $blocking, $nonblocking, (&comm.comm, data, combine), operands.store())
        })
    }};
}

fn reduce_plan(comm: Arc<CommObject>, operands: Operands, at: usize) -> Plan {
    Plan::new(move |how| {
        if operands.bytes() >= raw::LONG {
            return reduce_long(&comm.comm, &operands, at, how);
        }
        let (data, combine) = operands.given()?;
        run!(how, reduce, ireduce, (&comm.comm, at, data, combine), operands.store())
    })
}

/// Straight between the program's buffers.
fn reduce_long(comm: &Communicator, operands: &Operands, at: usize, how: How) -> Result<Option<Pending>> {
    let (from, reduction, unit) = (&operands.from, &operands.reduction, operands.unit());
    match (how, &operands.to) {
        (How::Blocking, Some(_)) => {
            operands.combine(|from, to, unit, combine| raw::reduce_into(comm, from, to, unit, combine))?;
        }
        (How::Blocking, None) => {
            reduction.read(from, |data| Ok(raw::reduce_from(comm, at, data, unit, &reduction.combine)?))?;
        }
        (How::Nonblocking, Some(to)) => {
            return operands
                .start(to, |from, to, unit, combine| raw::ireduce_into(comm, from, to, unit, combine));
        }
        (How::Nonblocking, None) => {
            let held = reduction.hold_read(from)?;
            let request = raw::ireduce_from(comm, at, held.raw(), unit, reduction.combine.clone());
            return Ok(Some(nonblocking(request, |()| held.end_read())));
        }
    }
    Ok(None)
}

fn allreduce_plan(comm: Arc<CommObject>, operands: Operands) -> Plan {
    Plan::new(move |how| {
        let comm = &comm.comm;
        match (how, &operands.to) {
            (How::Blocking, Some(_)) if raw::allreduce_is_long(comm, operands.bytes()) => {
                let combine = |from: Option<&[u8]>, to: &mut [u8], unit, combine: &Combine| {
                    raw::allreduce_into(comm, from, to, unit, combine)
                };
                operands.combine(combine).map(|()| None)
            }
            (How::Nonblocking, Some(to)) if raw::allreduce_is_long(comm, operands.bytes()) => operands
                .start(to, |from, to, unit, combine| raw::iallreduce_into(comm, from, to, unit, combine)),
            _ => {
                let (data, combine) = operands.given()?;
                run!(how, allreduce, iallreduce, (comm, data, combine), operands.store())
            }
        }
    })
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
        let own = match in_place(from) {
            true => None,
            false => Some(operands.from.part(sum(&self.counts[..comm.comm.rank()]), self.to.n)?),
        };
        Ok(Plan::new(move |how| {
            // Then the runtime's way is the same, message by message, by futures and of packed data.
            let is_few = comm.comm.size() <= raw::short::FEW_RANKS;
            let is_long = lengths.iter().any(|len| *len >= raw::LONG);
            match how {
                How::Blocking if is_few || is_long => {
                    deal(&comm, &operands, own.as_ref(), &lengths)?;
                    return Ok(None);
                }
                How::Nonblocking if is_long => {
                    return start_to_deal(&comm, &operands, own.as_ref(), &lengths);
                }
                _ => {}
            }
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

/// Reduces long operands, and deals the results out. `own` are the operands for this rank, unless the results replace them.
fn deal(comm: &CommObject, operands: &Operands, own: Option<&Buffer>, lengths: &[usize]) -> Result<()> {
    let Operands { from, to: Some(to), reduction } = operands else { return Ok(()) };
    let (comm, unit) = (&comm.comm, operands.unit());
    let mut replacing = None;
    reduction.read(from, |mut data| {
        let mut parts = Vec::with_capacity(lengths.len());
        for len in lengths {
            let (part, rest) = data.split_at(*len);
            parts.push(part);
            data = rest;
        }
        let combined = |operands: Option<&[u8]>, own: &mut [u8]| {
            Ok(raw::reduce_scatter_into(comm, &parts, operands, own, unit, &reduction.combine)?)
        };
        match own {
            Some(own) => reduction.write(own, to, combined),
            None => {
                // Others read what is in place until all is combined.
                let results = replacing.insert(parts[comm.rank()].to_vec());
                combined(None, results)
            }
        }
    })?;
    replacing.map_or(Ok(()), |results| reduction.store(to, &results))
}

/// [`deal`], nonblocking.
fn start_to_deal(
    comm: &CommObject,
    operands: &Operands,
    own: Option<&Buffer>,
    lengths: &[usize],
) -> Result<Option<Pending>> {
    let Operands { from, to: Some(to), reduction } = operands else { return Ok(None) };
    let (rank, given) = (comm.comm.rank(), reduction.hold_read(from)?);
    let (mut parts, mut start) = (Vec::with_capacity(lengths.len()), 0);
    for len in lengths {
        parts.extend(given.raw().part(start, *len));
        start += len;
    }
    let (operands, results) = match own {
        Some(own) => reduction.hold(own, to)?,
        None => {
            // Others read what is in place until all is combined.
            let (start, mut data) = (lengths[..rank].iter().sum::<usize>(), Vec::new());
            reduction.read(from, |all| {
                data.extend_from_slice(&all[start..start + lengths[rank]]);
                Ok(())
            })?;
            (None, Held::packed(data))
        }
    };
    let (unit, combine) = (reduction.bytes(from, 1), reduction.combine.clone());
    let request = raw::ireduce_scatter_into(&comm.comm, parts, operands, results.raw(), unit, combine);
    let (to, reduction) = (to.clone(), reduction.clone());
    Ok(Some(nonblocking(request, move |()| {
        given.end_read()?;
        results.end(|data| reduction.store(&to, data))
    })))
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
        reduce_plan(object, Operands::new(from, to, results, op)?, at)
    }, inter {
        let roles = inter::roles(&object, at, || Buffer::new(to.at(from)), || Buffer::new(to))?;
        inter::reduce(object, roles, to.ty, op)?
    };

    /// `MPI_Allreduce`.
    allreduce, iallreduce, allreduce_init:
    (from: *const c_void, to: Triple, op: Op) |object| {
        allreduce_plan(object, Operands::new(from, to, Some(to), op)?)
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
