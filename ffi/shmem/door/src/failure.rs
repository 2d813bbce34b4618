//! Errors: a message, and the end of the job.

use std::ffi::c_int;
use std::time::Duration;

use transom::{Class, Error};

use crate::end;
use crate::world::{self, World};

/// How long a PE that finds another gone leaves it to the launcher to end the job, which knows why.
const PATIENCE: Duration = Duration::from_millis(500);

/// Ends the job because of an error of a call.
#[cold]
pub fn end_by(call: &str, error: &Error) -> ! {
    if error.class() == Class::Peer {
        std::thread::sleep(PATIENCE);
    }
    end_because(call, error.message())
}

/// Ends the job, and says why.
#[cold]
pub fn end_because(call: &str, why: &str) -> ! {
    eprintln!("transom: {}: {call}: {why}", who());
    end::end_job(1)
}

/// Ends the job unless something went well.
#[inline(always)]
pub fn or_end<R>(call: &'static str, result: transom::Result<R>) -> R {
    match result {
        Ok(value) => value,
        Err(error) => end_by(call, &error),
    }
}

/// An argument that must not be negative.
pub fn unsigned(call: &'static str, name: &str, value: c_int) -> usize {
    match usize::try_from(value) {
        Ok(value) => value,
        Err(_) => end_because(call, &format!("{name} is {value}")),
    }
}

fn who() -> String {
    world::peek().map_or("outside shmem_init and shmem_finalize".into(), |World { shmem, .. }| {
        format!("PE {}", shmem.my_pe())
    })
}
