//! Members that have died, in jobs that go on without them (`MPIX_Comm_…`, the fault-tolerance chapter that was proposed to the MPI Forum;
//! the runtime's `Communicator::failures` and what stands beside it).

use std::ffi::c_int;

use transom::Agreement;

use super::pending::PendingComm;
use super::{CommObject, add};
use crate::abi::{COMM_NULL, Comm, ERR_ARG, Group, MPIX_ERR_PROC_FAILED, Request, Status};
use crate::failure::{Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::world::comm as get;
use crate::{group, request};

fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// `MPIX_Comm_revoke`.
pub fn comm_revoke(comm: Comm) -> Result<()> {
    let object = get(comm)?;
    object.messages().revoke();
    if object.inter.is_some() {
        object.comm.revoke();
    }
    Ok(())
}

/// `MPIX_Comm_is_revoked`.
pub fn comm_is_revoked(comm: Comm, revoked: Pointer<c_int>) -> Result<()> {
    revoked.set(flag(get(comm)?.messages().is_revoked()))
}

/// `MPIX_Comm_ishrink`. The handle is returned at once, and refers to the communicator as soon as the request is complete.
pub fn comm_ishrink(comm: Comm, new: Pointer<Comm>, request: Pointer<Request>) -> Result<()> {
    new.set(COMM_NULL)?;
    request.check()?;
    let old = get(comm)?;
    old.check_intra()?;
    let pending = PendingComm::new(old.handler.read().clone())?;
    new.set(pending.handle())?;
    let shrunk = request::filled(old.comm.ishrink(), move |living| {
        pending.complete(CommObject::of(living, &old));
        Ok(Status::EMPTY)
    });
    request.set(request::running(shrunk, ErrorObject::Comm(comm))?)
}

/// `MPIX_Comm_shrink`.
pub fn comm_shrink(comm: Comm, new: Pointer<Comm>) -> Result<()> {
    new.set(COMM_NULL)?;
    let old = get(comm)?;
    old.check_intra()?;
    new.set(add(CommObject::of(old.comm.shrink()?, &old))?)
}

/// `MPIX_Comm_agree`: the bitwise and, at all the same; and at all the same error, if a member is gone that not all had acknowledged.
pub fn comm_agree(comm: Comm, flags: Pointer<c_int>) -> Result<()> {
    let own = u64::from(flags.get()?.cast_unsigned());
    agreed(get(comm)?.messages().agree(own)?, flags)
}

/// `MPIX_Comm_iagree`.
pub fn comm_iagree(comm: Comm, flags: Pointer<c_int>, request: Pointer<Request>) -> Result<()> {
    let own = u64::from(flags.get()?.cast_unsigned());
    request.check()?;
    let agreement = get(comm)?.messages().iagree(own);
    let told = request::filled(agreement, move |agreement| agreed(agreement, flags).map(|()| Status::EMPTY));
    request.set(request::running(told, ErrorObject::Comm(comm))?)
}

fn agreed(agreed: Agreement, flags: Pointer<c_int>) -> Result<()> {
    flags.set((agreed.flags as u32).cast_signed())?;
    if agreed.acknowledged {
        return Ok(());
    }
    fail(
        MPIX_ERR_PROC_FAILED,
        format!("ranks {:?} are gone, and not all had acknowledged that", agreed.failed),
    )
}

/// `MPIX_Comm_failure_ack`.
pub fn comm_failure_ack(comm: Comm) -> Result<()> {
    get(comm)?.messages().acknowledge(usize::MAX);
    Ok(())
}

/// `MPIX_Comm_failure_get_acked`.
pub fn comm_failure_get_acked(comm: Comm, failed: Pointer<Group>) -> Result<()> {
    let object = get(comm)?;
    failed.set(group::handle(object.messages().acknowledged(), object.origin.clone())?)
}

/// `MPIX_Comm_get_failed`.
pub fn comm_get_failed(comm: Comm, failed: Pointer<Group>) -> Result<()> {
    let object = get(comm)?;
    failed.set(group::handle(object.messages().failures(), object.origin.clone())?)
}

/// `MPIX_Comm_ack_failed`.
pub fn comm_ack_failed(comm: Comm, count: c_int, acknowledged: Pointer<c_int>) -> Result<()> {
    acknowledged.check()?;
    let object = get(comm)?;
    match usize::try_from(count) {
        Ok(count) => acknowledged.set(int(object.messages().acknowledge(count))),
        Err(_) => fail(ERR_ARG, format!("{count} failures to acknowledge")),
    }
}
