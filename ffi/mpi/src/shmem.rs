//! OpenSHMEM in a process that uses MPI: libsma.so, if it is there, goes by the functions of this library, whose job it uses.

use std::ffi::c_int;

use shmem_door::host::{self, Host};
use shmem_door::library::Library;
use transom::Job;

use crate::failure::Failure;
use crate::{abi, world};

/// This library.
pub static LIBRARY: Library = Library::shared(has_job, prepare);

/// What libsma.so finds. This library does not name it: of several of one name the program has the first.
#[unsafe(export_name = "transom_library_1")]
static EXPORTED: &Library = &LIBRARY;

extern "C" fn has_job() -> bool {
    world::has_job()
}

extern "C" fn prepare() {
    host::set(Host { join, leave, exit });
}

fn join(multiple: bool) -> Result<Job, String> {
    let level: c_int = if multiple { abi::THREAD_MULTIPLE } else { abi::THREAD_SINGLE };
    world::join(level).and_then(|()| world::job()).map_err(why)
}

fn leave(_job: Job) -> Result<(), String> {
    world::leave().map_err(why)
}

fn exit(_job: Job) -> Result<(), String> {
    world::end_at_exit().map_err(why)
}

fn why(failure: Failure) -> String {
    failure.message().into()
}
