//! What the figures were measured on.

use std::fs;

use transom::Job;

/// One line: CPU, cores, kernel, transport and what is below it.
pub fn describe(job: &Job) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()))
        .unwrap_or("unknown CPU");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (transport, provider) = job.transport(1).unwrap_or(("none", ""));
    format!("{model}, {cores} cores, Linux {}; transport {transport}: {provider}", kernel.trim())
}
