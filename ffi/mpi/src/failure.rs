//! What a call returns if it fails: the standard's error class, and a message.

use std::ffi::c_int;

use transom::Class;

use crate::abi::{self, Status};
use crate::handlers::{ErrorObject, Handler};
use crate::world;

/// An error on its way to an error handler. One word, so that the way without errors stays short.
#[derive(Debug, Clone)]
pub struct Failure(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    code: c_int,
    message: String,
    error_object: Option<ErrorObject>,
    handler: Option<Handler>,
    status: Option<Status>,
    /// What the handler is told, if not what the call returns.
    told: Option<c_int>,
}

/// The result of what stands behind an exported function.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// An error of a class or code of the program's.
    #[cold]
    pub fn new(code: c_int, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            code,
            message: message.into(),
            error_object: None,
            handler: None,
            status: None,
            told: None,
        }))
    }

    /// The same, for the handler of another object than the call's first one.
    #[must_use]
    pub fn at(mut self, error_object: ErrorObject) -> Self {
        self.0.error_object = Some(error_object);
        self
    }

    /// The same, for the handler that an argument of the call names.
    #[must_use]
    pub fn to(mut self, handler: Handler) -> Self {
        self.0.handler = Some(handler);
        self
    }

    /// The same, of a message of which this is known.
    #[must_use]
    pub fn of_message(mut self, status: Status) -> Self {
        self.0.status = Some(status);
        self
    }

    /// The same, of one of several requests, whose code the handler is told (§9.3.1).
    #[must_use]
    pub fn told(mut self, code: c_int) -> Self {
        self.0.told = Some(code);
        self
    }

    /// The code that an error handler is told.
    pub fn code_for_handler(&self) -> c_int {
        self.0.told.unwrap_or(self.0.code)
    }

    /// The error code.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The status for the program: what is known of the message, or an empty one.
    pub fn status(&self) -> Status {
        self.0.status.unwrap_or(Status::EMPTY)
    }

    /// The handler to be called, if not an object's.
    pub fn handler(&self) -> Option<&Handler> {
        self.0.handler.as_ref()
    }

    /// The object whose handler is to be called, if not the first argument's.
    pub fn error_object(&self) -> Option<ErrorObject> {
        self.0.error_object
    }
}

/// An error of `code`.
#[cold]
pub fn fail<T>(code: c_int, message: impl Into<String>) -> Result<T> {
    Err(Failure::new(code, message))
}

impl From<transom::Error> for Failure {
    #[cold]
    fn from(error: transom::Error) -> Self {
        let code = if error.goes_on() { abi::MPIX_ERR_PROC_FAILED_PENDING } else { class(error.class()) };
        Self::new(code, error.to_string())
    }
}

/// The standard's class.
pub fn class(class: Class) -> c_int {
    match class {
        Class::Rank => abi::ERR_RANK,
        Class::Group => abi::ERR_GROUP,
        Class::Displacement => abi::ERR_DISP,
        Class::RmaRange => abi::ERR_RMA_RANGE,
        Class::RmaSync => abi::ERR_RMA_SYNC,
        Class::Size => abi::ERR_SIZE,
        Class::NoMemory => abi::ERR_NO_MEM,
        Class::Type => abi::ERR_TYPE,
        Class::Count => abi::ERR_COUNT,
        Class::Window => abi::ERR_WIN,
        Class::Base => abi::ERR_BASE,
        Class::LockType => abi::ERR_LOCKTYPE,
        Class::Assert => abi::ERR_ASSERT,
        Class::RmaConflict => abi::ERR_RMA_CONFLICT,
        Class::RmaAttach => abi::ERR_RMA_ATTACH,
        Class::RmaShared => abi::ERR_RMA_SHARED,
        Class::RmaFlavour => abi::ERR_RMA_FLAVOR,
        Class::Op => abi::ERR_OP,
        Class::Info => abi::ERR_INFO_VALUE,
        Class::Argument => abi::ERR_ARG,
        Class::Tag => abi::ERR_TAG,
        Class::Truncate => abi::ERR_TRUNCATE,
        Class::Revoked => abi::MPIX_ERR_REVOKED,
        Class::Peer if world::outlives_ranks() => abi::MPIX_ERR_PROC_FAILED,
        Class::Peer => abi::ERR_PROC_ABORTED,
        _ => abi::ERR_OTHER,
    }
}
