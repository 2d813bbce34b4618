//! Where an operation goes.

use super::description::{Completion, Description};
use super::{Layout, rename};
use crate::Result;
use crate::window::{Core, Domain, Peer, TargetMemory};

/// A rank, memory of its part of the window, a byte offset there.
#[derive(Debug, Clone)]
pub(crate) struct Place<'a> {
    /// The operation, by its name in errors.
    pub operation: &'static str,
    pub target: usize,
    pub peer: &'a Peer,
    pub remote: TargetMemory<'a>,
    /// Of the first byte of data.
    pub offset: usize,
    /// That byte, relative to the layout's address.
    pub low: i64,
}

impl Place<'_> {
    /// The offset as the target's agent counts it: in its window, or an address in what it has attached.
    pub fn agent_offset(&self) -> u64 {
        let start = match &self.remote {
            TargetMemory::Fixed(_) => 0,
            TargetMemory::Attached(region) => region.address,
        };
        (start + self.offset) as u64
    }

    /// Bytes from the place to a byte of the layout.
    pub fn ahead(&self, offset: i64) -> usize {
        // The layout has no byte before its first.
        usize::try_from(offset - self.low).unwrap_or(0)
    }

    /// Whether the target has detached the memory, and its agent accesses what is left.
    pub fn is_left(&self) -> bool {
        matches!(&self.remote, TargetMemory::Attached(region) if region.left)
    }

    /// Whether the target's memory is mapped here.
    pub fn is_mapped(&self) -> bool {
        self.remote.direct.is_some()
    }
}

impl Core {
    /// The place of an operation, if its epoch covers the target and the window holds it. None for the null rank, and where a
    /// layout has no data.
    pub(super) fn place(
        &self,
        operation: &Description<'_>,
        completion: Completion<'_>,
    ) -> Result<Option<Place<'_>>> {
        let Description { name, target, displacement, .. } = *operation;
        let Some(peer) = self.target(name, target)? else {
            return self.check_null(name).map(|()| None);
        };
        self.check_covered(name, target, peer)?;
        let span = match &operation.layout {
            None => None,
            Some(layout) => Some(layout.span().map_err(|e| rename(self, name, &e))?),
        };
        let (low, (remote, offset)) = match span {
            None => (0, self.resolve(name, target, peer, displacement, operation.bytes())?),
            Some((low, high)) if low == high => return Ok(None),
            Some(span) => (span.0, self.resolve_span(name, target, peer, displacement, span)?),
        };
        let place = Place { operation: name, target, peer, remote, offset, low };
        self.begin(target, peer, place.is_mapped() && matches!(place.remote, TargetMemory::Fixed(_)));
        // What has ended when the call returns needs no flush.
        let ends = match completion {
            Completion::Flush => operation.is_update() && operation.fetches(),
            Completion::Call => true,
            Completion::Request(_) => false,
        };
        let by_device = self.domain == Domain::Device && operation.is_update();
        if !ends && (by_device || !place.is_mapped()) {
            self.touch(target);
        }
        Ok(Some(place))
    }
}

/// Whether a layout is one run of elements.
pub(super) fn is_one_run(core: &Core, name: &'static str, layout: &Layout<'_>) -> Result<bool> {
    let mut runs = layout.datatype.elements(layout.count).map_err(|e| rename(core, name, &e))?;
    Ok(runs.next().is_some() && runs.next().is_none())
}
