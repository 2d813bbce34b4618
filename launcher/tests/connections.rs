//! Connections of a job over TCP: made when they are first needed, one for each pair of ranks, with little memory; and without libraries
//! for other networks, if there is none.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::ROLE;
use transom::{Job, Result};

const RANKS: usize = 16;
/// Rounds in which every rank puts to every other.
const ROUNDS: u64 = 50;
/// Files that a rank has open and that are no connections: standard ones, memory, events, listeners, the launcher's socket.
const OTHER_FILES: usize = 40;

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn sockets() -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| fs::read_link(entry.path()));
    links.flatten().filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

/// Resident memory in KiB that is this process's own.
fn memory() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    match role.as_str() {
        "libraries" => {
            println!("RANK {}: {:?}, {:?}", job.rank(), job.transport(1 - job.rank()), libraries())
        }
        _ => all_to_all(&job).unwrap_or_else(|e| panic!("{e}")),
    }
    job.finalize().unwrap();
}

/// Libraries for network devices that this process has opened.
fn libraries() -> Vec<&'static str> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    ["libibverbs", "libfabric"].into_iter().filter(|library| maps.contains(library)).collect()
}

fn all_to_all(job: &Job) -> Result<()> {
    let unconnected = sockets();
    let window = job.allocate::<u64>(job.size())?;
    // Collective operations need some of the connections: as many as there are rounds.
    let few = sockets() - unconnected;
    let before = memory();
    // Nobody puts, and thereby connects, before all have counted.
    job.barrier()?;
    for round in 1..=ROUNDS {
        window.lock_all(|epoch| {
            for target in 0..job.size() {
                epoch.put_value(target, job.rank(), round << 32 | job.rank() as u64)?;
            }
            epoch.flush_all()
        })?;
        job.barrier()?;
        for origin in 0..job.size() {
            assert_eq!(window.local().get(origin)?, round << 32 | origin as u64);
        }
        job.barrier()?;
    }
    let (all, files) = (sockets() - unconnected, open_files());
    let per_peer = (memory() - before) as f64 / (job.size() - 1) as f64;
    println!("RANK {}: {few} connections, then {all}; {files} files; {per_peer:.1} KiB per peer", job.rank());
    Ok(())
}

/// What the ranks say of a job on hosts that are network namespaces; nothing where those cannot be made.
fn on_hosts(hosts: usize, ranks: usize, role: &str, transport: &str) -> Option<Vec<String>> {
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to make network namespaces (root, iproute2)");
        println!("skipped: network namespaces need root and iproute2");
        return None;
    }
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    let names: Vec<String> = (1..=hosts).map(|number| format!("h{number}")).collect();
    let output = Command::new(format!("{ci}/netns.sh"))
        .args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", &names.join(",")])
        .args(["-n", &ranks.to_string(), "--timeout", "100"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env("TRANSOM_NETNS_HOSTS", hosts.to_string())
        .env("TRANSOM_TRANSPORT", transport)
        .env_remove("SLURM_JOB_ID")
        .env_remove("TRANSOM_IBVERBS")
        .env_remove("TRANSOM_LIBFABRIC")
        .env_remove("TRANSOM_OFI_PROVIDER")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<String> =
        stdout.lines().filter_map(|line| Some(line[line.find("RANK ")?..].to_owned())).collect();
    assert_eq!(lines.len(), ranks, "{stdout}");
    Some(lines)
}

/// Libfabric with all that it needs takes several times as long to open as a job to start.
#[test]
fn libraries_for_devices_that_are_not_there_are_not_opened() {
    if ["infiniband", "infiniband_verbs", "hfi1", "cxi"]
        .iter()
        .any(|class| Path::new("/sys/class").join(class).exists())
    {
        println!("skipped: there are devices");
        return;
    }
    for line in on_hosts(2, 2, "libraries", "shm,verbs,ofi,tcp").unwrap_or_default() {
        assert!(line.contains("\"tcp\"") && line.ends_with(", []"), "{line}");
    }
}

#[test]
fn sixteen_ranks_on_four_hosts() {
    for line in on_hosts(4, RANKS, "all to all", "tcp").unwrap_or_default() {
        println!("{line}");
        let numbers: Vec<f64> = line
            .split(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [_, few, all, files, per_peer] = numbers[..] else { panic!("{line}") };
        assert!(few < (RANKS - 1) as f64, "connections that nobody has asked for: {line}");
        assert!(all <= (RANKS - 1) as f64, "more than one for a pair: {line}");
        assert!(files <= (RANKS + OTHER_FILES) as f64, "too many files: {line}");
        assert!(per_peer < 512.0, "too much memory: {line}");
    }
}
