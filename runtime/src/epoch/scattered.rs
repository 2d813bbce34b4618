//! Accesses to dynamic windows that one attached region does not hold: MPI-4.1 §12.2.4 asks that all memory of an access is
//! attached, not that it was attached by one call. They are taken apart at the ends of regions.

use super::access::Access;
use crate::datatype::zip_runs;
use crate::memory::OriginBuffer;
use crate::operation::{Accumulate, Layout, rename};
use crate::{Class, Error, Result};

/// Where an access begins, and why one region does not hold it.
pub(super) type Refused = (usize, usize, Error);

impl Access<'_> {
    /// The pieces (start, length) of `bytes` bytes that regions hold, each of whole elements; the error if there is a gap, or an
    /// element in two regions.
    fn pieces(
        &self,
        operation: &'static str,
        (target, address, error): &Refused,
        bytes: usize,
        element: usize,
    ) -> Result<Vec<(usize, usize)>> {
        let core = self.core();
        let refused = || Err(error.clone());
        let Some(peer) = core.target(operation, *target)? else { return refused() };
        if error.class() != Class::RmaRange || core.exposure.regions().is_none() {
            return refused();
        }
        let (mut pieces, mut start) = (Vec::new(), 0);
        while start < bytes {
            let Some(at) = address.checked_add(start) else { return refused() };
            let Ok((region, offset)) = core.reach(operation, *target, peer, at, element) else {
                return refused();
            };
            let len = (region.len - offset).min(bytes - start);
            let len = len - len % element;
            if len == 0 {
                return refused();
            }
            pieces.push((start, len));
            start += len;
        }
        Ok(pieces)
    }

    /// Whether regions hold `bytes` bytes.
    pub(super) fn check_pieces(
        &self,
        operation: &'static str,
        refused: &Refused,
        bytes: usize,
    ) -> Result<()> {
        self.pieces(operation, refused, bytes, 1).map(drop)
    }

    pub(super) fn put_over(&self, refused: Refused, bytes: &[u8], owned: bool) -> Result<()> {
        let pieces = self.pieces("put", &refused, bytes.len(), 1)?;
        let (target, address, _) = refused;
        pieces
            .into_iter()
            .try_for_each(|(start, len)| self.put(target, address + start, &bytes[start..start + len], owned))
    }

    pub(super) fn get_over(&self, refused: Refused, bytes: &mut [u8]) -> Result<()> {
        let pieces = self.pieces("get", &refused, bytes.len(), 1)?;
        let (target, address, _) = refused;
        pieces
            .into_iter()
            .try_for_each(|(start, len)| self.get(target, address + start, &mut bytes[start..start + len]))
    }

    pub(super) fn get_now_over(&self, refused: Refused, bytes: &mut [u8]) -> Result<()> {
        let pieces = self.pieces("get", &refused, bytes.len(), 1)?;
        let (target, address, _) = refused;
        pieces.into_iter().try_for_each(|(start, len)| {
            self.get_now(target, address + start, &mut bytes[start..start + len])
        })
    }

    /// An accumulate, which fetches to `result` if that is given.
    pub(super) fn accumulate_over(
        &self,
        operation: &'static str,
        refused: Refused,
        what: Accumulate<'_>,
        mut result: Option<&mut [u8]>,
    ) -> Result<()> {
        let pieces = self.pieces(operation, &refused, what.operands.len(), what.ty.size())?;
        let (target, address, _) = refused;
        pieces.into_iter().try_for_each(|(start, len)| {
            let operands = &what.operands[start..start + len];
            let what = Accumulate { operands, ..what };
            match result.as_mut().and_then(|result| result.get_mut(start..start + len)) {
                Some(result) => self.get_accumulate(target, address + start, what, result),
                None => self.accumulate(target, address + start, what),
            }
        })
    }

    /// The runs of bytes (here, there, how many) between two layouts, all of them in regions.
    fn runs_over(
        &self,
        operation: &'static str,
        (target, address, error): &Refused,
        here: &Layout<'_>,
        there: &Layout<'_>,
    ) -> Result<Vec<(usize, usize, usize)>> {
        let runs = zip_runs(here.count, here.datatype, there.count, there.datatype)
            .map_err(|e| rename(self.core(), operation, &e))?;
        runs.into_iter()
            .map(|(at, to, bytes)| {
                let there = address.wrapping_add_signed(to as isize);
                self.pieces(operation, &(*target, there, error.clone()), bytes, 1)?;
                // Layouts of local buffers start at 0 or later (shape::check_local).
                Ok((usize::try_from(at).unwrap_or(usize::MAX), there, bytes))
            })
            .collect()
    }

    pub(super) fn put_shaped_over(
        &self,
        refused: &Refused,
        data: &OriginBuffer<'_>,
        from: &Layout<'_>,
        to: &Layout<'_>,
    ) -> Result<()> {
        let (target, owned) = (refused.0, !matches!(data, OriginBuffer::Scope(_)));
        self.runs_over("put", refused, from, to)?.into_iter().try_for_each(|(at, there, bytes)| {
            self.put(target, there, data.bytes().get(at..at + bytes).unwrap_or_default(), owned)
        })
    }

    pub(super) fn get_shaped_over(
        &self,
        refused: &Refused,
        data: &mut [u8],
        to: &Layout<'_>,
        from: &Layout<'_>,
    ) -> Result<()> {
        let target = refused.0;
        self.runs_over("get", refused, to, from)?.into_iter().try_for_each(|(at, there, bytes)| {
            self.get(target, there, data.get_mut(at..at + bytes).unwrap_or_default())
        })
    }

    /// An accumulate of a stream of operands to a layout.
    pub(super) fn accumulate_stream_over(
        &self,
        operation: &'static str,
        (target, address, error): &Refused,
        what: Accumulate<'_>,
        to: &Layout<'_>,
        mut result: Option<&mut [u8]>,
    ) -> Result<()> {
        let named = |e| rename(self.core(), operation, &e);
        let size = what.ty.size();
        let runs = to.datatype.elements(to.count).map_err(named)?;
        let runs: Vec<(usize, usize)> =
            runs.map(|run| (address.wrapping_add_signed(run.offset as isize), run.count * size)).collect();
        for (at, bytes) in &runs {
            self.pieces(operation, &(*target, *at, error.clone()), *bytes, size)?;
        }
        let mut done = 0;
        for (at, bytes) in runs {
            let range = done..done + bytes;
            let what = Accumulate { operands: &what.operands[range.clone()], ..what };
            let fetched = result.as_mut().and_then(|result| result.get_mut(range));
            self.accumulate_over(operation, (*target, at, error.clone()), what, fetched)?;
            done += bytes;
        }
        Ok(())
    }
}
