//! The runtime's suite as jobs of processes: on one host over each transport, and across two network namespaces.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../runtime/tests/suite/mod.rs"]
mod suite;

use std::process::{Command, Output, Stdio};
use std::time::Instant;

use common::ROLE;

/// Seconds that a job may take on a busy machine.
const LIMIT: &str = "240";

#[test]
fn rank_program() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    for (name, program) in suite::PROGRAMS {
        let start = Instant::now();
        program(&job).unwrap_or_else(|e| panic!("{name}: {e}"));
        if job.rank() == 0 {
            println!("{name}: {:?}", start.elapsed());
        }
    }
    let transports: Vec<_> = (0..job.size()).map(|rank| job.transport(rank).unwrap().0).collect();
    println!("RANK {} of {}: {}", job.rank(), job.size(), transports.join(","));
    job.finalize().unwrap();
}

fn job(launcher: &mut Command, ranks: usize, transport: &str) -> Output {
    launcher
        .args(["-n", &ranks.to_string(), "--timeout", LIMIT])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(ROLE, "suite")
        .env("TRANSOM_TRANSPORT", transport)
        .env("TRANSOM_DEADLINE", "100")
        .env_remove("SLURM_JOB_ID")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Every rank came to the end; returns which transports it used to each.
fn check(output: &Output, ranks: usize) -> Vec<String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ranks} ranks: {}\n{stdout}\n{stderr}", output.status);
    (0..ranks)
        .map(|rank| {
            let label = format!("RANK {rank} of {ranks}: ");
            let line = stdout.lines().find_map(|line| line.strip_prefix(&label));
            line.unwrap_or_else(|| panic!("no {label:?} in\n{stdout}\n{stderr}")).to_owned()
        })
        .collect()
}

fn on_one_host(transport: &str) {
    // `ci/test.sh` leaves the other numbers to CI.
    let short = std::env::var_os("TRANSOM_TEST_SHORT").is_some();
    for ranks in if short { vec![3] } else { vec![2, 3, 4, 7] } {
        let mut launcher = Command::new(common::TRANSOM);
        let output = job(launcher.arg("run"), ranks, transport);
        let expected = vec![transport; ranks].join(",");
        assert!(check(&output, ranks).iter().all(|line| *line == expected));
    }
}

#[test]
fn suite_over_shm() {
    on_one_host("shm");
}

#[test]
fn suite_over_ofi() {
    on_one_host("ofi");
}

#[test]
fn suite_over_tcp() {
    on_one_host("tcp");
}

#[test]
fn suite_alone() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture"])
        .env(ROLE, "suite")
        .output()
        .unwrap();
    check(&output, 1);
}

/// Namespaces as hosts: shared memory within each, or the network itself; between them libfabric, TCP, or what jobs use that are
/// not told: TCP, as there is no device and no network card.
#[test]
fn suite_across_two_hosts() {
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to make network namespaces (root, iproute2)");
        println!("skipped: network namespaces need root and iproute2");
        return;
    }
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    for (transport, near, far) in
        [("shm,ofi", "shm", "ofi"), ("shm,verbs,ofi,tcp", "shm", "tcp"), ("tcp", "tcp", "tcp")]
    {
        let mut launcher = Command::new(format!("{ci}/netns.sh"));
        launcher.args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", "h1,h2"]);
        let lines = check(&job(&mut launcher, 4, transport), 4);
        assert_eq!(lines[0], format!("{near},{near},{far},{far}"));
        assert_eq!(lines[3], format!("{far},{far},{near},{near}"));
    }
}

/// Shared memory alone does not reach another host: every rank says so, at once.
#[test]
fn no_transport_to_another_host() {
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        println!("skipped: network namespaces need root and iproute2");
        return;
    }
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    let mut launcher = Command::new(format!("{ci}/netns.sh"));
    launcher.args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", "h1,h2"]);
    let output = job(&mut launcher, 2, "shm");
    let stdout = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        stdout.contains(
            "ranks are on several hosts, and TRANSOM_TRANSPORT names no network: verbs, ofi or tcp"
        ),
        "{stdout}"
    );
}
