//! The barrier of a fence.

use crate::Result;
use crate::collective::{self, Kind};
use crate::window::Core;

/// Every rank has come to this fence, and what it did before is visible.
pub(super) fn barrier(core: &Core) -> Result<()> {
    collective::barrier_as(core.comm.channel(), Kind::Fence).map_err(|e| core.name(e))
}
