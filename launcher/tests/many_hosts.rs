//! Jobs of 64 ranks on network namespaces that stand for hosts, whose agents start each other.
//!
//! This test program is also the program of the ranks. It prints how long each job took.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::process::{Command, Stdio};
use std::time::Instant;

use common::ROLE;

const RANKS: usize = 64;

/// Ranks meet, know who is on their host, and draw tickets from rank 0 by shared memory and by the network.
#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (by, hosts) = role.split_once(' ').unwrap();
    let hosts: usize = hosts.parse().unwrap();
    let job = transom::init().unwrap();
    assert_eq!(job.size(), RANKS);
    let host = |rank: usize| if by == "node" { rank % hosts } else { rank / (RANKS / hosts) };
    let number: u64 = std::env::var("TRANSOM_HOST_NUMBER").unwrap().parse().unwrap();
    let numbers = job.allgather(&[number]).unwrap().concat();
    assert_eq!(numbers, (0..RANKS).map(|rank| host(rank) as u64).collect::<Vec<_>>());
    let beside = job.split_shared().unwrap();
    let expected = (0..job.rank()).filter(|rank| host(*rank) == host(job.rank())).count();
    assert_eq!((beside.size(), beside.rank()), (RANKS / hosts, expected));
    let window = job.allocate::<u64>(1).unwrap();
    let ticket = window.lock_all(|epoch| epoch.fetch_add(0, 0, 1)).unwrap();
    let mut tickets = job.allgather(&[ticket]).unwrap().concat();
    tickets.sort_unstable();
    assert_eq!(tickets, (0..RANKS as u64).collect::<Vec<_>>());
    job.barrier().unwrap();
    window.free().unwrap();
    job.finalize().unwrap();
    println!("MET");
}

#[test]
fn sixty_four_ranks() {
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to make network namespaces (root, iproute2)");
        println!("skipped: network namespaces need root and iproute2");
        return;
    }
    let all = [(8, "slot"), (16, "node"), (2, "slot"), (4, "node"), (16, "slot")];
    // `ci/test.sh` leaves the others to CI.
    let short = std::env::var_os("TRANSOM_TEST_SHORT").is_some();
    for (hosts, by) in &all[..if short { 2 } else { all.len() }] {
        met_on(*hosts, by);
    }
}

fn met_on(hosts: usize, by: &str) {
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    let names: Vec<String> = (1..=hosts).map(|host| format!("h{host}")).collect();
    let begin = Instant::now();
    let output = Command::new(format!("{ci}/netns.sh"))
        .args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", &names.join(",")])
        .args(["-n", &RANKS.to_string(), "--map-by", by, "--fan-out", "2", "--timeout", "60"])
        .args(["--connect-timeout", "30"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(ROLE, format!("{by} {hosts}"))
        .env("TRANSOM_NETNS_HOSTS", hosts.to_string())
        // So many ranks of a busy machine take long to meet.
        .env("TRANSOM_TCP_CONNECT", "50")
        .env_remove("SLURM_JOB_ID")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{hosts} hosts by {by}: {stdout}\n{said}");
    assert_eq!(stdout.matches("MET").count(), RANKS, "{hosts} hosts by {by}: {said}");
    println!(
        "{RANKS} ranks on {hosts} hosts by {by}, namespaces included: {:.2} s",
        begin.elapsed().as_secs_f64()
    );
}
