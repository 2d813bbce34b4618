//! What this host has: processors, memory, limits.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};
use transom_transport::limits::{self, cgroup};

/// The facts of this host, as name and value.
pub fn host_facts() -> Vec<(&'static str, String)> {
    vec![
        ("name", crate::process::host_name()),
        ("allocation", crate::allocation::describe()),
        ("kernel", kernel()),
        ("processors", processors()),
        ("memory", memory()),
        ("huge pages", huge_pages()),
        ("lockable memory", limit(Resource::RLIMIT_MEMLOCK, true)),
        ("open files", limit(Resource::RLIMIT_NOFILE, false)),
        ("processes", limit(Resource::RLIMIT_NPROC, false)),
        ("address space", limit(Resource::RLIMIT_AS, true)),
        ("data", limit(Resource::RLIMIT_DATA, true)),
        ("stack", limit(Resource::RLIMIT_STACK, true)),
        ("size of files", size_of_files()),
        ("core dumps", limit(Resource::RLIMIT_CORE, true)),
        ("memory limit", memory_limit()),
    ]
}

pub(crate) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn kernel() -> String {
    let part = |name| read(&format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {} ({})", part("ostype"), part("osrelease"), std::env::consts::ARCH)
}

fn processors() -> String {
    let model = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        line.split_once(':').map(|(_, model)| model.trim().to_owned())
    });
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0));
    let allowed = set.map_or(usable, |set| {
        (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)).count()
    });
    let quota = if usable < allowed { format!(", limited to {usable} by a quota") } else { String::new() };
    format!("{allowed}{quota}, {}", model.unwrap_or_else(|| "unknown model".to_owned()))
}

pub(crate) fn meminfo(name: &str) -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find(|line| line.split(':').next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn memory() -> String {
    match (meminfo("MemTotal"), meminfo("MemAvailable")) {
        (Some(total), Some(free)) => format!("{}, {} available", bytes(total * 1024), bytes(free * 1024)),
        _ => "unknown".to_owned(),
    }
}

fn huge_pages() -> String {
    let count = |name| meminfo(name).unwrap_or(0);
    let size = bytes(count("Hugepagesize") * 1024);
    let transparent = read("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let transparent = transparent.split(['[', ']']).nth(1).unwrap_or("unknown");
    format!(
        "{} of {size}, {} free; transparent: {transparent}",
        count("HugePages_Total"),
        count("HugePages_Free")
    )
}

/// Files in memory are files: windows.
fn size_of_files() -> String {
    let is = limit(Resource::RLIMIT_FSIZE, true);
    match limits::file_size() {
        None => is,
        Some(_) => format!("{is}: holds for windows, too; `transom doctor` says what it costs"),
    }
}

fn memory_limit() -> String {
    cgroup::lowest(cgroup::Limit::Memory).map_or("none".into(), |limit| format!("{} (cgroup)", bytes(limit)))
}

fn limit(resource: Resource, in_bytes: bool) -> String {
    let show = |value| match value {
        nix::libc::RLIM_INFINITY => "unlimited".to_owned(),
        value if in_bytes => bytes(value),
        value => value.to_string(),
    };
    match getrlimit(resource) {
        Ok((soft, hard)) => format!("{} (hard limit {})", show(soft), show(hard)),
        Err(error) => error.to_string(),
    }
}

/// A number of bytes, for people.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut value = count as f64;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value.fract() == 0.0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}
