//! How much address space a heap takes.

use transom_transport::limits;

use super::GRAIN;
use crate::engine::Routes;

/// What a heap takes if nothing limits it, and there is no more memory than that.
const USUAL: usize = 64 << 30;
/// Less is not worth it.
pub(super) const LEAST: usize = 16 << 20;
/// What all heaps that a process maps take together, at most: a quarter of an address space of 47 bits.
const TOGETHER: usize = 32 << 40;
/// Part of a limit on address space (`RLIMIT_AS`) that they take together.
const SHARE: usize = 8;

/// Bytes of this rank's heap, 0 if there is to be none. `asked`: what the user wants at most.
pub(crate) fn room(routes: &Routes, in_one_process: bool, asked: Option<u64>) -> usize {
    let mapped = routes.transports().iter().position(|t| t.name() == "shm");
    let peers = mapped.map_or(0, |shm| (0..routes.len()).filter(|peer| routes.index(*peer) == shm).count());
    // Each rank maps its own heap and those of its peers; threads of one process all of them once each.
    let ranks = if in_one_process { routes.len() } else { 1 };
    let limit = limits::address_space().map_or(TOGETHER, |limit| limit / SHARE);
    bytes(memory(), limit.min(TOGETHER), ranks.saturating_mul(peers + 1), asked)
}

fn bytes(memory: usize, together: usize, mappings: usize, asked: Option<u64>) -> usize {
    let asked = asked.map_or(usize::MAX, |asked| usize::try_from(asked).unwrap_or(usize::MAX));
    let bytes = memory.max(USUAL).min(together / mappings.max(1)).min(asked);
    let bytes = bytes - bytes % GRAIN;
    if bytes < LEAST.min(asked - asked % GRAIN) { 0 } else { bytes }
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
        assert_eq!(bytes(8 << 30, TOGETHER, 2, None), USUAL);
        assert_eq!(bytes(1 << 40, TOGETHER, 2, None), 1 << 40);
        assert!(bytes(0, TOGETHER, 64 * 65, None) * 64 * 65 <= TOGETHER);
        assert_eq!(bytes(0, 4 << 30, 1000, None), 0);
        assert_eq!(bytes(0, TOGETHER, 2, Some(0)), 0);
        assert_eq!(bytes(0, TOGETHER, 2, Some(3 * GRAIN as u64 + 1)), 3 * GRAIN);
    }
}
