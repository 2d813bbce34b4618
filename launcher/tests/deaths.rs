//! `--on-failure notify`: ranks are killed at random moments while all count. Those that live shrink, make their window anew and go
//! on; after every round each update that a survivor was told is complete is there, and none is twice.
//!
//! `TRANSOM_TEST_KILLS` is the number of jobs, each with one death or two. This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{ROLE, fake_ssh, start, transom};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use transom::{Communicator, LockKind, Result, Sum, Window};

const RANKS: usize = 4;
/// Where a rank says that it has joined: a file of its number, with its process number.
const JOINED: &str = "TRANSOM_TEST_JOINED";
/// Rounds go on for that long.
const BUSY: Duration = Duration::from_millis(500);
const UPDATES: usize = 40;
/// Behind the counts, what is added to in one piece: who does that holds locks of parts of the window.
static BLOCK: [u64; 1 << 13] = [1; 1 << 13];

fn random(below: u64) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() % below
}

/// Calls `body`, which is collective, until it went well at all members that live. Of members that died `living` is without.
fn together<T>(living: &mut Communicator, mut body: impl FnMut(&Communicator) -> Result<T>) -> Result<T> {
    loop {
        let result = body(living);
        if let Err(error) = &result
            && error.dead().is_none()
        {
            eprintln!("not of a death: {error}");
        }
        let agreed = living.agree(u64::from(result.is_ok()))?;
        if !agreed.failed.is_empty() {
            *living = living.shrink()?;
        }
        if let Ok(value) = result
            && agreed.flags & 1 == 1
        {
            return Ok(value);
        }
    }
}

/// Counts at random members, in a word for each rank of the job: by atomics, and by get and put under the exclusive lock. Gives what
/// was completed at each member.
fn update(window: &Window<u64>, rank: usize, members: usize) -> Result<Vec<u64>> {
    let mut done = vec![0; members];
    for update in 0..UPDATES {
        let target = random(members as u64) as usize;
        let result = if update % 8 == 7 {
            // Whose sums nobody asks for: of who dies in it a part is there.
            window.lock(LockKind::Shared, target, |epoch| epoch.accumulate(target, RANKS, Sum, &BLOCK))
        } else if update % 2 == 0 {
            window.lock(LockKind::Shared, target, |epoch| epoch.fetch_add(target, rank, 1).map(drop))
        } else {
            window.lock(LockKind::Exclusive, target, |epoch| {
                let count = epoch.get_value(target, rank)?;
                epoch.put_value(target, rank, count + 1)
            })
        };
        match result {
            Ok(()) if update % 8 == 7 => {}
            Ok(()) => done[target] += 1,
            // Only a dead target excuses an error; what it has is lost with it.
            Err(error) => assert_eq!(error.class(), transom::Class::Peer, "{error}"),
        }
    }
    Ok(done)
}

/// A round; gives how many updates of survivors were found.
fn round(living: &mut Communicator, rank: usize) -> Result<u64> {
    let window = together(living, |living| living.allocate::<u64>(RANKS + BLOCK.len()))?;
    // Of one that died since it was made a window has the place still.
    let places: Vec<usize> = (0..RANKS).filter_map(|rank| window.rank_of(rank)).collect();
    let here = window.rank_of(rank).unwrap();
    let mut own = vec![rank as u64];
    own.extend(update(&window, rank, places.len())?);
    // Everybody's updates are complete when all that live have agreed.
    let rows = together(living, |living| living.allgather(&own))?;
    let mut found = 0;
    for row in rows {
        let (origin, done) = (row[0] as usize, row[1 + here]);
        let word = window.lock(LockKind::Shared, here, |epoch| epoch.get_value(here, origin))?;
        assert_eq!(word, done, "what rank {origin} has counted at rank {rank}");
        found += word;
    }
    Ok(found)
}

fn count(job: &transom::Job) -> Result<()> {
    let rank = job.rank();
    let mut living = job.dup()?;
    let joined = std::env::var(JOINED).unwrap();
    let begin = Instant::now();
    std::fs::write(Path::new(&joined).join(format!("{rank}.new")), std::process::id().to_string()).unwrap();
    std::fs::rename(
        Path::new(&joined).join(format!("{rank}.new")),
        Path::new(&joined).join(rank.to_string()),
    )
    .unwrap();
    let (mut rounds, mut found) = (0, 0);
    loop {
        found += round(&mut living, rank)?;
        rounds += 1;
        let enough = u64::from(begin.elapsed() < BUSY);
        let go_on = together(&mut living, |living| living.allreduce(transom::Max, &[enough]))?;
        if go_on == [0] {
            break;
        }
    }
    println!("COUNTED {found} in {rounds} rounds");
    Ok(())
}

#[test]
fn rank_program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let job = transom::init().unwrap();
    let rank = job.rank();
    if let Err(error) = count(&job).and_then(|()| job.finalize()) {
        eprintln!("rank {rank}: {error}");
        std::process::exit(3);
    }
    println!("SURVIVED {rank}");
}

/// The ranks' processes, once all have joined.
fn joined(directory: &Path, end: Instant) -> BTreeMap<usize, i32> {
    loop {
        let read = |rank: usize| {
            let text = std::fs::read_to_string(directory.join(rank.to_string())).ok()?;
            Some((rank, text.parse().ok()?))
        };
        let pids: BTreeMap<usize, i32> = (0..RANKS).filter_map(read).collect();
        if pids.len() == RANKS || Instant::now() > end {
            return pids;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// One job over a transport, or with ranks on two hosts, which have both.
fn bereave(transport: &str, turn: usize) {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let directory = tempfile::tempdir().unwrap();
    let ranks = RANKS.to_string();
    let mut args = vec!["-n", &ranks, "--on-failure", "notify"];
    let ssh = fake_ssh(directory.path(), "exec sh -c \"$2\"");
    if transport == "mixed" {
        args.extend(["--rsh", &ssh, "--hosts", "h1:2,h2:2"]);
    }
    let mut command = transom(&[&args[..], &own].concat());
    command.env(ROLE, "count").env(JOINED, directory.path());
    if transport != "mixed" {
        command.env("TRANSOM_TRANSPORT", transport);
    }
    let job = start(&mut command);
    let pids = joined(directory.path(), Instant::now() + Duration::from_secs(20));
    let mut victims: Vec<usize> = Vec::new();
    for _ in 0..=turn % 2 {
        std::thread::sleep(Duration::from_micros(random(250_000)));
        let alive: Vec<usize> = pids.keys().copied().filter(|rank| !victims.contains(rank)).collect();
        let Some(victim) = alive.get(random(alive.len().max(1) as u64) as usize) else { break };
        // ESRCH: its end was faster.
        let _ = kill(Pid::from_raw(pids[victim]), Signal::SIGKILL);
        victims.push(*victim);
    }
    let ended = job.wait();
    let said = format!("{transport}, dead {victims:?}: {}{}", ended.stdout, ended.stderr);
    assert_eq!(pids.len(), RANKS, "{said}");
    for rank in (0..RANKS).filter(|rank| !victims.contains(rank)) {
        assert!(ended.stdout.contains(&format!("SURVIVED {rank}\n")), "rank {rank}: {said}");
    }
    assert!(
        ended.code == 137 || (0..RANKS).all(|rank| ended.stdout.contains(&format!("SURVIVED {rank}\n"))),
        "{said}"
    );
    assert!(!ended.stderr.contains("panicked"), "{said}");
}

fn each(transport: &str) {
    // A rank's process is a test program, too.
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let jobs = std::env::var("TRANSOM_TEST_KILLS").map_or(10, |kills| kills.parse::<usize>().unwrap());
    for turn in 0..jobs {
        bereave(transport, turn);
    }
}

#[test]
fn over_shared_memory() {
    each("shm");
}

#[test]
fn over_tcp() {
    each("tcp");
}

#[test]
fn on_two_hosts() {
    each("mixed");
}
