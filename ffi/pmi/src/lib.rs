//! PMI-1: the wire format, and a client for it.
//!
//! PMI is how the ranks of a job find each other: each rank has a socket to its launcher, puts a few short
//! values under names, meets the others in a fence, and then gets what they put. `transom run`, Slurm's
//! `srun --mpi=pmi2`, MPICH's `mpiexec` and Intel's all speak version 1 of it.
//!
//! ```no_run
//! # fn main() -> Result<(), transom_pmi::Error> {
//! let Some(mut pmi) = transom_pmi::Client::from_environment()? else {
//!     return Ok(()); // not started by a launcher: a job of one rank
//! };
//! pmi.put(&format!("card-{}", pmi.rank()), "10.0.0.1:4711")?;
//! pmi.fence()?;
//! let right = (pmi.rank() + 1) % pmi.size();
//! let card = pmi.get(&format!("card-{right}"))?;
//! pmi.finalize()
//! # }
//! ```
//!
//! The same [`wire`] module is the launcher's half: what one side writes, the other side can read.

mod agreement;
mod client;
mod descriptor;
mod each;
mod environment;
mod error;
pub mod wire;

pub use agreement::{Agreement, Answered, Contribution};
pub use client::{Client, MAX_VALUE};
pub use descriptor::take_descriptor;
pub use each::{COMMAND as EACH, Each};
pub use environment::Environment;
pub use error::{Error, Result};
