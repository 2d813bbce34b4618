//! How much address space a heap takes.

use transom_transport::limits;

use super::GRANULARITY;
use crate::engine::Routes;

/// The size of a heap if nothing limits it, and there is no more memory than that.
const DEFAULT_BYTES: usize = 64 << 30;
/// Less is not worth it.
pub(super) const MIN_BYTES: usize = 16 << 20;
/// What all heaps that a process maps take together, at most: a quarter of an address space of 47 bits.
const MAX_TOTAL: usize = 32 << 40;
/// Fraction of a limit on address space (`RLIMIT_AS`) that they take together.
const LIMIT_SHARE: usize = 8;

/// Bytes of this rank's heap, 0 if there is to be none. `asked`: what the user wants at most.
pub(crate) fn capacity(routes: &Routes, in_one_process: bool, asked: Option<u64>) -> usize {
    let mapped = routes.transports().iter().position(|t| t.name() == "shm");
    let peers = mapped.map_or(0, |shm| (0..routes.len()).filter(|peer| routes.index(*peer) == shm).count());
    // Each rank maps its own heap and those of its peers; threads of one process all of them once each.
    let ranks = if in_one_process { routes.len() } else { 1 };
    let limit = limits::address_space().map_or(MAX_TOTAL, |limit| limit / LIMIT_SHARE);
    // A heap is a file where peers map it, and else private memory.
    let own = match mapped {
        Some(_) => limits::file_size(),
        None => limits::data().map(|limit| limit / LIMIT_SHARE / ranks),
    };
    let asked = asked.into_iter().chain(own.map(|own| own as u64)).min();
    bytes(memory(), limit.min(MAX_TOTAL), ranks.saturating_mul(peers + 1), asked)
}

fn bytes(memory: usize, together: usize, mappings: usize, asked: Option<u64>) -> usize {
    let asked = asked.map_or(usize::MAX, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
    let bytes = memory.max(DEFAULT_BYTES).min(together / mappings.max(1)).min(asked);
    let bytes = bytes - bytes % GRANULARITY;
    if bytes < MIN_BYTES.min(asked - asked % GRANULARITY) { 0 } else { bytes }
}

/// Bytes of memory that this host has, 0 if that cannot be found out (proc(5)).
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_of_many_ranks_fit_an_address_space() {
        assert_eq!(bytes(8 << 30, MAX_TOTAL, 2, None), DEFAULT_BYTES);
        assert_eq!(bytes(1 << 40, MAX_TOTAL, 2, None), 1 << 40);
        assert!(bytes(0, MAX_TOTAL, 64 * 65, None) * 64 * 65 <= MAX_TOTAL);
        assert_eq!(bytes(0, 4 << 30, 1000, None), 0);
        assert_eq!(bytes(0, MAX_TOTAL, 2, Some(0)), 0);
        assert_eq!(bytes(0, MAX_TOTAL, 2, Some(3 * GRANULARITY as u64 + 1)), 3 * GRANULARITY);
    }
}
