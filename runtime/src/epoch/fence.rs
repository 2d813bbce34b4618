//! The fence: everybody's operations are complete, everywhere (MPI-4.1 §12.5.1).

use super::meeting;
use crate::collective::Kind;
use crate::window::Core;
use crate::{Assert, Result};

/// Every rank has come to this fence, and what it did before is visible.
pub(super) fn synchronise(core: &Core, assert: Assert) -> Result<()> {
    if !assert.has(Assert::NOSTORE) {
        core.publish("fence")?;
    }
    // Where nothing precedes and nothing follows, nobody need wait for anybody.
    if !assert.has(Assert::NOPRECEDE | Assert::NOSUCCEED) {
        // These two are given by all ranks or by none (§12.5.5): a rank that does otherwise is told.
        let kind = if assert.has(Assert::NOPRECEDE) {
            Kind::FirstFence
        } else if assert.has(Assert::NOSUCCEED) {
            Kind::LastFence
        } else {
            Kind::Fence
        };
        meeting::meet(core, kind).map_err(|e| core.name(e))?;
    }
    core.refresh("fence")
}
