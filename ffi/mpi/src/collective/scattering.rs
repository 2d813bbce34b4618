//! Collectives that deal data out (MPI-4.1 §6.4, §6.6, §6.8).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::{Communicator, raw};

use super::held::{Held, HeldParts};
use super::parts::Lengths;
use super::{
    How, Parts, Plan, apart, at_root, collectives, equal, in_place, inter, listed, nonblocking, pack_all,
    parts, root, run, typed, unless_in_place,
};
use crate::abi::{Comm, Datatype, Info, Request};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::Result;
use crate::pointer::{Counts, Pointer};
use crate::request::Pending;

fn broadcast_plan(comm: Arc<CommObject>, at: usize, buffer: Buffer) -> Plan {
    Plan::new(move |how| {
        let is_root = comm.comm.rank() == at;
        if how == How::Blocking {
            let comm = &comm.comm;
            match is_root {
                true => buffer.read(|data| Ok(raw::broadcast_from(comm, data)?))?,
                false => buffer.fill(|data| Ok(raw::broadcast_into(comm, at, data)?))?,
            }
            return Ok(None);
        }
        let (held, buffer) = (Held::of(&buffer)?, buffer.clone());
        if is_root {
            let request = raw::ibroadcast_from(&comm.comm, held.raw());
            return Ok(Some(nonblocking(request, |()| held.end_read())));
        }
        let request = raw::ibroadcast_into(&comm.comm, at, held.raw());
        Ok(Some(nonblocking(request, move |()| held.end(|data| buffer.unpack(data)))))
    })
}

/// `to` is nothing where the root's part stays in place.
fn scatter_plan(
    comm: Arc<CommObject>,
    at: usize,
    parts: Option<Parts>,
    to: Option<Buffer>,
    lengths: Lengths,
) -> Result<Plan> {
    apart(to.as_ref(), parts.as_ref().map(|parts| &parts[at]))?;
    Ok(Plan::new(move |how| {
        let sample = to.as_ref().or(parts.as_ref().and_then(|parts| parts.first()));
        if lengths.is_direct(&comm, sample)? {
            let comm = &comm.comm;
            match (&parts, &to) {
                _ if how == How::Nonblocking => {
                    return start_scatter(comm, at, parts.as_ref(), to.as_ref());
                }
                (Some(parts), to) => {
                    let given = parts::data(parts)?;
                    let given: Vec<&[u8]> = given.iter().map(|data| &data[..]).collect();
                    raw::scatter_from(comm, &given)?;
                    to.as_ref().map_or(Ok(()), |to| to.unpack(given[at]))?;
                }
                (None, Some(to)) => to.fill(|data| Ok(raw::scatter_into(comm, at, data)?))?,
                (None, None) => raw::scatter_into(comm, at, &mut [])?,
            }
            return Ok(None);
        }
        let blocks = match &parts {
            Some(parts) => Some(pack_all(parts)?),
            None => None,
        };
        let to = to.clone();
        let fill = move |data: Vec<u8>| to.map_or(Ok(()), |to| to.unpack(&data));
        run!(how, scatter, iscatter, (&comm.comm, at, blocks), fill)
    }))
}

/// The direct way, nonblocking.
fn start_scatter(
    comm: &Communicator,
    at: usize,
    parts: Option<&Parts>,
    to: Option<&Buffer>,
) -> Result<Option<Pending>> {
    if let Some(parts) = parts {
        // An error of this rank's leaves none of the others waiting.
        let kept = to.map_or(Ok(()), |to| parts[at].read(|data| to.unpack(data)));
        let held = HeldParts::of(parts)?;
        let request = raw::iscatter_from(comm, held.raw());
        return Ok(Some(nonblocking(request, |()| held.end_read().and(kept))));
    }
    let (held, to) = (to.map_or_else(|| Ok(Held::packed(Vec::new())), Held::of)?, to.cloned());
    let request = raw::iscatter_into(comm, at, held.raw());
    let fill = move |()| held.end(|data| to.map_or(Ok(()), |to| to.unpack(data)));
    Ok(Some(nonblocking(request, fill)))
}

fn alltoall_plan(comm: Arc<CommObject>, from: Parts, to: Parts) -> Plan {
    Plan::new(move |how| {
        if how == How::Blocking {
            let given = parts::given(&from, &to)?;
            let given: Vec<&[u8]> = given.iter().map(|data| &data[..]).collect();
            parts::fill(&to, |places| Ok(raw::alltoall_into(&comm.comm, &given, places)?))?;
            return Ok(None);
        }
        let given = if Arc::ptr_eq(&from, &to) { HeldParts::copied(&from) } else { HeldParts::of(&from) };
        let (given, held, to) = (given?, HeldParts::of(&to)?, to.clone());
        let request = raw::ialltoall_into(&comm.comm, given.raw(), held.raw());
        Ok(Some(nonblocking(request, move |()| {
            given.end_read()?;
            held.end(&to)
        })))
    })
}

/// Sends the parts of one buffer, and receives those of another, with each rank. With `MPI_IN_PLACE`, which is for one group,
/// what is sent is in the buffer that receives.
fn exchange(
    comm: Arc<CommObject>,
    address: *const c_void,
    from: impl FnOnce(usize) -> Result<Parts>,
    to: impl FnOnce(usize) -> Result<Parts>,
) -> Result<Plan> {
    let (partners, inter) = (comm.partners(), comm.inter.is_some());
    let to = to(partners)?;
    if inter {
        return Ok(inter::alltoall(comm, from(partners)?, to));
    }
    if in_place(address) {
        return Ok(alltoall_plan(comm, to.clone(), to));
    }
    let (from, rank) = (from(partners)?, comm.comm.rank());
    apart(Some(&from[rank]), Some(&to[rank]))?;
    Ok(alltoall_plan(comm, from, to))
}

collectives! {
    /// `MPI_Bcast`.
    bcast, ibcast, bcast_init: (buffer: Triple, at: c_int) |object| {
        let at = root(&object, at)?;
        broadcast_plan(object, at, Buffer::new(buffer)?)
    }, inter {
        let roles = inter::roles(&object, at, || Buffer::new(buffer), || Buffer::new(buffer))?;
        inter::broadcast(object, roles)
    };

    /// `MPI_Scatter`.
    scatter, iscatter, scatter_init:
    (from: Triple, to: Triple, at: c_int) |object| {
        let at = root(&object, at)?;
        let parts = at_root(&object, at, || equal(object.partners(), from))?;
        scatter_plan(object, at, parts, unless_in_place(to)?, Lengths::Equal)?
    }, inter {
        let parts = || equal(object.partners(), from);
        let roles = inter::roles(&object, at, || Buffer::new(to), parts)?;
        inter::scatter(object, roles)
    };

    /// `MPI_Scatterv`.
    scatterv, iscatterv, scatterv_init:
    (from: *const c_void, counts: Counts, at_each: Counts, ty: Datatype, to: Triple, at: c_int) |object| {
        let at = root(&object, at)?;
        let parts = at_root(&object, at, || listed(object.partners(), from, counts, at_each, ty))?;
        scatter_plan(object, at, parts, unless_in_place(to)?, Lengths::Listed)?
    }, inter {
        let parts = || listed(object.partners(), from, counts, at_each, ty);
        let roles = inter::roles(&object, at, || Buffer::new(to), parts)?;
        inter::scatter(object, roles)
    };

    /// `MPI_Alltoall`.
    alltoall, ialltoall, alltoall_init: (from: Triple, to: Triple) |object| {
        exchange(object, from.address, |n| equal(n, from), |n| equal(n, to))?
    };

    /// `MPI_Alltoallv`.
    alltoallv, ialltoallv, alltoallv_init:
    (from: *const c_void, counts: Counts, at_each: Counts, ty: Datatype, to: *mut c_void, to_counts: Counts,
        to_each: Counts, to_ty: Datatype) |object| {
        let parts = |n| listed(n, from, counts, at_each, ty);
        exchange(object, from, parts, |n| listed(n, to, to_counts, to_each, to_ty))?
    };

    /// `MPI_Alltoallw`.
    alltoallw, ialltoallw, alltoallw_init:
    (from: *const c_void, counts: Counts, at_each: Counts, types: Pointer<Datatype>, to: *mut c_void, to_counts: Counts,
        to_each: Counts, to_types: Pointer<Datatype>) |object| {
        let parts = |n| typed(n, from, counts, at_each, types);
        exchange(object, from, parts, |n| typed(n, to, to_counts, to_each, to_types))?
    };
}
