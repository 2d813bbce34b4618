//! Barrier, and collectives that bring data together (MPI-4.1 §6.3, §6.5, §6.7).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::{Communicator, raw};

use super::held::{Held, HeldParts};
use super::parts::Lengths;
use super::{
    How, Parts, Plan, apart, at_root, collectives, equal, inter, listed, nonblocking, parts, root, run,
    unless_in_place, unpack_all,
};
use crate::abi::{Comm, Datatype, Info, Request};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::Result;
use crate::pointer::{Counts, Pointer};
use crate::request::Pending;

fn barrier_plan(comm: Arc<CommObject>) -> Plan {
    Plan::new(move |how| run!(how, barrier, ibarrier, (&comm.comm), |()| -> Result<()> { Ok(()) }))
}

/// What a rank sends, and, where it receives, the parts of its buffer.
type Moves = (Option<Buffer>, Option<Parts>);

/// The bytes that this rank contributes: those of its buffer, or with `MPI_IN_PLACE` of its part of the buffer that receives.
fn contribution(comm: &CommObject, (own, parts): &Moves) -> Result<Vec<u8>> {
    match (own, parts) {
        (Some(own), _) => own.pack(),
        (None, Some(parts)) => parts[comm.comm.rank()].pack(),
        (None, None) => Ok(Vec::new()),
    }
}

/// Puts this rank's contribution into its part, unless it is there.
fn keep(own: Option<&Buffer>, part: &Buffer) -> Result<()> {
    own.map_or(Ok(()), |own| own.read(|data| part.unpack(data)))
}

/// With lengths that `lengths` says.
fn gather_plan(comm: Arc<CommObject>, at: usize, moves: Moves, lengths: Lengths) -> Result<Plan> {
    apart(moves.0.as_ref(), moves.1.as_ref().map(|parts| &parts[at]))?;
    Ok(Plan::new(move |how| {
        let (own, parts) = &moves;
        let sample = own.as_ref().or(parts.as_ref().and_then(|parts| parts.first()));
        if lengths.is_direct(&comm, sample)? {
            let comm = &comm.comm;
            match parts {
                _ if how == How::Nonblocking => return start_gather(comm, at, &moves),
                Some(parts) => {
                    let kept = keep(own.as_ref(), &parts[at]);
                    parts::fill(parts, |places| Ok(raw::gather_into(comm, places)?))?;
                    kept?;
                }
                None => parts::read(own.as_ref(), |data| Ok(raw::gather_from(comm, at, data)?))?,
            }
            return Ok(None);
        }
        let data = contribution(&comm, &moves)?;
        let parts = moves.1.clone();
        let fill = move |all: Option<Vec<Vec<u8>>>| match (parts, all) {
            (Some(parts), Some(all)) => unpack_all(&parts, &all),
            _ => Ok(()),
        };
        run!(how, gather, igather, (&comm.comm, at, data), fill)
    }))
}

/// The direct way, nonblocking.
fn start_gather(comm: &Communicator, at: usize, (own, parts): &Moves) -> Result<Option<Pending>> {
    let Some(parts) = parts.clone() else {
        let held = own.as_ref().map_or_else(|| Ok(Held::packed(Vec::new())), Held::of)?;
        let request = raw::igather_from(comm, at, held.raw());
        return Ok(Some(nonblocking(request, |()| held.end_read())));
    };
    // An error of this rank's leaves none of the others waiting.
    let kept = keep(own.as_ref(), &parts[at]);
    let held = HeldParts::of(&parts)?;
    let request = raw::igather_into(comm, held.raw());
    Ok(Some(nonblocking(request, move |()| held.end(&parts).and(kept))))
}

fn allgather_plan(comm: Arc<CommObject>, own: Option<Buffer>, parts: Parts) -> Result<Plan> {
    apart(own.as_ref(), Some(&parts[comm.comm.rank()]))?;
    let moves = (own, Some(parts.clone()));
    Ok(Plan::new(move |how| {
        if parts::longest(&parts)? >= raw::LONG {
            return match how {
                How::Blocking => gather_all(&comm.comm, moves.0.as_ref(), &parts).map(|()| None),
                How::Nonblocking => start_to_gather_all(&comm.comm, moves.0.as_ref(), &parts).map(Some),
            };
        }
        let data = contribution(&comm, &moves)?;
        let parts = parts.clone();
        let fill = move |all: Vec<Vec<u8>>| unpack_all(&parts, &all);
        run!(how, allgather, iallgather, (&comm.comm, data), fill)
    }))
}

/// Each rank's data at each, straight to its place.
fn gather_all(comm: &Communicator, own: Option<&Buffer>, parts: &Parts) -> Result<()> {
    let gather =
        |own: Option<&[u8]>| parts::fill(parts, |places| Ok(raw::allgather_into(comm, own, places)?));
    match own.map(parts::data_of).transpose() {
        Ok(data) => gather(data.as_deref()),
        // An error of this rank's leaves none of the others waiting.
        Err(error) => gather(None).and(Err(error)),
    }
}

/// The same, nonblocking.
fn start_to_gather_all(comm: &Communicator, own: Option<&Buffer>, parts: &Parts) -> Result<Pending> {
    let (own, held, parts) = (own.map(Held::of).transpose()?, HeldParts::of(parts)?, parts.clone());
    let request = raw::iallgather_into(comm, own.as_ref().map(Held::raw), held.raw());
    Ok(nonblocking(request, move |()| {
        own.map_or(Ok(()), Held::end_read)?;
        held.end(&parts)
    }))
}

collectives! {
    /// `MPI_Barrier`.
    barrier, ibarrier, barrier_init: () |object| barrier_plan(object), inter inter::barrier(object);

    /// `MPI_Gather`.
    gather, igather, gather_init:
    (from: Triple, to: Triple, at: c_int) |object| {
        let at = root(&object, at)?;
        let parts = at_root(&object, at, || equal(object.partners(), to))?;
        gather_plan(object, at, (unless_in_place(from)?, parts), Lengths::Equal)?
    }, inter {
        let roles = inter::roles(&object, at, || Buffer::new(from), || equal(object.partners(), to))?;
        inter::gather(object, roles)
    };

    /// `MPI_Gatherv`.
    gatherv, igatherv, gatherv_init:
    (from: Triple, to: *mut c_void, counts: Counts, at_each: Counts, to_ty: Datatype, at: c_int) |object| {
        let at = root(&object, at)?;
        let parts = at_root(&object, at, || listed(object.partners(), to, counts, at_each, to_ty))?;
        gather_plan(object, at, (unless_in_place(from)?, parts), Lengths::Listed)?
    }, inter {
        let parts = || listed(object.partners(), to, counts, at_each, to_ty);
        let roles = inter::roles(&object, at, || Buffer::new(from), parts)?;
        inter::gather(object, roles)
    };

    /// `MPI_Allgather`.
    allgather, iallgather, allgather_init:
    (from: Triple, to: Triple) |object| {
        let parts = equal(object.partners(), to)?;
        allgather_plan(object, unless_in_place(from)?, parts)?
    }, inter {
        let parts = equal(object.partners(), to)?;
        inter::allgather(object, Buffer::new(from)?, parts)
    };

    /// `MPI_Allgatherv`.
    allgatherv, iallgatherv, allgatherv_init:
    (from: Triple, to: *mut c_void, counts: Counts, at_each: Counts, to_ty: Datatype) |object| {
        let parts = listed(object.partners(), to, counts, at_each, to_ty)?;
        allgather_plan(object, unless_in_place(from)?, parts)?
    }, inter {
        let parts = listed(object.partners(), to, counts, at_each, to_ty)?;
        inter::allgather(object, Buffer::new(from)?, parts)
    };
}
