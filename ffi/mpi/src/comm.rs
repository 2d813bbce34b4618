//! Communicators (MPI-4.1 chapter 7).

pub mod calls;
pub mod failures;
pub mod inter;
pub mod inter_create;
pub mod name;
pub mod pending;

use std::sync::Arc;

pub use inter::Inter;
use parking_lot::{Mutex, RwLock};
use transom::Communicator;

use crate::abi::{COMM_NULL, Comm, ERR_COMM};
use crate::attributes::Attributes;
use crate::failure::Result;
use crate::group::Origin;
use crate::handlers::{Handler, HandlerSlot};
use crate::message::buffered::Slot;
use crate::table::Table;
use crate::topology::Topology;

/// A communicator, with what C programs keep at it.
#[derive(Debug)]
pub struct CommObject {
    /// The members; of an intercommunicator, those of this side.
    pub comm: Communicator,
    /// The other side of an intercommunicator.
    pub inter: Option<Arc<Inter>>,
    pub topology: Option<Topology>,
    /// For buffered sends.
    pub buffer: Slot,
    pub origin: Origin,
    pub handler: HandlerSlot,
    pub attributes: Attributes,
    name: RwLock<String>,
    pub hints: Mutex<transom::Info>,
}

pub static COMMS: Table<CommObject> = Table::new(1, "communicator", ERR_COMM);

impl CommObject {
    /// A communicator made of another, with its error handler (§7.4.2).
    pub fn of(comm: Communicator, parent: &Self) -> Self {
        Self::new(comm, parent.handler.read().clone(), parent.origin.clone())
    }

    /// A communicator.
    pub fn new(comm: Communicator, handler: Handler, origin: Origin) -> Self {
        Self {
            comm,
            origin,
            inter: None,
            topology: None,
            buffer: Slot::new(),
            handler: HandlerSlot::new(handler),
            attributes: Attributes::default(),
            name: RwLock::default(),
            hints: Mutex::default(),
        }
    }
}

impl CommObject {
    /// The same for one persistent collective; [`CommObject::number_rounds`] is to follow.
    pub fn again(&self) -> Arc<Self> {
        let mut object = Self::of(self.comm.again(), self);
        object.inter = self.inter.as_ref().map(|inter| Arc::new(inter.again()));
        object.topology = self.topology.clone();
        Arc::new(object)
    }

    /// Initialises the collective: its rounds may be started in any order with others (§6.13).
    pub fn number_rounds(&self, of: &Self) {
        self.messages().number_rounds(of.messages());
    }
}

/// A communicator that is there from the start.
pub fn predefined(comm: Communicator, name: &str) -> Arc<CommObject> {
    let object = CommObject::new(comm, Handler::initial(), None);
    *object.name.write() = name.into();
    Arc::new(object)
}

/// A handle of a new communicator, whose handler is the parent's; `MPI_COMM_NULL` of none.
pub fn handle(comm: Option<Communicator>, parent: &CommObject) -> Result<Comm> {
    match comm {
        Some(comm) => add(CommObject::of(comm, parent)),
        None => Ok(COMM_NULL),
    }
}

/// A handle of a new object.
pub fn add(object: CommObject) -> Result<Comm> {
    COMMS.insert(Arc::new(object)).map(Comm)
}
