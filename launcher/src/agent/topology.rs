//! The processors of this host that its ranks may use, and which of them each rank is bound to.
//!
//! Cores, sockets and NUMA nodes are those that Linux tells in sysfs (Documentation/admin-guide/cputopology.rst,
//! Documentation/ABI/stable/sysfs-devices-node). Which processors count sched_getaffinity(2) says: those that are online, and that
//! cpusets and `taskset` leave to this process.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::cli::Bind;
use crate::frames::{Binding, Unit};

/// A processor: a hardware thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cpu {
    /// In the order of fields processors are next to each other that are close to each other, however the kernel numbers them.
    socket: Option<usize>,
    node: Option<usize>,
    /// The lowest processor of its core.
    core: usize,
    number: usize,
    /// The kernel's number of its core, which is one of its socket's.
    core_id: Option<usize>,
}

/// The processors of a host that ranks may use.
#[derive(Debug)]
pub struct Topology {
    cpus: Vec<Cpu>,
}

/// What ranks are bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// What each has.
    pub unit: Unit,
    /// The processors of each rank of the host; none if they are not bound.
    pub cpus: Vec<Vec<usize>>,
}

impl Topology {
    /// That of this host; says why it is not known.
    pub fn here() -> Result<Self, String> {
        let allowed = allowed().map_err(|error| format!("sched_getaffinity: {error}"))?;
        Ok(Self::read(Path::new("/sys/devices/system"), &allowed))
    }

    /// That which a tree of sysfs describes. Where it tells nothing, each processor is a core, and all are one socket and one node.
    fn read(system: &Path, allowed: &[usize]) -> Self {
        let nodes = nodes(system);
        let cpu = |&number: &usize| {
            let folder = system.join(format!("cpu/cpu{number}/topology"));
            let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
            // The second name is that of kernels before 5.3.
            let threads = ["core_cpus_list", "thread_siblings_list"];
            let threads = threads.iter().find_map(|file| parse(&text(file)?));
            Cpu {
                // -1 where the firmware does not tell.
                socket: text("physical_package_id").and_then(|id| id.trim().parse().ok()),
                node: nodes.iter().find(|(_, cpus)| cpus.contains(&number)).map(|(node, _)| *node),
                core: threads.and_then(|threads| threads.first().copied()).unwrap_or(number),
                number,
                core_id: text("core_id").and_then(|id| id.trim().parse().ok()),
            }
        };
        let mut cpus: Vec<Cpu> = allowed.iter().map(cpu).collect();
        cpus.sort();
        Self { cpus }
    }

    /// Where each of `count` ranks runs.
    pub fn places(&self, count: usize, binding: Binding) -> Places {
        let all: Vec<&Cpu> = self.cpus.iter().collect();
        let mut cores = groups(&all, |cpu| cpu.core);
        if binding.by_numa {
            cores = in_turn(&groups(&all, |cpu| cpu.node));
        }
        let (unit, cpus) = match binding.to {
            Bind::Core if count <= cores.len() => {
                (Unit::Core, cores[..count].iter().map(|core| numbers(core)).collect())
            }
            Bind::Core if count <= all.len() => (Unit::Thread, threads(&cores)[..count].to_vec()),
            Bind::Socket => {
                (Unit::Socket, widened(count, &cores, &groups(&all, |cpu| cpu.socket), binding.by_numa))
            }
            Bind::Numa => {
                (Unit::Numa, widened(count, &cores, &groups(&all, |cpu| cpu.node), binding.by_numa))
            }
            Bind::Core | Bind::None => (Unit::None, Vec::new()),
        };
        Places { unit, cpus }
    }

    /// All processors that may be used, ascending.
    pub fn all(&self) -> Vec<usize> {
        numbers(&self.cpus.iter().collect::<Vec<_>>())
    }

    /// Of which cores, sockets and NUMA nodes some processors are, as the kernel numbers them; `-`: it does not.
    pub fn names(&self, cpus: &[usize]) -> [String; 3] {
        let own: Vec<&Cpu> = self.cpus.iter().filter(|cpu| cpus.contains(&cpu.number)).collect();
        let names: [fn(&Cpu) -> Option<usize>; 3] = [|cpu| cpu.core_id, |cpu| cpu.socket, |cpu| cpu.node];
        names.map(|name| {
            let ids: BTreeSet<usize> = own.iter().filter_map(|cpu| name(cpu)).collect();
            if ids.is_empty() { "-".to_owned() } else { list(&Vec::from_iter(ids)) }
        })
    }
}

/// Processors that have the same of something, in the order of the first of each.
fn groups<'a, K: PartialEq>(cpus: &[&'a Cpu], key: impl Fn(&Cpu) -> K) -> Vec<Vec<&'a Cpu>> {
    let mut groups: Vec<Vec<&Cpu>> = Vec::new();
    for cpu in cpus {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| key(first) == key(cpu))) {
            Some(group) => group.push(cpu),
            None => groups.push(vec![cpu]),
        }
    }
    groups
}

/// The cores of NUMA nodes: the first of each, then the second of each.
fn in_turn<'a>(nodes: &[Vec<&'a Cpu>]) -> Vec<Vec<&'a Cpu>> {
    let nodes: Vec<Vec<Vec<&Cpu>>> = nodes.iter().map(|node| groups(node, |cpu| cpu.core)).collect();
    let most = nodes.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(|index| nodes.iter().filter_map(move |node| node.get(index).cloned())).collect()
}

/// The hardware threads of cores: the first of each, then the second of each, so that a core is shared as late as can be.
fn threads(cores: &[Vec<&Cpu>]) -> Vec<Vec<usize>> {
    let most = cores.iter().map(Vec::len).max().unwrap_or(0);
    (0..most)
        .flat_map(|index| cores.iter().filter_map(move |core| Some(vec![core.get(index)?.number])))
        .collect()
}

/// For each rank the unit (socket, node) around a core: of the cores in turn, else of such as share the ranks out evenly, neighbours
/// together.
fn widened(count: usize, cores: &[Vec<&Cpu>], units: &[Vec<&Cpu>], by_numa: bool) -> Vec<Vec<usize>> {
    let around = |core: &[&Cpu]| units.iter().find(|unit| core.iter().any(|cpu| unit.contains(cpu)));
    let unit = |rank: usize| match () {
        () if by_numa => around(&cores[rank % cores.len()]),
        () if count <= units.len() => units.get(rank),
        () => around(&cores[rank * cores.len() / count]),
    };
    if cores.is_empty() {
        return Vec::new();
    }
    (0..count).map(|rank| unit(rank).map(|unit| numbers(unit)).unwrap_or_default()).collect()
}

fn numbers(cpus: &[&Cpu]) -> Vec<usize> {
    let ascending: BTreeSet<usize> = cpus.iter().map(|cpu| cpu.number).collect();
    ascending.into_iter().collect()
}

/// The NUMA nodes that have processors.
fn nodes(system: &Path) -> Vec<(usize, BTreeSet<usize>)> {
    let entries = fs::read_dir(system.join("node")).into_iter().flatten().flatten();
    let node = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        Some((number, parse(&fs::read_to_string(entry.path().join("cpulist")).ok()?)?))
    };
    entries.filter_map(node).collect()
}

/// Reads `0-3,8`; nothing if it is empty, as it is of memory without processors.
pub fn parse(list: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for range in list.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // No kernel has more.
        cpus.extend(first..=last.min(1 << 16));
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// Writes `0-3,8`, as the kernel does.
pub fn list(ascending: &[usize]) -> String {
    let runs = ascending.chunk_by(|a, b| a + 1 == *b).filter_map(|run| Some((run.first()?, run.last()?)));
    let text =
        runs.map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    text.collect::<Vec<_>>().join(",")
}

/// The processors that the calling thread may run on.
pub fn allowed() -> nix::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)).collect())
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
