//! The calls for several requests (MPI-4.1 §3.7.5, §3.7.6).

use std::ffi::c_int;

use super::calls::{end_at, give};
use super::many::{Many, Statuses};
use super::{Outcome, check};
use crate::abi::{Request, Status, UNDEFINED};
use crate::failure::Result;
use crate::group::count;
use crate::pointer::{Pointer, flag};

fn int(place: usize) -> c_int {
    c_int::try_from(place).unwrap_or(UNDEFINED)
}

/// `MPI_Waitall`.
pub fn waitall(n: c_int, requests: Pointer<Request>, statuses: Pointer<Status>) -> Result<()> {
    let n = count(n)?;
    // Nothing is done if one of them is wrong.
    for place in 0..n {
        check(requests.at(place)?)?;
    }
    let mut all = Statuses::new(statuses, n);
    for place in 0..n {
        all.push(end_at(requests, place)?)?;
    }
    all.finish()
}

/// What a look at requests does to those that have ended.
#[derive(Debug, Clone, Copy)]
enum Look {
    /// Takes them.
    Take,
    /// Leaves them as they are.
    Peek,
}

impl Look {
    /// The outcome of a request that has ended; nothing of null ones.
    fn outcome(self, many: &Many, place: usize) -> Result<Outcome> {
        match self {
            Self::Take => many.end(place),
            Self::Peek => Ok(many.at(place).map_or(Ok(Status::EMPTY), |object| object.peek())),
        }
    }

    /// Whether all have ended, and their statuses.
    fn all(self, many: &Many, ended: Pointer<c_int>, statuses: Pointer<Status>) -> Result<()> {
        // All are polled, so that all make progress.
        let pending = (0..many.len()).filter(|place| many.at(*place).is_some_and(|object| !object.poll()));
        if pending.count() > 0 {
            return ended.set(flag(false));
        }
        ended.set(flag(true))?;
        let mut all = Statuses::new(statuses, many.len());
        for place in 0..many.len() {
            all.push(self.outcome(many, place)?)?;
        }
        all.finish()
    }

    /// Whether one has ended, which, and its status.
    fn any(
        self,
        many: &Many,
        index: Pointer<c_int>,
        ended: Pointer<c_int>,
        status: Pointer<Status>,
    ) -> Result<()> {
        let active = many.active();
        let found = active.iter().find(|(_, object)| object.poll()).map(|(place, _)| *place);
        index.set(found.map_or(UNDEFINED, int))?;
        ended.set(flag(found.is_some() || active.is_empty()))?;
        match found {
            Some(place) => give(self.outcome(many, place)?, status),
            None if active.is_empty() => give(Ok(Status::EMPTY), status),
            None => Ok(()),
        }
    }

    /// Which have ended, and their statuses.
    fn some(
        self,
        many: &Many,
        count: Pointer<c_int>,
        indices: Pointer<c_int>,
        statuses: Pointer<Status>,
    ) -> Result<()> {
        let active = many.active();
        if active.is_empty() {
            return count.set(UNDEFINED);
        }
        let ended: Vec<usize> =
            active.into_iter().filter(|(_, object)| object.poll()).map(|(place, _)| place).collect();
        count.set(int(ended.len()))?;
        let mut all = Statuses::new(statuses, many.len());
        for (index, place) in ended.into_iter().enumerate() {
            indices.set_at(index, int(place))?;
            all.push(self.outcome(many, place)?)?;
        }
        all.finish()
    }
}

/// `MPI_Waitany`.
pub fn waitany(
    n: c_int,
    requests: Pointer<Request>,
    index: Pointer<c_int>,
    status: Pointer<Status>,
) -> Result<()> {
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

/// `MPI_Waitsome`.
pub fn waitsome(
    n: c_int,
    requests: Pointer<Request>,
    count: Pointer<c_int>,
    indices: Pointer<c_int>,
    statuses: Pointer<Status>,
) -> Result<()> {
    let many = Many::new(n, requests)?;
    Many::await_one(&many.active())?;
    Look::Take.some(&many, count, indices, statuses)
}

/// Functions that look at requests once, and take those that have ended or leave them.
macro_rules! looking {
    ($($take:ident $of_take:literal, $peek:ident $of_peek:literal: $look:ident($($place:ident: $to:ty),*);)*) => {$(
        #[doc = concat!("`", $of_take, "`.")]
        pub fn $take(n: c_int, requests: Pointer<Request>, $($place: Pointer<$to>),*) -> Result<()> {
            Look::Take.$look(&Many::new(n, requests)?, $($place),*)
        }

        #[doc = concat!("`", $of_peek, "`.")]
        pub fn $peek(n: c_int, requests: Pointer<Request>, $($place: Pointer<$to>),*) -> Result<()> {
            Look::Peek.$look(&Many::new(n, requests)?, $($place),*)
        }
    )*};
}

looking! {
    testall "MPI_Testall", request_get_status_all "MPI_Request_get_status_all":
        all(ended: c_int, statuses: Status);
    testany "MPI_Testany", request_get_status_any "MPI_Request_get_status_any":
        any(index: c_int, ended: c_int, status: Status);
    testsome "MPI_Testsome", request_get_status_some "MPI_Request_get_status_some":
        some(count: c_int, indices: c_int, statuses: Status);
}
