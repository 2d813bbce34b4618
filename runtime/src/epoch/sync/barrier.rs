//! The barrier in a fence: rounds of signals, by flags between ranks of one node and by messages between others.

use std::cell::OnceCell;

use transom_transport::memory::store_load_fence;

use crate::Result;
use crate::collective::{Exchange, Kind};
use crate::operation;
use crate::protocol::dissemination::rounds;
use crate::protocol::gathered::Gathered;
use crate::protocol::matching::Mismatch;
use crate::protocol::wire::{CARRIES, Kind as Message};
use crate::window::Core;

/// Every rank of the window has come to this call, and what each did before is visible.
pub(super) fn pass(core: &Core, kind: Kind) -> Result<()> {
    let channel = core.comm.channel();
    let barrier = FenceBarrier { core, kind, sequence: channel.next_sequence(), exchange: OnceCell::new() };
    for (to, from, round) in rounds((core.rank, channel.size)) {
        barrier.tell(to, round)?;
        barrier.await_signal(from, round)?;
    }
    channel.engine.forget_waiting(channel.context, barrier.sequence);
    Ok(())
}

/// One barrier of one rank.
struct FenceBarrier<'a> {
    core: &'a Core,
    kind: Kind,
    sequence: u64,
    /// Its messages, if there are any.
    exchange: OnceCell<Exchange<'a>>,
}

impl<'a> FenceBarrier<'a> {
    fn messages(&self) -> &Exchange<'a> {
        self.exchange.get_or_init(|| Exchange::numbered(self.core.comm.channel(), self.kind, self.sequence))
    }

    fn tell(&self, to: usize, round: usize) -> Result<()> {
        if self.core.signal_fence(Kind::name(self.kind as u8), to, self.sequence, self.kind as u8)? {
            return Ok(());
        }
        store_load_fence();
        if let Some(carried) = self.core.take_carried(to) {
            return self.tell_carrying(to, round, &carried);
        }
        let messages = self.messages();
        messages.block(messages.send(to, round, &[]))
    }

    /// The same with operations that the other rank carries out first.
    fn tell_carrying(&self, to: usize, round: usize, carried: &Gathered) -> Result<()> {
        let (channel, peer) = (self.core.comm.channel(), &self.core.peers[to]);
        let mut header = channel.engine.header(Message::Collective).in_context(channel.context);
        (header.op, header.status) = (self.kind as u8, CARRIES);
        (header.offset, header.count) = (self.sequence, round as u64);
        let payload = carried.in_window(peer.number);
        let operation = Kind::name(self.kind as u8);
        let sent = operation::send_counted(self.core, operation, peer, false, (&header, &payload));
        peer.state.leave_unsettled();
        sent
    }

    fn await_signal(&self, from: usize, round: usize) -> Result<()> {
        if !self.core.signals(from).shares_memory() {
            let messages = self.messages();
            return messages.block(messages.receive(from, round)).map(drop);
        }
        match self.core.fence_signalled(from, self.sequence) {
            Some(Some(kind)) if kind == self.kind as u8 => Ok(()),
            _ => self.wait(from, round),
        }
    }

    #[inline(never)]
    fn wait(&self, from: usize, round: usize) -> Result<()> {
        let engine = &self.core.member.engine;
        let what = || self.messages().awaits_for();
        let come = |messages| match self.core.fence_signalled(from, self.sequence) {
            Some(Some(kind)) if kind != self.kind as u8 => {
                let source = self.core.peers.world(from);
                Some(Err(self.messages().mismatch(Mismatch { source, collective: kind })))
            }
            Some(_) => Some(Ok(())),
            // The line may not be its own, or it may be in a collective that sends messages.
            None if messages => self.messages().take(from, round).map(|taken| taken.map(drop)),
            None => None,
        };
        let operation = Kind::name(self.kind as u8);
        let waited = engine.wait_signalled(operation, &what, || self.say_where(), come);
        if waited.is_err() {
            // A rank that waits elsewhere for a message of this rank is to learn why none comes.
            self.say_where();
        }
        waited
    }

    /// Says by messages where this rank waits, as it would have by those of a collective.
    fn say_where(&self) {
        let channel = self.core.comm.channel();
        let mut header = channel.engine.header(Message::Waiting).in_context(channel.context);
        header.op = self.kind as u8;
        header.offset = self.sequence;
        for (to, _, _) in rounds((self.core.rank, channel.size)) {
            channel.engine.send_later(channel.job_rank(to), &header, &[]);
        }
    }
}
