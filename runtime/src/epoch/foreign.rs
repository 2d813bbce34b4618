//! Operations with requests for doors to other languages (MPI-4.1 §12.3.5): the program keeps the buffers until the request,
//! a flush or the end of the epoch has completed the operation.

use transom_transport::ReduceOp;

use super::Explicit;
use super::access::Access;
use crate::memory::{Foreign, OriginBuffer, ResultBuffer};
use crate::operation::{
    self, Accumulate, Later, Layout, Shaped, Sink, check_accumulate, check_local, check_signatures, gather,
    rename, scatter,
};
use crate::window::Domain;
use crate::{Element, Request, Result};

/// A request, or nothing if the operation is complete.
pub type Requested = Option<Request<()>>;

/// Memory that a layout lies over.
pub type Shape<'a> = (Foreign, Layout<'a>);

impl Access<'_> {
    /// Starts an operation, and makes a request of what is left of it.
    fn begin(
        &self,
        (operation, target): (&'static str, usize),
        sink: Sink,
        start: impl FnOnce(&Later) -> Result<()>,
        finish: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Requested> {
        let promise = operation::later(self.core(), (operation, target), sink, start, finish)?;
        Ok(Some(self.under_way(operation, promise)))
    }

    fn rput_foreign(&self, target: usize, displacement: usize, origin: Foreign) -> Result<Requested> {
        const NAME: &str = "rput";
        let bytes = origin.bytes();
        self.check_requests(NAME, target)?;
        let place = match self.requested_place(NAME, target, displacement, bytes.len()) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(None),
            Err(error) => {
                return self.put_over((target, displacement, error), bytes, true).map(|()| None);
            }
        };
        if place.remote.direct.is_some() {
            return self.put(target, displacement, bytes, false).map(|()| None);
        }
        let start = |later: &Later| {
            operation::put(self.core(), &place, &OriginBuffer::of_scope(bytes), Some(&later.count))
        };
        self.begin((NAME, target), Sink::Memory(origin), start, || Ok(()))
    }

    fn rget_foreign(&self, target: usize, displacement: usize, result: Foreign) -> Result<Requested> {
        const NAME: &str = "rget";
        let bytes = result.bytes_mut();
        self.check_requests(NAME, target)?;
        let place = match self.requested_place(NAME, target, displacement, bytes.len()) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(None),
            Err(error) => {
                return self.get_now_over((target, displacement, error), bytes).map(|()| None);
            }
        };
        if place.remote.direct.is_some() {
            return self.get(target, displacement, bytes).map(|()| None);
        }
        let mut into = ResultBuffer::of_scope(bytes);
        let start = |later: &Later| operation::get(self.core(), &place, &mut into, Some(&later.count));
        self.begin((NAME, target), Sink::Memory(result), start, || Ok(()))
    }

    fn rput_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        (origin, from): Shape<'_>,
        to: &Layout<'_>,
    ) -> Result<Requested> {
        const NAME: &str = "rput";
        self.check_requests(NAME, target)?;
        check_local(self.core(), NAME, origin.bytes().len(), &from)?;
        check_signatures(self.core(), NAME, &from, to)?;
        let (place, low) = match self.shaped_place(NAME, target, displacement, to) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => {
                let (refused, data) = ((target, displacement, error), OriginBuffer::owned(origin.bytes()));
                return self.put_shaped_over(&refused, &data, &from, to).map(|()| None);
            }
        };
        let data = OriginBuffer::of_scope(origin.bytes());
        let shaped = Shaped { place: &place, low, layout: *to };
        if place.remote.direct.is_some() {
            self.stored();
            return operation::put_shaped(self.core(), &shaped, &data, &from, None).map(|()| None);
        }
        let start =
            |later: &Later| operation::put_shaped(self.core(), &shaped, &data, &from, Some(&later.count));
        self.begin((NAME, target), Sink::Memory(origin), start, || Ok(()))
    }

    fn rget_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        (result, to): Shape<'_>,
        from: &Layout<'_>,
    ) -> Result<Requested> {
        const NAME: &str = "rget";
        self.check_requests(NAME, target)?;
        check_local(self.core(), NAME, result.bytes().len(), &to)?;
        check_signatures(self.core(), NAME, &to, from)?;
        let (place, low) = match self.shaped_place(NAME, target, displacement, from) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => {
                let (refused, room) = ((target, displacement, error), result.bytes_mut());
                let got = self.get_shaped_over(&refused, room, &to, from);
                return got.and(self.end_gets(target)).map(|()| None);
            }
        };
        let mut data = ResultBuffer::of_scope(result.bytes_mut());
        let shaped = Shaped { place: &place, low, layout: *from };
        if place.remote.direct.is_some() {
            return operation::get_shaped(self.core(), &shaped, &mut data, &to, None).map(|()| None);
        }
        let start = |later: &Later| operation::get_shaped(self.core(), &shaped, &mut data, &to, Some(later));
        self.begin((NAME, target), Sink::Memory(result), start, || Ok(()))
    }

    fn rget_accumulate_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        (data, from): (&[u8], &Layout<'_>),
        (result, fetch): Shape<'_>,
        to: &Layout<'_>,
    ) -> Result<Requested> {
        const NAME: &str = "rget_accumulate";
        let core = self.core();
        self.check_requests(NAME, target)?;
        let bytes = result.bytes_mut();
        let Ok(Some((place, low))) = self.shaped_place(NAME, target, displacement, to) else {
            // An error, nothing to do, or several regions.
            let fetch = Some((bytes, &fetch));
            return self.accumulate_shaped(target, displacement, op, (data, from), to, fetch).map(|()| None);
        };
        let ty = check_accumulate(core, NAME, op, if op == ReduceOp::NoOp { to } else { from }, to)?;
        let at_once = place.remote.direct.is_some() || core.domain == Domain::Device;
        // An operation that changes nothing has no operands to send: rare enough to wait for.
        if at_once || op == ReduceOp::NoOp {
            let fetch = Some((bytes, &fetch));
            return self.accumulate_shaped(target, displacement, op, (data, from), to, fetch).map(|()| None);
        }
        check_accumulate(core, NAME, op, &fetch, to)?;
        check_local(core, NAME, data.len(), from)?;
        check_local(core, NAME, bytes.len(), &fetch)?;
        let named = |e| rename(core, NAME, &e);
        let operands = gather(data, from, ty).map_err(named)?;
        let stream = std::sync::Arc::new(parking_lot::Mutex::new(vec![0; operands.len()]));
        let (fetched, datatype, count) = (stream.clone(), fetch.datatype.clone(), fetch.count);
        let finish = move || scatter(&fetched.lock(), result.bytes_mut(), &Layout::new(count, &datatype), ty);
        let one = to.datatype.elements(to.count).map_err(named)?.take(2).count() == 1;
        let what = Accumulate { op, ty, operands: &operands };
        let start = |later: &Later| {
            if one {
                return operation::fetch_accumulate(core, NAME, &place, what, later);
            }
            let shaped = Shaped { place: &place, low, layout: *to };
            operation::accumulate_shaped(core, &shaped, what, None, Some(later))
        };
        self.begin((NAME, target), Sink::Stream(stream), start, finish)
    }
}

impl<T: Element> Explicit<'_, T> {
    /// `MPI_Rput` of bytes. The request is complete when the buffer may be reused.
    ///
    /// # Errors
    /// As [`Explicit::rput`].
    pub fn rput_foreign(&self, target: usize, displacement: usize, origin: Foreign) -> Result<Requested> {
        self.access("rput", target, |access| access.rput_foreign(target, displacement, origin))
    }

    /// `MPI_Rget` of bytes.
    ///
    /// # Errors
    /// As [`Explicit::rget`].
    pub fn rget_foreign(&self, target: usize, displacement: usize, result: Foreign) -> Result<Requested> {
        self.access("rget", target, |access| access.rget_foreign(target, displacement, result))
    }

    /// `MPI_Rput`.
    ///
    /// # Errors
    /// As [`Explicit::put_as`] and [`Explicit::rput`].
    pub fn rput_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        origin: Shape<'_>,
        to: Layout<'_>,
    ) -> Result<Requested> {
        self.access("rput", target, |access| access.rput_foreign_as(target, displacement, origin, &to))
    }

    /// `MPI_Rget`.
    ///
    /// # Errors
    /// As [`Explicit::get_as`] and [`Explicit::rget`].
    pub fn rget_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        result: Shape<'_>,
        from: Layout<'_>,
    ) -> Result<Requested> {
        self.access("rget", target, |access| access.rget_foreign_as(target, displacement, result, &from))
    }

    /// `MPI_Get_accumulate`, complete when the call returns.
    ///
    /// # Errors
    /// As [`Explicit::get_accumulate_as`].
    pub fn get_accumulate_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        (data, from): (&[u8], Layout<'_>),
        (result, fetch): Shape<'_>,
        to: Layout<'_>,
    ) -> Result<()> {
        self.access("get_accumulate", target, |access| {
            let fetch = Some((result.bytes_mut(), &fetch));
            access.accumulate_shaped(target, displacement, op, (data, &from), &to, fetch)
        })
    }

    /// `MPI_Rget_accumulate`: `data` is read by the call, what was there goes to `result`.
    ///
    /// # Errors
    /// As [`Explicit::get_accumulate_as`] and [`Explicit::rget_accumulate`].
    pub fn rget_accumulate_foreign_as(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        (data, from): (&[u8], Layout<'_>),
        result: Shape<'_>,
        to: Layout<'_>,
    ) -> Result<Requested> {
        self.access("rget_accumulate", target, |access| {
            access.rget_accumulate_foreign_as(target, displacement, op, (data, &from), result, &to)
        })
    }
}
