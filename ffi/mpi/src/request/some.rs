//! The calls for several requests (MPI-4.1 §3.7.5, §3.7.6).

use std::ffi::c_int;

use super::calls::give;
use super::many::{Many, Statuses};
use crate::abi::{Request, Status, UNDEFINED};
use crate::failure::Result;
use crate::place::{Place, flag};

fn int(place: usize) -> c_int {
    c_int::try_from(place).unwrap_or(UNDEFINED)
}

/// `MPI_Waitall`.
pub fn waitall(n: c_int, requests: Place<Request>, statuses: Place<Status>) -> Result<()> {
    let many = Many::new(n, requests)?;
    let mut all = Statuses::new(statuses);
    for place in 0..many.len() {
        if let Some(object) = many.at(place) {
            object.wait();
        }
        all.push(many.end(place)?)?;
    }
    all.finish()
}

/// `MPI_Testall`.
pub fn testall(
    n: c_int,
    requests: Place<Request>,
    ended: Place<c_int>,
    statuses: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    // All are polled, so that all make progress.
    let pending = (0..many.len()).filter(|place| many.at(*place).is_some_and(|object| !object.poll()));
    if pending.count() > 0 {
        return ended.set(flag(false));
    }
    ended.set(flag(true))?;
    let mut all = Statuses::new(statuses);
    for place in 0..many.len() {
        all.push(many.end(place)?)?;
    }
    all.finish()
}

/// `MPI_Waitany`.
pub fn waitany(n: c_int, requests: Place<Request>, index: Place<c_int>, status: Place<Status>) -> Result<()> {
    let many = Many::new(n, requests)?;
    match Many::await_one(&many.active())? {
        Some(place) => {
            index.set(int(place))?;
            give(many.end(place)?, status)
        }
        None => {
            index.set(UNDEFINED)?;
            give(Ok(Status::EMPTY), status)
        }
    }
}

/// `MPI_Testany`.
pub fn testany(
    n: c_int,
    requests: Place<Request>,
    index: Place<c_int>,
    ended: Place<c_int>,
    status: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    let active = many.active();
    if active.is_empty() {
        index.set(UNDEFINED)?;
        ended.set(flag(true))?;
        return give(Ok(Status::EMPTY), status);
    }
    match active.iter().find(|(_, object)| object.poll()) {
        Some((place, _)) => {
            index.set(int(*place))?;
            ended.set(flag(true))?;
            give(many.end(*place)?, status)
        }
        None => {
            index.set(UNDEFINED)?;
            ended.set(flag(false))
        }
    }
}

/// Takes the outcomes of all that have ended.
fn take_some(many: &Many, count: Place<c_int>, indices: Place<c_int>, statuses: Place<Status>) -> Result<()> {
    let places: Vec<usize> =
        many.active().into_iter().filter(|(_, object)| object.poll()).map(|(place, _)| place).collect();
    count.set(int(places.len()))?;
    let mut all = Statuses::new(statuses);
    for (index, place) in places.into_iter().enumerate() {
        indices.set_at(index, int(place))?;
        all.push(many.end(place)?)?;
    }
    all.finish()
}

/// `MPI_Waitsome`.
pub fn waitsome(
    n: c_int,
    requests: Place<Request>,
    count: Place<c_int>,
    indices: Place<c_int>,
    statuses: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    match Many::await_one(&many.active())? {
        Some(_) => take_some(&many, count, indices, statuses),
        None => count.set(UNDEFINED),
    }
}

/// `MPI_Testsome`.
pub fn testsome(
    n: c_int,
    requests: Place<Request>,
    count: Place<c_int>,
    indices: Place<c_int>,
    statuses: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    if many.active().is_empty() {
        return count.set(UNDEFINED);
    }
    take_some(&many, count, indices, statuses)
}

/// `MPI_Request_get_status_all`.
pub fn request_get_status_all(
    n: c_int,
    requests: Place<Request>,
    ended: Place<c_int>,
    statuses: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    let pending = (0..many.len()).filter(|place| many.at(*place).is_some_and(|object| !object.poll()));
    if pending.count() > 0 {
        return ended.set(flag(false));
    }
    ended.set(flag(true))?;
    let mut all = Statuses::new(statuses);
    for place in 0..many.len() {
        all.push(many.at(place).map_or(Ok(Status::EMPTY), |object| object.peek()))?;
    }
    all.finish()
}

/// `MPI_Request_get_status_any`.
pub fn request_get_status_any(
    n: c_int,
    requests: Place<Request>,
    index: Place<c_int>,
    ended: Place<c_int>,
    status: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    let active = many.active();
    let found = active.iter().find(|(_, object)| object.poll());
    index.set(found.map_or(UNDEFINED, |(place, _)| int(*place)))?;
    ended.set(flag(found.is_some() || active.is_empty()))?;
    match found {
        Some((_, object)) => give(object.peek(), status),
        None if active.is_empty() => give(Ok(Status::EMPTY), status),
        None => Ok(()),
    }
}

/// `MPI_Request_get_status_some`.
pub fn request_get_status_some(
    n: c_int,
    requests: Place<Request>,
    count: Place<c_int>,
    indices: Place<c_int>,
    statuses: Place<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    let active = many.active();
    if active.is_empty() {
        return count.set(UNDEFINED);
    }
    let mut all = Statuses::new(statuses);
    let mut found = 0;
    for (place, object) in active.into_iter().filter(|(_, object)| object.poll()) {
        indices.set_at(found, int(place))?;
        all.push(object.peek())?;
        found += 1;
    }
    count.set(int(found))?;
    all.finish()
}
