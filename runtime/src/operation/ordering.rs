//! What keeps the order of operations to one target that follow one another, where nobody waits for the first to be complete.

use crate::settings::Flush;
use crate::window::{Core, Peer};

/// What has to be done before another operation to a target, so that it comes behind those that were started there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// Nothing.
    Kept,
    /// Nothing before a message; before a put they have to be complete: it would overtake messages.
    KeptByMessages,
    /// They have to be complete.
    Unknown,
}

/// Whether a message to a peer comes behind all puts to it that were started before: where one stream carries both, and a processor stores
/// what it brings in its order.
pub(crate) fn is_behind_puts(core: &Core, peer: &Peer) -> bool {
    let engine = &core.member.engine;
    cfg!(target_arch = "x86_64")
        && peer.world != engine.rank
        && engine.routes.route(peer.world).capabilities.ordered
}

/// The order of what is started at a peer now behind what is under way there.
pub(crate) fn order(core: &Core, peer: &Peer) -> Order {
    let engine = &core.member.engine;
    let capabilities = engine.routes.route(peer.world).capabilities;
    let told = peer.state.messages.unconfirmed().is_none();
    let arrived = capabilities.immediate || !capabilities.rma || engine.settings.flush == Flush::Delivery;
    if told && (arrived && peer.state.is_idle() || is_behind_puts(core, peer)) {
        return Order::Kept;
    }
    if is_behind_puts(core, peer) { Order::KeptByMessages } else { Order::Unknown }
}
