//! `--on-failure notify`: a rank dies in the midst of every kind of call. The others get an error that names it from the calls that
//! need it, the locks that it held, and go on to the end of the job.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::{ROLE, start, transom};
use nix::sys::signal::{Signal, raise};
use transom::{ANY_SOURCE, Assert, Class, LockKind, Result, Sum};

/// A rank's program, of which [`VICTIM`] does not come to the end.
type Program = fn(&transom::Job) -> Result<()>;

const PROGRAMS: &[(&str, Program)] = &[
    ("barrier", barrier),
    ("fence", fence),
    ("receive", receive),
    ("requests", requests),
    ("post", post),
    ("complete", complete),
    ("put", put),
    ("notifications", notifications),
    ("lock", lock),
    ("lock of the dead", lock_of_the_dead),
    ("lock_all", lock_all),
    ("counter", counter),
    ("finalize", finalize),
    ("agree", agree),
    ("shrink", shrink),
    ("twice", twice),
    ("acknowledge", acknowledge),
    ("revoke", revoke),
    ("free", free),
];

const RANKS: usize = 4;
const VICTIM: usize = 1;

fn die() -> ! {
    raise(Signal::SIGKILL).unwrap();
    unreachable!("SIGKILL ends the process")
}

fn is_victim(job: &transom::Job) -> bool {
    job.rank() == VICTIM
}

/// The error names the dead.
fn blames<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!((error.class(), error.dead()), (Class::Peer, Some(VICTIM)), "{error}");
}

/// Over a network the connection may tell before the launcher does.
fn blames_peer<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.unwrap_err();
    assert_eq!(error.class(), Class::Peer, "{error}");
}

/// All have come, and one that is to die knows that none is in a collective any more, where its death would be an error.
fn settle(ranks: &transom::Communicator, victim: usize) -> Result<()> {
    ranks.barrier()?;
    if ranks.rank() != victim {
        return ranks.send(victim, 7, &[0u8]);
    }
    let mut others = (0..ranks.size()).filter(|rank| *rank != victim);
    others.try_for_each(|rank| ranks.recv::<u8>(rank, 7).map(drop))
}

/// Until this rank knows of the death.
fn await_death(job: &transom::Job) {
    let begin = Instant::now();
    while job.failed().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not told");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(job.failed(), [VICTIM]);
}

/// The survivors wait for each other, by messages: windows must stay until nobody uses them.
fn part(job: &transom::Job) -> Result<()> {
    let others = [2, 3];
    if job.rank() != 0 {
        job.send(0, 8, &[0u8])?;
        return job.recv::<u8>(0, 9).map(drop);
    }
    others.into_iter().try_for_each(|rank| job.recv::<u8>(rank, 8).map(drop))?;
    others.into_iter().try_for_each(|rank| job.send(rank, 9, &[0u8]))
}

fn barrier(job: &transom::Job) -> Result<()> {
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    blames(job.barrier());
    blames(job.allreduce(Sum, &[1u64]));
    await_death(job);
    blames(job.allgather(&[1u64]));
    Ok(())
}

fn fence(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    epochs.fence(Assert::NONE)?;
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    blames(epochs.fence(Assert::NONE));
    blames(job.allocate::<u64>(8).map(drop));
    Ok(())
}

fn receive(job: &transom::Job) -> Result<()> {
    if is_victim(job) {
        job.send(0, 1, &[7u64])?;
        job.recv::<u64>(0, 2)?;
        die();
    }
    if job.rank() == 0 {
        // What it has sent is there all the same.
        assert_eq!(job.recv::<u64>(VICTIM, 1)?.0, [7]);
        job.send(VICTIM, 2, &[7u64])?;
    }
    blames(job.recv::<u64>(VICTIM, 3));
    blames(job.recv::<u64>(ANY_SOURCE, 3));
    blames(job.probe(VICTIM, 3));
    // Those that live talk on.
    match job.rank() {
        0 => assert_eq!(job.recv::<u64>(2, 4)?.0, [9]),
        2 => job.send(0, 4, &[9u64])?,
        _ => {}
    }
    Ok(())
}

fn requests(job: &transom::Job) -> Result<()> {
    let receive = job.irecv::<u64>(VICTIM, 3, 8);
    let any = job.irecv::<u64>(ANY_SOURCE, 3, 8);
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    blames(job.ibarrier().wait());
    blames(receive.wait());
    blames(any.wait());
    blames(job.iallreduce(Sum, &[1u64]).wait());
    Ok(())
}

fn post(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    epochs.start(&[VICTIM], Assert::NONE)?;
    blames(epochs.put(VICTIM, 0, &[1]));
    let _ = epochs.complete();
    Ok(())
}

fn complete(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    settle(job, VICTIM)?;
    if is_victim(job) {
        epochs.start(&[0], Assert::NONE)?;
        epochs.put(0, 0, &[1])?;
        die();
    }
    if job.rank() == 0 {
        epochs.post(&[VICTIM], Assert::NONE)?;
        blames(epochs.wait());
    }
    Ok(())
}

/// Others put to the dead, before they know and after.
fn put(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(1 << 16)?;
    let block = vec![1; 1 << 16];
    settle(job, VICTIM)?;
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(50));
        die();
    }
    if job.rank() == 3 {
        // Nothing is under way at the death, and who goes on all the same hangs nowhere.
        let _ = window.lock_all(|epoch| {
            for _ in 0..20 {
                let _ = epoch.put(VICTIM, 0, &block[..1]).and_then(|()| epoch.flush(VICTIM));
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        });
    }
    let begin = Instant::now();
    let mut ended = Ok(());
    while ended.is_ok() && begin.elapsed() < Duration::from_secs(25) {
        ended = window.lock_all(|epoch| {
            epoch.put(VICTIM, 0, &block)?;
            epoch.accumulate(VICTIM, 0, Sum, &[1])?;
            epoch.flush(VICTIM)
        });
    }
    await_death(job);
    if std::env::var("TRANSOM_TRANSPORT").is_ok_and(|transport| transport != "shm") {
        blames_peer(ended);
    }
    // Nothing is wrong with the others.
    window.lock(LockKind::Exclusive, 0, |epoch| epoch.fetch_add(0, 9, 1))?;
    part(job)
}

fn notifications(job: &transom::Job) -> Result<()> {
    const NUMBER: u64 = 7;
    let window = job.allocate::<u64>(8)?;
    if is_victim(job) {
        window.lock_all(|epoch| {
            (0..RANKS).try_for_each(|rank| epoch.put_notify(rank, 0, &[5], NUMBER))?;
            epoch.flush_all()
        })?;
    }
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    await_death(job);
    // What it has told of is there, and more will not come.
    window.wait_notifications(NUMBER, 1)?;
    assert_eq!(window.local().get(0)?, 5);
    blames(window.wait_notifications(NUMBER, 1));
    part(job)
}

fn lock(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if is_victim(job) {
        epochs.lock(LockKind::Exclusive, 0, Assert::NONE)?;
        epochs.put(0, 0, &[5])?;
        epochs.flush(0)?;
    }
    settle(job, VICTIM)?;
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(100));
        die();
    }
    let kind = if job.rank() == 2 { LockKind::Shared } else { LockKind::Exclusive };
    let begin = Instant::now();
    assert_eq!(window.lock(kind, 0, |epoch| epoch.get_value(0, 0))?, 5);
    println!("FREE after {:?}", begin.elapsed());
    await_death(job);
    part(job)
}

fn lock_of_the_dead(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if is_victim(job) {
        epochs.lock(LockKind::Exclusive, VICTIM, Assert::NONE)?;
    }
    settle(job, VICTIM)?;
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(100));
        die();
    }
    let locked = epochs.lock(LockKind::Exclusive, VICTIM, Assert::NONE);
    // Over a network it is taken late.
    blames_peer(locked.and_then(|()| epochs.flush(VICTIM)));
    Ok(())
}

/// It dies with shared locks of all, while others want to exclude it.
fn lock_all(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if is_victim(job) {
        epochs.lock_all(Assert::NONE)?;
        (0..RANKS).try_for_each(|target| epochs.put(target, 0, &[5]))?;
        epochs.flush_all()?;
    }
    settle(job, VICTIM)?;
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(100));
        die();
    }
    for target in (0..RANKS).filter(|rank| *rank != VICTIM) {
        window.lock(LockKind::Exclusive, target, |epoch| epoch.fetch_add(target, 0, 1))?;
    }
    part(job)
}

/// All count in a window of rank 0's, under its lock and by atomics. One dies in the middle, mostly while it holds the lock.
fn counter(job: &transom::Job) -> Result<()> {
    const ROUNDS: u64 = 400;
    let window = job.allocate::<u64>(2 * RANKS)?;
    let rank = job.rank();
    settle(job, VICTIM)?;
    for round in 0..ROUNDS {
        window.lock(LockKind::Exclusive, 0, |epoch| {
            let count = epoch.get_value(0, rank)?;
            if is_victim(job) && round == ROUNDS / 3 {
                die();
            }
            epoch.put_value(0, rank, count + 1)
        })?;
        window.lock(LockKind::Shared, 0, |epoch| epoch.fetch_add(0, RANKS + rank, 1))?;
    }
    part(job)?;
    if rank != 0 {
        return Ok(());
    }
    let counts = window.lock(LockKind::Exclusive, 0, |epoch| {
        (0..2 * RANKS).map(|word| epoch.get_value(0, word)).collect::<Result<Vec<u64>>>()
    })?;
    let dead = ROUNDS / 3;
    assert_eq!(counts, [ROUNDS, dead, ROUNDS, ROUNDS].repeat(2));
    Ok(())
}

/// Those who live agree, on the same, before anybody knows of a death and after.
fn agree(job: &transom::Job) -> Result<()> {
    let agreed = job.agree(0b1000 | 1 << job.rank())?;
    assert_eq!((agreed.flags, agreed.failed), (0b1000, vec![]));
    if is_victim(job) {
        die();
    }
    let agreed = job.agree(0b1010)?;
    assert_eq!((agreed.flags, agreed.failed), (0b1010, vec![VICTIM]));
    Ok(())
}

/// They go on without the dead: collectives, messages, windows of both kinds, all epochs.
fn shrink(job: &transom::Job) -> Result<()> {
    let old = job.allocate::<u64>(8)?;
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    blames(old.explicit().fence(Assert::NONE));
    let living = job.shrink()?;
    let (rank, size) = (living.rank(), living.size());
    assert_eq!((rank, size), ([0, 9, 1, 2][job.rank()], 3));
    assert_eq!(living.allreduce(Sum, &[job.rank() as u64])?, [5]);
    work(&living)
}

fn work(living: &transom::Communicator) -> Result<()> {
    let (rank, size) = (living.rank(), living.size());
    let right = (rank + 1) % size;
    let left = (rank + size - 1) % size;
    let allocated = living.allocate::<u64>(8)?;
    let created = living.create(vec![0_u64; 8])?;
    for window in [&allocated, &created] {
        window.fence(|epoch| epoch.put_copy(right, 0, &[rank as u64 + 1]))?;
        assert_eq!(window.local().get(0)?, left as u64 + 1);
        for _ in 0..50 {
            window.lock(LockKind::Exclusive, 0, |epoch| {
                let count = epoch.get_value(0, 1)?;
                epoch.put_value(0, 1, count + 1)
            })?;
        }
        window.lock_all(|epoch| epoch.accumulate(0, 2, Sum, &[1]))?;
        living.barrier()?;
        if rank == 0 {
            assert_eq!(window.lock(LockKind::Shared, 0, |epoch| epoch.get_value(0, 1))?, 50 * size as u64);
            assert_eq!(window.local().get(2)?, size as u64);
        }
    }
    allocated.free()?;
    created.free().map(drop)?;
    living.send(right, 3, &[rank])?;
    assert_eq!(living.recv::<usize>(ANY_SOURCE, 3)?.0, [left]);
    living.ibarrier().wait()
}

/// Receives from any source wait for those that live, once the program knows who does not.
fn acknowledge(job: &transom::Job) -> Result<()> {
    let early = job.irecv::<u64>(ANY_SOURCE, 3, 8);
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    blames(job.recv::<u64>(ANY_SOURCE, 4));
    let error = loop {
        if let Some(result) = early.test() {
            break result.unwrap_err();
        }
    };
    assert!(error.goes_on() && error.dead() == Some(VICTIM), "{error}");
    assert!(!job.agree(1)?.acknowledged);
    assert_eq!((job.acknowledge(0), job.acknowledged().size()), (0, 0));
    assert_eq!((job.acknowledge(7), job.acknowledged()), (1, job.failures()));
    assert_eq!(job.failures().job_ranks().collect::<Vec<_>>(), [VICTIM]);
    assert!(job.agree(1)?.acknowledged);
    let living = [0, 2, 3];
    living.into_iter().try_for_each(|rank| job.send(rank, 3, &[job.rank() as u64]))?;
    let mut sources = vec![early.wait()?.1.source];
    for _ in 1..living.len() {
        sources.push(job.recv::<u64>(ANY_SOURCE, 3)?.1.source);
    }
    sources.sort_unstable();
    assert_eq!(sources, living);
    Ok(())
}

/// It revokes what the others wait on, and dies.
fn revoke(job: &transom::Job) -> Result<()> {
    let other = job.dup()?;
    settle(job, VICTIM)?;
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(50));
        other.revoke();
        die();
    }
    let revoked = |result: Result<()>| assert_eq!(result.unwrap_err().class(), Class::Revoked);
    revoked(other.recv::<u64>((job.rank() + 2) % RANKS, 3).map(drop));
    revoked(other.ibarrier().wait());
    revoked(other.send(0, 3, &[1u64]));
    assert!(other.is_revoked() && !job.is_revoked());
    assert_eq!(other.agree(6)?.flags, 6);
    work(&other.shrink()?)
}

/// Those that live free windows with the dead.
fn free(job: &transom::Job) -> Result<()> {
    let windows = [job.allocate::<u64>(8)?, job.create(vec![0; 8])?, job.dynamic::<u64>()?];
    settle(job, VICTIM)?;
    if is_victim(job) {
        die();
    }
    await_death(job);
    for window in windows {
        assert_eq!(window.failed(), [VICTIM]);
        window.free()?;
    }
    work(&job.shrink()?)
}

/// Another dies, of those that went on.
fn twice(job: &transom::Job) -> Result<()> {
    if is_victim(job) {
        die();
    }
    let three = job.shrink()?;
    settle(&three, 1)?;
    if job.rank() == 2 {
        die();
    }
    let two = three.shrink()?;
    assert_eq!((two.size(), three.failed(), job.failed()), (2, vec![1], vec![1, 2]));
    work(&two)
}

/// It dies where the others are at the end already.
fn finalize(job: &transom::Job) -> Result<()> {
    if is_victim(job) {
        std::thread::sleep(Duration::from_millis(200));
        die();
    }
    Ok(())
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (_, program) = PROGRAMS.iter().find(|(name, _)| *name == role).unwrap();
    let job = transom::init().unwrap();
    let rank = job.rank();
    if let Err(error) = program(&job).and_then(|()| job.finalize()) {
        eprintln!("rank {rank}: {error}");
        std::process::exit(3);
    }
    println!("SURVIVED {rank}");
}

fn bereave(program: &str, transport: &str) {
    let survivors: &[usize] = if program == "twice" { &[0, 3] } else { &[0, 2, 3] };
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let ranks = RANKS.to_string();
    let mut command = transom(&[&["-n", &ranks, "--on-failure", "notify"], &own[..]].concat());
    // A watchdog ends what hangs.
    let ended = start(command.env(ROLE, program).env("TRANSOM_TRANSPORT", transport)).wait();
    let said = format!("{program} over {transport}: {}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, 137, "{said}");
    let survived = (0..RANKS).filter(|rank| ended.stdout.contains(&format!("SURVIVED {rank}\n")));
    assert_eq!(survived.collect::<Vec<_>>(), survivors, "{said}");
    let line = format!("rank {VICTIM} (pid ");
    assert!(
        ended.stderr.contains(&line)
            && ended.stderr.contains(&format!("the other {} ranks went on", survivors.len())),
        "{said}"
    );
}

#[test]
fn survivors_over_shared_memory() {
    each("shm");
}

#[test]
fn survivors_over_tcp() {
    each("tcp");
}

#[test]
fn survivors_over_libfabric() {
    if common::has_libfabric() {
        each("ofi");
    }
}

#[test]
fn who_is_not_told_of_deaths_refuses() {
    let exe = std::env::current_exe().unwrap();
    let program = ["--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = std::process::Command::new(exe);
    let out = common::output(command.args(program).env(ROLE, "barrier").env("TRANSOM_ON_FAILURE", "notify"));
    let said = String::from_utf8(out.stderr).unwrap() + &String::from_utf8(out.stdout).unwrap();
    assert!(!out.status.success() && said.contains("transom run --on-failure notify"), "{said}");
}

fn each(transport: &str) {
    PROGRAMS.iter().for_each(|(name, _)| bereave(name, transport));
}
