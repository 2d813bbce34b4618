//! Epochs: when which target may be accessed. Scoped ([`Epoch`]) for Rust programs, as calls ([`Explicit`]) for programs
//! translated from MPI; both stand on [`access::Access`].

mod access;
mod active;
mod assert;
mod calls;
mod completing;
mod covering;
mod explicit;
mod fence;
mod foreign;
mod layouts;
mod lock;
mod meeting;
mod open;
mod opened;
mod raw;
mod requested;
mod scattered;
mod scoped;
mod scopes;
mod shaped;
mod table;
mod untyped;

pub use assert::Assert;
pub use explicit::Explicit;
pub(crate) use open::OpenEpochs;
pub use scoped::Epoch;
