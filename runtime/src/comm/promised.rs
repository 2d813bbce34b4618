//! Requests that somebody else than the runtime completes.

use std::sync::Arc;

use super::Request;
use crate::Communicator;
use crate::engine::{Engine, Promise};

/// Completes a request, from any thread.
#[derive(Debug)]
pub struct Completion<T> {
    promise: Arc<Promise<T>>,
    engine: Arc<Engine>,
}

/// A request that its [`Completion`] completes (`MPI_Grequest_start`, MPI-4.1 §13.2). `operation` names it in errors.
pub fn promised<T: Send + 'static>(
    comm: &Communicator,
    operation: &'static str,
) -> (Completion<T>, Request<T>) {
    let promise = Promise::new();
    let request = Request::of(comm.member(), operation, promise.clone());
    (Completion { promise, engine: comm.channel().engine.clone() }, request)
}

impl<T> Completion<T> {
    /// The result is there (`MPI_Grequest_complete`): whoever waits for it goes on. The first one counts.
    pub fn complete(&self, result: T) {
        self.promise.keep(&self.engine, Ok(result));
        self.engine.wake();
        self.engine.rouse();
    }
}
