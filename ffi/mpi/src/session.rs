//! Sessions (MPI-4.1 §11.3): each keeps the job up like `MPI_Init`, and names two sets of processes.

use std::ffi::c_int;
use std::sync::Arc;

use crate::abi::{
    self, COMM_SELF, COMM_WORLD, ERR_ARG, ERR_INFO_VALUE, ERR_SESSION, Errhandler, Group, Info, SESSION_NULL,
    Session,
};
use crate::failure::{Result, fail};
use crate::handlers::{Handler, HandlerSlot, Of};
use crate::message::buffered::Slot;
use crate::pointer::{Pointer, Text};
use crate::table::Table;
use crate::{group, info, world};

/// The sets of processes that there are.
const SETS: [(&str, abi::Comm); 2] = [("mpi://WORLD", COMM_WORLD), ("mpi://SELF", COMM_SELF)];

/// A session.
#[derive(Debug)]
struct SessionObject {
    handler: HandlerSlot,
    thread_level: String,
    /// For buffered sends over communicators that come from it.
    buffer: Arc<Slot>,
}

static SESSIONS: Table<SessionObject> = Table::new(10, "session", ERR_SESSION);

/// `MPI_Session_init`.
pub fn session_init(hints: Info, handler: Errhandler, session: Pointer<Session>) -> Result<()> {
    let handler = Handler::of(handler, Of::Session)?;
    // It is for the errors of this call, too.
    begin(hints, &handler, session).map_err(|failure| failure.to(handler.clone()))
}

fn begin(hints: Info, handler: &Handler, session: Pointer<Session>) -> Result<()> {
    session.check()?;
    let asked = info::hints(hints)?;
    let level = asked.get("thread_level").unwrap_or("MPI_THREAD_MULTIPLE");
    let number = match level {
        "MPI_THREAD_SINGLE" => abi::THREAD_SINGLE,
        "MPI_THREAD_FUNNELED" => abi::THREAD_FUNNELED,
        "MPI_THREAD_SERIALIZED" => abi::THREAD_SERIALIZED,
        "MPI_THREAD_MULTIPLE" => abi::THREAD_MULTIPLE,
        _ => {
            return fail(
                ERR_INFO_VALUE,
                format!("{level} is no level of support for threads (thread_level)"),
            );
        }
    };
    world::join(number)?;
    let object = SessionObject {
        handler: HandlerSlot::new(handler.clone()),
        thread_level: level.into(),
        buffer: Arc::default(),
    };
    session.set(Session(SESSIONS.insert(Arc::new(object))?))
}

/// `MPI_Session_finalize`.
pub fn session_finalize(session: Pointer<Session>) -> Result<()> {
    SESSIONS.remove(session.get()?.0)?;
    session.set(SESSION_NULL)?;
    world::leave()
}

/// `MPI_Session_get_num_psets`.
pub fn session_get_num_psets(session: Session, _info: Info, n: Pointer<c_int>) -> Result<()> {
    SESSIONS.get(session.0)?;
    n.set(SETS.len() as c_int)
}

/// `MPI_Session_get_nth_pset`.
pub fn session_get_nth_pset(
    session: Session,
    _info: Info,
    n: c_int,
    len: Pointer<c_int>,
    name: Text,
) -> Result<()> {
    SESSIONS.get(session.0)?;
    let Some((set, _)) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
        return fail(ERR_ARG, format!("there are {} sets of processes, not one with number {n}", SETS.len()));
    };
    let capacity = usize::try_from(len.get()?).or_else(|_| fail(ERR_ARG, "a negative length"))?;
    if capacity > 0 {
        name.set(set, capacity)?;
    }
    len.set(set.len() as c_int + 1)
}

/// The communicator of a set.
fn members(session: Session, name: Text) -> Result<transom::Group> {
    SESSIONS.get(session.0)?;
    let name = name.get()?;
    match SETS.iter().find(|(set, _)| set.eq_ignore_ascii_case(&name)) {
        Some((_, comm)) => Ok(world::comm(*comm)?.comm.group()),
        None => fail(ERR_ARG, format!("there is no set of processes {name:?}")),
    }
}

/// `MPI_Session_get_pset_info`.
pub fn session_get_pset_info(session: Session, name: Text, info: Pointer<Info>) -> Result<()> {
    let size = members(session, name)?.size();
    info.set(info::with(vec![("mpi_size".into(), size.to_string())])?)
}

/// `MPI_Session_get_info`.
pub fn session_get_info(session: Session, info: Pointer<Info>) -> Result<()> {
    let level = SESSIONS.get(session.0)?.thread_level.clone();
    info.set(info::with(vec![("thread_level".into(), level)])?)
}

/// `MPI_Group_from_session_pset`.
pub fn group_from_session_pset(session: Session, name: Text, new: Pointer<Group>) -> Result<()> {
    let members = members(session, name)?;
    new.set(group::handle(members, Some(buffer(session)?))?)
}

/// The buffer for sends of a session.
pub fn buffer(session: Session) -> Result<Arc<Slot>> {
    Ok(SESSIONS.get(session.0)?.buffer.clone())
}

/// `MPI_Session_set_errhandler`.
pub fn session_set_errhandler(session: Session, handler: Errhandler) -> Result<()> {
    *SESSIONS.get(session.0)?.handler.write() = Handler::of(handler, Of::Session)?;
    Ok(())
}

/// `MPI_Session_get_errhandler`.
pub fn session_get_errhandler(session: Session, handler: Pointer<Errhandler>) -> Result<()> {
    let current = SESSIONS.get(session.0)?.handler.read().clone();
    handler.set(current.handle()?)
}

/// `MPI_Session_call_errhandler`.
pub fn session_call_errhandler(session: Session, code: c_int) -> Result<()> {
    SESSIONS.get(session.0)?;
    crate::handlers::called(crate::handlers::ErrorObject::Session(session), code)
}

/// The error handler of a session, or that for errors of no object if there is no such one.
pub fn handler(session: Session) -> Handler {
    SESSIONS
        .get(session.0)
        .map_or_else(|_| world::default_handler(), |session| session.handler.read().clone())
}
