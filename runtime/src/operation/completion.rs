//! Completion: waits until what was started is done at the target, and drives the transports while it waits.

use std::sync::Arc;

use super::place::Place;
use super::transfer::piece;
use crate::Result;
use crate::engine::Request;
use crate::memory::ExposedVec;
use crate::protocol::wire::Kind;
use crate::settings::Flush;
use crate::window::{Core, Peer, TargetMemory};

/// A confirmation that was asked for.
#[derive(Debug)]
pub(crate) struct Confirmation {
    request: Arc<Request>,
    /// How many messages it confirms.
    sent: u64,
}

/// Asks the target to confirm what was sent to it as messages, if anything was; and all that was put, if the completions of
/// this network do not mean that it has arrived.
#[inline]
pub(crate) fn start_complete(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
) -> Result<Option<Confirmation>> {
    let sent = match core.member.engine.settings.flush {
        Flush::Delivery => peer.state.unconfirmed(),
        Flush::Read | Flush::Message => start_arrival(core, operation, target, peer)?,
    };
    let Some(sent) = sent else { return Ok(None) };
    let engine = &core.member.engine;
    let mut header = engine.header(Kind::Flush);
    header.window = peer.number;
    engine.request(operation, peer.world, header, &[]).map(|request| Some(Confirmation { request, sent }))
}

/// Starts what tells that puts have arrived: a get behind them, or, where there is no memory to get from, a message. Returns
/// how many messages the target is to confirm, if it is to be asked.
#[cold]
fn start_arrival(core: &Core, operation: &'static str, target: usize, peer: &Peer) -> Result<Option<u64>> {
    let capabilities = core.member.engine.routes.route(peer.world).capabilities;
    if capabilities.immediate || !capabilities.rma {
        return Ok(peer.state.unconfirmed());
    }
    match peer.remote.get() {
        Some(remote) if core.member.engine.settings.flush == Flush::Read && remote.len > 0 => {
            tracing::trace!(target: "transom::flush", target, "a get asks whether puts have arrived");
            let bytes = remote.len.min(size_of::<u64>());
            let place =
                Place { operation, target, peer, remote: TargetMemory::Fixed(remote), offset: 0, low: 0 };
            let buffer = Arc::new(ExposedVec::new(vec![0u8; bytes]).0);
            piece(core, &place, (&buffer.result()).into(), (0, 0, bytes), None)?;
            Ok(peer.state.unconfirmed())
        }
        _ => {
            tracing::trace!(target: "transom::flush", target, "a message asks whether puts have arrived");
            Ok(Some(peer.state.all_sent()))
        }
    }
}

/// Waits until all operations to `target` are complete there; `confirmation` is of [`start_complete`].
#[inline]
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
    let what = || format!("operations to rank {target} to complete");
    engine.wait_briefly(operation, transport, &what, || peer.state.is_idle().then_some(()))
}

#[inline(never)]
fn await_confirmation(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    Confirmation { request, sent }: &Confirmation,
) -> Result<()> {
    core.member.engine.await_reply(operation, target, request)?;
    peer.state.confirm(*sent);
    Ok(())
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
