//! Functions that MPI-3 removed, by those that came in their place (MPI-4.1 §17.1).

use std::ffi::c_void;

use crate::abi::{Aint, Comm, Datatype, Errhandler, LB, UB};
use crate::buffer;
use crate::failure::Result;
use crate::handlers::calls as handlers;
use crate::pointer::{Counts, Pointer};
use crate::types::{self, construct};

/// `MPI_Address`.
pub fn address(location: *const c_void, address: Pointer<Aint>) -> Result<()> {
    crate::environment::get_address(location, address)
}

/// `MPI_Errhandler_create`.
pub fn errhandler_create(function: *const c_void, handler: Pointer<Errhandler>) -> Result<()> {
    handlers::comm_create_errhandler(function, handler)
}

/// `MPI_Errhandler_get`.
pub fn errhandler_get(comm: Comm, handler: Pointer<Errhandler>) -> Result<()> {
    handlers::comm_get_errhandler(comm, handler)
}

/// `MPI_Errhandler_set`.
pub fn errhandler_set(comm: Comm, handler: Errhandler) -> Result<()> {
    handlers::comm_set_errhandler(comm, handler)
}

/// `MPI_Type_extent`.
pub fn type_extent(ty: Datatype, extent: Pointer<Aint>) -> Result<()> {
    extent.set(types::get(ty)?.datatype.extent() as Aint)
}

/// `MPI_Type_lb`.
pub fn type_lb(ty: Datatype, bound: Pointer<Aint>) -> Result<()> {
    bound.set(types::get(ty)?.datatype.lower_bound() as Aint)
}

/// `MPI_Type_ub`.
pub fn type_ub(ty: Datatype, bound: Pointer<Aint>) -> Result<()> {
    let datatype = &types::get(ty)?.datatype;
    bound.set((datatype.lower_bound() + datatype.extent()) as Aint)
}

/// `MPI_Type_hindexed`.
pub fn type_hindexed(
    n: i64,
    lengths: Counts,
    displacements: Pointer<Aint>,
    oldtype: Datatype,
    new: Pointer<Datatype>,
) -> Result<()> {
    construct::type_create_hindexed(n, lengths, displacements.into(), oldtype, new)
}

/// `MPI_Type_hvector`.
pub fn type_hvector(
    n: i64,
    length: i64,
    stride: Aint,
    oldtype: Datatype,
    new: Pointer<Datatype>,
) -> Result<()> {
    construct::type_create_hvector(n, length, stride as i64, oldtype, new)
}

/// `MPI_Type_struct`. Where `MPI_LB` or `MPI_UB` is among the datatypes, its displacement is that bound of the new one.
pub fn type_struct(
    n: i64,
    lengths: Counts,
    displacements: Pointer<Aint>,
    types: Pointer<Datatype>,
    new: Pointer<Datatype>,
) -> Result<()> {
    let all = types.list(buffer::count(n)?)?;
    construct::type_create_struct(n, lengths, displacements.into(), types, new)?;
    let bound = |marker| -> Result<Option<i64>> {
        let place = all.iter().position(|ty| *ty == marker);
        place.map(|place| displacements.at(place).map(|at| at as i64)).transpose()
    };
    let (lower, upper) = (bound(LB)?, bound(UB)?);
    if lower.is_none() && upper.is_none() {
        return Ok(());
    }
    let made = new.get()?;
    let object = types::get(made)?;
    let lower = lower.unwrap_or(object.datatype.lower_bound());
    let upper = upper.unwrap_or(object.datatype.lower_bound() + object.datatype.extent());
    construct::type_create_resized(made, lower, upper - lower, new)?;
    construct::type_free(Pointer::to(&mut { made }))
}
