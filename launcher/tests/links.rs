//! A link between two hosts, which network namespaces play: it goes down, for a moment or for good, or loses what was sent last.
//!
//! This test program is also the program of the ranks: one of them takes its link down.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::ROLE;
use transom::{Job, Result};

/// Seconds that a silent peer gets in these jobs.
const SILENCE: u64 = 4;
/// How long the ranks work.
const WORK: Duration = Duration::from_secs(3);

fn link(state: &str) {
    assert!(Command::new("ip").args(["link", "set", "eth0", state]).status().unwrap().success());
}

/// Names a file that is there once the link loses all that comes to rank 1.
const LOSES: &str = "TRANSOM_TEST_LOSES";
/// How long it loses that, in seconds: longer than it takes rank 1 to ask.
const LOSS: &str = "TRANSOM_TEST_LOSS";

fn nft(script: &str) {
    assert!(Command::new("nft").arg(script).status().unwrap().success());
}

/// The last message that rank 0 sends is lost, and comes again only when rank 1 has asked. Acknowledgements and resets are shorter.
fn end_unheard(job: Job) -> Result<()> {
    let loses = std::env::var(LOSES).unwrap();
    job.barrier()?;
    if job.rank() == 0 {
        while !Path::new(&loses).exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        return job.finalize();
    }
    nft("add table ip loss; add chain ip loss in { type filter hook input priority 0; }; \
         add rule ip loss in iifname eth0 ip length > 100 drop");
    std::fs::write(&loses, "").unwrap();
    let hears = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(std::env::var(LOSS).unwrap().parse().unwrap()));
        nft("delete table ip loss");
    });
    let ended = job.finalize();
    hears.join().unwrap();
    ended
}

/// The ranks have lost each other when they come to the end of the job.
fn end_without_link(job: Job) -> Result<()> {
    job.barrier()?;
    if job.rank() == 1 {
        link("down");
    }
    std::thread::sleep(Duration::from_secs(2 * SILENCE));
    job.finalize()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let job = transom::init().unwrap_or_else(|e| panic!("{e}"));
    if role.starts_with("unheard") {
        let rank = job.rank();
        if let Err(error) = end_unheard(job) {
            eprintln!("ERROR {error}");
            std::process::exit(7);
        }
        println!("RANK {rank} has ended");
        return;
    }
    if role == "end" {
        if let Err(error) = end_without_link(job) {
            eprintln!("ERROR {error}");
            std::process::exit(7);
        }
        return;
    }
    let moment = role == "moment";
    let down = (job.rank() == 1).then(|| {
        std::thread::spawn(move || {
            std::thread::sleep(WORK / 3);
            link("down");
            if moment {
                std::thread::sleep(Duration::from_secs(1));
                link("up");
            }
        })
    });
    if let Err(error) = if role == "idle" { wait(&job) } else { turns(&job) } {
        eprintln!("ERROR {error}");
        std::process::exit(7);
    }
    if let Some(thread) = down {
        thread.join().unwrap();
    }
    job.finalize().unwrap();
}

/// Puts and barriers in turns: each rank waits for the other's, and their time is that of rank 0.
fn turns(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(2)?;
    let start = Instant::now();
    let mut round = 1;
    loop {
        let goes_on = u64::from(start.elapsed() < WORK);
        let words = [round, goes_on];
        window.lock_all(|epoch| {
            if job.rank() == 0 {
                epoch.put(1, 0, &words)?;
            }
            epoch.flush_all()
        })?;
        job.barrier()?;
        let goes_on = if job.rank() == 0 { goes_on } else { window.local().get(1)? };
        assert!(job.rank() == 0 || window.local().get(0)? == round);
        job.barrier()?;
        if goes_on == 0 {
            println!("RANK {} after {round} rounds", job.rank());
            return Ok(());
        }
        round += 1;
    }
}

/// Each rank waits for a message that the other does not send: nothing is under way that could fail.
fn wait(job: &Job) -> Result<()> {
    job.barrier()?;
    job.recv::<u8>(1 - job.rank(), 0).map(drop)
}

/// Exit code, output, errors and duration of a job whose link goes down.
fn run(transport: &str, how: &str) -> Option<(i32, String, String, Duration)> {
    // Of a short loss a busy machine may make a longer one, which is still not the silence of a peer.
    let (loss, silence) = if how == "unheard" { (2, 10 * SILENCE) } else { (3 * SILENCE, SILENCE) };
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to make network namespaces (root, iproute2)");
        println!("skipped: network namespaces need root and iproute2");
        return None;
    }
    let ci = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci");
    let directory = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = Command::new(format!("{ci}/netns.sh"))
        .args([common::TRANSOM, "run", "--rsh", &format!("{ci}/netns-rsh"), "--hosts", "h1,h2"])
        .args(["-n", "2", "--timeout", "100", "--on-failure", if how == "end" { "notify" } else { "end" }])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "rank_program", "--nocapture", "--test-threads=1"])
        .env(ROLE, how)
        .env(LOSES, directory.path().join("loses"))
        .env("TRANSOM_TRANSPORT", transport)
        .env(LOSS, loss.to_string())
        .env("TRANSOM_OFI_SILENCE", silence.to_string())
        .env("TRANSOM_TCP_SILENCE", silence.to_string())
        .env_remove("SLURM_JOB_ID")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((output.status.code().unwrap(), text(&output.stdout), text(&output.stderr), start.elapsed()))
}

fn for_good(transport: &str, how: &str) {
    let Some((code, stdout, stderr, lasted)) = run(transport, how) else { return };
    assert_eq!(code, 7, "{stdout}{stderr}");
    let names_peer = stderr.contains("peer 0 ") || stderr.contains("peer 1 ");
    assert!(stderr.contains("ERROR") && names_peer, "{stderr}");
    // The hosts' own patience, in a busy machine's time; a job that nobody ended would last 100 s.
    assert!(lasted < Duration::from_secs(60), "{lasted:?}");
    println!(
        "{transport}, {how}: over after {lasted:.1?}: {}",
        stderr.lines().find(|line| line.contains("ERROR")).unwrap()
    );
}

fn loses_packets() -> bool {
    if Command::new("nft").arg("--version").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must be able to lose packets (nftables)");
        println!("skipped: losing packets needs nftables");
        return false;
    }
    true
}

/// A rank that could end stays until the others can, too.
fn last_words_are_lost(transport: &str) {
    if !loses_packets() {
        return;
    }
    let Some((code, stdout, stderr, lasted)) = run(transport, "unheard") else { return };
    assert_eq!((code, stdout.matches("RANK ").count()), (0, 2), "{stdout}{stderr}");
    println!("{transport}: all ended, in all {lasted:.1?}");
}

fn for_a_moment(transport: &str) {
    let Some((code, stdout, stderr, lasted)) = run(transport, "moment") else { return };
    assert_eq!((code, stdout.matches("RANK ").count()), (0, 2), "{stdout}{stderr}");
    println!("{transport}: goes on, in all {lasted:.1?}");
}

#[test]
fn a_link_that_is_lost_over_tcp() {
    for_good("tcp", "good");
}

#[test]
fn an_idle_link_that_is_lost_over_tcp() {
    for_good("tcp", "idle");
}

/// In a job that goes on without its dead: each rank tries to end it with one that lives, and that it does not reach.
#[test]
fn a_link_that_was_lost_before_the_end_over_tcp() {
    for_good("tcp", "end");
}

#[test]
fn a_link_that_is_lost_over_ofi() {
    if common::has_libfabric() {
        for_good("ofi", "good");
    }
}

#[test]
fn an_idle_link_that_is_lost_over_ofi() {
    if common::has_libfabric() {
        for_good("ofi", "idle");
    }
}

#[test]
fn a_link_that_comes_back_over_tcp() {
    for_a_moment("tcp");
}

#[test]
fn a_link_that_comes_back_over_ofi() {
    if common::has_libfabric() {
        for_a_moment("ofi");
    }
}

#[test]
fn last_words_that_are_lost_over_tcp() {
    last_words_are_lost("tcp");
}

/// The rank that sent them may have left when its host gives them up.
#[test]
fn last_words_that_are_lost_for_good_over_tcp() {
    if loses_packets() {
        for_good("tcp", "unheard for good");
    }
}

#[test]
fn last_words_that_are_lost_over_ofi() {
    if common::has_libfabric() {
        last_words_are_lost("ofi");
    }
}
