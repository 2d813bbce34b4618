//! A barrier in rounds of signals: in memory that ranks of a node share, and by messages between others.

use std::cell::OnceCell;

use super::exchange::{Exchange, Kind};
use super::long::take_now;
use crate::comm::Channel;
use crate::protocol::dissemination::rounds;
use crate::protocol::matching::Mismatch;
use crate::protocol::wire::Kind as Message;
use crate::{Communicator, Result};

/// A rank that is told or awaited, and the number of the round.
pub(crate) type Step = (usize, usize);

/// How the ranks of a barrier tell each other that they have come.
pub(crate) trait Signals {
    /// The ranks, which number their collectives.
    fn channel(&self) -> &Channel;

    /// Signals collective `sequence`, which is of a kind, in shared memory. Returns whether that was possible.
    fn signal(&self, step: Step, sequence: u64, kind: Kind) -> Result<bool>;

    /// Sends the message that stands for a signal.
    fn send(&self, exchange: &Exchange<'_>, step: Step) -> Result<()> {
        exchange.send_now(step.0, step.1, &[])
    }

    /// Whether a rank may signal in shared memory. It may send messages all the same.
    fn may_come(&self, step: Step) -> bool;

    /// Whether a rank has signalled collective `sequence`, and of what kind that is, if its flag still says so.
    fn has_come(&self, step: Step, sequence: u64) -> Option<Option<u8>>;
}

/// Every rank has come to this call, and what each did before is visible.
pub(crate) fn pass(signals: &impl Signals, kind: Kind) -> Result<()> {
    let channel = signals.channel();
    let barrier = Barrier { signals, kind, sequence: channel.next_sequence(), exchange: OnceCell::new() };
    for (to, from, round) in rounds((channel.rank, channel.size)) {
        barrier.tell((to, round))?;
        barrier.wait_for((from, round))?;
    }
    channel.engine.forget_waiting(channel.context, barrier.sequence);
    Ok(())
}

/// [`Communicator::barrier`].
pub(super) fn barrier(comm: &Communicator) -> Result<()> {
    let (channel, kind) = (comm.channel(), Kind::Barrier);
    let operation = Kind::name(kind as u8);
    channel.check_use(operation)?;
    if channel.engine.dead.any()
        && let Some(error) = channel.engine.dead_among(operation, &channel.group, 0)
    {
        return Err(error);
    }
    pass(&comm.lines(), kind)
}

/// One barrier of one rank.
struct Barrier<'a, S> {
    signals: &'a S,
    kind: Kind,
    sequence: u64,
    /// Its messages, if there are any.
    exchange: OnceCell<Exchange<'a>>,
}

impl<'a, S: Signals> Barrier<'a, S> {
    fn messages(&self) -> &Exchange<'a> {
        self.exchange.get_or_init(|| Exchange::blocking(self.signals.channel(), self.kind, self.sequence))
    }

    fn tell(&self, step: Step) -> Result<()> {
        if self.signals.signal(step, self.sequence, self.kind)? {
            return Ok(());
        }
        self.signals.send(self.messages(), step)
    }

    fn wait_for(&self, step: Step) -> Result<()> {
        if !self.signals.may_come(step) {
            return take_now(self.messages(), step.0, step.1, &mut []).map(drop);
        }
        match self.signals.has_come(step, self.sequence) {
            Some(Some(kind)) if kind == self.kind as u8 => Ok(()),
            _ => self.wait(step),
        }
    }

    #[inline(never)]
    fn wait(&self, step: Step) -> Result<()> {
        let channel = self.signals.channel();
        let what = || self.messages().awaits_for();
        let come = |messages| match self.signals.has_come(step, self.sequence) {
            Some(Some(kind)) if kind != self.kind as u8 => {
                let source = channel.job_rank(step.0);
                Some(Err(self.messages().mismatch(Mismatch { source, collective: kind })))
            }
            Some(_) => Some(Ok(())),
            // The line may not be its own, or it may be in a collective that sends messages.
            None if messages => self.messages().take(step.0, step.1).map(|taken| taken.map(drop)),
            None => None,
        };
        let operation = Kind::name(self.kind as u8);
        let waited = channel.engine.wait_signalled(operation, &what, || self.say_where(), come);
        if waited.is_err() {
            // A rank that waits elsewhere for a message of this rank is to learn why none comes.
            self.say_where();
        }
        waited
    }

    /// Says by messages where this rank waits, as it would have by those of a collective.
    fn say_where(&self) {
        let channel = self.signals.channel();
        let mut header = channel.engine.header(Message::Waiting).in_context(channel.context);
        header.op = self.kind as u8;
        header.offset = self.sequence;
        for (to, _, _) in rounds((channel.rank, channel.size)) {
            channel.engine.send_later(channel.job_rank(to), &header, &[]);
        }
    }
}
