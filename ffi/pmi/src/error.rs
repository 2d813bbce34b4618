//! What can go wrong between a rank and its launcher.

use std::time::Duration;

use crate::wire::WireError;

/// Result of a PMI call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a PMI call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A variable that the launcher should have set is missing or makes no sense.
    #[error("{variable}={value:?} {reason} (set by the job's launcher; unset it to run as a single rank)")]
    Environment {
        /// Name of the variable.
        variable: &'static str,
        /// Its value; empty when it is not set.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The socket in PMI_FD already belongs to a client of this process.
    #[error("PMI_FD is already in use by another client in this process")]
    AlreadyInUse,
    /// Reading from or writing to the launcher failed.
    #[error("connection to the job's launcher: {0}")]
    Io(#[from] std::io::Error),
    /// The launcher closed the connection.
    #[error("the job's launcher closed the PMI connection while this rank waited for {0}")]
    Closed(&'static str),
    /// The launcher did not answer in time; see [`Client::set_timeout`](crate::Client::set_timeout).
    #[error("no answer from the job's launcher within {limit:?} while this rank waited for {waiting_for}")]
    Timeout {
        /// The answer that did not come.
        waiting_for: &'static str,
        /// How long the call waited.
        limit: Duration,
    },
    /// A line from the launcher, or for it, breaks the rules of the wire.
    #[error("PMI line: {0}")]
    Wire(#[from] WireError),
    /// The launcher answered, but not what was asked.
    #[error("expected {expected} from the job's launcher and got {got:?}")]
    Unexpected {
        /// The command that should have come.
        expected: &'static str,
        /// What came.
        got: String,
    },
    /// The launcher refused a request.
    #[error("the job's launcher refused {request}: rc={rc}")]
    Refused {
        /// What was asked.
        request: &'static str,
        /// The launcher's code.
        rc: String,
    },
    /// What several are told of.
    #[error(transparent)]
    Shared(std::sync::Arc<Error>),
    /// A key or a value that cannot travel.
    #[error("PMI {what} of {length} bytes: {reason}")]
    Unsendable {
        /// `"key"` or `"value"`.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The rule it breaks.
        reason: String,
    },
}
