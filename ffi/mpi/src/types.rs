//! Datatypes (MPI-4.1 chapter 5).

pub mod arrays;
pub mod construct;
pub mod contents;
pub mod pack;
mod predefined;
pub mod query;

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
pub use predefined::{basic, is_word, plain_size, size_or_zero};

use crate::abi::{Datatype, ERR_TYPE};
use crate::attributes::Attributes;
use crate::failure::{Result, fail};
use crate::table::Table;

/// A datatype, with what C programs keep at it.
#[derive(Debug)]
pub struct TypeObject {
    pub datatype: transom::Datatype,
    /// How the program made it; nothing of predefined ones.
    envelope: Option<Envelope>,
    pub attributes: Attributes,
    name: RwLock<String>,
    committed: AtomicBool,
}

/// The call that made a datatype, with its arguments (§5.1.13).
#[derive(Debug, Default)]
pub struct Envelope {
    combiner: c_int,
    ints: Vec<i64>,
    addresses: Vec<i64>,
    counts: Vec<i64>,
    types: Vec<TypeRef>,
}

/// A datatype that another is made of.
#[derive(Debug, Clone)]
pub enum TypeRef {
    Predefined(Datatype),
    Derived(Arc<TypeObject>),
}

static TYPES: Table<TypeObject> = Table::new(8, "datatype", ERR_TYPE);

impl TypeObject {
    fn new(datatype: transom::Datatype, envelope: Option<Envelope>, name: &str) -> Self {
        Self {
            datatype,
            committed: AtomicBool::new(envelope.is_none()),
            envelope,
            attributes: Attributes::default(),
            name: RwLock::new(name.into()),
        }
    }
}

/// The datatype of a handle.
pub fn get(handle: Datatype) -> Result<Arc<TypeObject>> {
    match predefined::object(handle) {
        Some(object) => Ok(object.clone()),
        None => TYPES.get(handle.0),
    }
}

/// The datatype of a handle, if it may be used to communicate (§5.1.9).
pub fn committed(handle: Datatype) -> Result<Arc<TypeObject>> {
    let object = get(handle)?;
    if !object.committed.load(Ordering::Relaxed) {
        return fail(ERR_TYPE, "the datatype is not committed: call MPI_Type_commit first");
    }
    Ok(object)
}

/// The datatype of a handle, as a part of another.
fn part(handle: Datatype) -> Result<TypeRef> {
    match predefined::object(handle) {
        Some(_) => Ok(TypeRef::Predefined(handle)),
        None => TYPES.get(handle.0).map(TypeRef::Derived),
    }
}

fn add(datatype: transom::Datatype, envelope: Envelope) -> Result<Datatype> {
    TYPES.insert(Arc::new(TypeObject::new(datatype, Some(envelope), ""))).map(Datatype)
}
