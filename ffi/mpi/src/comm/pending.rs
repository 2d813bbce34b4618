//! Pending communicators (`MPI_Comm_idup`, MPI-4.1 §7.4.2): their handles are valid, and refer to no object yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{COMMS, CommObject};
use crate::abi::{Comm, Word};
use crate::failure::Result;
use crate::handlers::{Handler, HandlerSlot};
use crate::table::Reserved;

/// A pending communicator. Programs, mpi4py for one, set its error handler before they wait for it.
pub struct PendingComm {
    handle: Word,
    reserved: Option<Reserved<'static, CommObject>>,
    handler: Arc<HandlerSlot>,
}

static HANDLERS: Mutex<BTreeMap<Word, Arc<HandlerSlot>>> = Mutex::new(BTreeMap::new());

/// The error handler of a pending communicator.
pub fn handler(comm: Comm) -> Option<Arc<HandlerSlot>> {
    HANDLERS.lock().get(&comm.0).cloned()
}

impl PendingComm {
    /// One that begins with an error handler.
    pub fn new(handler: Handler) -> Result<Self> {
        let reserved = COMMS.reserve()?;
        let (handle, handler) = (reserved.handle(), Arc::new(HandlerSlot::new(handler)));
        HANDLERS.lock().insert(handle, handler.clone());
        Ok(Self { handle, reserved: Some(reserved), handler })
    }

    /// Its handle.
    pub fn handle(&self) -> Comm {
        Comm(self.handle)
    }

    /// Completes it.
    pub fn complete(mut self, mut object: CommObject) {
        object.handler = HandlerSlot::new(self.handler.read().clone());
        if let Some(reserved) = self.reserved.take() {
            reserved.fill(Arc::new(object));
        }
    }
}

impl Drop for PendingComm {
    fn drop(&mut self) {
        HANDLERS.lock().remove(&self.handle);
    }
}
