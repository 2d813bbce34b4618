//! Generalised requests (MPI-4.1 §13.2): operations of the program's own, which it completes itself. Its functions say what came
//! of them; no lock is held while these are called.

use std::ffi::{c_int, c_void};

use parking_lot::Mutex;
use transom::raw::{Completion, generalised_request};

use super::{Outcome, REQUESTS, RequestObject, State, get};
use crate::abi::{COMM_WORLD, ERR_ARG, ERR_REQUEST, Request, SUCCESS, Status};
use crate::failure::{Failure, Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::world;

/// What the program gave, and how far the operation is.
pub struct General {
    /// Addresses of its functions, and what they are called with.
    query: usize,
    free: usize,
    cancel: usize,
    extra_state: usize,
    completion: Completion<Outcome>,
    progress: Mutex<Progress>,
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
        type Function = unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int;
        let mut status = Status::EMPTY;
        // SAFETY: the program gave the address as that of such a function, which fills in the status.
        let code = unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.query);
            function(self.extra_state as *mut c_void, &raw mut status)
        };
        // Its error field is for codes of calls.
        checked("query", code).map(|()| Status { error: SUCCESS, ..status })
    }

    /// The operation is over for the program (`MPI_Grequest_free_function`).
    fn release(&self) -> Result<()> {
        type Function = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the program gave the address as that of such a function.
        let code = unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.free);
            function(self.extra_state as *mut c_void)
        };
        checked("free", code)
    }

    /// What a call returns that takes the request: of the two functions' errors the last.
    pub fn end(&self) -> Outcome {
        let status = self.query();
        self.release().and(status)
    }

    /// `MPI_Cancel` asks the program (`MPI_Grequest_cancel_function`).
    pub fn cancel(&self) -> Result<()> {
        type Function = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
        let complete = flag(self.progress.lock().complete);
        // SAFETY: the program gave the address as that of such a function.
        let code = unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.cancel);
            function(self.extra_state as *mut c_void, complete)
        };
        checked("cancel", code)
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
    request.check()?;
    if [query, free, cancel].iter().any(|function| function.is_null()) {
        return fail(ERR_ARG, "a function of a generalised request is a null pointer");
    }
    let (completion, pending) = generalised_request(&world::comm(COMM_WORLD)?.comm, "a generalised request");
    let general = General {
        query: query as usize,
        free: free as usize,
        cancel: cancel as usize,
        extra_state: extra_state as usize,
        completion,
        progress: Mutex::default(),
    };
    let mut object = RequestObject::new(State::Running(pending.into()), None, ErrorObject::None);
    object.general = Some(general);
    request.set(object.handle()?)
}

/// `MPI_Grequest_complete`.
pub fn grequest_complete(request: Request) -> Result<()> {
    match &get(request)?.general {
        Some(general) => general.complete(request),
        None => fail(ERR_REQUEST, "this is no generalised request"),
    }
}
