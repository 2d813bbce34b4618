//! The barrier in a fence.

use transom_transport::memory::store_load_fence;

use crate::Result;
use crate::collective::{Exchange, Kind, Signals, Step};
use crate::comm::Channel;
use crate::operation;
use crate::protocol::gathered::Gathered;
use crate::protocol::wire::{CARRIES, Kind as Message};
use crate::window::Core;

impl Signals for Core {
    #[inline]
    fn channel(&self) -> &Channel {
        self.comm.channel()
    }

    #[inline]
    fn signal(&self, (to, _): Step, sequence: u64, kind: Kind) -> Result<bool> {
        self.signal_fence(Kind::name(kind as u8), to, sequence, kind as u8)
    }

    fn send(&self, exchange: &Exchange<'_>, (to, round): Step) -> Result<()> {
        store_load_fence();
        match self.take_carried(to) {
            Some(carried) => send_carrying(self, exchange, (to, round), &carried),
            None => exchange.send_now(to, round, &[]),
        }
    }

    #[inline]
    fn may_come(&self, (from, _): Step) -> bool {
        self.signals(from).shares_memory()
    }

    #[inline]
    fn has_come(&self, (from, _): Step, sequence: u64) -> Option<Option<u8>> {
        self.fence_signalled(from, sequence)
    }
}

/// The message with operations that the other rank carries out first.
fn send_carrying(core: &Core, exchange: &Exchange<'_>, (to, round): Step, carried: &Gathered) -> Result<()> {
    let (channel, peer) = (core.comm.channel(), &core.peers[to]);
    let mut header = channel.engine.header(Message::Collective).in_context(channel.context);
    let (kind, sequence) = exchange.number();
    (header.op, header.status) = (kind as u8, CARRIES);
    (header.offset, header.count) = (sequence, round as u64);
    let payload = carried.in_window(peer.number);
    let sent = operation::send_counted(core, exchange.operation(), peer, false, (&header, &payload));
    peer.state.leave_unsettled();
    sent
}
