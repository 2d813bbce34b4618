//! Completion: waits until what was started is done at the target, and drives the transports while it waits.

use std::sync::Arc;

use crate::Result;
use crate::engine::Request;
use crate::protocol::wire::Kind;
use crate::window::{Core, Peer};

/// A confirmation that was asked for.
#[derive(Debug)]
pub(crate) struct Confirmation {
    request: Arc<Request>,
    /// How many messages it confirms.
    sent: u64,
}

/// Asks the target to confirm what was sent to it as messages, if anything was.
pub(crate) fn start_complete(
    core: &Core,
    operation: &'static str,
    peer: &Peer,
) -> Result<Option<Confirmation>> {
    let Some(sent) = peer.state.unconfirmed() else { return Ok(None) };
    let engine = &core.member.engine;
    let mut header = engine.header(Kind::Flush);
    header.window = peer.number;
    engine.request(operation, peer.world, header, &[]).map(|request| Some(Confirmation { request, sent }))
}

/// Waits until all operations to `target` are complete there; `confirmation` is of [`start_complete`].
pub(crate) fn complete(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    confirmation: Option<&Confirmation>,
) -> Result<()> {
    let engine = &core.member.engine;
    let state = &peer.state;
    if !state.is_idle() {
        let what = || format!("operations to rank {target} to complete");
        engine.wait_until(operation, &what, None, || state.is_idle().then_some(Ok(())))?;
    }
    if let Some(Confirmation { request, sent }) = confirmation {
        engine.await_reply(operation, target, request)?;
        state.confirm(*sent);
    }
    match state.take_error() {
        Some(error) => Err(core.failed(operation, target, &error)),
        None => Ok(()),
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
