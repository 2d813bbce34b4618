//! Where the ranks of a communicator signal each other in barriers.

use transom_transport::TransportResult;

use super::{Channel, Communicator};
use crate::Result;
use crate::collective::{Kind, Signals, Step};
use crate::engine::{PeerSleepers, SignalLine};
use crate::protocol::dissemination::rounds;
use crate::protocol::signals;
use crate::protocol::wire::Kind as Message;

/// Of one round. What a rank has grows with the number of rounds alone.
#[derive(Debug)]
pub(super) struct RoundLines {
    /// Where this rank signals, if the other has memory for that.
    to: Option<(SignalLine, PeerSleepers)>,
    /// Where it is signalled, if it shares memory with the other, which may send messages all the same.
    from: Option<SignalLine>,
}

/// Those of all rounds.
pub(crate) struct Lines<'a>(&'a Communicator, &'a [RoundLines]);

impl Communicator {
    /// The lines of its barriers.
    #[inline]
    pub(crate) fn lines(&self) -> Lines<'_> {
        Lines(self, self.0.lines.get_or_init(|| self.find_lines()))
    }

    #[cold]
    fn find_lines(&self) -> Box<[RoundLines]> {
        let channel = self.channel();
        let control = &self.member().control;
        let shares_memory = |rank| channel.engine.routes.shares_memory(channel.job_rank(rank));
        let lines = rounds((channel.rank, channel.size)).map(|(to, from, _)| RoundLines {
            // Where there is none, messages need none.
            to: self.line_to(to).ok().flatten(),
            from: control.incoming_barrier_line(channel.context, from).ok().filter(|_| shares_memory(from)),
        });
        lines.collect()
    }

    fn line_to(&self, to: usize) -> TransportResult<Option<(SignalLine, PeerSleepers)>> {
        let (channel, control) = (self.channel(), &self.member().control);
        let (engine, peer) = (&channel.engine, channel.job_rank(to));
        let line = control.outgoing_barrier_line(&engine.routes, peer, channel.context, channel.rank)?;
        Ok(line.zip(control.sleepers_at(engine, peer)?))
    }
}

impl Lines<'_> {
    /// Those of a round, which is a power of two.
    #[inline]
    fn of(&self, (_, round): Step) -> Option<&RoundLines> {
        self.1.get(round.trailing_zeros() as usize)
    }
}

impl Signals for Lines<'_> {
    #[inline]
    fn channel(&self) -> &Channel {
        self.0.channel()
    }

    #[inline]
    fn signal(&self, step: Step, sequence: u64, kind: Kind) -> Result<bool> {
        let Some((line, sleepers)) = self.of(step).and_then(|lines| lines.to.as_ref()) else {
            return Ok(false);
        };
        signals::flag(line.flags(), sequence, kind as u8);
        if sleepers.must_wake() {
            let (engine, peer) = (&self.channel().engine, self.channel().job_rank(step.0));
            engine.send_later(peer, &engine.header(Message::Ring), &[]);
        }
        Ok(true)
    }

    #[inline]
    fn may_come(&self, step: Step) -> bool {
        self.of(step).is_some_and(|lines| lines.from.is_some())
    }

    #[inline]
    fn has_come(&self, step: Step, sequence: u64) -> Option<Option<u8>> {
        let line = self.of(step)?.from.as_ref()?;
        let flagged = signals::flagged(line.flags(), sequence)?;
        line.is_owned_in(self.channel().context, step.0).then_some(flagged)
    }
}
