//! Info objects (MPI-4.1 chapter 10): keys and values, in the order in which they were set.

pub mod calls;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::abi::{ERR_INFO, INFO_ENV, INFO_NULL, Info};
use crate::failure::{Result, fail};
use crate::handlers::INITIAL;
use crate::table::Table;

type Pairs = Vec<(String, String)>;

/// An info object.
#[derive(Debug, Default)]
pub struct InfoObject(Mutex<Pairs>);

static INFOS: Table<InfoObject> = Table::new(6, "info object", ERR_INFO);

/// A handle of a new info object.
pub fn with(pairs: Pairs) -> Result<Info> {
    INFOS.insert(Arc::new(InfoObject(Mutex::new(pairs)))).map(Info)
}

/// The pairs of an info object.
pub fn pairs(info: Info) -> Result<Pairs> {
    if info == INFO_ENV {
        return Ok(environment());
    }
    Ok(INFOS.get(info.0)?.0.lock().clone())
}

/// The hints of an info object; none of `MPI_INFO_NULL`.
pub fn hints(info: Info) -> Result<transom::Info> {
    let pairs = if info == INFO_NULL { Vec::new() } else { pairs(info)? };
    Ok(pairs.into_iter().fold(transom::Info::new(), |info, (key, value)| info.with(key, value)))
}

/// A handle of hints.
pub fn of_hints(hints: &transom::Info) -> Result<Info> {
    with(hints.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
}

/// What `MPI_INFO_ENV` tells (§11.2.1).
fn environment() -> Pairs {
    let mut arguments = std::env::args();
    let mut pairs = vec![("command".to_owned(), arguments.next().unwrap_or_default())];
    let rest: Vec<String> = arguments.collect();
    if !rest.is_empty() {
        pairs.push(("argv".into(), rest.join(" ")));
    }
    if let Ok(folder) = std::env::current_dir() {
        pairs.push(("wdir".into(), folder.to_string_lossy().into_owned()));
    }
    pairs.push(("thread_level".into(), "MPI_THREAD_MULTIPLE".into()));
    let (variable, default) = INITIAL;
    let handler = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    pairs.push(("mpi_initial_errhandler".into(), handler.trim().to_owned()));
    pairs
}

fn object(info: Info) -> Result<Arc<InfoObject>> {
    if info == INFO_ENV {
        return fail(ERR_INFO, "MPI_INFO_ENV can be read, and not changed");
    }
    INFOS.get(info.0)
}
