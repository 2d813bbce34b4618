//! Epochs: when which target may be accessed. Synchronisation (`sync`), access in the open epochs (`access.rs`,
//! `requests.rs`), and two interfaces to both: scopes ([`Epoch`]) for Rust programs, and calls ([`Explicit`]) for programs
//! translated from MPI and for language bindings.

mod access;
mod assert;
mod calls;
mod requests;
mod scoped;
mod sync;
mod typed;

pub(crate) use access::Access;
pub use assert::Assert;
pub use calls::{Explicit, NotYet, Transfer, Update};
pub use scoped::Epoch;
pub(crate) use sync::{AccessState, By, Coverage, HeldLock};
