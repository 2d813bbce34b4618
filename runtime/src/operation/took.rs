//! Says which path an operation takes, where that is decided, to the window's counters (`explain/`).

use transom_transport::Span;

use super::atomic::Accumulate;
use super::shaped::Shaped;
use super::transfer::Place;
use crate::Result;
use crate::explain::{Kind, Path, Reason};
use crate::window::{Core, Domain};

/// Bytes of the widest element that atomics of CPUs and network cards know.
const WIDEST: usize = 8;

impl Core {
    /// The operation at `place` takes `path`, because of `reason`.
    #[inline]
    pub(super) fn took(&self, place: &Place<'_>, path: Path, reason: Reason, bytes: usize) {
        if let Some(counters) = &self.counters {
            counters.add(Kind::of(place.operation), path, reason, bytes);
        }
    }

    /// It is done on mapped memory.
    #[inline]
    pub(crate) fn took_mapped(&self, place: &Place<'_>, path: Path, bytes: usize) {
        let reason = if place.target == self.rank() { Reason::Loopback } else { Reason::Mapped };
        self.took(place, path, reason, bytes);
    }

    /// The transport to the target moves `bytes` bytes there, or from there.
    #[inline]
    pub(super) fn took_transfer(&self, place: &Place<'_>, put: bool, bytes: usize) {
        if self.counters.is_some() {
            self.count_transfer(place, put, bytes);
        }
    }

    #[cold]
    fn count_transfer(&self, place: &Place<'_>, put: bool, bytes: usize) {
        let (path, reason) = match self.member.engine.routes.route(place.peer.world).capabilities.moves {
            None => (Path::Transport, Reason::Remote),
            Some(moves) if put && bytes <= moves.inline => (Path::Inline, Reason::Size),
            Some(moves) if bytes <= moves.copied => (Path::Bounce, Reason::Size),
            Some(_) => (Path::ZeroCopy, Reason::Size),
        };
        self.took(place, path, reason, bytes);
    }

    /// Elements of `size` bytes are updated in mapped memory, by CPU atomics or under locks.
    #[inline]
    pub(super) fn took_update(&self, place: &Place<'_>, memory: &Span, size: usize, bytes: usize) {
        if self.counters.is_some() {
            self.took_cell(place, size, is_aligned(place, memory, 0, size), bytes);
        }
    }

    /// As [`Core::took_update`], for elements that lie as a layout says: one that needs a lock tells for all.
    pub(super) fn took_updates(
        &self,
        target: &Shaped<'_, '_>,
        memory: &Span,
        what: Accumulate<'_>,
    ) -> Result<()> {
        if self.counters.is_some() {
            let (place, size) = (target.place, what.ty.size());
            let mut runs = target.layout.datatype.elements(target.layout.count)?;
            let aligned = runs.all(|run| is_aligned(place, memory, target.ahead(run.offset), size));
            self.took_cell(place, size, aligned, what.operands.len());
        }
        Ok(())
    }

    fn took_cell(&self, place: &Place<'_>, size: usize, aligned: bool, bytes: usize) {
        if size > WIDEST {
            self.took(place, Path::Stripe, Reason::Type, bytes);
        } else if !aligned {
            self.took(place, Path::Stripe, Reason::Alignment, bytes);
        } else {
            self.took_mapped(place, Path::Cpu, bytes);
        }
    }

    /// Elements of `size` bytes are updated by the target's agent.
    #[inline]
    pub(super) fn took_agent(&self, place: &Place<'_>, size: usize, bytes: usize) {
        let other = self.domain != Domain::Cpu;
        let reason = if size > WIDEST || other { Reason::Type } else { Reason::Provider };
        self.took(place, Path::Agent, reason, bytes);
    }
}

/// Whether an element of `size` bytes, so many bytes ahead of a place in mapped memory, lies at a multiple of its size.
fn is_aligned(place: &Place<'_>, memory: &Span, ahead: usize, size: usize) -> bool {
    memory.address().wrapping_add(place.offset + ahead).is_multiple_of(size)
}
