//! Communicators that are being made (`MPI_Comm_idup`, MPI-4.1 §7.4.2): their handles are there, and lead nowhere yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{COMMS, CommObject};
use crate::abi::Comm;
use crate::failure::Result;
use crate::handlers::{Handler, HandlerSlot};
use crate::table::Reserved;

/// A communicator that is being made. Programs, mpi4py for one, set its error handler before they wait for it.
pub struct Coming {
    handle: usize,
    reserved: Option<Reserved<'static, CommObject>>,
    handler: Arc<HandlerSlot>,
}

static HANDLERS: Mutex<BTreeMap<usize, Arc<HandlerSlot>>> = Mutex::new(BTreeMap::new());

/// The error handler of a communicator that is being made.
pub fn handler(comm: Comm) -> Option<Arc<HandlerSlot>> {
    HANDLERS.lock().get(&comm.0).cloned()
}

impl Coming {
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

    /// It is made.
    pub fn complete(mut self, mut object: CommObject) {
        object.handler = HandlerSlot::new(self.handler.read().clone());
        if let Some(reserved) = self.reserved.take() {
            reserved.fill(Arc::new(object));
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        HANDLERS.lock().remove(&self.handle);
    }
}
