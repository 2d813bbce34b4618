//! What can go wrong between a rank and a launcher with PMIx.

use std::path::PathBuf;

use crate::library::{ENVIRONMENT_VARIABLE, SONAME};

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why libpmix could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no such library, or it does not load.
    #[error(
        "no libpmix: {reason}. Install it on every host (Debian and Ubuntu: apt install libpmix2; Fedora and RHEL: dnf \
         install pmix; clusters: the module of the launcher), or set {ENVIRONMENT_VARIABLE} to the path of {SONAME}; under \
         Slurm `srun --mpi=pmi2` needs none"
    )]
    Missing {
        /// What the dynamic linker said.
        reason: String,
    },
    /// It loads and lacks a function.
    #[error("{} is not a usable libpmix: it has no {symbol}", path.display())]
    Symbol {
        /// The file, or name, that was opened.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable that the launcher should have set is missing or makes no sense.
    #[error(
        "{variable}={value:?} {reason} (set by the job's launcher; unset PMIX_RANK to run as a single rank)"
    )]
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value; empty when it is not set.
        value: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// libpmix cannot be used.
    #[error(transparent)]
    Library(#[from] OpenError),
    /// The process has a client already.
    #[error("another client in this process uses PMIx already")]
    AlreadyInUse,
    /// libpmix or the launcher refused a call.
    #[error("{call}: {reason} ({status}), says {library}")]
    Refused {
        /// The function of libpmix.
        call: &'static str,
        /// The name of the status.
        reason: String,
        /// The status.
        status: i32,
        /// The library's file and version.
        library: String,
    },
    /// An answer is not of the type that the standard has for it, or no sense can be made of it.
    #[error("the job's launcher gave no usable {what} ({got})")]
    Unexpected {
        /// What was asked for.
        what: String,
        /// What came.
        got: String,
    },
    /// A key that libpmix does not take.
    #[error("PMIx key {key:?}: {reason}")]
    Key {
        /// The key.
        key: String,
        /// The rule that it breaks.
        reason: &'static str,
    },
}
