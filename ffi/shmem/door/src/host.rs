//! Who starts and ends the job that symmetric memory is in: OpenSHMEM alone, or the MPI library that these functions are in, which
//! both have it.

use std::sync::OnceLock;

use transom::Job;

/// How to come to the job, and to leave it. An error is what to tell the user.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The process's job, for one more user; several threads of it may make calls at once, or one may.
    pub join: fn(multiple: bool) -> Result<Job, String>,
    /// A user less; the last one ends the job.
    pub leave: fn(Job) -> Result<(), String>,
    /// The process ends, and whoever uses the job has not left it.
    pub exit: fn(Job) -> Result<(), String>,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Says that these functions have their job by `host`, before the first of them is called.
pub fn set(host: Host) {
    HOST.get_or_init(|| host);
}

/// What there is in a library without MPI.
const ALONE: Host = Host {
    join: |_| transom::init().map_err(|error| error.message().into()),
    leave: |job| job.finalize().map_err(|error| error.message().into()),
    exit: |job| job.finalize().map_err(|error| error.message().into()),
};

pub(crate) fn get() -> &'static Host {
    HOST.get_or_init(|| ALONE)
}
