//! Reductions.

use std::ffi::{c_int, c_void};

use transom::{Communicator, raw, reduce_valid};
use transom_transport::memory::reduce_into;

use super::{Few, are_apart, few, now, of_one_group};
use crate::abi::{Comm, Datatype, Op};
use crate::buffer::{Triple, bytes, bytes_mut};
use crate::pointer::Counts;
use crate::{collective, op, types};

/// What combines two operands of a predefined operation on elements of a predefined datatype, of so many bytes.
#[inline]
fn combination(data: Triple, op: Op, len: usize) -> Option<impl Fn(&[u8], &mut [u8]) + Send + Sync> {
    let (op, ty) = (op::predefined(op)?, types::basic(data.ty)?);
    let are_its = usize::try_from(data.n).ok().and_then(|n| n.checked_mul(ty.size())) == Some(len);
    (are_its && reduce_valid(op, ty))
        .then_some(move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left))
}

/// The operands, where the results are to be; none if they are there in part.
#[inline]
fn moved<'a>(operands: *const c_void, to: *mut c_void, len: usize) -> Option<&'a mut [u8]> {
    let is_in_place = collective::in_place(operands);
    if !is_in_place && !are_apart(operands, to, len) {
        return None;
    }
    let result = bytes_mut(to, len).ok()?;
    if !is_in_place {
        result.copy_from_slice(bytes(operands, len).ok()?);
    }
    Some(result)
}

/// `MPI_Reduce`.
#[inline]
pub fn reduce(operands: *const c_void, to: Triple, op: Op, root: c_int, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let combine = combination(to, op, len).filter(|_| raw::short::fits(len, 1))?;
    let root = usize::try_from(root).ok().filter(|root| *root < object.comm.size())?;
    if object.comm.rank() == root {
        let result = moved(operands, to.address, len)?;
        return now("MPI_Reduce", comm, || raw::short::reduce(&object.comm, root, result, &combine));
    }
    if collective::in_place(operands) {
        return None;
    }
    let mut data = bytes(operands, len).ok()?.to_vec();
    now("MPI_Reduce", comm, || raw::short::reduce(&object.comm, root, &mut data, &combine))
}

/// Has `work` replace the operands, where the results are to be.
#[inline]
fn replaced(
    name: &'static str,
    (operands, to): (*const c_void, Triple),
    op: Op,
    comm: Comm,
    work: impl FnOnce(&Communicator, &mut [u8], raw::short::CombineRef<'_>) -> transom::Result<()>,
) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let combine = combination(to, op, len).filter(|_| raw::short::fits(len, 1))?;
    let result = moved(operands, to.address, len)?;
    now(name, comm, || work(&object.comm, result, &combine))
}

/// `MPI_Allreduce`.
#[inline]
pub fn allreduce(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    replaced("MPI_Allreduce", (operands, to), op, comm, raw::short::allreduce)
}

/// `MPI_Scan`.
#[inline]
pub fn scan(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    replaced("MPI_Scan", (operands, to), op, comm, raw::short::scan)
}

/// `MPI_Exscan`.
#[inline]
pub fn exscan(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    let (object, len) = (of_one_group(comm)?, few(to)?);
    let combine = combination(to, op, len).filter(|_| raw::short::fits(len, 1))?;
    let is_in_place = collective::in_place(operands);
    if !is_in_place && !are_apart(operands, to.address, len) {
        return None;
    }
    let from = if is_in_place { to.address.cast_const() } else { operands };
    let mut data = bytes(from, len).ok()?.to_vec();
    let before = bytes_mut(to.address, len).ok()?;
    now("MPI_Exscan", comm, || raw::short::exscan(&object.comm, &mut data, before, &combine))
}

/// Combines parts of so many instances for each rank.
#[inline]
fn deal(
    name: &'static str,
    operands: *const c_void,
    to: Triple,
    count_of: impl Fn(usize) -> Option<i64>,
    op: Op,
    comm: Comm,
) -> Option<c_int> {
    let object = of_one_group(comm).filter(|object| object.comm.size() <= raw::short::FEW_RANKS)?;
    let own = Triple { n: count_of(object.comm.rank())?, ..to };
    let combine = combination(own, op, own.plain_len()?)?;
    let len_of = |rank| Triple { n: count_of(rank)?, ..to }.plain_len();
    let lengths = (0..object.comm.size()).map(len_of).collect::<Option<Few<_>>>()?;
    if !raw::short::parts_fit(lengths.iter().copied()) || collective::in_place(operands) {
        return None;
    }
    let (len, all) = (lengths[object.comm.rank()], lengths.iter().sum());
    if !are_apart(operands, to.address, all) {
        return None;
    }
    let mut operands = bytes(operands, all).ok()?;
    let result = bytes_mut(to.address, len).ok()?;
    let part = |len: &usize| operands.split_off(..*len);
    let parts = lengths.iter().map(part).collect::<Option<Few<_>>>()?;
    now(name, comm, || raw::short::reduce_scatter(&object.comm, &parts, result, &combine))
}

/// `MPI_Reduce_scatter_block`.
#[inline]
pub fn reduce_scatter_block(operands: *const c_void, to: Triple, op: Op, comm: Comm) -> Option<c_int> {
    deal("MPI_Reduce_scatter_block", operands, to, |_| Some(to.n), op, comm)
}

/// `MPI_Reduce_scatter`.
#[inline]
pub fn reduce_scatter(
    operands: *const c_void,
    to: *mut c_void,
    counts: Counts,
    ty: Datatype,
    op: Op,
    comm: Comm,
) -> Option<c_int> {
    deal("MPI_Reduce_scatter", operands, Triple::new(to, 0, ty), |rank| counts.at(rank).ok(), op, comm)
}
