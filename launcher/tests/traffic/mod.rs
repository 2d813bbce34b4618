//! Ranks that never rest: locks, puts, gets, atomics, accumulates and fences, and every result is checked.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use transom::{LockKind, Sum};

use crate::common::{Job, start, transom};

/// What the ranks are to do: seconds of traffic.
const SECONDS: &str = "TRANSOM_TEST_SECONDS";
/// File that rank 0 makes when its traffic ends.
pub const ENDING: &str = "TRANSOM_TEST_ENDING";
/// File without whose end the traffic does not end.
pub const WHILE: &str = "TRANSOM_TEST_WHILE";
const BLOCK: usize = 1000;

/// The ranks of a job: this test program again. Does nothing unless it is a rank.
pub fn rank_program() {
    let Ok(seconds) = std::env::var(SECONDS) else { return };
    let time = Duration::from_secs_f64(seconds.parse().unwrap());
    let rounds = traffic(time).unwrap_or_else(|e| panic!("{e}"));
    println!("VERIFIED {rounds} rounds");
}

/// Words of the window: a counter under a lock, one of fetch-and-add, a sum, the sign to stop, and a block to put to.
const LOCKED: usize = 0;
const FETCHED: usize = 1;
const SUMMED: usize = 2;
const STOP: usize = 3;
const PUT: usize = 4;

fn traffic(time: Duration) -> transom::Result<u64> {
    let job = transom::init()?;
    let (rank, size) = (job.rank(), job.size());
    let begin = Instant::now();
    let window = job.allocate::<u64>(PUT + BLOCK)?;
    let floats = job.create(vec![0.0_f64; 8])?;
    let mut round = 0;
    let mut last_ticket = vec![None; size];
    let more = std::env::var_os(WHILE).map(PathBuf::from);
    let is_over = || begin.elapsed() >= time && !more.as_ref().is_some_and(|file| file.exists());
    while window.local().get(STOP)? == 0 {
        let target = (rank + 1 + round as usize % size) % size;
        window.lock(LockKind::Exclusive, target, |epoch| {
            let count = epoch.get_value(target, LOCKED)?;
            epoch.put_value(target, LOCKED, count + 1)
        })?;
        let ticket = window.lock_all(|epoch| {
            epoch.accumulate(target, SUMMED, Sum, &[rank as u64 + 1])?;
            epoch.fetch_add(target, FETCHED, 1)
        })?;
        assert!(last_ticket[target] < Some(ticket), "a ticket came twice");
        last_ticket[target] = Some(ticket);
        floats.lock(LockKind::Shared, target, |epoch| epoch.accumulate(target, 0, Sum, &[0.5; 8]))?;
        let block = [round << 8 | rank as u64; BLOCK];
        let stop = rank == 0 && is_over();
        window.fence(|epoch| {
            epoch.put_copy((rank + 1) % size, PUT, &block)?;
            for peer in 0..if stop { size } else { 0 } {
                epoch.put_value(peer, STOP, 1)?;
            }
            Ok(())
        })?;
        let left = (rank + size - 1) % size;
        let mut found = vec![0; BLOCK];
        window.local().read(PUT, &mut found)?;
        assert!(found.iter().all(|word| *word == round << 8 | left as u64), "a put is not there");
        round += 1;
        // Nobody puts the next block before all have looked at this one.
        job.barrier()?;
    }
    if let Some(file) = std::env::var_os(ENDING).filter(|_| rank == 0) {
        std::fs::write(file, "").unwrap();
    }
    let local = window.local();
    let mine: Vec<u64> = local.to_vec()?[..SUMMED + 1].to_vec();
    let (mut hits, mut sum) = (0, 0);
    for round in 0..round {
        for origin in 0..size {
            if (origin + 1 + round as usize % size) % size == rank {
                hits += 1;
                sum += origin as u64 + 1;
            }
        }
    }
    assert_eq!(mine, [hits, hits, sum], "counter under a lock, counter of fetch-and-add, sum");
    assert_eq!(floats.local().to_vec()?, [0.5 * hits as f64; 8]);
    floats.free()?;
    window.free()?;
    job.finalize()?;
    Ok(round)
}

/// Starts 4 ranks with so much traffic.
pub fn start_ranks(transport: &str, seconds: f64, change: impl FnOnce(&mut Command)) -> Job {
    let exe = std::env::current_exe().unwrap();
    let program = ["--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = transom(&["-n", "4"]);
    command.arg(exe).args(program).env(SECONDS, seconds.to_string()).env("TRANSOM_TRANSPORT", transport);
    change(&mut command);
    start(&mut command)
}

/// Whether this program is a rank now: then the other tests do nothing.
pub fn is_rank() -> bool {
    std::env::var(SECONDS).is_ok()
}

/// The ranks that are there now, with their process ids.
pub fn ranks(job: &Job) -> Vec<(u32, i32)> {
    let rank = |pid: i32| -> Option<u32> {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environ.split(|&b| b == 0);
        let value = variables.find_map(|variable| variable.strip_prefix(b"PMI_RANK="))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    job.processes().into_iter().filter_map(|(pid, _)| Some((rank(pid)?, pid))).collect()
}

/// A random number below.
pub fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % below
}

/// Memory files that processes hold, by inode.
pub fn memory_files(pids: impl Iterator<Item = i32>) -> HashSet<(u64, u64)> {
    let files =
        pids.flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let anonymous = |path: &Path| {
        std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:"))
    };
    let inode = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    files.map(|file| file.path()).filter(|path| anonymous(path)).filter_map(|path| inode(&path)).collect()
}

/// All processes of this machine.
pub fn everybody() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
