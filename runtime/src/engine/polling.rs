//! Polls: what transports have found goes to who waits for it, or to the agent.

use transom_transport::{Completion, Event, Payload, Rest, Transport, TransportError, TransportResult};

use super::{Engine, agent};
use crate::protocol::wire::{self, Header, Kind};
use crate::{Error, Result};

/// Polls for one operation of one transport between two that look at all transports.
const POLLS_FOR_ONE: u64 = 16;

impl Engine {
    /// Takes completions and messages from every transport; returns how many there were. Returns at once if another
    /// thread is polling.
    pub fn poll(&self) -> Result<usize> {
        if self.is_idle() {
            self.wake();
            return Ok(0);
        }
        self.poll_transports(|transport| transport.progress(&mut |event| self.take(event, |_, _, _| false)))
    }

    /// [`Engine::poll`] for who waits for a message, and `takes` it before anybody else: true if it has. `more`: there may be
    /// more of them, for the next poll.
    #[inline]
    pub fn poll_taking(
        &self,
        more: bool,
        takes: impl Fn(&Header, Kind, Payload<'_>) -> bool,
    ) -> Result<usize> {
        if self.is_idle() {
            self.wake();
            return Ok(0);
        }
        self.poll_for(1, more, takes)
    }

    /// The same where there is something to find, for so many messages.
    #[inline]
    pub(super) fn poll_for(
        &self,
        messages: usize,
        more: bool,
        takes: impl Fn(&Header, Kind, Payload<'_>) -> bool,
    ) -> Result<usize> {
        self.poll_transports(|transport| {
            transport.progress_briefly(messages, more, &mut |event| self.take(event, &takes))
        })
    }

    #[inline]
    fn poll_transports(&self, progress: impl Fn(&dyn Transport) -> TransportResult<usize>) -> Result<usize> {
        let Some(polling) = self.polling.try_lock() else { return Ok(0) };
        let mut found = if self.has_waiting() { self.post_waiting() } else { 0 };
        for transport in self.routes.transports() {
            match progress(&**transport) {
                Ok(some) => found += some,
                Err(error) => self.broken(&**transport, &error).map_or(Ok(()), Err)?,
            }
        }
        self.drive(found);
        if found > 0 {
            self.progress.announce();
        }
        drop(polling);
        self.wake();
        Ok(found)
    }

    /// Whether a poll would find nothing.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        !self.has_deferred() && self.routes.transports().iter().all(|transport| transport.is_idle())
    }

    /// [`Engine::poll`] for who waits for an operation of `transport`: if its end is all that has come there, no more is looked
    /// at, but now and then.
    #[inline(always)]
    pub(super) fn poll_one(&self, transport: &dyn Transport) -> Result<()> {
        let others =
            self.routes.transports().len() > 1 && self.progress.events().is_multiple_of(POLLS_FOR_ONE);
        if !others
            && !self.has_waiting()
            && let Some(polling) = self.polling.try_lock()
        {
            match transport.progress_one() {
                Ok(Some((context, value))) => {
                    self.succeed(context, value);
                    self.drive(1);
                    self.progress.announce();
                    drop(polling);
                    self.wake();
                    return Ok(());
                }
                Ok(None) => {}
                Err(error) => self.broken(transport, &error).map_or(Ok(()), Err)?,
            }
        }
        self.poll().map(drop)
    }

    /// Something that a transport has found.
    #[inline]
    fn take(&self, event: Event<'_>, takes: impl Fn(&Header, Kind, Payload<'_>) -> bool) {
        match event {
            Event::Complete(Completion { context, value, result: Ok(()) }) => self.succeed(context, value),
            Event::Complete(completion) => self.end(completion),
            Event::Message(message) => self.receive(message, None, takes),
            Event::Long(start, rest) => self.receive(start, Some(rest), takes),
        }
    }

    /// An operation has succeeded.
    #[inline(always)]
    fn succeed(&self, context: u64, value: u64) {
        if !self.pendings.succeed(context, value) {
            self.end(Completion { context, value, result: Ok(()) });
        }
    }

    /// An operation has ended: with a table entry, or by an error.
    #[inline(never)]
    fn end(&self, completion: Completion) {
        let ended = self.pendings.complete(completion);
        if let Some(finished) = ended.finished {
            finished.run(self);
        }
        if let Some((pull, succeeded)) = ended.pull {
            pull.finish(self, succeeded);
        }
    }

    /// Posts what is deferred, as far as queues have space; returns how many were posted.
    #[cold]
    fn post_waiting(&self) -> usize {
        self.outbox.flush(self) + self.pulls.retry(self) + self.two_sided.transfers.retry(self)
    }

    /// The error of a transport that works no longer; none if a peer is lost that may have died, which ends nothing.
    #[cold]
    fn broken(&self, transport: &dyn Transport, error: &TransportError) -> Option<Error> {
        let peer = if let TransportError::Peer { peer, .. } = error { Some(*peer) } else { None };
        let error = Error::transport("progress", error).at_rank(self.rank);
        if let Some(peer) = peer.filter(|_| self.outlives) {
            self.dead.suspect(peer, &error);
            return None;
        }
        tracing::error!(transport = transport.name(), %error, "transport is broken");
        self.fail(error.clone());
        Some(error)
    }

    #[inline]
    fn receive(
        &self,
        message: &[u8],
        rest: Option<Rest<'_>>,
        takes: impl Fn(&Header, Kind, Payload<'_>) -> bool,
    ) {
        match wire::parse(&self.token, message) {
            Some((header, kind, payload)) => {
                let payload = match rest {
                    None => Payload::Here(payload),
                    Some(rest) if payload.is_empty() => Payload::There(rest),
                    Some(rest) => return self.receive(&rest.behind(message), None, takes),
                };
                if !takes(&header, kind, payload) {
                    agent::handle(self, &header, kind, payload);
                }
            }
            None => {
                tracing::warn!(
                    rank = self.rank,
                    bytes = message.len(),
                    "dropped a message without the job's token"
                );
            }
        }
    }
}
