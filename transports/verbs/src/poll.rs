//! Reads the completion queue and says what it means.

use std::time::Instant;

use ibverbs::{Status, VerbsError, WorkCompletion};
use transom_transport::{TransportError, TransportResult};

use crate::connect::Connector;
use crate::link::State;
use crate::manager::BROKEN;
use crate::pool::Pool;
use crate::port::{BATCH, Port};
use crate::work::{Hold, Identity, Then, Work};

/// What the caller is to be told.
#[derive(Debug)]
pub(crate) enum Found {
    /// An operation ended; what an atomic found.
    Complete { context: u64, value: u64 },
    /// An operation failed.
    Failed { context: u64, error: Box<TransportError> },
    /// A message of so many bytes in a buffer of the inbox, which is the finder's until it is given back.
    Message { buffer: u32, len: usize },
}

impl Port {
    /// Posts what waits, reads what has completed, and adds to `found` what the caller is to be told. When to look again
    /// even if nothing comes.
    pub fn poll(&mut self) -> TransportResult<Option<Instant>> {
        let count = self.look()?;
        self.take_completions(count)
    }

    /// Posts what waits, and reads what has completed: how many, up to [`BATCH`]. To be followed by
    /// [`Port::take_completions`].
    #[inline(always)]
    pub fn look(&mut self) -> TransportResult<usize> {
        self.check_open()?;
        self.ring_all();
        if let Some(Connector::Manager(_)) = &self.connector {
            self.watch(false);
        }
        self.read()
    }

    #[inline(always)]
    fn read(&mut self) -> TransportResult<usize> {
        self.queue.poll(&mut self.entries[..]).map_err(|e| unreadable(&e))
    }

    /// Adds to `found` what the caller is to be told of so many completions that were read, and of what is behind them. When
    /// to look again even if nothing comes.
    #[inline(never)]
    pub fn take_completions(&mut self, mut count: usize) -> TransportResult<Option<Instant>> {
        self.take_some(count)?;
        while count == BATCH {
            // Whoever sleeps now is not woken by what is in the queue already.
            count = self.read()?;
            self.take_some(count)?;
        }
        if count == 0 {
            // Whatever arrived on them has been taken.
            self.retired.clear();
            if let Some(peer_receives) = &mut self.peer_receives {
                peer_receives.drained();
            }
        }
        if !self.waiting.is_empty() {
            // A link that has become idle makes room.
            self.admit();
        }
        if self.connecting.is_empty() && self.peer_receives.is_none() {
            return Ok(None);
        }
        Ok(self.ask_again().into_iter().chain(self.receives_again()).min())
    }

    fn take_some(&mut self, count: usize) -> TransportResult<()> {
        for index in 0..count {
            let entry = &self.entries[index];
            match Identity::of(entry.id()) {
                Identity::Work { peer, sequence } if entry.is_success() => {
                    self.succeeded(peer as usize, sequence);
                }
                identity => {
                    let entry = *entry;
                    self.take_other(identity, &entry)?;
                }
            }
        }
        Ok(())
    }

    /// What is not the success of a work request.
    fn take_other(&mut self, identity: Identity, entry: &WorkCompletion) -> TransportResult<()> {
        match identity {
            Identity::Work { peer, sequence } => self.ended(peer as usize, sequence, entry.status()),
            Identity::Message(buffer) => self.arrived(buffer, entry)?,
            Identity::DatagramIn(buffer) if entry.is_success() => self.heard(buffer, entry.len() as usize),
            Identity::DatagramIn(buffer) => self.listen(buffer),
            Identity::DatagramOut(buffer) => self.told(buffer),
        }
        Ok(())
    }

    fn arrived(&mut self, buffer: u32, entry: &WorkCompletion) -> TransportResult<()> {
        if let Some(peer_receives) = &mut self.peer_receives {
            peer_receives.arrived(buffer, entry.is_success());
        }
        if entry.is_success() {
            self.found.push(Found::Message { buffer, len: (entry.len() as usize).min(self.inbox.size()) });
            return Ok(());
        }
        // Too long, so no message of ours, or its queue pair is gone.
        tracing::debug!(status = %entry.status(), "a receive failed");
        match self.peer_receives.is_some() {
            // Its queue pair has failed, and takes no other.
            true => Ok(()),
            false => self.receive_into(buffer),
        }
    }

    /// Gives a buffer to the device for a message to arrive in.
    pub fn receive_into(&mut self, buffer: u32) -> TransportResult<()> {
        let failed =
            |e: VerbsError| TransportError::System { operation: "ibv_post_recv", reason: e.to_string() };
        if self.peer_receives.is_some() {
            return self.receive_again(buffer).map_err(failed);
        }
        let Some(receives) = &self.receives else { return Ok(()) };
        let local = self.inbox.local(buffer, self.inbox.size());
        // SAFETY: registered, and not read before its completion.
        unsafe { receives.post(Identity::Message(buffer).number(), local) }.map_err(failed)
    }

    /// The device has done this work request, and all before it.
    #[inline(always)]
    fn succeeded(&mut self, peer: usize, sequence: u32) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        // Not ours any more: the peer is lost.
        let Some(position) = link.position(sequence) else { return };
        link.failures = 0;
        self.done(peer, position + 1);
        self.ring_some(peer);
    }

    /// The device reports a work request that has failed or was given back: those before it are done.
    fn ended(&mut self, peer: usize, sequence: u32, status: Status) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let Some(position) = link.position(sequence) else { return };
        match &link.state {
            State::Ready(_) if !status.is_flushed() => {
                self.done(peer, position);
                self.failed(peer, status);
            }
            State::Breaking(_) => self.flushed(peer, position),
            _ if status.is_flushed() && self.peer_receives.is_some() => self.lose(peer, BROKEN),
            _ => self.lose(peer, &format!("the device ended its queue pair: {status}")),
        }
    }

    /// The first so many work requests to a peer have succeeded.
    #[inline]
    fn done(&mut self, peer: usize, count: usize) {
        let Self { links, credits, found, small, large, holds, .. } = self;
        let Some(Some(link)) = links.get_mut(peer) else { return };
        for _ in 0..count {
            let Some(work) = link.pop() else { return };
            *credits += 1;
            match (work.then, work.slot) {
                (Then::Report(context), None) => found.push(Found::Complete { context, value: 0 }),
                (Then::Confirm(sink), _) => {
                    if let Some(confirm) = &mut link.confirm {
                        confirm.confirmed(sink);
                    }
                }
                (_, Some(slot)) => {
                    let pool = if slot.large { &mut *large } else { &mut *small };
                    let hold = work.hold.and_then(|hold| holds.get(hold as usize));
                    if let Some((context, value)) = outcome(&work, pool, slot.index, hold) {
                        found.push(Found::Complete { context, value });
                    }
                    pool.give(slot.index);
                }
                (_, None) => {}
            }
            if let Some(hold) = work.hold {
                holds.try_remove(hold as usize);
            }
        }
    }

    /// The first work request to a peer has failed, and its queue pair with it. The device gives back the rest.
    fn failed(&mut self, peer: usize, status: Status) {
        if status.is_unreachable() {
            // Nobody answers: no other connection would help.
            let why = "the process has ended, or the way to it is cut for longer than TRANSOM_VERBS_SILENCE";
            return self.lose(peer, &format!("{status} ({why})"));
        }
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        let Some(work) = link.pop() else { return };
        if let State::Ready(queue_pair) = std::mem::replace(&mut link.state, State::Unconnected) {
            link.state = State::Breaking(queue_pair);
        }
        let left = link.posted;
        if let Some(context) = work.context() {
            // The rest of the same operation has nothing to report.
            let mut next = 0;
            while let Some(work) = link.works.get_mut(next)
                && work.context() == Some(context)
            {
                work.then = Then::Nothing;
                next += 1;
            }
        }
        self.credits += 1;
        self.report(work.context(), TransportError::Peer { peer, reason: status.to_string() });
        self.release(&work);
        if work.context().is_none() {
            return self.lose(peer, &format!("a message to it was refused: {status}"));
        }
        if left == 0 {
            self.reconnect(peer);
        }
    }

    /// The device has given back the work requests up to this one. After the last of all, those that are still wanted are
    /// posted again on another queue pair.
    fn flushed(&mut self, peer: usize, position: usize) {
        let Some(Some(link)) = self.links.get_mut(peer) else { return };
        if position + 1 < link.posted {
            return;
        }
        let mut undone = Vec::new();
        let mut dropped = Vec::new();
        self.credits += link.posted;
        while link.posted > 0 {
            let Some(work) = link.pop() else { break };
            let is_message = work.verb == crate::work::Verb::Send;
            if work.context().is_none() && !is_message {
                dropped.push(work);
            } else {
                undone.push(work);
            }
        }
        link.give_back(undone);
        dropped.iter().for_each(|work| self.release(work));
        self.reconnect(peer);
    }

    /// Tells that an operation has failed, if it is one of the caller's.
    pub fn report(&mut self, context: Option<u64>, error: TransportError) {
        if let Some(context) = context {
            self.found.push(Found::Failed { context, error: Box::new(error) });
        }
    }
}

/// The completion queue is broken.
#[cold]
pub(crate) fn unreadable(error: &VerbsError) -> TransportError {
    TransportError::System { operation: "ibv_poll_cq", reason: error.to_string() }
}

/// What the caller is to be told of a work request that has succeeded, whose buffer is this one: the context of its operation,
/// and what an atomic found.
#[inline(always)]
pub(crate) fn outcome(work: &Work, pool: &Pool, index: u32, hold: Option<&Hold>) -> Option<(u64, u64)> {
    match work.then {
        Then::Report(context) => Some((context, 0)),
        Then::Value(context) => {
            // SAFETY: the device has given the buffer back.
            Some((context, unsafe { pool.word(index) }))
        }
        Then::Copy { context, to } => {
            let len = work.local.len as usize;
            // SAFETY: the device has given the buffer back; the caller's memory is valid for `len` bytes and not accessed
            // until the completion (`Transport::get`), which is reported then.
            unsafe { std::ptr::copy_nonoverlapping(pool.at(index), to as *mut u8, len) };
            Some((context, 0))
        }
        Then::Scatter(context) => {
            let mut from = pool.at(index).cast_const();
            for part in hold.iter().flat_map(|hold| &hold.parts) {
                // SAFETY: as above; the parts are as long together as what arrived, which the buffer holds (`Port::copied_list`).
                unsafe {
                    std::ptr::copy_nonoverlapping(from, part.address as *mut u8, part.len as usize);
                    from = from.add(part.len as usize);
                }
            }
            Some((context, 0))
        }
        Then::Continue(_) | Then::Confirm(_) | Then::Nothing => None,
    }
}
