//! Several requests at once: what waiting for one, some or all of them has in common.

use std::ffi::c_int;
use std::sync::Arc;

use transom::raw::await_any_of;

use super::calls::{end, object, store};
use super::{Outcome, RequestObject};
use crate::abi::{ERR_IN_STATUS, Request, SUCCESS, Status};
use crate::failure::{Failure, Result};
use crate::group::count;
use crate::pointer::Pointer;

/// A list of requests of the program's.
pub struct Many {
    handles: Pointer<Request>,
    objects: Vec<Option<Arc<RequestObject>>>,
}

impl Many {
    /// The first `n` requests of a list.
    pub fn new(n: c_int, handles: Pointer<Request>) -> Result<Self> {
        let n = count(n)?;
        let mut objects = Vec::with_capacity(n);
        for place in 0..n {
            objects.push(object(handles.at(place)?)?);
        }
        Ok(Self { handles, objects })
    }

    /// The requests that are neither null nor inactive, with their places.
    pub fn active(&self) -> Vec<(usize, &RequestObject)> {
        let there = |(place, object): (usize, &'_ Option<Arc<RequestObject>>)| {
            object.as_ref().filter(|object| object.is_active()).map(|_| place)
        };
        let places: Vec<usize> = self.objects.iter().enumerate().filter_map(there).collect();
        places.into_iter().filter_map(|place| Some((place, self.objects[place].as_deref()?))).collect()
    }

    /// The request at a place.
    pub fn at(&self, place: usize) -> Option<&RequestObject> {
        self.objects.get(place).and_then(|object| object.as_deref())
    }

    /// Number of requests, null ones included.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Waits for a request, and takes its outcome; nothing of null ones.
    pub fn end(&self, place: usize) -> Result<Outcome> {
        match self.at(place) {
            Some(object) => end(self.handles, place, object),
            None => Ok(Ok(Status::EMPTY)),
        }
    }

    /// Waits until one of some active requests has ended, and says which.
    pub fn await_one(active: &[(usize, &RequestObject)]) -> Result<Option<usize>> {
        if active.is_empty() {
            return Ok(None);
        }
        loop {
            if let Some((place, _)) = active.iter().find(|(_, object)| object.poll()) {
                return Ok(Some(*place));
            }
            let running: Vec<_> = active.iter().filter_map(|(_, object)| object.running()).collect();
            if running.len() == active.len() {
                await_any_of(&running)?;
            }
        }
    }
}

/// Collects the statuses of several requests, and what they come to (§3.7.5). The error field of each says how it is: the standard
/// asks for that if one has failed, and programs look at it always, as other implementations set it.
pub struct Statuses {
    /// For the statuses, unless the program does not want them.
    place: Option<Pointer<Status>>,
    failed: Option<Failure>,
    codes: Vec<c_int>,
}

impl Statuses {
    /// For a list of the program's with so many places, or for none.
    pub fn new(place: Pointer<Status>, most: usize) -> Self {
        let place = (!place.is_ignored()).then_some(place);
        Self { place, failed: None, codes: place.map_or_else(Vec::new, |_| Vec::with_capacity(most)) }
    }

    /// One more outcome.
    #[inline]
    pub fn push(&mut self, outcome: Outcome) -> Result<()> {
        if self.place.is_none() && outcome.is_ok() { Ok(()) } else { self.push_told(outcome) }
    }

    fn push_told(&mut self, outcome: Outcome) -> Result<()> {
        let (status, code) = match outcome {
            Ok(status) => (status, SUCCESS),
            Err(failure) => {
                let ended = (failure.status(), failure.code());
                self.failed.get_or_insert(failure);
                ended
            }
        };
        let Some(place) = self.place else { return Ok(()) };
        self.codes.push(code);
        store(status, place, self.codes.len() - 1)
    }

    /// What all come to.
    pub fn finish(self) -> Result<()> {
        if let Some(place) = self.place {
            for (index, code) in self.codes.into_iter().enumerate() {
                let status = place.at(index)?;
                place.set_at(index, Status { error: code, ..status })?;
            }
        }
        let Some(failed) = self.failed else { return Ok(()) };
        let error_object = failed.error_object();
        let failure = Failure::new(ERR_IN_STATUS, failed.message()).told(failed.code());
        Err(match error_object {
            Some(error_object) => failure.at(error_object),
            None => failure,
        })
    }
}
