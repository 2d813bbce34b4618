//! Small operations on contiguous memory that travel with the request for their target's lock (`epoch/sync/deferred.rs`), or
//! with the message that ends their epoch (`epoch/sync/carried.rs`).

use super::description::{Action, Completion, Description};
use super::place::{Place, is_one_run};
use super::rename;
use crate::Result;
use crate::epoch::Coverage;
use crate::explain::{Path, Reason};
use crate::protocol::gathered::Operation;
use crate::window::{Core, Domain, Peer, TargetMemory};

/// Has an operation go that way, if its target's lock is to be taken. Whether it did: then it is done, as far as its call goes.
#[inline]
pub(super) fn join(core: &Core, operation: &mut Description<'_>, completion: Completion<'_>) -> Result<bool> {
    match core.peers.made(operation.target) {
        Some(peer) if peer.coverage() == Coverage::Deferred && completion.deferred().is_none() => {
            join_request(core, peer, operation)
        }
        _ => Ok(false),
    }
}

#[inline(never)]
fn join_request(core: &Core, peer: &Peer, operation: &mut Description<'_>) -> Result<bool> {
    let Some(place) = place(core, peer, operation)? else { return Ok(false) };
    // What a device updates is not for the agent.
    let updates = core.domain == Domain::Cpu;
    let (asked, result): (Operation<'_>, &mut [u8]) = match &mut operation.action {
        Action::Put { origin, from: None } => (Operation::Put(origin.bytes()), &mut []),
        Action::Get { result, to: None } => (Operation::Get(result.len()), result.bytes_mut()),
        Action::Accumulate { what, fetched: None } if updates => {
            (Operation::Accumulate(what.op, what.ty, what.operands), &mut [])
        }
        Action::Accumulate { what, fetched: Some(fetched) } if updates => {
            (Operation::GetAccumulate(what.op, what.ty, what.operands), fetched)
        }
        Action::CompareSwap { ty, compare, value, old } if updates => {
            (Operation::CompareSwap(*ty, compare, value), old)
        }
        _ => return Ok(false),
    };
    let joined = core.gather(place.operation, (place.target, peer), place.offset, &asked, result)?;
    if joined {
        count(core, &place, operation);
    }
    Ok(joined)
}

/// Has an operation travel with the message that ends its epoch, if it can. What was to do so and must not be overtaken by it is
/// sent if it cannot.
#[inline]
pub(super) fn carry(
    core: &Core,
    place: &Place<'_>,
    operation: &Description<'_>,
    completion: Completion<'_>,
) -> Result<bool> {
    let active = place.peer.coverage() == Coverage::Active && !place.is_mapped();
    if active { carry_or_send(core, place, operation, completion) } else { Ok(false) }
}

#[inline(never)]
fn carry_or_send(
    core: &Core,
    place: &Place<'_>,
    operation: &Description<'_>,
    completion: Completion<'_>,
) -> Result<bool> {
    let one_run = match &operation.layout {
        None => true,
        Some(layout) => is_one_run(core, place.operation, layout)?,
    };
    let fits = one_run && completion.deferred().is_none() && matches!(place.remote, TargetMemory::Fixed(_));
    let asked = match &operation.action {
        Action::Put { origin, from: None } if fits => Some(Operation::Put(origin.bytes())),
        Action::Accumulate { what, fetched: None } if fits && core.domain == Domain::Cpu => {
            Some(Operation::Accumulate(what.op, what.ty, what.operands))
        }
        _ => None,
    };
    if let Some(asked) = asked
        && core.carry(place.operation, (place.target, place.peer), place.offset, &asked)?
    {
        count(core, place, operation);
        return Ok(true);
    }
    core.send_carried(place.operation, place.target, place.peer)?;
    Ok(false)
}

/// Where an operation goes, if that is one run of memory that is not mapped here.
fn place<'a>(core: &Core, peer: &'a Peer, operation: &Description<'_>) -> Result<Option<Place<'a>>> {
    let Description { name, target, displacement, .. } = *operation;
    let (low, (remote, offset)) = match &operation.layout {
        None => (0, core.resolve(name, target, peer, displacement, operation.bytes())?),
        Some(layout) if is_one_run(core, name, layout)? => {
            let span = layout.span().map_err(|e| rename(core, name, &e))?;
            (span.0, core.resolve_span(name, target, peer, displacement, span)?)
        }
        Some(_) => return Ok(None),
    };
    let place = Place { operation: name, target, peer, remote, offset, low };
    Ok((matches!(place.remote, TargetMemory::Fixed(_)) && !place.is_mapped()).then_some(place))
}

/// It went that way.
fn count(core: &Core, place: &Place<'_>, operation: &Description<'_>) {
    if operation.is_update() {
        core.count_agent(place, operation.element(), operation.bytes());
    } else {
        core.count_path(place, Path::Message, Reason::Epoch, operation.bytes());
    }
}
