//! What windows say of themselves (MPI-4.1 §12.2.3, §12.2.6, §12.2.7).

use std::ffi::{c_int, c_void};

use transom::{Class, Flavour, NULL_RANK};

use super::get;
use crate::abi::{self, Aint, Group, Info, WIN_NULL, Win};
use crate::environment::store_pointer;
use crate::failure::Result;
use crate::pointer::{Counts, Pointer, Text};
use crate::win::scope::target;
use crate::{group, info};

/// `MPI_Win_shared_query`: nothing of memory that this rank cannot load from and store to (§12.2.3).
pub fn win_shared_query(
    win: Win,
    rank: c_int,
    size: Pointer<Aint>,
    unit: Counts,
    base: *mut c_void,
) -> Result<()> {
    let object = get(win)?;
    let window = object.window();
    // The null rank asks for the first rank that has memory.
    let mut ranks = 0..window.communicator().size();
    let whose = match target(rank)? {
        NULL_RANK => ranks.find(|rank| window.len_at(*rank) > Some(0)).unwrap_or(0),
        rank => rank,
    };
    let own = whose == window.communicator().rank() && window.flavour() == Flavour::Create;
    let part = if own { Ok(window.local()) } else { window.shared(whose) };
    let (bytes, address) = match part {
        Ok(part) if part.is_empty() => (0, 0),
        Ok(part) => (part.len(), part.address()),
        Err(error) if error.class() == Class::RmaShared => (0, 0),
        Err(error) if error.class() == Class::RmaFlavour && window.flavour() == Flavour::Create => (0, 0),
        Err(error) => return Err(error.into()),
    };
    size.set(bytes as Aint)?;
    unit.set(window.displacement_unit_at(whose).unwrap_or(1) as i64)?;
    store_pointer(base, address as *mut c_void)
}

/// `MPI_Win_get_group`.
pub fn win_get_group(win: Win, members: Pointer<Group>) -> Result<()> {
    members.set(group::handle(get(win)?.window().communicator().group(), None)?)
}

/// `MPI_Win_set_name`.
pub fn win_set_name(win: Win, name: Text) -> Result<()> {
    get(win)?.window().set_name(name.get()?);
    Ok(())
}

/// `MPI_Win_get_name`.
pub fn win_get_name(win: Win, name: Text, len: Pointer<c_int>) -> Result<()> {
    let text = if win == WIN_NULL { "MPI_WIN_NULL".into() } else { get(win)?.window().name() };
    name.set_with_length(&text, abi::MAX_OBJECT_NAME, len)
}

/// `MPI_Win_set_info`.
pub fn win_set_info(win: Win, info: Info) -> Result<()> {
    Ok(get(win)?.window().set_info(&info::hints(info)?)?)
}

/// `MPI_Win_get_info`.
pub fn win_get_info(win: Win, info: Pointer<Info>) -> Result<()> {
    info.set(info::of_hints(&get(win)?.window().info())?)
}
