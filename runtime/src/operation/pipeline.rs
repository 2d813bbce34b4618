//! The way of every operation: checks, place, path, issue. Completion is `completion.rs`'s. Whether the epoch's kind allows
//! the operation at all is up to the interface.

use transom_transport::{reduce_valid, swap_valid};

use super::description::{Accumulate, Action, Completion, Description};
use super::path::Way;
use super::place::{Place, is_one_run};
use super::request::Deferred;
use super::{
    agent, check_local, check_signatures, device, gathered, list, mapped, message, packed, regions, single,
    transfer,
};
use crate::window::Core;
use crate::{Class, Result};

/// Carries out an operation, or starts it. Nothing is sent if it returns an error of its arguments.
pub(crate) fn perform(core: &Core, mut operation: Description<'_>, completion: Completion<'_>) -> Result<()> {
    check(core, &operation)?;
    if gathered::join(core, &mut operation, completion)? {
        return Ok(());
    }
    let place = match core.place(&operation, completion) {
        Ok(Some(place)) => place,
        Ok(None) => return Ok(()),
        // Perhaps several regions of a dynamic window hold it together.
        Err(error) => return regions::perform(core, operation, completion, error),
    };
    if gathered::carry(core, &place, &operation, completion)? {
        return Ok(());
    }
    let way = core.choose(&place, &operation)?;
    if place.peer.state.is_unsettled() && way.overtakes_messages() {
        core.settle(place.operation, place.target, place.peer)?;
    }
    match &operation.action {
        Action::Get { result, to: None }
            if matches!((way, completion), (Way::Transfer, Completion::Call)) =>
        {
            single::get_now(core, &place, result)
        }
        Action::Get { .. } if matches!(completion, Completion::Call) && !place.is_mapped() => {
            transfer::awaited(core, &place, |deferred| {
                issue(core, &place, way, &mut operation, Some(deferred))
            })
        }
        _ => issue(core, &place, way, &mut operation, completion.deferred()),
    }
}

/// What can be said without knowing the target.
fn check(core: &Core, operation: &Description<'_>) -> Result<()> {
    let name = operation.name;
    match (&operation.action, &operation.layout) {
        (Action::Put { origin, from: Some(from) }, Some(there)) => {
            check_local(core, name, origin.bytes().len(), from)?;
            check_signatures(core, name, from, there)
        }
        (Action::Get { result, to: Some(to) }, Some(there)) => {
            check_local(core, name, result.len(), to)?;
            check_signatures(core, name, to, there)
        }
        (Action::Accumulate { what, fetched }, _) => {
            let Accumulate { op, ty, operands } = *what;
            // Nothing can be of no type.
            if !operands.is_empty() && !reduce_valid(op, ty) {
                let message = format!("{op:?} is not defined on {ty:?} (MPI-4.1 §6.9.2)");
                return Err(core.error(Class::Op, name, message));
            }
            match fetched {
                Some(fetched) if fetched.len() != operands.len() => {
                    let (bytes, capacity) = (operands.len(), fetched.len());
                    let message = format!("{bytes} bytes of operands, but room for {capacity} of results");
                    Err(core.error(Class::Count, name, message).with_target(operation.target))
                }
                _ => Ok(()),
            }
        }
        (Action::CompareSwap { ty, .. }, _) if !swap_valid(*ty) => {
            let message = format!("it is defined on integers, logical and byte types, not on {ty:?}");
            Err(core.error(Class::Type, name, message))
        }
        _ => Ok(()),
    }
}

/// Issues an operation by the way that was chosen for it.
fn issue(
    core: &Core,
    place: &Place<'_>,
    way: Way<'_>,
    operation: &mut Description<'_>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let layout = operation.layout;
    match &mut operation.action {
        Action::Put { origin, from } => {
            let layouts = from.zip(layout);
            match (way, layouts) {
                (Way::Mapped(memory), None) => mapped::put(core, place, memory, origin.bytes()),
                (Way::Mapped(memory), Some(layouts)) => {
                    mapped::put_layout(core, place, memory, origin.bytes(), layouts)
                }
                (Way::List(limits), Some(layouts)) => {
                    list::transfer(core, place, (&*origin).into(), layouts, limits, deferred)
                }
                (Way::Pieces, Some(layouts)) => {
                    transfer::each_piece(core, place, (&*origin).into(), layouts, deferred)
                }
                (Way::Packed, Some(layouts)) => packed::put(core, place, origin.bytes(), layouts),
                (Way::Message, None) => message::put(core, place, origin.bytes()),
                _ => single::put(core, place, origin, deferred),
            }
        }
        Action::Get { result, to } => {
            let layouts = to.zip(layout);
            match (way, layouts) {
                (Way::Mapped(memory), None) => mapped::get(core, place, memory, result.bytes_mut()),
                (Way::Mapped(memory), Some(layouts)) => {
                    mapped::get_layout(core, place, memory, result.bytes_mut(), layouts)
                }
                (Way::List(limits), Some(layouts)) => {
                    list::transfer(core, place, (&*result).into(), layouts, limits, deferred)
                }
                (Way::Pieces, Some(layouts)) => {
                    transfer::each_piece(core, place, (&*result).into(), layouts, deferred)
                }
                (Way::Packed, Some(layouts)) => packed::get(core, place, result, layouts, deferred),
                (Way::Message, None) => message::get(core, place, result.bytes_mut()),
                _ => single::get(core, place, result, deferred),
            }
        }
        Action::Accumulate { what, fetched } => {
            let fetched = fetched.as_deref_mut();
            if let Some(layout) = layout
                && !is_one_run(core, place.operation, &layout)?
            {
                return packed::accumulate(core, place, &layout, *what, fetched, deferred);
            }
            accumulate(core, place, way, *what, fetched, deferred)
        }
        Action::CompareSwap { ty, compare, value, old } => match way {
            Way::Device(words) => device::compare_swap(core, place, words, (compare, value), old),
            Way::Mapped(memory) => mapped::compare_swap(core, place, memory, *ty, (compare, value), old),
            _ => agent::compare_swap(core, place, *ty, (compare, value), old),
        },
        Action::Notify { bytes, number } => message::notify(core, place, bytes, *number),
    }
}

/// An accumulate of elements one behind the other.
fn accumulate(
    core: &Core,
    place: &Place<'_>,
    way: Way<'_>,
    what: Accumulate<'_>,
    fetched: Option<&mut [u8]>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    match (way, fetched) {
        (Way::Device(words), None) if deferred.is_none() => device::accumulate(core, place, words, what),
        (Way::Device(words), fetched) => {
            let mut old = stream(deferred, what.operands.len());
            device::update(core, place, words, what, fetched.or(old.as_deref_mut()))?;
            keep(deferred, old)
        }
        (Way::Mapped(memory), fetched) => {
            let mut old = stream(deferred, what.operands.len());
            mapped::update(core, place, memory, 0, what, fetched.or(old.as_deref_mut()))?;
            keep(deferred, old)
        }
        (_, None) if let Some(deferred) = deferred => agent::fetch_deferred(core, place, what, deferred),
        (_, Some(fetched)) => agent::fetch(core, place, what, fetched),
        (Way::Pull, None) => agent::pull(core, place, what),
        (_, None) => agent::accumulate(core, place, what),
    }
}

/// Room for what is fetched at once although it is asked for with a request.
fn stream(deferred: Option<&Deferred>, bytes: usize) -> Option<Vec<u8>> {
    deferred.map(|_| vec![0; bytes])
}

fn keep(deferred: Option<&Deferred>, old: Option<Vec<u8>>) -> Result<()> {
    if let (Some(deferred), Some(old)) = (deferred, old) {
        deferred.write(0, &old);
    }
    Ok(())
}
