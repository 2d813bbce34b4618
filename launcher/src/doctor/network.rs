//! Limits of RDMA devices.

use transom_verbs::{DeviceReport, Limits};

use super::limits::{Job, Level, Limit, compare, or_unlimited};
use crate::facts;
use crate::info::host::bytes;

/// Registered by each rank before the first window: buffers for messages, datagrams and copies.
const BUFFERS: u64 = 5 << 20;
/// Locked memory with which small programs run.
const SMALL_JOB: u64 = 64 << 20;
/// Completion queue entries without which the transport does not open.
const LEAST_COMPLETIONS: u64 = 272;
/// Memory regions of a rank: its buffers, some windows, transfers under way.
const REGIONS: u64 = 1024;
/// Longest message of Transom's.
const MESSAGE: u64 = 16 << 10;
/// Reads and atomics under way at a peer that Transom asks for.
const READS: u64 = 16;

/// What devices limit; nothing without devices.
pub fn limits(job: Job) -> Vec<Limit> {
    let names = transom_verbs::devices().unwrap_or_default();
    let reports: Vec<DeviceReport> =
        names.iter().filter_map(|name| transom_verbs::describe(name).ok()).collect();
    let usable = reports.iter().any(|report| report.unusable.is_none());
    let mut limits = vec![locked_memory(usable || kernel_has_devices(), facts::lockable())];
    limits.extend(reports.iter().flat_map(|report| of_device(report, job)));
    limits
}

/// Whether the kernel knows a device, be there a library for it or not.
pub fn kernel_has_devices() -> bool {
    std::fs::read_dir("/sys/class/infiniband").is_ok_and(|mut entries| entries.next().is_some())
}

fn locked_memory(needed: bool, (here, why): (u64, &str)) -> Limit {
    let (name, level) = compare("locked memory", here, u64::MAX, BUFFERS);
    let level = match level {
        _ if !needed => Level::Enough,
        level if here >= SMALL_JOB => level.min(Level::Low),
        level => level,
    };
    let wanted = if needed {
        format!("unlimited: a rank registers {} of buffers, and all its windows", bytes(BUFFERS))
    } else {
        "nothing, without an RDMA device; unlimited with one".into()
    };
    Limit {
        name,
        here: format!("{} ({why})", or_unlimited(here, bytes)),
        level,
        wanted,
        advice: "`* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity for slurmd and sshd, \
                 docker run --ulimit memlock=-1. Providers vanish without a word where it is low (libfabric#9739, ucx#6264)"
            .into(),
    }
}

fn of_device(report: &DeviceReport, job: Job) -> Vec<Limit> {
    let pairs = Limits::default();
    let peers = job.ranks.saturating_sub(1).max(1);
    // Those that a rank posts on, those that its peers post on, and one for datagrams.
    let queue_pairs = job.local * (peers.min(pairs.queue_pairs as u64) + peers + 1);
    let row = |what: &str, here: u64, wanted: u64, least: u64, for_what: &str, advice: &str| {
        let (name, level) = compare(format!("{what}, {}", report.name), here, wanted, least);
        let wanted = format!("{wanted}: {for_what}");
        Limit { name, here: here.to_string(), level, wanted, advice: advice.into() }
    };
    vec![
        row(
            "queue pairs",
            report.max_qp.into(),
            queue_pairs,
            job.local * 3,
            "two for each pair of a rank here and another; Transom keeps 1024 a rank for itself and reuses them",
            "Fewer ranks on this host (threads instead), or a second device",
        ),
        row(
            "completion queue",
            report.max_cqe.into(),
            pairs.completions as u64,
            LEAST_COMPLETIONS,
            "entries for all that is under way; with fewer, less is under way",
            "Nothing to do: Transom adapts",
        ),
        row(
            "memory regions",
            report.max_mr.into(),
            job.local * REGIONS,
            job.local * 16,
            "windows, buffers, transfers under way",
            "Fewer windows of user memory: allocated ones share what is registered",
        ),
        row(
            "message",
            report.max_message,
            1 << 20,
            MESSAGE,
            "bytes; longer transfers are cut",
            "Nothing to do: Transom cuts",
        ),
        row(
            "reads and atomics",
            report.max_rd_atomic.into(),
            READS,
            1,
            "under way at a peer at a time",
            "Nothing to do: gets and atomics come at a lower rate",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use transom_transport::AtomicScope;

    use super::*;

    /// libfabric#9739, ucx#6264: nobody said why the device could not be used.
    #[test]
    fn complaint_26_locked_memory_is_named() {
        let level = |needed, here| locked_memory(needed, (here, "ulimit -l")).level;
        assert_eq!(level(true, 64 << 10), Level::TooLow);
        assert_eq!(level(true, 8 << 20), Level::Low);
        assert_eq!(level(true, 1 << 30), Level::Low);
        assert_eq!(level(true, u64::MAX), Level::Enough);
        assert_eq!(level(false, 64 << 10), Level::Enough);
        let limit = locked_memory(true, (64 << 10, "ulimit -l"));
        assert_eq!(limit.here, "64 KiB (ulimit -l)");
        for words in ["memlock unlimited", "LimitMEMLOCK", "libfabric#9739"] {
            assert!(limit.advice.contains(words), "{}", limit.advice);
        }
    }

    #[test]
    fn a_small_device_is_too_small_for_a_large_job() {
        let report = DeviceReport {
            name: "d0".into(),
            firmware: String::new(),
            unusable: None,
            active: true,
            link: "InfiniBand",
            gid: None,
            connects: "datagrams".into(),
            acknowledges: true,
            mtu: 4096,
            max_message: 1 << 30,
            max_qp: 1000,
            max_qp_wr: 100,
            max_cqe: 271,
            max_mr: 1 << 20,
            max_rd_atomic: 1,
            atomics: AtomicScope::Device,
        };
        let levels = |ranks| -> Vec<Level> {
            of_device(&report, Job { ranks, local: 2 }).iter().map(|limit| limit.level).collect()
        };
        use Level::{Enough, Low, TooLow};
        assert_eq!(levels(16), [Enough, TooLow, Enough, Enough, Low]);
        assert_eq!(levels(1024), [Low, TooLow, Enough, Enough, Low]);
    }
}
