//! Requests (MPI-4.1 §3.7, §3.9): operations that are pending or complete.

pub mod calls;
pub mod general;
mod many;
pub mod slots;
pub mod some;
pub mod status;

use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, MutexGuard};
use transom::Class;
use transom::raw::{Waiter, await_any_of, waiter};

use crate::abi::{ERR_REQUEST, REQUEST_NULL, Request, Status, TABLE, Word};
use crate::failure::{Failure, Result, fail};
use crate::handlers::ErrorObject;
use crate::message::partitioned::Partitioned;
use crate::table::Table;
use general::General;

/// A pending operation; the program's buffers are filled when its result is taken.
pub type Pending = transom::Request<Outcome>;

/// Fills the program's buffers with a result, and says how it went.
pub fn filled<R: 'static>(
    request: transom::Request<R>,
    fill: impl FnOnce(R) -> Outcome + Send + 'static,
) -> Pending {
    request.map(|result| Ok(fill(result)))
}

/// Starts a persistent request once more.
pub type Start = Box<dyn Fn() -> Result<Pending> + Send + Sync>;

/// What a request is doing.
enum State {
    /// A persistent one that is not started.
    Inactive,
    /// Threads that wait for it have a [`Waiter`], and keep no other from cancelling it.
    Running(Pending),
    /// That a wait has ended, and the operation has not, is to be told.
    Interrupted(Pending, Failure),
    Ended(Outcome),
}

/// What came of it: the status for the program, or an error, which has one, too, if a message was received.
pub type Outcome = Result<Status>;

/// A request.
pub struct RequestObject {
    state: Mutex<State>,
    kind: Kind,
    /// The object whose error handler is called.
    error_object: ErrorObject,
}

/// What a request is besides something that goes on.
enum Kind {
    Plain,
    Persistent(Start),
    /// A partitioned message, which is persistent.
    Partitioned(Start, Arc<Partitioned>),
    Generalised(Box<General>),
}

static REQUESTS: Table<RequestObject> = Table::new(4, "request", ERR_REQUEST);

/// Freed while they were active: they complete by themselves.
static DETACHED: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

fn add(state: State, kind: Kind, error_object: ErrorObject) -> Result<Request> {
    let object = RequestObject { state: Mutex::new(state), kind, error_object };
    REQUESTS.insert(Arc::new(object)).map(Request)
}

/// A handle of something under way.
pub fn running(pending: Pending, error_object: ErrorObject) -> Result<Request> {
    add(State::Running(pending), Kind::Plain, error_object)
}

/// The request of whatever is complete when its call returns, without a message: one for all, which is never freed. A number that is
/// neither predefined nor a table's.
pub const COMPLETE: Request = Request(TABLE | COMPLETE_KIND << 27 | 1);
const COMPLETE_KIND: Word = 15;

/// The object of [`COMPLETE`].
static COMPLETE_OBJECT: LazyLock<Arc<RequestObject>> = LazyLock::new(|| {
    let state = Mutex::new(State::Ended(Ok(Status::EMPTY)));
    Arc::new(RequestObject { state, kind: Kind::Plain, error_object: ErrorObject::None })
});

/// A handle of something that is complete, without a message.
pub fn done() -> Result<Request> {
    Ok(COMPLETE)
}

/// A handle of something that is complete.
pub fn done_with(status: Status) -> Result<Request> {
    add(State::Ended(Ok(status)), Kind::Plain, ErrorObject::None)
}

/// A handle of a persistent request, not started.
pub fn persistent(start: Start, error_object: ErrorObject) -> Result<Request> {
    add(State::Inactive, Kind::Persistent(start), error_object)
}

/// A handle of a partitioned message, not started.
pub fn partitioned(start: Start, end: Arc<Partitioned>, error_object: ErrorObject) -> Result<Request> {
    add(State::Inactive, Kind::Partitioned(start, end), error_object)
}

/// Does something with a partitioned message, which it tells whether the request is active.
pub fn with_partitions<R>(request: Request, work: impl FnOnce(&Partitioned, bool) -> Result<R>) -> Result<R> {
    let object = get(request)?;
    match &object.kind {
        Kind::Partitioned(_, end) => {
            work(end, object.is_active()).map_err(|failure| failure.at(object.error_object))
        }
        _ => fail(ERR_REQUEST, "the request is not of a partitioned message"),
    }
}

/// Lets a pending operation complete by itself.
pub fn detach(pending: Pending) {
    let mut detached = DETACHED.lock();
    // What has ended fills its buffers, and goes.
    detached.retain(|pending| pending.test().is_none());
    detached.push(pending);
}

/// Whether a request is complete, whose outcome stays to be taken. What is no request is.
#[cfg(mpich)]
pub fn is_complete(request: Request) -> bool {
    get(request).map_or(true, |object| object.poll())
}

/// The object of a handle.
fn get(request: Request) -> Result<Arc<RequestObject>> {
    match request {
        COMPLETE => Ok(COMPLETE_OBJECT.clone()),
        request if slots::is_one(request) => slots::object(request),
        request => REQUESTS.get(request.0),
    }
}

/// That a handle leads to a request.
fn check(request: Request) -> Result<()> {
    match request {
        COMPLETE | REQUEST_NULL => Ok(()),
        request if slots::is_one(request) => slots::check(request),
        request => REQUESTS.peek(request.0).map(drop),
    }
}

/// Takes a request out of the table, unless it is in none.
fn remove(request: Request) -> Result<()> {
    match request {
        COMPLETE => Ok(()),
        request if slots::is_one(request) => slots::remove(request),
        request => REQUESTS.remove(request.0).map(drop),
    }
}

/// What a runtime's request came to: one that was taken back is no error (§3.8.4).
pub fn outcome(result: transom::Result<Outcome>) -> Outcome {
    match result {
        Ok(outcome) => outcome,
        Err(error) if error.class() == Class::Cancelled => {
            let mut status = Status::EMPTY;
            status.set_cancelled(true);
            Ok(status)
        }
        Err(error) => Err(error.into()),
    }
}

impl State {
    /// [`RequestObject::poll`].
    fn poll(&mut self) -> bool {
        // The program may have acknowledged what interrupted it.
        let pending = match self {
            Self::Running(pending) | Self::Interrupted(pending, _) => pending,
            Self::Inactive | Self::Ended(_) => return true,
        };
        match pending.test() {
            Some(Err(error)) if error.goes_on() => self.interrupt(error.into()),
            Some(result) => *self = Self::Ended(outcome(result)),
            None => {
                self.resume();
                return false;
            }
        }
        true
    }

    /// A wait for it has failed.
    #[cold]
    fn fail(&mut self, error: transom::Error) {
        match error.goes_on() {
            true => self.interrupt(error.into()),
            false => *self = Self::Ended(Err(error.into())),
        }
    }

    /// What runs is interrupted.
    #[cold]
    fn interrupt(&mut self, failure: Failure) {
        *self = match std::mem::replace(self, Self::Inactive) {
            Self::Running(pending) | Self::Interrupted(pending, _) => Self::Interrupted(pending, failure),
            other => other,
        };
    }

    /// What was interrupted runs.
    fn resume(&mut self) {
        if matches!(self, Self::Interrupted(..))
            && let Self::Interrupted(pending, _) = std::mem::replace(self, Self::Inactive)
        {
            *self = Self::Running(pending);
        }
    }
}

impl RequestObject {
    /// Whether it is that of [`COMPLETE`].
    fn is_complete_for_good(&self) -> bool {
        std::ptr::eq(self, Arc::as_ptr(&COMPLETE_OBJECT))
    }

    fn general(&self) -> Option<&General> {
        match &self.kind {
            Kind::Generalised(general) => Some(general),
            _ => None,
        }
    }

    /// What starts a persistent one.
    fn starts(&self) -> Option<&Start> {
        match &self.kind {
            Kind::Persistent(start) | Kind::Partitioned(start, _) => Some(start),
            _ => None,
        }
    }

    /// Whether it is there, and not an inactive persistent one.
    fn is_active(&self) -> bool {
        !matches!(*self.state.lock(), State::Inactive)
    }

    /// Makes progress; whether the outcome is there, which inactive requests have, too: nothing.
    fn poll(&self) -> bool {
        self.state.lock().poll()
    }

    /// What is under way, to be awaited without the lock.
    fn running(&self) -> Option<Waiter<Outcome>> {
        match &*self.state.lock() {
            State::Running(pending) => Some(waiter(pending)),
            _ => None,
        }
    }

    /// Waits for the outcome, which the state has then.
    fn ended(&self) -> MutexGuard<'_, State> {
        loop {
            let mut state = self.state.lock();
            if matches!(&*state, State::Running(pending) if pending.is_done()) {
                state.poll();
            }
            let State::Running(pending) = &*state else { return state };
            let waited = waiter(pending);
            drop(state);
            if let Err(error) = await_any_of(&[waited]) {
                self.state.lock().fail(error);
            }
            self.poll();
        }
    }

    /// The outcome, once, and whether the operation goes on; a persistent request that has ended is inactive then.
    fn take(&self) -> (Outcome, bool) {
        if self.is_complete_for_good() {
            return (Ok(Status::EMPTY), false);
        }
        let mut place = self.ended();
        let state = std::mem::replace(&mut *place, State::Inactive);
        if let State::Interrupted(pending, failure) = state {
            *place = State::Running(pending);
            return (Err(failure.at(self.error_object)), true);
        }
        drop(place);
        let outcome = match (state, self.general()) {
            (State::Ended(Ok(_)), Some(general)) => general.end(),
            (State::Ended(outcome), _) => outcome,
            // Another thread started it again meanwhile: that is an error of the program's (§11.6.2).
            (_, _) => Ok(Status::EMPTY),
        };
        (outcome.map_err(|failure| failure.at(self.error_object)), false)
    }

    /// The status, without taking it (`MPI_Request_get_status`).
    fn peek(&self) -> Outcome {
        let outcome = match &*self.state.lock() {
            State::Ended(outcome) => outcome.clone(),
            State::Interrupted(_, failure) => Err(failure.clone()),
            _ => return Ok(Status::EMPTY),
        };
        let outcome = match (outcome, self.general()) {
            (Ok(_), Some(general)) => general.query(),
            (outcome, _) => outcome,
        };
        outcome.map_err(|failure| failure.at(self.error_object))
    }

    fn start(&self) -> Result<()> {
        let Some(start) = self.starts() else {
            return fail(ERR_REQUEST, "the request is not persistent");
        };
        let mut state = self.state.lock();
        if !matches!(*state, State::Inactive) {
            return fail(ERR_REQUEST, "the request is active: complete it before it is started again");
        }
        *state = State::Running(start()?);
        Ok(())
    }

    /// Takes back what can be taken back (§3.8.4).
    fn cancel(&self) -> Result<()> {
        if let Some(general) = self.general() {
            return general.cancel();
        }
        if let State::Running(pending) | State::Interrupted(pending, _) = &*self.state.lock() {
            pending.cancel();
        }
        Ok(())
    }

    /// Lets it go on by itself.
    fn abandon(&self) {
        if self.is_complete_for_good() {
            return;
        }
        let state = std::mem::replace(&mut *self.state.lock(), State::Inactive);
        if let State::Running(pending) | State::Interrupted(pending, _) = state {
            detach(pending);
        }
    }
}
