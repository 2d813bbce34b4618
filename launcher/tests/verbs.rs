//! Jobs over RDMA devices, on two network namespaces as hosts: shared memory within each, verbs between. To be run in the VM
//! (`ci/vm/run.sh --net netns`), or where `h1` and `h2` are hosts with devices and `TRANSOM_TEST_RSH` leads there.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../runtime/tests/atomicity/mod.rs"]
mod programs;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::ROLE;
use transom::{Job, Result};

/// Seconds that a job may take on a busy machine.
const LIMIT: &str = "1500";

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    match role.as_str() {
        "mixed" => mixed(&job),
        "one word" => one_word(&job),
        "idle" => idle(&job),
        "surviving" => surviving(&job),
        _ => dying(&job),
    }
    .unwrap_or_else(|e| panic!("{e}"));
    let transports: Vec<_> = (0..job.size()).map(|rank| job.transport(rank).unwrap().0).collect();
    println!("RANK {} of {}: {}", job.rank(), job.size(), transports.join(","));
    job.finalize().unwrap();
}

/// Every operation on every type, wide elements, and large and derived accumulates; the programs look at every result. Again
/// until there are `TRANSOM_TEST_UPDATES`.
fn mixed(job: &Job) -> Result<()> {
    let wanted = std::env::var("TRANSOM_TEST_UPDATES").map_or(0, |updates| updates.parse().unwrap());
    let mut done = 0;
    while done == 0 || done < wanted {
        programs::mixed::run(job)?;
        programs::torn::run(job)?;
        programs::large::run(job)?;
        done = job.allreduce(transom::Sum, &[programs::done() as u64])?[0];
    }
    println!("UPDATES {}", programs::done());
    Ok(())
}

/// Rank 0's first word: it adds to it without rest while a rank of the other host does so `FAR` times; the others sleep, so
/// that each has a core.
fn one_word(job: &Job) -> Result<()> {
    const FAR: u64 = 3000;
    const NEAR: u64 = 1000;
    let last = job.size() - 1;
    let window = job.allocate::<u64>(2)?;
    let mut added = 0;
    window.lock_all(|epoch| {
        if job.rank() == 0 {
            // The other word says that the other rank has finished.
            while epoch.get_value(0, 1)? == 0 {
                for _ in 0..NEAR.min(1 + added) {
                    epoch.fetch_add(0, 0, 1)?;
                    added += 1;
                }
            }
        } else if job.rank() == last {
            for _ in 0..FAR {
                epoch.fetch_add(0, 0, 1)?;
            }
            added = FAR;
            epoch.put_value(0, 1, 1)?;
        }
        Ok(())
    })?;
    let all = job.allreduce(transom::Sum, &[added])?[0];
    job.barrier()?;
    if job.rank() == 0 {
        let there = window.local().get(0)?;
        println!("ADDED {all} LOST {}", all - there);
    }
    window.free()
}

/// The last rank ends without a word while the others put to it: they get an error that names it.
fn dying(job: &Job) -> Result<()> {
    let last = job.size() - 1;
    let window = job.allocate::<u64>(1 << 16)?;
    let data = vec![1; 1 << 16];
    if job.rank() == last {
        std::thread::sleep(Duration::from_secs(1));
        std::process::abort();
    }
    let error = loop {
        let put = window.lock_all(|epoch| {
            epoch.put(last, 0, &data)?;
            epoch.flush(last)
        });
        if let Err(error) = put {
            break error;
        }
    };
    println!("TOLD {error}");
    Err(error)
}

/// The same where the others go on: how long after the death they are told.
fn surviving(job: &Job) -> Result<()> {
    let start = Instant::now();
    let Err(_) = dying(job) else { return Ok(()) };
    println!("AFTER {} s", start.elapsed().as_secs());
    Ok(())
}

/// The file by which ranks tell that they wait.
const WAITS: &str = "TRANSOM_TEST_WAITS";

/// Each rank waits for a message that a rank of the other host does not send: nothing is under way that could fail.
fn idle(job: &Job) -> Result<()> {
    let other = (job.rank() + job.size() / 2) % job.size();
    job.barrier()?;
    std::fs::write(std::env::var(WAITS).unwrap(), "").unwrap();
    let error = job.recv::<u8>(other, 0).unwrap_err();
    println!("TOLD {error}");
    Err(error)
}

/// The devices of the two hosts: `TRANSOM_TEST_HOST_DEVICES`, else all. Nothing, and the tests are skipped, where there is none,
/// unless `TRANSOM_CI_REQUIRE_VERBS=1`.
fn devices() -> Option<Vec<String>> {
    let required = std::env::var("TRANSOM_CI_REQUIRE_VERBS").is_ok_and(|value| value == "1");
    let named = std::env::var("TRANSOM_TEST_HOST_DEVICES").ok();
    let named = named.map(|names| names.split(',').map(str::to_owned).collect());
    let names = named.map_or_else(transom_verbs::devices, Ok);
    if !std::path::Path::new("/run/netns/h1").exists() || names.is_err() {
        assert!(!required, "no hosts h1 and h2, or no device: {names:?}");
        println!("skipped: no hosts h1 and h2 with RDMA devices (ci/vm/run.sh --net netns)");
        return None;
    }
    names.ok()
}

/// Four ranks, two on each host, each host with a device of its own.
fn job(role: &str, settings: &[(&str, &str)]) -> Option<Output> {
    job_with(&[], role, settings)
}

/// The same with options of the launcher's.
fn job_with(options: &[&str], role: &str, settings: &[(&str, &str)]) -> Option<Output> {
    let devices = devices()?;
    let (first, second) = (&devices[0], devices.last().unwrap());
    let rsh = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/netns-rsh");
    let output = Command::new(common::TRANSOM)
        .args(["run", "--rsh", rsh, "--hosts", "h1,h2", "-n", "4", "--timeout", LIMIT])
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env("TRANSOM_TRANSPORT", "shm,verbs")
        .env("TRANSOM_VERBS_DEVICE", format!("{first},{first},{second},{second}"))
        .env("TRANSOM_DEADLINE", "100")
        .envs(settings.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(output)
}

/// What a job that has come to its end printed.
fn printed(output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    for line in ["RANK 0 of 4: shm,shm,verbs,verbs", "RANK 3 of 4: verbs,verbs,shm,shm"] {
        assert!(stdout.contains(line), "no {line:?} in\n{stdout}");
    }
    stdout.into_owned()
}

/// The numbers behind a word, added up.
fn sum(printed: &str, word: &str) -> u64 {
    let numbers = printed.lines().flat_map(|line| line.split_whitespace().skip_while(|w| *w != word).nth(1));
    numbers.map(|number| number.parse::<u64>().unwrap()).sum()
}

fn mixed_paths(settings: &[(&str, &str)]) {
    let start = Instant::now();
    let Some(output) = job("mixed", settings) else { return };
    let updates = sum(&printed(&output), "UPDATES");
    eprintln!("{updates} updates of elements in {:?}, {settings:?}", start.elapsed());
    assert!(updates > 50_000);
}

/// Ranks on the target's node and ranks across the wire update the same elements.
#[test]
fn mixed_paths_are_exact() {
    mixed_paths(&[]);
}

/// The same by the agent alone, as on a device without atomics.
#[test]
fn mixed_paths_are_exact_without_the_devices_atomics() {
    mixed_paths(&[("TRANSOM_ATOMICS", "cpu")]);
}

fn lost(settings: &[(&str, &str)]) -> Option<u64> {
    let printed = printed(&job("one word", settings)?);
    let (added, lost) = (sum(&printed, "ADDED"), sum(&printed, "LOST"));
    eprintln!("{added} added, {lost} lost, {settings:?}");
    Some(lost)
}

/// The same with floating-point numbers and pairs by the device, too.
#[test]
fn mixed_paths_are_exact_with_all_types_by_the_device() {
    mixed_paths(&[("TRANSOM_ATOMICS", "nic")]);
}

#[test]
fn one_word_loses_nothing() {
    for settings in [&[][..], &[("TRANSOM_ATOMICS", "cpu")], &[("TRANSOM_ATOMICS", "nic")]] {
        assert_eq!(lost(settings).unwrap_or(0), 0);
    }
}

/// With CPUs and devices on one word, against the rule of domains, updates are lost: the tests above can fail. A job loses few,
/// since both must be at the word within some instructions, and now and then a job loses none.
#[test]
fn one_word_loses_updates_if_cpus_and_devices_mix() {
    const JOBS: usize = 20;
    let job = || lost(&[("TRANSOM_FAULT", "atomics:mixed")]);
    assert!((0..JOBS).any(|_| job().is_none_or(|lost| lost > 0)));
}

#[test]
fn a_rank_that_dies_is_named() {
    let Some(output) = job("dying", &[]) else { return };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success());
    assert!(stderr.contains("rank 3"), "{stdout}\n{stderr}");
}

/// Those who go on are told when the launcher knows, and not when the device gives up.
#[test]
fn who_goes_on_is_told_at_once() {
    let silence = [("TRANSOM_VERBS_SILENCE", "240")];
    let Some(output) = job_with(&["--on-failure", "notify"], "surviving", &silence) else { return };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let after =
        stdout.lines().filter_map(|line| line.strip_prefix("AFTER ")?.strip_suffix(" s")?.parse().ok());
    let after: Vec<u64> = after.collect();
    assert!(after.len() == 3 && after.iter().all(|seconds| *seconds < 60), "{stdout}{stderr}");
}

/// A device that has lost its link, until this is dropped.
struct Down(String);

impl Down {
    fn new(device: &str) -> Self {
        let file = format!("/sys/class/infiniband/{device}/ports/1/gid_attrs/ndevs/0");
        let down = Self(std::fs::read_to_string(file).unwrap().trim().to_owned());
        assert!(down.set("down"));
        down
    }

    fn set(&self, state: &str) -> bool {
        Command::new("ip").args(["link", "set", &self.0, state]).status().unwrap().success()
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        self.set("up");
    }
}

/// The last of all, since it takes a link away.
#[test]
fn z_an_idle_link_that_is_lost() {
    let Some(devices) = devices() else { return };
    let told = tempfile::tempdir().unwrap();
    let told = told.path().join("waits");
    let start = Instant::now();
    let output = std::thread::scope(|scope| {
        let settings = [(WAITS, told.to_str().unwrap()), ("TRANSOM_OFI_SILENCE", "4")];
        let job = scope.spawn(move || job("idle", &settings));
        while !told.exists() && !job.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _down = Down::new(&devices[0]);
        job.join().unwrap().unwrap()
    });
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let told =
        stdout.lines().find(|line| line.contains("TOLD")).unwrap_or_else(|| panic!("{stdout}{stderr}"));
    assert!(!output.status.success() && told.contains(" is lost: "), "{stdout}{stderr}");
    eprintln!("over after {:.1?}: {told}", start.elapsed());
}
