//! Reads the completion queue and says what it means.

use libfabric::CqError;
use transom_transport::{Completion, TransportError, TransportResult};

use crate::operations::Context;
use crate::port::Port;

/// Failures taken in one go.
const FAILURES: usize = 64;

/// What the caller is to be told.
#[derive(Debug)]
pub(crate) enum Found {
    Complete(Completion),
    /// A message of so many bytes in a buffer of the inbox, which is the finder's until it is given back.
    Message {
        buffer: usize,
        len: usize,
    },
}

impl Port {
    /// Reads what has completed and adds to `found` what the caller is to be told.
    pub fn poll(&mut self) -> TransportResult<()> {
        self.endpoint()?;
        if !self.inbox.waiting.is_empty() {
            self.receive_again()?;
        }
        match self.queue.read(&mut self.entries) {
            Ok(count) => {
                for index in 0..count {
                    let entry = self.entries[index];
                    self.finished(entry.context(), entry.len());
                }
                Ok(())
            }
            Err(error) if error.is_error_available() => self.take_failures(),
            Err(error) => Err(TransportError::System { operation: "fi_cq_read", reason: error.to_string() }),
        }
    }

    fn receive_again(&mut self) -> TransportResult<()> {
        for buffer in std::mem::take(&mut self.inbox.waiting) {
            self.receive_into(buffer)?;
        }
        Ok(())
    }

    fn finished(&mut self, context: usize, len: usize) {
        match self.operations.meaning(context) {
            Some(Context::Receive(buffer)) => {
                // Only a buffer that the provider had: a second completion of one would give it to two.
                if std::mem::take(&mut self.inbox.posted[buffer]) {
                    let len = len.min(self.inbox.buffers.size());
                    self.found.push(Found::Message { buffer, len });
                }
            }
            Some(Context::Send(buffer)) => self.sent(buffer),
            Some(Context::Access(key)) => {
                if let Some(operation) = self.operations.end(key) {
                    self.count_end(operation.peer);
                    self.found.push(Found::Complete(Completion {
                        context: operation.context,
                        value: 0,
                        result: Ok(()),
                    }));
                }
            }
            None => tracing::warn!(context, "libfabric completed an operation that is not ours"),
        }
    }

    /// A send is over: its buffer is free.
    fn sent(&mut self, buffer: usize) {
        if let Some(peer) = self.outbox.peers[buffer].take() {
            self.outbox.free.push(buffer);
            self.count_end(peer);
        }
    }

    fn count_end(&mut self, peer: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(peer) {
            peer.ended = peer.ended.wrapping_add(1);
        }
    }

    fn take_failures(&mut self) -> TransportResult<()> {
        let unreadable = |e: libfabric::FabricError| TransportError::System {
            operation: "fi_cq_readerr",
            reason: e.to_string(),
        };
        for _ in 0..FAILURES {
            match self.queue.read_error().map_err(unreadable)? {
                Some(error) => self.failed(&error)?,
                None => break,
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: &CqError) -> TransportResult<()> {
        tracing::debug!(%error, "libfabric: an operation failed");
        self.distrusted = true;
        match self.operations.meaning(error.context) {
            Some(Context::Receive(buffer)) => {
                // Too long, so no message of ours, or its sender is gone.
                if std::mem::take(&mut self.inbox.posted[buffer]) {
                    self.receive_into(buffer)?;
                }
            }
            Some(Context::Send(buffer)) => {
                if let Some(peer) = self.outbox.peers[buffer].take() {
                    self.outbox.free.push(buffer);
                    if let Some(Some(peer)) = self.peers.get_mut(peer) {
                        peer.broken.get_or_insert(format!("a message to it was lost: {error}"));
                    }
                }
            }
            Some(Context::Access(key)) => {
                if let Some(operation) = self.operations.end(key) {
                    let result =
                        Err(TransportError::Peer { peer: operation.peer, reason: error.to_string() });
                    self.found.push(Found::Complete(Completion {
                        context: operation.context,
                        value: 0,
                        result,
                    }));
                }
            }
            // The failure of something that was injected.
            None => tracing::warn!(%error, "libfabric: an operation without context failed"),
        }
        Ok(())
    }
}
