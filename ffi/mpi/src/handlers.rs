//! Error handlers (MPI-4.1 §9.3): what is done about an error, by the object it is for.

pub mod calls;

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use crate::abi::{
    self, Comm, ERR_ERRHANDLER, ERRORS_ABORT, ERRORS_ARE_FATAL, ERRORS_RETURN, Errhandler, Session, Win, Word,
};
use crate::failure::{Failure, Result, fail};
use crate::table::Table;
use crate::{errors, session, world};

/// The object whose error handler is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorObject {
    /// Of no object (§9.3).
    None,
    /// Of a communicator.
    Comm(Comm),
    /// Of a window.
    Win(Win),
    /// Of a file: the default is to return.
    File,
    /// Of a session.
    Session(Session),
    /// Of the tools' interface, which has none.
    Tool,
}

/// What a user's function is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Comm,
    Win,
    File,
    Session,
}

/// A handler of the program's.
#[derive(Debug)]
pub struct UserHandler {
    of: Of,
    function: usize,
    /// The handle by which the program knows it, and how often it was given out. Null when all were freed.
    handle: Mutex<(Word, usize)>,
}

static HANDLERS: Table<UserHandler> = Table::new(7, "error handler", ERR_ERRHANDLER);

/// What is done about errors of one object.
#[derive(Debug, Clone, Default)]
pub enum Handler {
    /// The job ends (`MPI_ERRORS_ARE_FATAL`).
    #[default]
    Fatal,
    /// The processes of the communicator end (`MPI_ERRORS_ABORT`): here, the job.
    Abort,
    /// The call returns its code (`MPI_ERRORS_RETURN`).
    Return,
    /// A function of the program's is called.
    User(Arc<UserHandler>),
}

/// What names the initial error handler, and how it is called where nothing does.
pub const INITIAL: (&str, &str) = ("TRANSOM_INITIAL_ERRHANDLER", "mpi_errors_are_fatal");

impl Handler {
    /// The handler that is there until the program sets one, for the communicators that are there from the start, and for errors of
    /// no object (MPI-4.1 §9.3, §11.5). The runtime has refused other names.
    pub fn initial() -> Self {
        match std::env::var(INITIAL.0).as_deref().map(str::trim) {
            Ok("mpi_errors_return") => Self::Return,
            Ok("mpi_errors_abort") => Self::Abort,
            _ => Self::Fatal,
        }
    }

    /// The handler that a handle names, for objects of a kind.
    pub fn of(handle: Errhandler, of: Of) -> Result<Self> {
        match handle {
            ERRORS_ARE_FATAL => Ok(Self::Fatal),
            ERRORS_ABORT => Ok(Self::Abort),
            ERRORS_RETURN => Ok(Self::Return),
            Errhandler(handle) => {
                let user = HANDLERS.get(handle)?;
                if user.of != of {
                    return fail(ERR_ERRHANDLER, "this error handler is for objects of another kind");
                }
                Ok(Self::User(user))
            }
        }
    }

    /// A handle of it, which the caller frees.
    pub fn handle(&self) -> Result<Errhandler> {
        Ok(match self {
            Self::Fatal => ERRORS_ARE_FATAL,
            Self::Abort => ERRORS_ABORT,
            Self::Return => ERRORS_RETURN,
            Self::User(user) => {
                let mut handle = user.handle.lock();
                if handle.1 == 0 {
                    handle.0 = HANDLERS.insert(user.clone())?;
                }
                handle.1 += 1;
                Errhandler(handle.0)
            }
        })
    }
}

/// The handler in an object.
pub type HandlerSlot = RwLock<Handler>;

thread_local! {
    /// The last error of this thread: `MPI_Error_string` tells what it was about.
    static LAST: RefCell<(c_int, String)> = const { RefCell::new((0, String::new())) };
    /// The program's handlers that this thread is in, by address.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// What this thread's last error was about, if it was of this code.
pub fn last_message(code: c_int) -> Option<String> {
    LAST.with_borrow(|(last, message)| (*last == code && code != 0).then(|| message.clone()))
}

/// Invokes the error handler of a call's object, and returns what the call returns.
#[cold]
pub fn report(name: &'static str, error_object: ErrorObject, failure: &Failure) -> c_int {
    let message = format!("{name}: {}", failure.message());
    let error_object = failure.error_object().unwrap_or(error_object);
    raise_to(
        failure.handler().cloned().unwrap_or_else(|| current(error_object)),
        error_object,
        (failure.code(), failure.code_for_handler()),
        message,
    )
}

/// Invokes the error handler of an object.
#[cold]
pub fn raise(error_object: ErrorObject, code: c_int, message: String) -> c_int {
    raise_to(current(error_object), error_object, (code, code), message)
}

/// The handler of an object.
fn current(error_object: ErrorObject) -> Handler {
    match error_object {
        ErrorObject::File | ErrorObject::Tool => Handler::Return,
        ErrorObject::Comm(comm) => world::comm_handler(comm),
        ErrorObject::Win(win) => world::win_handler(win),
        ErrorObject::Session(session) => session::handler(session),
        ErrorObject::None => world::default_handler(),
    }
}

#[cold]
fn raise_to(
    handler: Handler,
    error_object: ErrorObject,
    (code, told): (c_int, c_int),
    message: String,
) -> c_int {
    match handler {
        Handler::Return => {}
        Handler::Fatal | Handler::Abort => {
            eprintln!("transom: {}: {message} [{}]", world::who(), errors::name(told));
            world::abort(told);
        }
        Handler::User(ref user) => {
            LAST.set((told, message.clone()));
            let this = Arc::as_ptr(user).addr();
            // A call that fails in its own handler returns its code: that handler would call it for ever.
            if !INSIDE.with_borrow(|inside| inside.contains(&this)) {
                INSIDE.with_borrow_mut(|inside| inside.push(this));
                user.run(error_object, told);
                INSIDE.with_borrow_mut(|inside| inside.pop());
            }
            // What the handler's own calls failed for is later.
            if last_message(told).as_ref() != Some(&message) {
                return code;
            }
        }
    }
    LAST.set((code, message));
    code
}

impl UserHandler {
    fn create(of: Of, function: *const c_void) -> Result<Errhandler> {
        if function.is_null() {
            return fail(abi::ERR_ARG, "the function is a null pointer");
        }
        let user = Arc::new(Self { of, function: function as usize, handle: Mutex::default() });
        Handler::User(user).handle()
    }

    /// Calls the function with a handle of the object and the code (§9.3.1).
    fn run(&self, error_object: ErrorObject, code: c_int) {
        type Function = unsafe extern "C" fn(*mut Word, *mut c_int, ...);
        let mut object = match error_object {
            ErrorObject::Win(win) => win.0,
            ErrorObject::Comm(comm) => comm.0,
            ErrorObject::Session(session) => session.0,
            ErrorObject::None | ErrorObject::File | ErrorObject::Tool => abi::COMM_SELF.0,
        };
        let mut passed = code;
        // SAFETY: the program gave the address as that of an MPI_Comm_errhandler_function or its like, which takes
        // a handle's address, a code's, and whatever else: handles are words.
        unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.function);
            function(&raw mut object, &raw mut passed);
        }
    }

    /// One handle less.
    fn release(handle: Errhandler) -> Result<()> {
        if matches!(handle, ERRORS_ARE_FATAL | ERRORS_ABORT | ERRORS_RETURN) {
            return Ok(());
        }
        let user = HANDLERS.get(handle.0)?;
        let mut count = user.handle.lock();
        count.1 -= 1;
        if count.1 == 0 {
            HANDLERS.remove(handle.0)?;
        }
        Ok(())
    }
}

/// `MPI_Comm_call_errhandler` and its like.
pub fn called(error_object: ErrorObject, code: c_int) -> Result<()> {
    raise(error_object, code, format!("the program raised {}", errors::name(code)));
    Ok(())
}
