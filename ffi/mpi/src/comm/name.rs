//! Names and hints of communicators (MPI-4.1 §7.4.4, §7.8).

use std::ffi::c_int;

use crate::abi::{self, COMM_NULL, Comm, Info};
use crate::failure::Result;
use crate::info;
use crate::pointer::{Pointer, Text};
use crate::world::comm as get;

/// `MPI_Comm_set_name`.
pub fn comm_set_name(comm: Comm, name: Text) -> Result<()> {
    *get(comm)?.name.write() = name.get()?;
    Ok(())
}

/// `MPI_Comm_get_name`.
pub fn comm_get_name(comm: Comm, name: Text, len: Pointer<c_int>) -> Result<()> {
    let text = if comm == COMM_NULL { "MPI_COMM_NULL".into() } else { get(comm)?.name.read().clone() };
    name.set_with_length(&text, abi::MAX_OBJECT_NAME, len)
}

/// The hints of §7.4.4. Others are ignored, and what is ignored is not given back.
const HINTS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// The hints for a communicator that an info object has.
pub fn hints(info: Info) -> Result<transom::Info> {
    let (all, mut known) = (info::hints(info)?, transom::Info::default());
    all.iter().filter(|(key, _)| HINTS.contains(key)).for_each(|(key, value)| known.set(key, value));
    Ok(known)
}

/// `MPI_Comm_set_info`.
pub fn comm_set_info(comm: Comm, info: Info) -> Result<()> {
    let hints = hints(info)?;
    let object = get(comm)?;
    let mut known = object.hints.lock();
    hints.iter().for_each(|(key, value)| known.set(key, value));
    Ok(())
}

/// `MPI_Comm_get_info`.
pub fn comm_get_info(comm: Comm, info: Pointer<Info>) -> Result<()> {
    let hints = get(comm)?.hints.lock().clone();
    info.set(info::of_hints(&hints)?)
}
