//! Two hosts, which network namespaces play: at random moments ranks, agents and what keeps those are killed, agents stop, and the link
//! between the hosts is lost, for a moment, for good, or in part, with both answers to failures. Each job ends in time with the right
//! message, and leaves nothing; with `notify` those that can go on do.
//!
//! `TRANSOM_TEST_DISASTERS` is the number of jobs, `TRANSOM_TEST_OVER` the transports, with commas. It all happens below `ci/netns.sh`, as a
//! test of this same program.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::counter::STRICT;
use super::{JOINED, RANKS, ROLE, common, joined, random};

/// Set below `ci/netns.sh`.
const NAMESPACES: &str = "TRANSOM_NETNS";
/// Seconds after which a peer that is silent is lost.
const SILENCE: &str = "2";
/// A link that is away for less has no consequences. After [`SILENCE`] the system has asked an idle peer once for a sign of life, a second
/// after its last: if that is lost, so is the peer.
const MOMENT: Duration = Duration::from_millis(800);
/// The most that a job takes here: what it works, [`SILENCE`] twice over, and a busy machine.
const LIMIT: Duration = Duration::from_secs(25);
/// The same where packets are lost, for which TCP waits a fifth of a second and more, at any of the some hundred round trips that ranks
/// are yet to make.
const LIMIT_OF_LOSS: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disaster {
    Ranks(usize),
    Agent,
    /// It lives, but does nothing any more.
    AgentStops,
    Keeper,
    /// For less than [`MOMENT`], or on a busy machine for longer.
    LinkForAMoment,
    LinkForGood,
    /// Three packets of ten, while the job lasts.
    Loss,
}

const ALL: [Disaster; 8] = [
    Disaster::Ranks(1),
    Disaster::Ranks(2),
    Disaster::Agent,
    Disaster::AgentStops,
    Disaster::Keeper,
    Disaster::LinkForAMoment,
    Disaster::LinkForGood,
    Disaster::Loss,
];

fn namespace(host: &str) -> String {
    format!("{}{host}", std::env::var(NAMESPACES).unwrap())
}

fn in_host(host: &str, command: &[&str]) {
    // `ip netns exec` makes mounts, which takes seconds on a busy machine.
    let namespace = format!("--net=/run/netns/{}", namespace(host));
    let status = Command::new("nsenter").arg(namespace).args(command).status().unwrap();
    assert!(status.success(), "{command:?}");
}

fn set_link(state: &str) {
    in_host("h2", &["ip", "link", "set", "eth0", state]);
}

/// Loses three of ten packets that come to h2 by the link.
fn lose_packets(rule: bool) {
    if rule {
        in_host(
            "h2",
            &[
                "nft",
                "add table ip loss; add chain ip loss in { type filter hook input priority 0; }; \
                         add rule ip loss in iifname eth0 numgen random mod 10 < 3 drop",
            ],
        );
    } else {
        in_host("h2", &["nft", "delete table ip loss"]);
    }
}

/// The host whose namespace a process is in.
fn host_of(pid: i32) -> Option<&'static str> {
    let own = std::fs::metadata(format!("/proc/{pid}/ns/net")).ok()?.ino();
    let is = |host: &&str| {
        std::fs::metadata(Path::new("/run/netns").join(namespace(host))).is_ok_and(|data| data.ino() == own)
    };
    ["h1", "h2"].into_iter().find(is)
}

fn pick<T: Copy>(all: &[T]) -> T {
    all[random(all.len() as u64) as usize]
}

struct Played {
    /// What is killed or changed, and when, for messages.
    what: String,
    victims: Vec<usize>,
    /// Of an agent or its keeper.
    host: Option<&'static str>,
    link_is_down: bool,
    /// How long the link was away, if it is back.
    outage: Duration,
    loses: bool,
}

fn strike(job: &common::Job, disaster: Disaster, ranks: &BTreeMap<usize, i32>) -> Played {
    let mut played = Played {
        what: format!("{disaster:?}"),
        victims: Vec::new(),
        host: None,
        link_is_down: false,
        outage: Duration::ZERO,
        loses: false,
    };
    let send = |pid: i32, signal: Signal| kill(Pid::from_raw(pid), signal).is_ok();
    match disaster {
        Disaster::Ranks(count) => {
            for _ in 0..count {
                let alive: Vec<usize> =
                    ranks.keys().copied().filter(|rank| !played.victims.contains(rank)).collect();
                let victim = pick(&alive);
                if send(ranks[&victim], Signal::SIGKILL) {
                    played.victims.push(victim);
                }
                std::thread::sleep(Duration::from_micros(random(50_000)));
            }
        }
        Disaster::Agent | Disaster::AgentStops | Disaster::Keeper => {
            let end = if disaster == Disaster::Keeper { "transom agent keep" } else { "transom agent" };
            let signal = if disaster == Disaster::AgentStops { Signal::SIGSTOP } else { Signal::SIGKILL };
            let is = |line: &str| line.trim_end().ends_with(end);
            let found: Vec<i32> =
                job.processes().into_iter().filter(|(_, line)| is(line)).map(|(pid, _)| pid).collect();
            if !found.is_empty() {
                let victim = pick(&found);
                let host = host_of(victim);
                if send(victim, signal) {
                    played.host = host;
                }
            }
        }
        Disaster::LinkForAMoment => {
            let begin = Instant::now();
            set_link("down");
            std::thread::sleep(Duration::from_millis(random(600)));
            set_link("up");
            played.outage = begin.elapsed();
            played.what = format!("{disaster:?} ({:.1?})", played.outage);
        }
        Disaster::LinkForGood => {
            set_link("down");
            played.link_is_down = true;
        }
        Disaster::Loss => {
            lose_packets(true);
            played.loses = true;
        }
    }
    played
}

fn one(turn: usize) -> String {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let rsh = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/netns-rsh");
    let directory = tempfile::tempdir().unwrap();
    let disaster = ALL[turn % ALL.len()];
    let over = std::env::var("TRANSOM_TEST_OVER").unwrap_or_else(|_| "tcp,mixed,shm,ofi".to_owned());
    let over: Vec<&str> = over.split(',').filter(|name| *name != "ofi" || common::has_libfabric()).collect();
    let transport = over[turn / ALL.len() % over.len()];
    let mode = pick(&["end", "notify"]);
    // Shared memory alone is for ranks of one host.
    let hosts = if transport == "shm" { "h2:4" } else { "h1:2,h2:2" };
    let mut command = common::transom(
        &[&["--on-failure", mode, "--rsh", rsh, "--hosts", hosts, "--host-timeout", SILENCE], &own[..]]
            .concat(),
    );
    command.env(ROLE, STRICT).env(JOINED, directory.path());
    command.env("TRANSOM_TCP_SILENCE", SILENCE).env("TRANSOM_OFI_SILENCE", SILENCE);
    command.env_remove("TRANSOM_TRANSPORT");
    if transport != "mixed" {
        command.env("TRANSOM_TRANSPORT", transport);
    }
    let mut job = common::start(&mut command);
    let begin = Instant::now();
    // Agents and links are struck while the job starts, too; ranks once there are any. (A job does not wait for a host's network, and an
    // agent that has not said a word yet is given longer.)
    let late = matches!(disaster, Disaster::Ranks(_) | Disaster::LinkForAMoment | Disaster::AgentStops);
    let early = !late && random(4) == 0;
    let ranks = if early { BTreeMap::new() } else { joined(directory.path(), begin + LIMIT) };
    assert!(early || ranks.len() == RANKS, "{disaster:?}: the ranks do not join: {:?}", job.processes());
    std::thread::sleep(Duration::from_micros(random(if early { 150_000 } else { 450_000 })));
    let played = strike(&job, disaster, &ranks);
    let end = Instant::now() + if played.loses { LIMIT_OF_LOSS } else { LIMIT };
    while job.child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let (waits, processes) = (job.ask_where(), job.processes());
            job.signal(Signal::SIGTERM);
            panic!("{}, {transport}, {mode}: hangs: {waits}{processes:?}{}", played.what, job.wait().stderr);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = begin.elapsed();
    // What was started there and lost its keeper notices that by itself.
    job.assert_gone_within(Duration::from_secs(5));
    if played.link_is_down {
        set_link("up");
    }
    if played.loses {
        lose_packets(false);
    }
    let ended = job.wait();
    let what = format!("{}, {transport}, {mode}, early {early}, after {took:.1?}", played.what);
    check(&what, transport, mode, early, &played, disaster, &ended);
    what
}

fn check(
    what: &str,
    transport: &str,
    mode: &str,
    early: bool,
    played: &Played,
    disaster: Disaster,
    ended: &common::Ended,
) {
    let said =
        format!("{what}, dead {:?}, code {}: {}{}", played.victims, ended.code, ended.stdout, ended.stderr);
    assert!(!ended.stderr.contains("panicked") && ended.code < 1000, "{said}");
    let survived = |rank: usize| ended.stdout.contains(&format!("SURVIVED {rank}\n"));
    let all_survived = (0..RANKS).all(survived);
    // The strike may have come when all was done.
    if ended.code == 0 {
        assert!(all_survived && ended.stderr.is_empty(), "{said}");
        return;
    }
    match disaster {
        Disaster::Ranks(_) => {
            assert_eq!(ended.code, 137, "{said}");
            let named = |rank: &usize| ended.stderr.contains(&format!("rank {rank} (pid "));
            assert!(ended.stderr.contains("was killed by signal 9 (SIGKILL)"), "{said}");
            assert!(played.victims.iter().any(named), "{said}");
            if mode == "notify" {
                assert!(played.victims.iter().filter(|rank| !survived(**rank)).all(named), "{said}");
                assert!((0..RANKS).all(|rank| survived(rank) || played.victims.contains(&rank)), "{said}");
            }
        }
        Disaster::Agent | Disaster::Keeper => {
            let host = played.host.unwrap_or_else(|| panic!("{said}"));
            assert!(ended.stderr.contains(&format!("host {host}")), "{said}");
            assert!(ended.code == 1 || early && ended.code == 2 || ended.code == 137, "{said}");
        }
        Disaster::AgentStops => {
            let host = played.host.unwrap_or_else(|| panic!("{said}"));
            assert!(ended.stderr.contains(&format!("host {host} has given no sign of life")), "{said}");
            assert_eq!(ended.code, 1, "{said}");
        }
        // What cannot be sent is an error of a rank that names the other; a rank that could not even join says so.
        Disaster::LinkForGood | Disaster::LinkForAMoment
            if transport != "shm" && (played.link_is_down || played.outage >= MOMENT) =>
        {
            assert_eq!(ended.code, 3, "{said}");
            // Before the ranks have joined, it may be that the host has no network to begin with.
            let named = (0..RANKS).any(|rank| ended.stderr.contains(&format!("peer {rank}")))
                || early && ended.stderr.contains("no network interface but loopback is up");
            assert!(named && ended.stderr.contains("rank "), "{said}");
        }
        Disaster::Loss if transport != "shm" => {
            // TCP's own waits double with each loss: now and then they are longer than the silence allowed here.
            assert!(ended.code == 3 && ended.stderr.contains("peer "), "{said}");
        }
        Disaster::LinkForAMoment | Disaster::LinkForGood | Disaster::Loss => panic!("{said}"),
    }
}

#[test]
fn below_namespaces() {
    if std::env::var_os(NAMESPACES).is_none() || std::env::var_os(ROLE).is_some() {
        return;
    }
    let jobs = std::env::var("TRANSOM_TEST_DISASTERS").unwrap().parse::<usize>().unwrap();
    let first = std::env::var("TRANSOM_TEST_FIRST").map_or(0, |first| first.parse().unwrap());
    for turn in first..first + jobs {
        println!("{turn}: {}", one(turn));
    }
}

#[test]
fn of_hosts_and_links() {
    if std::env::var_os(NAMESPACES).is_some() || std::env::var_os(ROLE).is_some() {
        return;
    }
    let has = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() || !has("nft") {
        assert!(
            std::env::var("CI").is_err(),
            "CI must be able to make network namespaces (root, iproute2, nftables)"
        );
        println!("skipped: network namespaces need root, iproute2 and nftables");
        return;
    }
    let jobs = std::env::var("TRANSOM_TEST_DISASTERS").unwrap_or_else(|_| "32".to_owned());
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/netns.sh"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "disasters::below_namespaces", "--nocapture", "--test-threads=1"])
        .env("TRANSOM_TEST_DISASTERS", jobs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    println!("{}", String::from_utf8_lossy(&said));
}
