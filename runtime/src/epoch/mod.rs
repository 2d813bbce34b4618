//! Epochs: when which target may be accessed. Scoped ([`Epoch`]) for Rust programs, as calls ([`Explicit`]) for programs
//! translated from MPI; both stand on [`access::Access`].

mod access;
mod explicit;
mod fence;
mod lock;
mod scoped;
mod table;

pub use explicit::Explicit;
pub use scoped::Epoch;
pub(crate) use table::Epochs;
