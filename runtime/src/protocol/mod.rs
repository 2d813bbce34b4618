//! Protocols: state machines with no clock, thread or socket in them.
//!
//! - [`wire`]: the messages that ranks send each other.
//! - [`lock`]: the fair reader-writer lock of passive-target epochs.
//! - [`runs`]: non-contiguous accesses in a message.
//! - [`gathered`]: small operations in the message that asks for their target's lock.
//! - [`lock_queue`]: the waiters of that lock, and their wake-up.
//! - [`dissemination`]: the rounds of a barrier.
//! - [`signals`]: counters and flags in shared memory, by which ranks of one node signal each other without messages.
//! - [`pscw`]: the posts and completes that have arrived.
//! - [`matching`]: collectives' messages that arrive before they are needed.
//! - [`messages`]: matching of messages and receives.

pub mod dissemination;
pub mod gathered;
pub mod lock;
pub mod lock_queue;
pub mod matching;
pub mod messages;
#[cfg(test)]
mod participants;
pub mod pscw;
pub mod runs;
pub mod signals;
pub mod wire;
