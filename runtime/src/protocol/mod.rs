//! Protocols: state machines with no clock, thread or socket in them.
//!
//! - [`wire`]: the messages that ranks send each other.
//! - [`lock`]: the fair reader-writer lock of passive-target epochs.
//! - [`runs`]: non-contiguous accesses in a message.
//! - [`turns`]: who waits for that lock, and how they learn that it has changed.
//! - [`dissemination`]: the rounds of a barrier.
//! - [`signals`]: words that ranks of one node raise at each other instead of sending messages.
//! - [`pscw`]: which posts and completes have arrived.
//! - [`matching`]: collectives' messages waiting for whoever needs them.
//! - [`messages`]: which message meets which receive.

pub mod dissemination;
pub mod lock;
pub mod matching;
pub mod messages;
#[cfg(test)]
mod participants;
pub mod pscw;
pub mod runs;
pub mod signals;
pub mod turns;
pub mod wire;
