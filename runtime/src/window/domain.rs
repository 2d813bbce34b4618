//! Atomic domains: whether CPUs or network devices update a window's elements. Decided once per window, by all ranks alike.
//!
//! A CPU's atomics and a network device's are not atomic to each other, unless the device says so. So where ranks of
//! several nodes update elements by the device, all do, the owner and its neighbours included. The element's type and
//! address decide, and nothing else: integers of 8 bytes, aligned to 8, are the device's. Other types of 8 bytes are if the
//! hint asks for it: the device has no operation of theirs but compare-and-swap, and large accumulates, which are most often of
//! floating-point numbers, are faster as messages by orders of magnitude. Shorter elements never are, though a
//! compare-and-swap of the 8 bytes around them could do it: what a CPU stores or a put writes to the bytes beside them
//! between the device's read and its write would be lost. Those, wider and misaligned elements are updated by CPUs.

use serde::{Deserialize, Serialize};
use transom_transport::{AtomicScope, DataType, ReduceOp};

use super::options::{Flavour, Word};
use super::plan::Proposal;
use crate::explain::Path;

/// Bytes of the elements that devices update.
pub(crate) const WORD: usize = 8;

/// Who updates elements of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Domain {
    /// CPUs of the target's node.
    Cpu,
    /// The device, for all ranks: its atomics exclude each other only.
    Device,
    /// The device for ranks of other nodes, CPUs for those of the target's: they exclude each other.
    Both,
}

/// The hint `transom_atomics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum AtomicsHint {
    /// The device for integers, where it can and the window's ranks are on several nodes, else CPUs.
    #[default]
    Auto,
    Cpu,
    /// The device for all types of 8 bytes, where it can.
    Nic,
}

pub(super) const ATOMICS: &str = "transom_atomics";

impl Word for AtomicsHint {
    const KEY: &'static str = ATOMICS;
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("cpu", Self::Cpu), ("nic", Self::Nic)];
}

/// The atomics that a rank's device supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AtomicSupport {
    /// Its device has atomics, and they exclude those of the CPU.
    device: bool,
    global: bool,
    /// Some rank of the window is on another node.
    spans_nodes: bool,
}

impl AtomicSupport {
    pub fn new(scope: AtomicScope, spans_nodes: bool) -> Self {
        Self { device: scope != AtomicScope::None, global: scope == AtomicScope::System, spans_nodes }
    }
}

/// The domain of a window, from what all ranks have and the hint. `mixed`: as if the device excluded the CPU, to see
/// that it matters. Memory that is attached later is updated by CPUs.
pub(super) fn domain(proposals: &[Proposal], flavour: Flavour, wanted: AtomicsHint, mixed: bool) -> Domain {
    let all = |has: fn(&AtomicSupport) -> bool| proposals.iter().all(|proposal| has(&proposal.support));
    let any_spans_nodes = proposals.iter().any(|proposal| proposal.support.spans_nodes);
    let by_device = match wanted {
        AtomicsHint::Auto => any_spans_nodes,
        AtomicsHint::Cpu => false,
        AtomicsHint::Nic => true,
    };
    let fixed = matches!(flavour, Flavour::Allocate | Flavour::Create);
    if !by_device || !fixed || !all(|support| support.device) {
        Domain::Cpu
    } else if mixed || all(|support| support.global) {
        Domain::Both
    } else {
        Domain::Device
    }
}

fn is_integer(ty: DataType) -> bool {
    matches!(ty, DataType::I64 | DataType::U64)
}

/// Whether a device updates elements of `ty`, where one updates any: `all` those of 8 bytes, or integers only.
#[inline]
pub(crate) fn is_devices(ty: DataType, all: bool) -> bool {
    is_integer(ty) || all && ty.size() == WORD
}

/// The path of an accumulate on elements of `ty` that are aligned to their size, in a window whose atomics are the
/// device's: [`Path::Hardware`] (one atomic of the device), [`Path::Assisted`] (a loop around its compare-and-swap) or
/// [`Path::Agent`] (the target's agent, by CPU atomics). `None` stands for compare-and-swap. `all`: the hint
/// `transom_atomics` is `nic`, and elements of 8 bytes of any type are the device's.
#[inline]
pub fn device_path(op: Option<ReduceOp>, ty: DataType, all: bool) -> Path {
    match op {
        _ if !is_devices(ty, all) => Path::Agent,
        None | Some(ReduceOp::NoOp) => Path::Hardware,
        Some(ReduceOp::Sum) if is_integer(ty) => Path::Hardware,
        Some(_) => Path::Assisted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_elements_are_never_the_devices() {
        for ty in DataType::ALL {
            let paths: [Option<ReduceOp>; 4] =
                [Some(ReduceOp::Sum), Some(ReduceOp::Max), Some(ReduceOp::NoOp), None];
            let agent = paths.map(|op| device_path(op, ty, true) == Path::Agent);
            assert_eq!(agent, [ty.size() != 8; 4], "{ty:?}");
        }
        assert_eq!(device_path(Some(ReduceOp::Sum), DataType::U64, false), Path::Hardware);
        assert_eq!(device_path(Some(ReduceOp::Max), DataType::I64, false), Path::Assisted);
        assert_eq!(device_path(Some(ReduceOp::Sum), DataType::F64, false), Path::Agent);
        assert_eq!(device_path(Some(ReduceOp::Sum), DataType::F64, true), Path::Assisted);
    }
}
