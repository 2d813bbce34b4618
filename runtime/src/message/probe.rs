//! Looking at messages before receiving them (MPI-4.1 §3.8).

use super::{Message, Source, Status, Tag, awaited, pattern};
use crate::protocol::messages::Pattern;
use crate::{Communicator, Result};

impl Communicator {
    /// Waits for a message, and says what [`Communicator::recv`] with the same arguments would receive
    /// (`MPI_Probe`, MPI-4.1 §3.8.1). Where several threads receive, [`Communicator::mprobe`] is the one to
    /// use.
    ///
    /// # Errors
    /// `source` or `tag` is wrong; a peer is gone; the deadline passes.
    pub fn probe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Status> {
        let (source, tag) = (source.into(), tag.into());
        let channel = self.channel();
        let Some(pattern) = pattern(channel, "probe", source, tag)? else { return Ok(Status::NULL) };
        let look = || self.look(pattern).map(Ok);
        channel.engine.wait_until("probe", &|| awaited(pattern.source, channel, source, tag), None, look)
    }

    /// What a receive would receive now; makes progress if there is nothing (`MPI_Iprobe`, §3.8.1).
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn iprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Status>> {
        let from = (source.into(), tag.into());
        let Some(pattern) = pattern(self.channel(), "iprobe", from.0, from.1)? else {
            return Ok(Some(Status::NULL));
        };
        self.now("iprobe", (pattern, from), || self.look(pattern))
    }

    /// Waits for a message, and takes it, so that no other call receives it (`MPI_Mprobe`, §3.8.2).
    ///
    /// ```
    /// transom::local(1, |job| {
    ///     job.send(0, 5, &[1u8, 2, 3])?;
    ///     let message = job.mprobe(transom::ANY_SOURCE, transom::ANY_TAG)?;
    ///     let mut room = vec![0u8; message.status().bytes];
    ///     message.recv_into(&mut room)?;
    ///     assert_eq!(room, [1, 2, 3]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn mprobe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Message> {
        self.matched("mprobe", source.into(), tag.into())
    }

    /// Takes a message that is there (`MPI_Improbe`, §3.8.2); makes progress if there is none.
    ///
    /// # Errors
    /// As [`Communicator::probe`].
    pub fn improbe(&self, source: impl Into<Source>, tag: impl Into<Tag>) -> Result<Option<Message>> {
        let from = (source.into(), tag.into());
        let Some(pattern) = pattern(self.channel(), "improbe", from.0, from.1)? else {
            return Ok(Some(Message::null(self)));
        };
        let take = || self.channel().engine.two_sided.take(pattern);
        let arrived = self.now("improbe", (pattern, from), take)?;
        Ok(arrived.map(|arrived| Message::new(self, arrived)))
    }

    fn look(&self, pattern: Pattern) -> Option<Status> {
        let (envelope, bytes) = self.channel().engine.two_sided.look(pattern)?;
        Some(Status::of(self.channel(), envelope, bytes))
    }

    /// What is there now, or after one poll.
    fn now<R>(
        &self,
        operation: &'static str,
        (pattern, (source, tag)): (Pattern, (Source, Tag)),
        look: impl Fn() -> Option<R>,
    ) -> Result<Option<R>> {
        if let Some(found) = look() {
            return Ok(Some(found));
        }
        let channel = self.channel();
        let engine = &channel.engine;
        let polled = engine.try_progress()?;
        engine.failure().cloned().map_or(Ok(()), Err)?;
        let found = look();
        // As long as anything comes, what the dead have sent may.
        if found.is_none() && polled == 0 {
            let what = || awaited(pattern.source, channel, source, tag);
            engine.in_vain(operation, &what).map_or(Ok(()), Err)?;
        }
        Ok(found)
    }
}
