//! What every exported function does around its own work: checks, and error handlers.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{ERR_INTERN, ERR_OTHER, ERR_UNSUPPORTED_OPERATION, SUCCESS};
use crate::failure::{Failure, Result, fail};
use crate::handlers::{self, ErrorObject};
use crate::world;

/// When a function may be called (MPI-4.1 §11.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Between `MPI_Init` and `MPI_Finalize`.
    Initialised,
    /// At any time.
    Always,
}

/// Does the work of a function; an error goes to the handler of `error_object`. A panic, which nothing here should cause,
/// does not cross into C: it is an error, too.
#[inline(always)]
pub fn call(
    name: &'static str,
    when: When,
    error_object: ErrorObject,
    work: impl FnOnce() -> Result<()>,
) -> c_int {
    if when == When::Initialised && !world::is_running() {
        return outside(name);
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(failure)) => handlers::report(name, error_object, &failure),
        Err(_) => panicked(name, error_object),
    }
}

#[cold]
fn outside(name: &'static str) -> c_int {
    let message = "called before MPI_Init or after MPI_Finalize";
    handlers::report(name, ErrorObject::None, &Failure::new(ERR_OTHER, message))
}

#[cold]
fn panicked(name: &'static str, error_object: ErrorObject) -> c_int {
    handlers::report(name, error_object, &Failure::new(ERR_INTERN, "Transom panicked: please report this"))
}

/// The work of a function that the library does not have yet.
#[cold]
pub fn unsupported() -> Result<()> {
    fail(ERR_UNSUPPORTED_OPERATION, "Transom does not have this function")
}
