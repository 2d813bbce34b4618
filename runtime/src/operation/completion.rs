//! Completion: waits until what was started is done at the target, and drives the transports while it waits.

use std::sync::Arc;

use super::place::Place;
use super::transfer::piece;
use crate::Result;
use crate::engine::Request;
use crate::memory::ExposedVec;
use crate::protocol::wire::{Header, Kind};
use crate::settings::Flush;
use crate::waits::Awaits;
use crate::window::{Core, Peer, TargetMemory};

/// What tells that messages are applied.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// The target confirms those up to a number.
    Number(u64),
    /// The reply to a request, which confirms those up to a number.
    Reply(Arc<Request>, u64),
}

/// Asks the target to confirm what was sent to it as messages, if anything was, and it has not been asked; and all that was put,
/// if the completions of this network do not mean that it has arrived.
#[inline(always)]
pub(crate) fn start_complete(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
) -> Result<Option<Confirmation>> {
    let sent = match (core.member.engine.settings.flush, peer.state.number()) {
        (Flush::Delivery, Some(number)) => return ask(core, operation, peer, number),
        (Flush::Delivery, None) => peer.state.messages.unconfirmed(),
        (Flush::Read | Flush::Message, _) => start_arrival(core, operation, target, peer)?,
    };
    let Some(sent) = sent else { return Ok(None) };
    let request = core.member.engine.request(operation, peer.world, flush(core, peer), &[])?;
    Ok(Some(Confirmation::Reply(request, sent)))
}

/// Asks for the confirmation of messages to the target that has this number.
#[inline]
fn ask(core: &Core, operation: &'static str, peer: &Peer, number: u32) -> Result<Option<Confirmation>> {
    let asked = peer.state.messages.ask(|sent| {
        let header = flush(core, peer).confirmed_by(number, Some(sent));
        core.member.engine.send(operation, peer.world, &header, &[])
    });
    Ok(asked?.map(Confirmation::Number))
}

fn flush(core: &Core, peer: &Peer) -> Header {
    let mut header = core.member.engine.header(Kind::Flush);
    header.window = peer.number;
    header
}

/// Starts what tells that puts have arrived: a get behind them, or, where there is no memory to get from, a message. Returns
/// how many messages the target is to confirm, if it is to be asked.
#[cold]
fn start_arrival(core: &Core, operation: &'static str, target: usize, peer: &Peer) -> Result<Option<u64>> {
    let capabilities = core.member.engine.routes.route(peer.world).capabilities;
    if capabilities.immediate || !capabilities.rma {
        return Ok(peer.state.messages.unconfirmed());
    }
    match peer.remote.get() {
        Some(remote) if core.member.engine.settings.flush == Flush::Read && remote.len > 0 => {
            tracing::trace!(target: "transom::flush", target, "a get asks whether puts have arrived");
            let bytes = remote.len.min(size_of::<u64>());
            let place =
                Place { operation, target, peer, remote: TargetMemory::Fixed(remote), offset: 0, low: 0 };
            let buffer = Arc::new(ExposedVec::new(vec![0u8; bytes]).0);
            piece(core, &place, (&buffer.result()).into(), (0, 0, bytes), None)?;
            Ok(peer.state.messages.unconfirmed())
        }
        _ => {
            tracing::trace!(target: "transom::flush", target, "a message asks whether puts have arrived");
            Ok(Some(peer.state.messages.all()))
        }
    }
}

/// Waits until all operations to `target` are complete there; `confirmation` is of [`start_complete`].
#[inline(always)]
pub(crate) fn complete(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    confirmation: Option<&Confirmation>,
) -> Result<()> {
    if !peer.state.is_idle() {
        await_idle(core, operation, target, peer)?;
    }
    if let Some(confirmation) = confirmation {
        await_confirmation(core, operation, target, peer, confirmation)?;
    }
    error_of(core, operation, target, peer)
}

/// Whether a message to a peer arrives there behind all messages before, and nothing else need be asked of it.
pub(crate) fn arrives_behind_messages(core: &Core, peer: &Peer) -> bool {
    let engine = &core.member.engine;
    peer.world != engine.rank
        && !engine.routes.shares_memory(peer.world)
        && engine.settings.flush == Flush::Delivery
}

/// Whether a message to a peer arrives behind all that was started there, or nobody's buffer is in use where it does not: behind
/// puts it arrives where messages overtake none.
pub(crate) fn is_complete_behind(core: &Core, peer: &Peer) -> bool {
    let ordered = core.member.engine.routes.route(peer.world).capabilities.ordered;
    if ordered { peer.state.under_way() == 0 } else { peer.state.is_idle() }
}

/// The error of what has failed at a target, if anything has.
pub(crate) fn error_of(core: &Core, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
    match peer.state.take_error() {
        Some(error) => Err(core.failed(operation, target, &error)),
        None => Ok(()),
    }
}

/// Waits until nothing is under way at a target.
#[inline(never)]
fn await_idle(core: &Core, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
    let engine = &core.member.engine;
    let transport = engine.routes.to(peer.world);
    let what = || Awaits::target(format!("operations to rank {target} to complete"), peer.world);
    engine.wait_briefly(operation, transport, &what, || peer.state.is_idle().then_some(()))
}

#[inline(never)]
fn await_confirmation(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    confirmation: &Confirmation,
) -> Result<()> {
    let (engine, messages) = (&core.member.engine, &peer.state.messages);
    match confirmation {
        Confirmation::Number(number) => {
            let what = || Awaits::target(format!("rank {target} to apply what was sent to it"), peer.world);
            engine.wait_until(operation, &what, None, || messages.is_confirmed(*number).then_some(Ok(())))
        }
        Confirmation::Reply(request, number) => {
            engine.await_reply(operation, (target, peer.world), request)?;
            messages.confirm(*number);
            Ok(())
        }
    }
}

/// Operations could not be completed, but their buffers are about to go: ends all traffic of this rank.
#[cold]
pub(crate) fn abandon(core: &Core) {
    let engine = &core.member.engine;
    tracing::error!(rank = engine.rank, "operations are abandoned: this rank's transports stop");
    for transport in engine.routes.transports() {
        transport.abandon();
    }
}
