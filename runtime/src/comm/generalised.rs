//! Generalised requests: those that the program completes (MPI-4.1 §13.2).

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
pub fn generalised_request<T: Send + 'static>(
    comm: &Communicator,
    operation: &'static str,
) -> (Completion<T>, Request<T>) {
    let promise = Promise::new();
    let request = Request::of(comm.member(), operation, promise.clone());
    (Completion { promise, engine: comm.channel().engine.clone() }, request)
}

impl<T> Completion<T> {
    /// Completes the request (`MPI_Grequest_complete`). The first result counts.
    pub fn complete(&self, result: T) {
        self.promise.complete(&self.engine, Ok(result));
        self.engine.wake();
        self.engine.wake_sleepers();
    }
}
