//! Puts and gets under way, and the contexts by which the provider names what it completes.
//!
//! A context is the address of 64 bytes that are the provider's until completion (`FI_CONTEXT2` of fi_getinfo(3)) where
//! it wants such; nothing here follows it. The first contexts are those of receive buffers, then send buffers, then
//! puts and gets.

use std::collections::BTreeSet;

use libfabric::MemoryRegion;
use slab::Slab;
use transom_transport::TransportResult;

use crate::buffers::Buffers;

/// Puts and gets under way at once. More are told to try again.
const MAX_OPERATIONS: usize = 4096;
/// Bytes of the provider's in a context: `struct fi_context2`.
const CONTEXT_BYTES: usize = 64;

/// What a context stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// A receive into this buffer.
    Receive(usize),
    /// A send from this buffer.
    Send(usize),
    /// A put or get, by its key.
    Access(usize),
}

/// A put or get under way.
#[derive(Debug)]
pub(crate) struct Operation {
    pub peer: usize,
    /// The caller's context.
    pub context: u64,
    /// Keeps the local buffer registered, where the provider wants that.
    pub _registration: Option<MemoryRegion>,
}

#[derive(Debug)]
pub(crate) struct Operations {
    accesses: Slab<Operation>,
    contexts: Buffers,
    receives: usize,
    sends: usize,
}

impl Operations {
    pub fn new(receives: usize, sends: usize) -> TransportResult<Self> {
        let contexts = Buffers::new(receives + sends + MAX_OPERATIONS, CONTEXT_BYTES)?;
        Ok(Self { accesses: Slab::new(), contexts, receives, sends })
    }

    /// The number to give to the provider.
    pub fn context(&self, of: Context) -> usize {
        let index = match of {
            Context::Receive(buffer) => buffer,
            Context::Send(buffer) => self.receives + buffer,
            Context::Access(key) => self.receives + self.sends + key,
        };
        self.contexts.at(index) as usize
    }

    /// What a number from the provider stands for; nothing if it is none of ours.
    pub fn meaning(&self, context: usize) -> Option<Context> {
        let offset = context.checked_sub(self.contexts.start() as usize)?;
        let index = offset / CONTEXT_BYTES;
        if !offset.is_multiple_of(CONTEXT_BYTES) || index >= self.contexts.count() {
            return None;
        }
        Some(match index.checked_sub(self.receives) {
            None => Context::Receive(index),
            Some(index) if index < self.sends => Context::Send(index),
            Some(index) => Context::Access(index - self.sends),
        })
    }

    /// Whether one more may begin.
    pub fn has_room(&self) -> bool {
        self.accesses.len() < MAX_OPERATIONS
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.accesses.is_empty()
    }

    /// Notes a put or get that is about to be posted.
    pub fn begin(&mut self, operation: Operation) -> usize {
        self.accesses.insert(operation)
    }

    /// Takes a put or get that ended or was not taken.
    pub fn end(&mut self, key: usize) -> Option<Operation> {
        self.accesses.try_remove(key)
    }

    /// Where puts and gets are under way.
    pub fn peers(&self) -> BTreeSet<usize> {
        self.accesses.iter().map(|(_, operation)| operation.peer).collect()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.accesses.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_have_one_meaning() {
        let operations = Operations::new(3, 2).unwrap();
        let all = [
            Context::Receive(0),
            Context::Receive(2),
            Context::Send(0),
            Context::Send(1),
            Context::Access(0),
        ];
        for context in all.into_iter().chain([Context::Access(MAX_OPERATIONS - 1)]) {
            assert_eq!(operations.meaning(operations.context(context)), Some(context));
        }
        let first = operations.context(Context::Receive(0));
        let past = operations.context(Context::Access(MAX_OPERATIONS - 1)) + CONTEXT_BYTES;
        for stranger in [0, 1, first - 64, first + 1, past, usize::MAX] {
            assert_eq!(operations.meaning(stranger), None);
        }
    }
}
