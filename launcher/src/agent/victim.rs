//! Whom the kernel ends where memory runs out: a rank, and neither the launcher nor an agent, which say what has happened.

use transom_transport::limits::cgroup;

use crate::info::host::meminfo;

/// Bytes that a launcher or an agent may have, pages of its program among them.
const OWN: u64 = 32 << 20;
/// Who has this is never ended; the highest is 1000 (proc_pid_oom_score_adj(5)).
const NEVER: i32 = -1000;
const FILE: &str = "/proc/self/oom_score_adj";

/// How much higher a rank's score is to be than this process's: thousandths of the memory that there is for both.
pub fn more() -> i32 {
    let host = meminfo("MemTotal").map(|kib| kib * 1024);
    thousandths(cgroup::lowest(cgroup::Limit::Memory).into_iter().chain(host).min())
}

fn thousandths(memory: Option<u64>) -> i32 {
    let memory = memory.unwrap_or(u64::MAX).max(1);
    (OWN * 1000).div_ceil(memory).min(1000) as i32
}

/// Makes this process's score so much higher, unless it is one that is never to be ended. Where that cannot be done nothing is lost.
pub fn raise(more: i32) {
    let Some(now) = std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok()) else {
        return;
    };
    if now > NEVER {
        let _ = std::fs::write(FILE, i32::saturating_add(now, more).min(1000).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_of_memory_are_what_a_launcher_has() {
        for memory in [1 << 26, 1 << 30, 24 << 30, 2 << 40] {
            let score = thousandths(Some(memory));
            assert!(u64::from(score.unsigned_abs()) * memory / 1000 >= OWN);
            assert!(u64::from(score.unsigned_abs() - 1) * memory / 1000 < OWN);
        }
        assert_eq!([Some(0), Some(24 << 20), None].map(thousandths), [1000, 1000, 1]);
    }
}
