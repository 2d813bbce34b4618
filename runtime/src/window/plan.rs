//! What the ranks propose for a new window, and whether they agree. Every rank computes the same answer from the same
//! proposals.

use serde::{Deserialize, Serialize};
use transom_transport::AtomicScope;

use super::domain::AtomicSupport;
use super::options::{Flavour, Hints, MemoryModel};
use crate::{Class, Element, Error, Result};

/// Windows of at least this size are checked against the host's free memory before they are made.
const LARGE: usize = 64 << 20;

/// What a rank proposes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Proposal {
    pub operation: String,
    pub flavour: Flavour,
    element: String,
    element_bytes: usize,
    pub unit: usize,
    /// Bytes, or why they cannot be counted.
    pub bytes: std::result::Result<usize, String>,
    /// The hints, or what is wrong with them.
    pub hints: std::result::Result<Hints, String>,
    /// Bytes to be allocated on this host, and what is free there, for large windows.
    large: Option<(u64, u64)>,
    /// Size of the rank's heap, 0 if there is none or it is not wanted.
    pub heap: usize,
    /// What it has for atomics.
    pub support: AtomicSupport,
    /// A new context, for the case that this is the first rank.
    pub context: u64,
}

impl Proposal {
    /// A proposal for `bytes` of elements `T`.
    pub fn new<T: Element>(
        operation: &'static str,
        flavour: Flavour,
        unit: Option<usize>,
        hints: std::result::Result<Hints, String>,
        bytes: std::result::Result<usize, String>,
        context: u64,
    ) -> Self {
        let separate = matches!(&hints, Ok(hints) if hints.model == MemoryModel::Separate);
        let allocated = match (flavour, &bytes) {
            (Flavour::Allocate, Ok(bytes)) if separate => bytes.saturating_mul(3),
            (Flavour::Create, Ok(bytes)) if separate => bytes.saturating_mul(2),
            (Flavour::Allocate | Flavour::Shared, Ok(bytes)) => *bytes,
            _ => 0,
        };
        let large = if allocated >= LARGE { free_memory() } else { None };
        Self {
            operation: operation.into(),
            flavour,
            element: std::any::type_name::<T>().into(),
            element_bytes: size_of::<T>(),
            unit: if flavour == Flavour::Dynamic { 1 } else { unit.unwrap_or(size_of::<T>()) },
            bytes,
            hints,
            large: large.map(|free| (transom_shm::host_identity(), free)),
            heap: 0,
            support: AtomicSupport::new(AtomicScope::None, false),
            context,
        }
    }

    /// The bytes, 0 if they cannot be counted.
    pub fn bytes(&self) -> usize {
        *self.bytes.as_ref().unwrap_or(&0)
    }
}

/// Bytes of `len` elements `T`, if an address space holds so many.
pub(super) fn bytes_of<T>(len: usize) -> std::result::Result<usize, String> {
    let size = size_of::<T>();
    len.checked_mul(size)
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("{len} elements of {size} bytes are more than an address space holds"))
}

/// Bytes that this host can still give (MemAvailable of proc(5)).
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The hints of the new window, if the proposals agree.
pub(super) fn agree(operation: &'static str, proposals: &[Proposal]) -> Result<Hints> {
    let fail = |class, message: String| Err(Error::new(class, operation, message));
    let first = &proposals[0];
    for (rank, proposal) in proposals.iter().enumerate() {
        if proposal.operation != first.operation {
            let message = format!("rank 0 calls {}, rank {rank} {}", first.operation, proposal.operation);
            return fail(Class::Collective, message);
        }
        if (&proposal.element, proposal.element_bytes) != (&first.element, first.element_bytes) {
            let message = format!(
                "rank 0 has elements of type {}, rank {rank} of type {}: all ranks must name the same type",
                first.element, proposal.element
            );
            return fail(Class::Type, message);
        }
        if proposal.unit == 0 || proposal.element_bytes == 0 {
            let message = format!("rank {rank}: elements and displacement units have at least one byte");
            return fail(Class::Displacement, message);
        }
        if let Err(reason) = &proposal.bytes {
            return fail(Class::Size, format!("rank {rank}: {reason}"));
        }
        if let Err(reason) = &proposal.hints {
            return fail(Class::Info, format!("rank {rank}: {reason}"));
        }
    }
    let hints = agree_hints(operation, proposals)?;
    enough_memory(operation, proposals)?;
    Ok(hints)
}

fn agree_hints(operation: &'static str, proposals: &[Proposal]) -> Result<Hints> {
    let fail = |class, message: String| Err(Error::new(class, operation, message));
    // Programs derive the granularity from each rank's own size: the coarsest serves all.
    let granularity =
        proposals.iter().flat_map(|proposal| &proposal.hints).map(|hints| hints.granularity).max();
    let coarsest = |proposal: &Proposal| {
        proposal.hints.clone().map(|hints| Hints { granularity: granularity.unwrap_or_default(), ..hints })
    };
    let Some(Ok(hints)) = proposals.first().map(coarsest) else {
        return fail(Class::Info, "a rank has no hints".into());
    };
    for (rank, proposal) in proposals.iter().enumerate() {
        if coarsest(proposal).as_ref() != Ok(&hints) {
            let message = format!("the hints of ranks 0 and {rank} differ: give the same at all ranks");
            return fail(Class::Info, message);
        }
        if hints.same_size && proposal.bytes() != proposals[0].bytes() {
            let (a, b) = (proposals[0].bytes(), proposal.bytes());
            let message =
                format!("rank 0 has {a} bytes, rank {rank} {b}, and the hint same_size says otherwise");
            return fail(Class::Size, message);
        }
        if hints.same_unit && proposal.unit != proposals[0].unit {
            let (a, b) = (proposals[0].unit, proposal.unit);
            let message = format!(
                "the displacement unit of rank 0 is {a}, of rank {rank} {b}, and the hint same_disp_unit says otherwise"
            );
            return fail(Class::Displacement, message);
        }
        if proposal.flavour == Flavour::Shared && hints.model == MemoryModel::Separate {
            let message =
                "memory that ranks share by load and store has no second copy: use the unified model";
            return fail(Class::Info, message.into());
        }
    }
    Ok(hints)
}

fn enough_memory(operation: &'static str, proposals: &[Proposal]) -> Result<()> {
    for (rank, proposal) in proposals.iter().enumerate() {
        let Some((host, free)) = proposal.large else { continue };
        let on_host = proposals.iter().filter(|w| w.large.is_some_and(|(h, _)| h == host));
        let wanted: u128 = on_host.map(|w| w.bytes() as u128).sum();
        if wanted > u128::from(free) {
            let message = format!(
                "the ranks on the host of rank {rank} want {wanted} bytes together, {free} are available there: use \
                 smaller windows, fewer ranks a host, or more hosts"
            );
            return Err(Error::new(Class::NoMemory, operation, message));
        }
    }
    Ok(())
}
