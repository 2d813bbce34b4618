//! A client of PMIx, by libpmix opened at run time.
//!
//! PMIx is how the ranks of a job find each other under `srun --mpi=pmix`, PRRTE's `prterun` and Open MPI's `mpirun`: each
//! puts short values under names, meets the others in a fence, and then gets what they put. Its wire format is libpmix's
//! own affair and differs between releases, so this crate calls the library, whose interface is a standard
//! (PMIx Standard 4.1). A program that uses the crate does not link to libpmix, needs nothing of it to be built, and starts
//! where there is none.
//!
//! ```no_run
//! # fn main() -> Result<(), transom_pmix::Error> {
//! let Some(mut pmix) = transom_pmix::Client::from_environment()? else {
//!     return Ok(()); // not started by a launcher with PMIx
//! };
//! pmix.put("card", b"10.0.0.1:4711")?;
//! pmix.fence(true)?;
//! let right = (pmix.rank() + 1) % pmix.size();
//! let card = pmix.get(right, "card")?;
//! pmix.finalize()
//! # }
//! ```

mod bindings;
mod client;
mod environment;
mod error;
mod library;

pub use client::Client;
pub use environment::Environment;
pub use error::{Error, OpenError, Result};
pub use library::{ENVIRONMENT_VARIABLE, Library, SONAME};
