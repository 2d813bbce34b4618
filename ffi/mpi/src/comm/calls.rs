//! The calls for communicators (MPI-4.1 §7.4, §7.8).

use std::ffi::c_int;
use std::sync::Arc;

use transom::raw::idup_sides;
use transom::{ANY_SOURCE, ANY_TAG, Communicator, Comparison};

use super::name::hints;
use super::pending::PendingComm;
use super::{COMMS, CommObject, Inter, add, handle, inter_create};
use crate::abi::{
    COMM_NULL, COMM_SELF, COMM_TYPE_HW_GUIDED, COMM_TYPE_HW_UNGUIDED, COMM_TYPE_RESOURCE_GUIDED,
    COMM_TYPE_SHARED, COMM_WORLD, Comm, ERR_ARG, ERR_COMM, ERR_OTHER, Errhandler, Group, Info, Request,
    Status, UNDEFINED,
};
use crate::failure::{Result, fail};
use crate::handlers::{ErrorObject, Handler, Of};
use crate::pointer::{Pointer, Text};
use crate::world::comm as get;
use crate::{abi, group, hardware, info, request, world};

fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// `MPI_Comm_rank`.
pub fn comm_rank(comm: Comm, rank: Pointer<c_int>) -> Result<()> {
    rank.set(int(get(comm)?.comm.rank()))
}

/// `MPI_Comm_size`.
pub fn comm_size(comm: Comm, size: Pointer<c_int>) -> Result<()> {
    size.set(int(get(comm)?.comm.size()))
}

/// `MPI_Comm_group`.
pub fn comm_group(comm: Comm, members: Pointer<Group>) -> Result<()> {
    let object = get(comm)?;
    members.set(group::handle(object.comm.group(), object.origin.clone())?)
}

/// `MPI_Comm_compare`.
pub fn comm_compare(one: Comm, other: Comm, result: Pointer<c_int>) -> Result<()> {
    let (one, other) = (get(one)?, get(other)?);
    let here = one.comm.compare(&other.comm);
    let compared = match (&one.inter, &other.inter) {
        (None, None) => here,
        (Some(one), Some(other)) => one.compare(other, here),
        _ => Comparison::Unequal,
    };
    result.set(group::comparison(compared))
}

/// `MPI_Comm_dup`.
pub fn comm_dup(comm: Comm, new: Pointer<Comm>) -> Result<()> {
    let old = get(comm)?;
    let hints = old.hints.lock().clone();
    dup((comm, &old), hints, new)
}

/// `MPI_Comm_dup_with_info`.
pub fn comm_dup_with_info(comm: Comm, info: Info, new: Pointer<Comm>) -> Result<()> {
    let old = get(comm)?;
    dup((comm, &old), hints(info)?, new)
}

/// `MPI_Comm_idup`.
pub fn comm_idup(comm: Comm, new: Pointer<Comm>, request: Pointer<Request>) -> Result<()> {
    let old = get(comm)?;
    let hints = old.hints.lock().clone();
    start_dup((comm, &old), hints, new, request)
}

/// `MPI_Comm_idup_with_info`.
pub fn comm_idup_with_info(
    comm: Comm,
    info: Info,
    new: Pointer<Comm>,
    request: Pointer<Request>,
) -> Result<()> {
    let old = get(comm)?;
    start_dup((comm, &old), hints(info)?, new, request)
}

fn dup((comm, old): (Comm, &Arc<CommObject>), hints: transom::Info, new: Pointer<Comm>) -> Result<()> {
    new.set(COMM_NULL)?;
    let members = members_again(old).wait()?;
    new.set(add(copy_of(comm, old, hints)?(members))?)
}

/// The handle is returned at once, as the program's variable for it may be gone later; it refers to the communicator as
/// soon as the request is complete.
fn start_dup(
    (comm, old): (Comm, &Arc<CommObject>),
    hints: transom::Info,
    new: Pointer<Comm>,
    request: Pointer<Request>,
) -> Result<()> {
    new.set(COMM_NULL)?;
    // The others get what they wait for, also if the program's functions for attributes fail here.
    let members = members_again(old);
    let copy = copy_of(comm, old, hints)?;
    let pending = PendingComm::new(old.handler.read().clone())?;
    new.set(pending.handle())?;
    let copied = request::filled(members, move |members| {
        pending.complete(copy(members));
        Ok(Status::EMPTY)
    });
    request.set(request::running(copied, ErrorObject::Comm(comm))?)
}

/// The members, and the other side of an intercommunicator.
type Members = (Communicator, Option<Inter>);

/// The same members in a new context. Collective.
fn members_again(old: &Arc<CommObject>) -> transom::Request<Members> {
    match &old.inter {
        None => old.comm.idup().map(|copy| Ok((copy, None))),
        Some(inter) => {
            let old = old.clone();
            idup_sides(inter.all(), &old.comm, inter.is_first())
                .map(move |(all, side)| Ok((side, old.inter.as_ref().map(|inter| inter.with(all)))))
        }
    }
}

/// What makes a copy of a communicator, as this is now.
fn copy_of(
    comm: Comm,
    old: &CommObject,
    hints: transom::Info,
) -> Result<impl FnOnce(Members) -> CommObject + Send + use<>> {
    let attributes = old.attributes.copied(comm.0)?;
    let (handler, origin, topology) = (old.handler.read().clone(), old.origin.clone(), old.topology.clone());
    Ok(move |(members, inter): Members| {
        let mut copy = CommObject::new(members, handler, origin);
        (copy.inter, copy.topology, copy.attributes) = (inter.map(Arc::new), topology, attributes);
        *copy.hints.lock() = hints;
        copy
    })
}

/// `MPI_Comm_get_parent`: no process here was started by another.
pub fn comm_get_parent(parent: Pointer<Comm>) -> Result<()> {
    parent.set(COMM_NULL)
}

/// `MPI_Comm_create`.
pub fn comm_create(comm: Comm, members: Group, new: Pointer<Comm>) -> Result<()> {
    let parent = get(comm)?;
    let members = group::members(members)?;
    if parent.inter.is_some() {
        return new.set(inter_create::create(&parent, &members)?);
    }
    let made = parent.comm.create_communicator(&members)?;
    new.set(handle(made, &parent)?)
}

/// `MPI_Comm_create_group`.
pub fn comm_create_group(comm: Comm, members: Group, tag: c_int, new: Pointer<Comm>) -> Result<()> {
    let parent = get(comm)?;
    let members = group::members(members)?;
    if members.rank().is_none() {
        return new.set(COMM_NULL);
    }
    let made = parent.comm.create_from_group(&members, &format!("{tag} of {}", parent.comm.context()))?;
    new.set(handle(Some(made), &parent)?)
}

/// Makes a communicator of groups with an error handler, which is for the errors of the call, too (§7.4.2, §7.6.2).
pub(super) fn of_groups(
    info: Info,
    handler: Errhandler,
    new: Pointer<Comm>,
    make: impl FnOnce(&Handler) -> Result<Comm>,
) -> Result<()> {
    let handler = Handler::of(handler, Of::Comm)?;
    let made = info::hints(info).and_then(|_| make(&handler));
    made.and_then(|made| new.set(made)).map_err(|failure| failure.to(handler))
}

/// `MPI_Comm_create_from_group`.
pub fn comm_create_from_group(
    members: Group,
    tag: Text,
    info: Info,
    handler: Errhandler,
    new: Pointer<Comm>,
) -> Result<()> {
    of_groups(info, handler, new, |handler| from_group(members, tag, handler))
}

fn from_group(members: Group, tag: Text, handler: &Handler) -> Result<Comm> {
    let origin = group::origin(members)?;
    let (members, tag) = (group::members(members)?, tag.get()?);
    if members.size() == 0 {
        return Ok(COMM_NULL);
    }
    let made = get(COMM_WORLD)?.comm.create_from_group(&members, &tag)?;
    add(CommObject::new(made, handler.clone(), origin))
}

fn color(color: c_int) -> Result<Option<u32>> {
    match u32::try_from(color) {
        Ok(color) => Ok(Some(color)),
        Err(_) if color == UNDEFINED => Ok(None),
        Err(_) => fail(ERR_ARG, format!("colour {color}: use one from 0 on, or MPI_UNDEFINED")),
    }
}

/// `MPI_Comm_split`.
pub fn comm_split(comm: Comm, colour: c_int, key: c_int, new: Pointer<Comm>) -> Result<()> {
    let parent = get(comm)?;
    if parent.inter.is_some() {
        return new.set(inter_create::split(&parent, color(colour)?, key)?);
    }
    let made = parent.comm.split(color(colour)?, i64::from(key))?;
    new.set(handle(made, &parent)?)
}

/// How ranks are told apart by hardware.
enum Apart {
    /// Together if they share memory.
    Memory,
    /// Together if they do, and are restricted to the same instance of a resource.
    Instance(Option<u32>),
    /// Every rank for itself, and it gets nothing.
    Unknown,
}

fn apart(kind: c_int, hints: &transom::Info) -> Result<Apart> {
    Ok(match kind {
        COMM_TYPE_SHARED => Apart::Memory,
        COMM_TYPE_HW_GUIDED | COMM_TYPE_RESOURCE_GUIDED => match hints.get("mpi_hw_resource_type") {
            Some("mpi_shared_memory") => Apart::Memory,
            Some(ty) => Apart::Instance(hardware::instance(ty)),
            None => Apart::Unknown,
        },
        UNDEFINED | COMM_TYPE_HW_UNGUIDED => Apart::Unknown,
        _ => return fail(ERR_ARG, format!("{kind} is no type of split")),
    })
}

/// `MPI_Comm_split_type` (§7.4.2). Intercommunicators are split by memory only, and no communicator by itself into what its
/// hardware suggests.
pub fn comm_split_type(comm: Comm, kind: c_int, key: c_int, info: Info, new: Pointer<Comm>) -> Result<()> {
    let hints = info::hints(info)?;
    let parent = get(comm)?;
    let apart = apart(kind, &hints)?;
    if parent.inter.is_some() {
        return new.set(inter_create::split_shared(&parent, matches!(apart, Apart::Memory), key)?);
    }
    let color = match apart {
        Apart::Memory => Some(0),
        Apart::Instance(instance) => instance,
        Apart::Unknown => {
            // The others split: this rank takes part.
            parent.comm.split(None, 0)?;
            return new.set(COMM_NULL);
        }
    };
    let made = parent.comm.split_shared()?.split(color, i64::from(key))?;
    new.set(handle(made, &parent)?)
}

/// `MPI_Comm_free`. A message that is there and that nobody can receive any more is an error, as in MPICH, and the communicator is freed
/// all the same. Where several threads call, one of them may be about to receive it.
pub fn comm_free(comm: Pointer<Comm>) -> Result<()> {
    let handle = comm.get()?;
    if matches!(handle, COMM_WORLD | COMM_SELF) {
        return fail(ERR_COMM, "a predefined communicator cannot be freed");
    }
    let object = get(handle)?;
    object.attributes.delete_all(handle.0)?;
    let alone = world::thread_level().is_ok_and(|level| level != abi::THREAD_MULTIPLE);
    let left = if alone { object.messages().iprobe(ANY_SOURCE, ANY_TAG) } else { Ok(None) };
    COMMS.remove(handle.0)?;
    comm.set(COMM_NULL)?;
    match left {
        Ok(Some(message)) => {
            let transom::Status { source, tag, bytes } = message;
            fail(
                ERR_OTHER,
                format!("nobody has received a message of {bytes} bytes from rank {source} with tag {tag}"),
            )
        }
        // What else is wrong other calls say.
        _ => Ok(()),
    }
}

/// `MPI_Comm_disconnect`: messages under way are not waited for by the last handle here.
pub fn comm_disconnect(comm: Pointer<Comm>) -> Result<()> {
    let handle = comm.get()?;
    if !matches!(handle, COMM_WORLD | COMM_SELF) {
        get(handle)?.messages().barrier()?;
    }
    comm_free(comm)
}
