//! Operations with datatypes on both sides, in an access epoch without element type.

use transom_transport::ReduceOp;

use super::access::Access;
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::operation::{
    self, Accumulate, Layout, Place, Shaped, check_accumulate, check_local, check_signatures, dense, gather,
    rename, scatter,
};
use crate::window::Domain;
use crate::{Class, Result};

impl<'w> Access<'w> {
    /// The place of a layout at the target. `None` for the null rank, and where there is nothing to do.
    pub(super) fn shaped_place(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        layout: &Layout<'_>,
    ) -> Result<Option<(Place<'w>, i64)>> {
        let core = self.core();
        let Some(peer) = core.target(operation, target)? else { return Ok(None) };
        self.check_covered(operation, target, peer)?;
        let span = layout.span().map_err(|e| rename(core, operation, &e))?;
        if span.0 == span.1 {
            return Ok(None);
        }
        let (remote, offset) = core.reach_span(operation, target, peer, displacement, span)?;
        if remote.direct.is_none() || core.domain == Domain::Device {
            self.touch(target);
        }
        Ok(Some((Place { operation, target, peer, remote, offset }, span.0)))
    }

    /// Puts `from` of `data` to `to` at the target.
    pub fn put_shaped(
        &self,
        target: usize,
        displacement: usize,
        data: OriginBuffer<'_>,
        from: &Layout<'_>,
        to: &Layout<'_>,
    ) -> Result<()> {
        const NAME: &str = "put";
        check_local(self.core(), NAME, data.bytes().len(), from)?;
        check_signatures(self.core(), NAME, from, to)?;
        let (place, low) = match self.shaped_place(NAME, target, displacement, to) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(error) => return self.put_shaped_over(&(target, displacement, error), &data, from, to),
        };
        if place.remote.direct.is_some() {
            self.stored();
        }
        operation::put_shaped(self.core(), &Shaped { place: &place, low, layout: *to }, &data, from, None)
    }

    /// Gets `from` at the target to `to` of `data`.
    pub fn get_shaped(
        &self,
        target: usize,
        displacement: usize,
        data: &mut [u8],
        to: &Layout<'_>,
        from: &Layout<'_>,
    ) -> Result<()> {
        const NAME: &str = "get";
        check_local(self.core(), NAME, data.len(), to)?;
        check_signatures(self.core(), NAME, to, from)?;
        let (place, low) = match self.shaped_place(NAME, target, displacement, from) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(error) => return self.get_shaped_over(&(target, displacement, error), data, to, from),
        };
        let shaped = Shaped { place: &place, low, layout: *from };
        operation::get_shaped(self.core(), &shaped, &mut ResultBuffer::of_scope(data), to, None)
    }

    /// Accumulates `from` of `data` to `to` at the target; `fetch` is where what was there goes.
    pub fn accumulate_shaped(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        (data, from): (&[u8], &Layout<'_>),
        to: &Layout<'_>,
        fetch: Option<(&mut [u8], &Layout<'_>)>,
    ) -> Result<()> {
        let core = self.core();
        let operation = if fetch.is_some() { "get_accumulate" } else { "accumulate" };
        // An operation that changes nothing has no operands (§12.3.4).
        let from = if op == ReduceOp::NoOp { to } else { from };
        let ty = check_accumulate(core, operation, op, from, to)?;
        let named = |e| rename(core, operation, &e);
        let zeros;
        let operands = if op == ReduceOp::NoOp {
            let bytes =
                to.count.checked_mul(to.datatype.basic_count()).and_then(|n| n.checked_mul(ty.size()));
            let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or_else(|| {
                core.error(Class::Count, operation, "more elements than an address space holds")
            })?;
            if let Some((result, layout)) = &fetch {
                check_local(core, operation, result.len(), layout)?;
            }
            zeros = vec![0; bytes];
            std::borrow::Cow::Borrowed(&zeros[..])
        } else {
            check_local(core, operation, data.len(), from)?;
            gather(data, from, ty).map_err(named)?
        };
        let what = Accumulate { op, ty, operands: &operands };
        let Some((result, layout)) = fetch else {
            return self.accumulate_stream(operation, target, displacement, what, to, None);
        };
        check_accumulate(core, operation, op, layout, to)?;
        check_local(core, operation, result.len(), layout)?;
        if let Some(room) = dense(layout, ty).map_err(named)?.and_then(|range| result.get_mut(range)) {
            return self.accumulate_stream(operation, target, displacement, what, to, Some(room));
        }
        let mut stream = vec![0; operands.len()];
        if target == crate::NULL_RANK {
            return self.accumulate_stream(operation, target, displacement, what, to, Some(&mut stream));
        }
        self.accumulate_stream(operation, target, displacement, what, to, Some(&mut stream))?;
        scatter(&stream, result, layout, ty).map_err(named)
    }

    fn accumulate_stream(
        &self,
        operation: &'static str,
        target: usize,
        displacement: usize,
        what: Accumulate<'_>,
        to: &Layout<'_>,
        result: Option<&mut [u8]>,
    ) -> Result<()> {
        let (place, low) = match self.shaped_place(operation, target, displacement, to) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(error) => {
                let refused = (target, displacement, error);
                return self.accumulate_stream_over(operation, &refused, what, to, result);
            }
        };
        let core = self.core();
        let one =
            to.datatype.elements(to.count).map_err(|e| rename(core, operation, &e))?.take(2).count() == 1;
        match result {
            None if one => operation::accumulate(core, &place, what),
            Some(result) if one => operation::get_accumulate(core, &place, what, result),
            result => {
                let shaped = Shaped { place: &place, low, layout: *to };
                operation::accumulate_shaped(core, &shaped, what, result, None)
            }
        }
    }
}
