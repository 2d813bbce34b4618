//! Neighbourhood collectives (MPI-4.1 §8.6, §8.7, §8.9): every rank exchanges data with its neighbours in the topology.

use std::ffi::c_void;
use std::sync::Arc;

use transom::raw::Edge;

use super::{Parts, Plan, collectives, equal, in_place, listed, pack_all, run, typed, unpack_all};
use crate::abi::{Aint, Comm, Datatype, ERR_BUFFER, ERR_TOPOLOGY, Info, Request};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer};
use crate::topology::Neighbours;

/// The neighbours of this rank.
fn neighbours(comm: &CommObject) -> Result<Neighbours> {
    match &comm.topology {
        Some(topology) => Ok(topology.neighbours(comm.comm.rank())),
        None => fail(ERR_TOPOLOGY, "the communicator has no topology"),
    }
}

/// The edges that there are, and their parts: what a grid's end has in the buffer is neither sent nor changed.
fn there(edges: &[Option<Edge>], parts: &Parts) -> Result<(Vec<Edge>, Parts)> {
    if edges.iter().any(Option::is_some) {
        // Later parts of a buffer at null are at addresses that look like others.
        parts[0].plain()?;
    }
    let pairs = edges.iter().zip(parts.iter());
    let (edges, parts): (Vec<Edge>, Vec<Buffer>) =
        pairs.filter_map(|(edge, part)| edge.map(|edge| (edge, part.clone()))).unzip();
    Ok((edges, parts.into()))
}

/// No buffer of these collectives is the other one.
fn check(from: *const c_void, to: *const c_void) -> Result<()> {
    if !in_place(from) && !in_place(to) {
        return Ok(());
    }
    fail(ERR_BUFFER, "neighbourhood collectives do not know MPI_IN_PLACE")
}

fn gather_plan(comm: Arc<CommObject>, all: &Neighbours, own: Buffer, parts: &Parts) -> Result<Plan> {
    let to: Vec<Edge> = all.to.iter().copied().flatten().collect();
    let (from, parts) = there(&all.from, parts)?;
    Ok(Plan::new(move |how| {
        let (to, from, parts) = (to.clone(), from.clone(), parts.clone());
        let fill = move |all: Vec<Vec<u8>>| unpack_all(&parts, &all);
        run!(how, neighbour_allgather, ineighbour_allgather, (&comm.comm, to, from, own.pack()?), fill)
    }))
}

fn exchange_plan(comm: Arc<CommObject>, all: &Neighbours, sent: &Parts, parts: &Parts) -> Result<Plan> {
    let (to, sent) = there(&all.to, sent)?;
    let (from, parts) = there(&all.from, parts)?;
    Ok(Plan::new(move |how| {
        let (to, from, parts) = (to.clone(), from.clone(), parts.clone());
        let fill = move |all: Vec<Vec<u8>>| unpack_all(&parts, &all);
        run!(how, neighbour_alltoall, ineighbour_alltoall, (&comm.comm, to, from, pack_all(&sent)?), fill)
    }))
}

collectives! {
    /// `MPI_Neighbor_allgather`.
    neighbor_allgather, ineighbor_allgather, neighbor_allgather_init:
    (from: Triple, to: Triple) |object| {
        check(from.address, to.address)?;
        let all = neighbours(&object)?;
        let parts = equal(all.from.len(), to)?;
        gather_plan(object, &all, Buffer::new(from)?, &parts)?
    };

    /// `MPI_Neighbor_allgatherv`.
    neighbor_allgatherv, ineighbor_allgatherv, neighbor_allgatherv_init:
    (from: Triple, to: *mut c_void, counts: Counts, at_each: Counts, to_ty: Datatype) |object| {
        check(from.address, to)?;
        let all = neighbours(&object)?;
        let parts = listed(all.from.len(), to, counts, at_each, to_ty)?;
        gather_plan(object, &all, Buffer::new(from)?, &parts)?
    };

    /// `MPI_Neighbor_alltoall`.
    neighbor_alltoall, ineighbor_alltoall, neighbor_alltoall_init:
    (from: Triple, to: Triple) |object| {
        check(from.address, to.address)?;
        let all = neighbours(&object)?;
        let (sent, parts) = (equal(all.to.len(), from)?, equal(all.from.len(), to)?);
        exchange_plan(object, &all, &sent, &parts)?
    };

    /// `MPI_Neighbor_alltoallv`.
    neighbor_alltoallv, ineighbor_alltoallv, neighbor_alltoallv_init:
    (from: *const c_void, counts: Counts, at_each: Counts, ty: Datatype, to: *mut c_void, to_counts: Counts,
        to_each: Counts, to_ty: Datatype) |object| {
        check(from, to)?;
        let all = neighbours(&object)?;
        let sent = listed(all.to.len(), from, counts, at_each, ty)?;
        let parts = listed(all.from.len(), to, to_counts, to_each, to_ty)?;
        exchange_plan(object, &all, &sent, &parts)?
    };

    /// `MPI_Neighbor_alltoallw`.
    neighbor_alltoallw, ineighbor_alltoallw, neighbor_alltoallw_init:
    (from: *const c_void, counts: Counts, at_each: Pointer<Aint>, types: Pointer<Datatype>, to: *mut c_void,
        to_counts: Counts, to_each: Pointer<Aint>, to_types: Pointer<Datatype>) |object| {
        check(from, to)?;
        let all = neighbours(&object)?;
        let sent = typed(all.to.len(), from, counts, at_each.into(), types)?;
        let parts = typed(all.from.len(), to, to_counts, to_each.into(), to_types)?;
        exchange_plan(object, &all, &sent, &parts)?
    };
}
