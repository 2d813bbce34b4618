//! Generalised requests (MPI-4.1 §13.2): operations of the program's own, which it completes itself. Its functions say what came
//! of them; no lock is held while these are called.

use std::ffi::{c_int, c_void};

use parking_lot::Mutex;
use transom::raw::{Completion, generalised_request};

use super::{Kind, Outcome, REQUESTS, State, add, get};
use crate::abi::{COMM_WORLD, ERR_ARG, ERR_REQUEST, Request, SUCCESS, Status};
use crate::failure::{Failure, Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::world;

/// What the program gave, and how far the operation is.
pub struct General {
    functions: Functions,
    completion: Completion<Outcome>,
    progress: Mutex<Progress>,
}

/// The program's functions, and what they are called with.
#[derive(Clone, Copy)]
pub struct Functions {
    /// Whether they are called by Fortran's convention.
    #[cfg_attr(not(mpich), allow(dead_code, reason = "the standard's ABI has C only"))]
    pub is_fortran: bool,
    pub query: *const c_void,
    pub free: *const c_void,
    pub cancel: *const c_void,
    pub extra_state: *mut c_void,
}

// SAFETY: addresses of functions, and one that only these follow: what threads may call them is the program's to know.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

/// What functions of C's have between their state and the end.
enum Argument<'a> {
    Status(&'a mut Status),
    Complete(c_int),
    Nothing,
}

impl Functions {
    /// Calls one of them, and returns its code.
    fn call(&self, function: *const c_void, argument: Argument<'_>) -> c_int {
        type OfStatus = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
        type OfFlag = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
        type OfNothing = unsafe extern "C" fn(*mut c_void) -> c_int;
        #[cfg(mpich)]
        if self.is_fortran {
            return self.call_fortran(function, argument);
        }
        // SAFETY: the program gave the address as that of a function of this type (MPI-4.1 §13.2).
        unsafe {
            match argument {
                Argument::Status(status) => {
                    let function = std::mem::transmute::<*const c_void, OfStatus>(function);
                    function(self.extra_state, status)
                }
                Argument::Complete(complete) => {
                    let function = std::mem::transmute::<*const c_void, OfFlag>(function);
                    function(self.extra_state, complete)
                }
                Argument::Nothing => {
                    let function = std::mem::transmute::<*const c_void, OfNothing>(function);
                    function(self.extra_state)
                }
            }
        }
    }

    #[cfg(mpich)]
    fn call_fortran(&self, function: *const c_void, argument: Argument<'_>) -> c_int {
        use crate::fortran::callbacks::grequest;
        let (function, extra) = (function.addr(), self.extra_state.addr());
        // SAFETY: the program gave the address as that of such a function of Fortran's.
        unsafe {
            match argument {
                Argument::Status(status) => grequest(function, extra, Some(std::ptr::from_mut(status))),
                Argument::Complete(mut complete) => grequest(function, extra, Some(&raw mut complete)),
                Argument::Nothing => grequest::<c_int>(function, extra, None),
            }
        }
    }
}

#[derive(Default)]
struct Progress {
    complete: bool,
    /// By `MPI_Request_free`.
    freed: bool,
}

fn checked(what: &str, code: c_int) -> Result<()> {
    if code == SUCCESS {
        return Ok(());
    }
    Err(Failure::new(code, format!("the program's {what} function of a generalised request failed")))
}

impl General {
    /// The status (`MPI_Grequest_query_function`).
    pub fn query(&self) -> Outcome {
        let mut status = Status::EMPTY;
        let code = self.functions.call(self.functions.query, Argument::Status(&mut status));
        // Its error field is for codes of calls.
        checked("query", code).map(|()| Status { error: SUCCESS, ..status })
    }

    /// The operation is over for the program (`MPI_Grequest_free_function`).
    fn release(&self) -> Result<()> {
        checked("free", self.functions.call(self.functions.free, Argument::Nothing))
    }

    /// What a call returns that takes the request: of the two functions' errors the last.
    pub fn end(&self) -> Outcome {
        let status = self.query();
        self.release().and(status)
    }

    /// `MPI_Cancel` asks the program (`MPI_Grequest_cancel_function`).
    pub fn cancel(&self) -> Result<()> {
        let complete = flag(self.progress.lock().complete);
        checked("cancel", self.functions.call(self.functions.cancel, Argument::Complete(complete)))
    }

    /// `MPI_Request_free`: the handle stays for `MPI_Grequest_complete`, if that comes later.
    pub fn abandon(&self, request: Request) -> Result<()> {
        let mut progress = self.progress.lock();
        progress.freed = true;
        let complete = progress.complete;
        drop(progress);
        if complete { self.forget(request) } else { Ok(()) }
    }

    fn complete(&self, request: Request) -> Result<()> {
        let mut progress = self.progress.lock();
        if progress.complete {
            return fail(ERR_REQUEST, "the generalised request is complete already");
        }
        progress.complete = true;
        let freed = progress.freed;
        drop(progress);
        self.completion.complete(Ok(Status::EMPTY));
        if freed { self.forget(request) } else { Ok(()) }
    }

    fn forget(&self, request: Request) -> Result<()> {
        REQUESTS.remove(request.0)?;
        self.release()
    }
}

/// `MPI_Grequest_start`.
pub fn grequest_start(
    query: *const c_void,
    free: *const c_void,
    cancel: *const c_void,
    extra_state: *mut c_void,
    request: Pointer<Request>,
) -> Result<()> {
    begin(Functions { is_fortran: false, query, free, cancel, extra_state }, request)
}

/// A generalised request with these functions.
pub fn begin(functions: Functions, request: Pointer<Request>) -> Result<()> {
    request.check()?;
    let Functions { query, free, cancel, .. } = functions;
    if [query, free, cancel].iter().any(|function| function.is_null()) {
        return fail(ERR_ARG, "a function of a generalised request is a null pointer");
    }
    let (completion, pending) = generalised_request(&world::comm(COMM_WORLD)?.comm, "a generalised request");
    let general = General { functions, completion, progress: Mutex::default() };
    request.set(add(State::Running(pending), Kind::Generalised(Box::new(general)), ErrorObject::None)?)
}

/// `MPI_Grequest_complete`.
pub fn grequest_complete(request: Request) -> Result<()> {
    match get(request)?.general() {
        Some(general) => general.complete(request),
        None => fail(ERR_REQUEST, "this is no generalised request"),
    }
}
