//! The hardware that this process runs on, as Linux shows it: a type of resource restricts the process if all processors that
//! it may run on are part of one instance (MPI-4.1 §7.4.2). Types have the names of hwloc's.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::abi::Info;
use crate::failure::Result;
use crate::info;
use crate::pointer::Pointer;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// A type of resource, and the first processor of the instance that a processor is part of.
type Type = (&'static str, fn(usize) -> Option<u32>);

const TYPES: [Type; 6] = [
    ("hwloc://Machine", |_| Some(0)),
    ("hwloc://Package", |cpu| first_of(cpu, &["topology/package_cpus_list", "topology/core_siblings_list"])),
    ("hwloc://NUMANode", |cpu| first(&entry(cpu, |name| name.starts_with("node"))?.join("cpulist"))),
    ("hwloc://L3Cache", third_cache),
    ("hwloc://Core", |cpu| first_of(cpu, &["topology/core_cpus_list", "topology/thread_siblings_list"])),
    ("hwloc://PU", |cpu| u32::try_from(cpu).ok()),
];

fn folder(cpu: usize) -> PathBuf {
    Path::new(PROCESSORS).join(format!("cpu{cpu}"))
}

/// The first entry of a processor's folder whose name is as wanted.
fn entry(cpu: usize, wanted: fn(&str) -> bool) -> Option<PathBuf> {
    let entries = fs::read_dir(folder(cpu)).ok()?;
    entries.flatten().find(|entry| entry.file_name().to_str().is_some_and(wanted)).map(|entry| entry.path())
}

/// The first processor of a list like `4-7,12`.
fn first(list: &Path) -> Option<u32> {
    let list = fs::read_to_string(list).ok()?;
    list.trim().split(['-', ',']).next()?.parse().ok()
}

/// The same for the first of some files that there is.
fn first_of(cpu: usize, files: &[&str]) -> Option<u32> {
    files.iter().find_map(|file| first(&folder(cpu).join(file)))
}

fn third_cache(cpu: usize) -> Option<u32> {
    let caches = fs::read_dir(folder(cpu).join("cache")).ok()?;
    let is_third =
        |cache: &PathBuf| fs::read_to_string(cache.join("level")).is_ok_and(|level| level.trim() == "3");
    first(&caches.flatten().map(|cache| cache.path()).find(is_third)?.join("shared_cpu_list"))
}

/// The processors that the calling thread may run on.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).collect()
}

/// The instances of a type that some processors are part of; none if the system does not tell.
fn instances(of: fn(usize) -> Option<u32>, processors: &[usize]) -> Option<BTreeSet<u32>> {
    let found = processors.iter().map(|cpu| of(*cpu)).collect::<Option<BTreeSet<u32>>>()?;
    (!found.is_empty()).then_some(found)
}

/// The number of the one instance of a type that this process is restricted to, which others on this machine know it by, too.
pub fn instance(ty: &str) -> Option<u32> {
    let (_, of) = TYPES.iter().find(|(name, _)| *name == ty)?;
    let found = instances(*of, &allowed())?;
    if found.len() == 1 { found.first().copied() } else { None }
}

/// `MPI_Get_hw_resource_info`: every type that the system tells of, and whether it restricts this process.
pub fn get_hw_resource_info(info: Pointer<Info>) -> Result<()> {
    info.check()?;
    let processors = allowed();
    let pair = |(name, of): &Type| {
        let found = instances(*of, &processors)?;
        Some(((*name).to_owned(), (found.len() == 1).to_string()))
    };
    info.set(info::with(TYPES.iter().filter_map(pair).collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_on_two_instances_is_restricted_to_neither() {
        let halves = |cpu: usize| u32::try_from(cpu / 4 * 4).ok();
        assert_eq!(instances(halves, &[1, 3]), Some([0].into()));
        assert_eq!(instances(halves, &[1, 5]), Some([0, 4].into()));
        assert_eq!(instances(halves, &[]), None);
        assert_eq!(instances(|cpu| (cpu < 2).then_some(0), &[1, 5]), None);
        assert_eq!(instance("hwloc://Machine"), Some(0));
        assert_eq!(instance("hwloc://Moon"), None);
    }
}
