//! Receives in slots, for language bindings: of bytes from one rank, to a buffer of the program's.

use std::sync::Arc;
use std::task::Waker;

use super::{Source, Status, Tag, awaited, pattern};
use crate::comm::{Awaited, Channel};
use crate::engine::Engine;
use crate::engine::two_sided::awaits_coming;
use crate::memory::RawBuffer;
use crate::waits::Awaits;
use crate::{Communicator, Request, Result};

/// A receive in a slot, until that is [freed](SlotReceive::free). The communicator that its methods take is that of
/// [`SlotReceive::post`], or another of the same job if that is gone.
#[derive(Debug, Clone, Copy)]
pub struct SlotReceive {
    /// The slot: no other receive has it meanwhile.
    pub slot: usize,
    /// Rank in the communicator.
    pub source: usize,
    /// Its message's.
    pub tag: Tag,
}

impl SlotReceive {
    /// Starts to receive (`MPI_Irecv`). The program keeps the buffer, and does not access it until the receive has ended. Nothing if
    /// no slot is free, or anything is wrong: then nothing is done.
    #[inline]
    pub fn post(comm: &Communicator, source: usize, tag: Tag, buffer: RawBuffer) -> Option<Self> {
        let channel = comm.channel();
        let pattern = pattern(channel, "irecv", Source::Rank(source), tag).ok()??;
        let slot = channel.engine.post_in_slot(pattern, buffer)?;
        Some(Self { slot, source, tag })
    }

    /// Whether it has ended.
    #[inline]
    pub fn has_ended(self, comm: &Communicator) -> bool {
        comm.channel().engine.two_sided.slots.has_ended(self.slot)
    }

    /// What came, if it has ended: whether the bytes are lost, which is said once, and what the message says of itself.
    #[inline]
    pub fn outcome(self, comm: &Communicator) -> Option<(Result<()>, Status)> {
        let (tag, bytes, result) = comm.channel().engine.two_sided.slots.came(self.slot)?;
        Some((result, Status { source: self.source, tag, bytes }))
    }

    /// Gives back the slot of a receive that has ended.
    #[inline]
    pub fn free(self, comm: &Communicator) {
        comm.channel().engine.two_sided.slots.free(self.slot);
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// A peer is gone; the deadline passes.
    pub fn wait(self, comm: &Communicator) -> Result<()> {
        let channel = comm.channel();
        let engine = &channel.engine;
        let has_ended = || engine.two_sided.slots.has_ended(self.slot);
        let (awaited, ready) = (|| engine.two_sided.posted(), || has_ended().then_some(()));
        // Another thread may be the one that receives.
        if engine.wait_shortly(awaited, |_, _, _| false, has_ended, ready).is_some() {
            return Ok(());
        }
        engine.wait_until("wait", &|| self.awaits(channel), None, || has_ended().then_some(Ok(())))
    }

    /// Makes progress; whether it has ended.
    ///
    /// # Errors
    /// As [`SlotReceive::wait`].
    pub fn poll(self, comm: &Communicator) -> Result<bool> {
        let channel = comm.channel();
        let (engine, slots) = (&channel.engine, &channel.engine.two_sided.slots);
        if slots.has_ended(self.slot) {
            return Ok(true);
        }
        engine.try_progress()?;
        let in_vain = || engine.in_vain("test", &|| self.awaits(channel));
        if slots.has_ended(self.slot) { Ok(true) } else { in_vain().map_or(Ok(false), Err) }
    }

    /// A request of it, whose result is made by `finish`. The slot is free when both the request and the hold are gone.
    pub fn into_request<R: Send + 'static>(
        self,
        comm: &Communicator,
        finish: impl Fn(Result<()>, Status) -> R + Send + Sync + 'static,
    ) -> (Request<R>, SlotHold) {
        let hold = SlotHold(Arc::new(Held { channel: comm.channel().clone(), slot: self.slot }));
        let receiving = Requested { receive: self, hold: hold.clone(), finish };
        (Request::new(comm.member(), "irecv", receiving), hold)
    }

    fn awaits(self, channel: &Channel) -> Awaits {
        let slots = &channel.engine.two_sided.slots;
        if let Some(message) = slots.coming(self.slot) {
            return awaits_coming(channel, message);
        }
        let world = slots.source(self.slot);
        awaited(world, channel, Source::Rank(self.source), self.tag)
    }
}

struct Held {
    channel: Arc<Channel>,
    slot: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.channel.engine.two_sided.slots.leave(self.slot);
    }
}

/// Keeps a slot from being used by another receive.
#[derive(Clone)]
pub struct SlotHold(Arc<Held>);

impl SlotHold {
    fn engine(&self) -> &Engine {
        &self.0.channel.engine
    }
}

impl std::fmt::Debug for SlotHold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SlotHold").field(&self.0.slot).finish()
    }
}

struct Requested<F> {
    receive: SlotReceive,
    hold: SlotHold,
    finish: F,
}

impl<R, F: Fn(Result<()>, Status) -> R + Send + Sync> Awaited<R> for Requested<F> {
    fn is_done(&self) -> bool {
        self.hold.engine().two_sided.slots.has_ended(self.receive.slot)
    }

    fn take(&self) -> Option<Result<R>> {
        let (tag, bytes, result) = self.hold.engine().two_sided.slots.came(self.receive.slot)?;
        let status = Status { source: self.receive.source, tag, bytes };
        match result {
            Err(error) if error.class() == crate::Class::Cancelled => Some(Err(error)),
            result => Some(Ok((self.finish)(result, status))),
        }
    }

    fn register(&self, waker: &Waker) -> bool {
        self.hold.engine().two_sided.slots.watch(self.receive.slot, waker)
    }

    fn cancel(&self) -> bool {
        self.hold.engine().cancel_in_slot(self.receive.slot)
    }

    fn leave(&self) {
        if !Awaited::<R>::is_done(self) {
            Awaited::<R>::cancel(self);
        }
    }

    fn what(&self) -> Awaits {
        self.receive.awaits(&self.hold.0.channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::SLOTS;
    use crate::{ANY_TAG, Class};

    /// What is received to real memory is tested from C, where it comes from.
    fn post(job: &Communicator, source: usize, tag: Tag) -> Option<SlotReceive> {
        SlotReceive::post(job, source, tag, RawBuffer::none())
    }

    #[test]
    fn messages_come_before_and_after_their_receives_in_order() {
        let program = |job: crate::Job| {
            if job.rank() == 1 {
                job.send::<u8>(0, 3, &[])?;
                job.barrier()?;
                return [4, 5, 6].into_iter().try_for_each(|tag| job.send::<u8>(0, tag, &[]));
            }
            job.barrier()?;
            let came = post(&job, 1, Tag::Is(3)).unwrap();
            came.wait(&job)?;
            assert_eq!(came.outcome(&job).unwrap().1, Status { source: 1, tag: 3, bytes: 0 });
            came.free(&job);
            let receives = [ANY_TAG, Tag::Is(6), ANY_TAG].map(|tag| post(&job, 1, tag).unwrap());
            while !receives[1].poll(&job)? {}
            for (receive, tag) in receives.into_iter().zip([4, 6, 5]) {
                let (result, status) = receive.outcome(&job).unwrap();
                assert_eq!((result.is_ok(), status.tag, status.bytes), (true, tag, 0));
                receive.free(&job);
            }
            Ok(())
        };
        crate::local(2, program).unwrap();
    }

    #[test]
    fn what_is_too_long_is_lost_and_told_once() {
        let program = |job: crate::Job| {
            for bytes in [1, 3 << 20] {
                let receive = post(&job, 0, Tag::Is(1)).unwrap();
                let sent = job.isend(0, 1, vec![1u8; bytes]);
                receive.wait(&job)?;
                let (result, status) = receive.outcome(&job).unwrap();
                assert_eq!((result.unwrap_err().class(), status.bytes), (Class::Truncate, bytes));
                assert!(receive.outcome(&job).is_none());
                receive.free(&job);
                sent.wait()?;
            }
            let wrong = [(1, Tag::Is(1)), (0, Tag::Is(-4)), (usize::MAX, ANY_TAG)];
            assert!(wrong.iter().all(|(rank, tag)| post(&job, *rank, *tag).is_none()));
            Ok(())
        };
        crate::local(1, program).unwrap();
    }

    #[test]
    fn slots_are_taken_and_given_back() {
        let program = |job: crate::Job| {
            let post = || post(&job, 0, Tag::Is(9));
            let mut posted: Vec<_> = std::iter::from_fn(post).collect();
            assert_eq!(posted.len(), SLOTS);
            // One is cancelled, one dropped, and their slots are free.
            let (request, hold) =
                posted.remove(0).into_request(&job, |result, status| (result.is_ok(), status.tag));
            assert!(request.cancel() && !request.cancel());
            assert_eq!(request.wait().unwrap_err().class(), Class::Cancelled);
            assert!(post().is_none());
            drop(hold);
            drop(posted.remove(0).into_request(&job, |result, _| result.is_ok()));
            let again: Vec<_> = std::iter::from_fn(post).collect();
            assert_eq!(again.len(), 2);
            // The first of those that are left has the message, and a request of it is told so.
            let (request, _hold) =
                posted.remove(0).into_request(&job, |result, status| (result.is_ok(), status.tag));
            assert!(request.test().is_none());
            job.send::<u8>(0, 9, &[])?;
            assert_eq!(request.wait()?, (true, 9));
            assert!(!posted.iter().chain(&again).any(|receive| receive.outcome(&job).is_some()));
            Ok(())
        };
        crate::local(1, program).unwrap();
    }
}
