//! Performance variables (MPI-4.1 §15.3.7): the counters of `explain`, of all windows of the process together. There are two for each path
//! and two for each kind of operation: how many operations, and the bytes that they named at their targets.
//!
//! All are read only and run always. Nothing is counted that nobody asks for: the first handle has windows counted that are
//! made later.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use parking_lot::Mutex;
use transom::explain::{Count, Entry, Kind, Path, count_windows_from_now_on};

use super::{Handle, Int, check_started};
use crate::abi::{
    self, Datatype, T_ERR_INVALID_HANDLE, T_ERR_INVALID_INDEX, T_ERR_INVALID_NAME, T_ERR_INVALID_SESSION,
    T_ERR_PVAR_NO_STARTSTOP, T_ERR_PVAR_NO_WRITE,
};
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, Text};
use crate::world;

/// What a variable counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Path(Path),
    Kind(Kind),
}

/// A variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Variable {
    of: Of,
    bytes: bool,
}

/// Sessions and handles by number, each handle with its session and variable.
#[derive(Debug, Default)]
struct Given {
    last: usize,
    sessions: Vec<usize>,
    handles: BTreeMap<usize, (usize, Variable)>,
}

static GIVEN: Mutex<Given> =
    Mutex::new(Given { last: FIRST, sessions: Vec::new(), handles: BTreeMap::new() });
/// Below are null and `MPI_T_PVAR_ALL_HANDLES`.
const FIRST: usize = 16;

impl Variable {
    /// All, by index.
    fn all() -> impl Iterator<Item = Self> {
        let paths = Path::ALL.iter().map(|path| Of::Path(*path));
        let all = paths.chain(Kind::ALL.iter().map(|kind| Of::Kind(*kind)));
        all.flat_map(|of| [false, true].map(|bytes| Self { of, bytes }))
    }

    fn at(index: c_int) -> Result<Self> {
        let found = usize::try_from(index).ok().and_then(|index| Self::all().nth(index));
        found.map_or_else(|| fail(T_ERR_INVALID_INDEX, "there is no such performance variable"), Ok)
    }

    fn name(self) -> String {
        let what = if self.bytes { "bytes" } else { "operations" };
        match self.of {
            Of::Path(path) => format!("transom_{what}_by_{}", path.text().replace('-', "_")),
            Of::Kind(kind) => format!("transom_{what}_of_{}", kind.text()),
        }
    }

    fn meaning(self) -> String {
        let what =
            if self.bytes { "Bytes at the targets of one-sided operations" } else { "One-sided operations" };
        match self.of {
            Of::Path(path) => format!("{what} that took the path {path}, on windows that are counted"),
            Of::Kind(kind) => format!("{what} of the kind {kind}, on windows that are counted"),
        }
    }

    fn class(self) -> c_int {
        if self.bytes { abi::T_PVAR_CLASS_AGGREGATE } else { abi::T_PVAR_CLASS_COUNTER }
    }

    /// Its value; 0 before the job and after it.
    fn value(self) -> u64 {
        let Ok(job) = world::job() else { return 0 };
        let is = |entry: &Entry| match self.of {
            Of::Path(path) => entry.path == path,
            Of::Kind(kind) => entry.kind == kind,
        };
        let Count { operations, bytes } = job.explain().sum(is);
        if self.bytes { bytes } else { operations }
    }
}

impl Given {
    fn next(&mut self) -> usize {
        self.last += 1;
        self.last
    }

    fn session(&self, session: Handle) -> Result<usize> {
        let number = session as usize;
        match self.sessions.contains(&number) {
            true => Ok(number),
            false => fail(T_ERR_INVALID_SESSION, "this is no session of performance variables"),
        }
    }

    fn handle(&self, session: Handle, handle: Handle) -> Result<Variable> {
        let number = self.session(session)?;
        match self.handles.get(&(handle as usize)) {
            Some((of, variable)) if *of == number => Ok(*variable),
            _ => fail(T_ERR_INVALID_HANDLE, "this is no handle of a performance variable in this session"),
        }
    }
}

/// Gives a string: without room its length alone; the length counts the null character (§15.3.3).
fn give(text: Text, len: Int, what: &str) -> Result<()> {
    if len.is_null() {
        return Ok(());
    }
    let capacity = usize::try_from(len.get()?).unwrap_or(0);
    let written = if capacity == 0 { None } else { text.set(what, capacity).ok() };
    len.set(c_int::try_from(written.unwrap_or(what.len()) + 1).unwrap_or(c_int::MAX))
}

/// `MPI_T_pvar_get_num`.
pub fn t_pvar_get_num(number: Int) -> Result<()> {
    check_started()?;
    number.set(c_int::try_from(Variable::all().count()).unwrap_or(0))
}

/// `MPI_T_pvar_get_index`.
pub fn t_pvar_get_index(name: Text, class: c_int, index: Int) -> Result<()> {
    check_started()?;
    let name = name.get()?;
    let found = Variable::all().position(|variable| variable.name() == name && variable.class() == class);
    match found {
        Some(found) => index.set(c_int::try_from(found).unwrap_or(0)),
        None => fail(T_ERR_INVALID_NAME, "there is no such performance variable"),
    }
}

/// `MPI_T_pvar_get_info`.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub fn t_pvar_get_info(
    index: c_int,
    name: Text,
    name_len: Int,
    verbosity: Int,
    class: Int,
    datatype: Pointer<Datatype>,
    enumeration: Pointer<Handle>,
    description: Text,
    description_len: Int,
    bind: Int,
    readonly: Int,
    continuous: Int,
    atomic: Int,
) -> Result<()> {
    check_started()?;
    let variable = Variable::at(index)?;
    give(name, name_len, &variable.name())?;
    give(description, description_len, &variable.meaning())?;
    verbosity.replace(abi::T_VERBOSITY_TUNER_BASIC);
    class.replace(variable.class());
    datatype.replace(abi::UNSIGNED_LONG_LONG);
    enumeration.replace(std::ptr::null_mut());
    bind.replace(abi::T_BIND_NO_OBJECT);
    readonly.replace(1);
    continuous.replace(1);
    atomic.replace(0);
    Ok(())
}

/// `MPI_T_pvar_session_create`.
pub fn t_pvar_session_create(session: Pointer<Handle>) -> Result<()> {
    check_started()?;
    session.check()?;
    let mut given = GIVEN.lock();
    let number = given.next();
    given.sessions.push(number);
    session.set(number as Handle)
}

/// `MPI_T_pvar_session_free`: its handles go, too.
pub fn t_pvar_session_free(session: Pointer<Handle>) -> Result<()> {
    check_started()?;
    let mut given = GIVEN.lock();
    let number = given.session(session.get()?)?;
    given.sessions.retain(|known| *known != number);
    given.handles.retain(|_, (of, _)| *of != number);
    session.set(std::ptr::null_mut())
}

/// `MPI_T_pvar_handle_alloc`: of one value, whatever the object.
pub fn t_pvar_handle_alloc(
    session: Handle,
    index: c_int,
    _: *mut c_void,
    handle: Pointer<Handle>,
    count: Int,
) -> Result<()> {
    check_started()?;
    handle.check()?;
    let mut given = GIVEN.lock();
    let session = given.session(session)?;
    let variable = Variable::at(index)?;
    count.set(1)?;
    let number = given.next();
    given.handles.insert(number, (session, variable));
    count_windows_from_now_on();
    handle.set(number as Handle)
}

/// `MPI_T_pvar_handle_free`.
pub fn t_pvar_handle_free(session: Handle, handle: Pointer<Handle>) -> Result<()> {
    check_started()?;
    let mut given = GIVEN.lock();
    let number = handle.get()?;
    given.handle(session, number)?;
    given.handles.remove(&(number as usize));
    handle.set(std::ptr::null_mut())
}

/// Refuses what these variables do not do, and does nothing to all handles: of those the call leaves out what it does not
/// apply to (§15.3.7).
fn refuse(session: Handle, handle: Handle, code: c_int, why: &str) -> Result<()> {
    check_started()?;
    let given = GIVEN.lock();
    if handle as usize == abi::T_PVAR_ALL_HANDLES {
        return given.session(session).map(drop);
    }
    given.handle(session, handle)?;
    fail(code, why)
}

/// `MPI_T_pvar_start`.
pub fn t_pvar_start(session: Handle, handle: Handle) -> Result<()> {
    refuse(session, handle, T_ERR_PVAR_NO_STARTSTOP, "this performance variable runs always")
}

/// `MPI_T_pvar_stop`.
pub fn t_pvar_stop(session: Handle, handle: Handle) -> Result<()> {
    t_pvar_start(session, handle)
}

/// `MPI_T_pvar_read`.
pub fn t_pvar_read(session: Handle, handle: Handle, buffer: *mut c_void) -> Result<()> {
    check_started()?;
    let variable = GIVEN.lock().handle(session, handle)?;
    // SAFETY: room for a value of the variable's type, as the standard asks of the caller (MPI-4.1 §15.3.7).
    unsafe { Pointer::new(buffer.cast::<u64>()) }.set(variable.value())
}

/// `MPI_T_pvar_write`.
pub fn t_pvar_write(session: Handle, handle: Handle, _: *const c_void) -> Result<()> {
    t_pvar_reset(session, handle)
}

/// `MPI_T_pvar_reset`.
pub fn t_pvar_reset(session: Handle, handle: Handle) -> Result<()> {
    refuse(session, handle, T_ERR_PVAR_NO_WRITE, "this performance variable is read only")
}

/// `MPI_T_pvar_readreset`.
pub fn t_pvar_readreset(session: Handle, handle: Handle, _: *mut c_void) -> Result<()> {
    t_pvar_reset(session, handle)
}
