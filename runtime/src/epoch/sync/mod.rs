//! Synchronisation: which epochs are open, how they are opened and closed, and what completes in them (MPI-4.1 §12.5).
//! Methods of windows without element type; scopes and calls stand on them.

mod barrier;
mod carried;
mod completion;
mod coverage;
mod deferred;
mod fence;
mod group;
mod lock;
mod open;
mod pscw;
mod state;
mod table;
mod ticket;
mod whole;

pub(crate) use fence::synchronise;
pub(crate) use lock::{LockStep, UnlockStep};
pub(crate) use open::OpenEpochs;
pub(crate) use pscw::with_group;
pub(crate) use state::{AccessState, By, Coverage, HeldLock};
