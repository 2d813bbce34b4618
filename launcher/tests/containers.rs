//! The runtime's suite as jobs whose ranks are in containers of their own, or to which the kernel refuses what it grants elsewhere:
//! over shared memory, or with one line that says why not. `ci/containers.sh` has more places, and programs of MPI.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../runtime/tests/suite/mod.rs"]
mod suite;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::ROLE;

const RANKS: usize = 3;
/// Seconds that a job may take on a busy machine.
const LIMIT: &str = "240";
/// All that a container may have of its own: users, processes, network, and more.
const CONTAINER: [&str; 8] =
    ["unshare", "--map-current-user", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts"];

#[test]
fn rank_program() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    for (name, program) in suite::PROGRAMS {
        program(&job).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let ways: Vec<_> =
        (0..job.size()).filter(|rank| *rank != job.rank()).map(|rank| job.transport(rank)).collect();
    println!("RANK {}: {ways:?}", job.rank());
    job.finalize().unwrap();
}

/// Whether containers can be made here.
fn can_contain(tool: &str) -> bool {
    let possible = nix::unistd::geteuid().is_root() && Command::new(tool).arg("--version").output().is_ok();
    assert!(possible || std::env::var("CI").is_err(), "CI must be able to make containers (root, {tool})");
    if !possible {
        println!("skipped: containers need root and {tool}");
    }
    possible
}

/// The suite, each rank started by the command `place`.
fn suite_in(place: &[&str], transport: &str) -> Output {
    Command::new(common::TRANSOM)
        .args(["run", "-n", &RANKS.to_string(), "--timeout", LIMIT])
        .args(place)
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

/// Every rank came to the end, over shared memory; with cross-memory attach or without.
fn assert_shared(output: &Output, attach: bool) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    let way = if attach { "memory files, cross-memory attach" } else { "memory files" };
    let way = format!("Some((\"shm\", {way:?}))");
    for rank in 0..RANKS {
        let label = format!("RANK {rank}: [{way}, {way}]");
        assert!(stdout.contains(&label), "{label}\n{stdout}\n{stderr}");
    }
}

fn compiled(name: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join(name).to_str().unwrap().to_owned();
    let source = format!("{}/../ci/containers/{name}.c", env!("CARGO_MANIFEST_DIR"));
    assert!(Command::new("cc").args(["-O1", "-o", &program, &source]).status().unwrap().success());
    (dir, program)
}

#[test]
fn a_user_namespace_for_each_rank() {
    if can_contain("unshare") {
        assert_shared(&suite_in(&["unshare", "--map-current-user"], "shm"), false);
    }
}

#[test]
fn a_network_namespace_for_each_rank() {
    if can_contain("unshare") {
        assert_shared(&suite_in(&["unshare", "--net"], "shm,tcp"), true);
    }
}

#[test]
fn a_container_for_each_rank() {
    if can_contain("unshare") {
        assert_shared(&suite_in(&CONTAINER, "shm,tcp"), false);
    }
}

#[test]
fn ranks_without_proc() {
    if can_contain("unshare") {
        let script = "umount -l /proc && exec \"$@\"";
        assert_shared(&suite_in(&["unshare", "--mount", "sh", "-c", script, "sh"], "shm"), true);
    }
}

/// As Yama refuses it (ptrace_scope 2 and 3), and as Docker did.
#[test]
fn cross_memory_attach_is_refused() {
    if can_contain("cc") {
        let (_dir, deny) = compiled("deny");
        for whom in ["others", "all"] {
            assert_shared(&suite_in(&[&deny, whom], "shm"), false);
        }
    }
}

#[test]
fn no_way_at_all_is_an_error_that_names_both_ends() {
    if !can_contain("unshare") {
        return;
    }
    for transport in ["tcp", "ofi"] {
        let start = Instant::now();
        let output = suite_in(&["unshare", "--net"], transport);
        let stderr = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success());
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}: {stderr}", start.elapsed());
        assert!(stderr.contains("ranks 0 and 1 are on different hosts or in different network"), "{stderr}");
    }
}

/// Addresses of one network, and nothing that answers, or refuses.
#[test]
fn silence_is_an_error_that_names_both_ends() {
    if !can_contain("unshare") {
        return;
    }
    let script = "ip link add eth0 type veth peer name eth1 &&
        ip address add 10.7.0.$((PMI_RANK + 1))/24 dev eth0 && ip link set eth0 up && ip link set eth1 up &&
        for i in 1 2 3; do ip neighbour add 10.7.0.$i lladdr 02:00:00:00:00:01 dev eth0 || exit 9; done &&
        TRANSOM_TCP_CONNECT=2 exec \"$@\"";
    let start = Instant::now();
    let output = suite_in(&["unshare", "--net", "sh", "-c", script, "sh"], "tcp");
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}: {text}", start.elapsed());
    let between =
        |a: usize, b: usize| text.contains(&format!("rank {a} could not connect to rank {b} in time"));
    assert!((0..RANKS).any(|a| (0..RANKS).any(|b| between(a, b))), "{text}");
}
