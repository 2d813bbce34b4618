//! Errors of one rank while the others wait in a barrier: a clear message, a failing exit code, and nothing hangs.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use common::{Ended, ROLE, start, transom};
use transom::{Job, LockKind, Result};

/// A rank's program.
type Program = fn(&Job) -> Result<()>;

/// What one rank does wrong, and what its message must say.
const MISTAKES: &[(&str, Program, &str)] = &[
    ("displacement", displacement, "MPI_ERR_RMA_RANGE"),
    ("rank", rank, "the job has ranks 0 to 3, not 4"),
    ("no epoch", no_epoch, "no access epoch to this rank is open"),
    ("no lock", no_lock, "no lock of this rank is held"),
    ("type", element_type, "rank 0 has elements of type f32, rank 1 of type u64"),
    ("memory", memory, "MPI_ERR_NO_MEM"),
    ("size", size, "more than an address space holds"),
    ("collective", collective, ": all ranks must call the same collectives in the same order"),
];

fn displacement(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    if job.rank() == 1 {
        window.lock(LockKind::Shared, 0, |epoch| epoch.put(0, 8, &[1]))?;
    }
    job.barrier()
}

fn rank(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    if job.rank() == 1 {
        window.lock_all(|epoch| epoch.put(4, 0, &[1]))?;
    }
    job.barrier()
}

fn no_epoch(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    if job.rank() == 1 {
        window.explicit().put(0, 0, &[1])?;
    }
    job.barrier()
}

fn no_lock(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    if job.rank() == 1 {
        window.explicit().unlock(0)?;
    }
    job.barrier()
}

fn element_type(job: &Job) -> Result<()> {
    if job.rank() == 1 { job.allocate::<u64>(8).map(drop) } else { job.allocate::<f32>(8).map(drop) }
}

fn memory(job: &Job) -> Result<()> {
    job.allocate::<u64>(if job.rank() == 1 { 1 << 42 } else { 1 }).map(drop)
}

fn size(job: &Job) -> Result<()> {
    job.allocate::<u64>(if job.rank() == 1 { usize::MAX / 2 } else { 1 }).map(drop)
}

fn collective(job: &Job) -> Result<()> {
    if job.rank() == 1 { job.allgather(&[1u8]).map(drop) } else { job.barrier() }
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (_, mistake, _) = MISTAKES.iter().find(|(name, ..)| *name == role).unwrap();
    // As a program's `main` would.
    match transom::init().and_then(|job| mistake(&job).map_err(|e| (std::mem::forget(job), e).1)) {
        Ok(()) => println!("no error"),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}

fn run(role: &str, transport: &str) -> Ended {
    let own = std::env::current_exe().unwrap();
    let mut command = transom(&["-n", "4", "--timeout", "20"]);
    command.arg(own).args(["--exact", "rank_program", "--nocapture", "--test-threads=1"]);
    start(command.env(ROLE, role).env("TRANSOM_TRANSPORT", transport)).wait()
}

#[test]
fn each_mistake_ends_the_job_with_its_message() {
    for transport in ["shm", "ofi", "tcp"] {
        for (name, _, message) in MISTAKES {
            let ended = run(name, transport);
            let text = &ended.stderr;
            assert_eq!(ended.code, 1, "{name} over {transport}: {text}\n{}", ended.stdout);
            assert!(text.contains(message), "{name} over {transport}: {text}");
            assert!(text.contains("exited with code 1"), "{name} over {transport}: {text}");
        }
    }
}

#[test]
fn settings_that_make_no_sense() {
    let wrong = [
        ("TRANSOM_TRANSPORT", "carrier-pigeon", "known are shm, verbs, ofi and tcp"),
        ("TRANSOM_SPIN", "long", "not a whole number"),
        ("TRANSOM_DEADLINE", "-3", "not a whole number"),
        ("TRANSOM_LIBFABRIC", "/nowhere/libfabric.so", "/nowhere/libfabric.so"),
        ("TRANSOM_OFI_PROVIDER", "carrier-pigeon", "carrier-pigeon"),
    ];
    for (name, value, message) in wrong {
        let own = std::env::current_exe().unwrap();
        let mut command = transom(&["-n", "2", "--timeout", "20"]);
        command.arg(own).args(["--exact", "rank_program", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, "rank").env("TRANSOM_TRANSPORT", "ofi").env(name, value);
        let ended = start(&mut command).wait();
        assert_eq!(ended.code, 1, "{name}={value}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{name}={value}: {}", ended.stderr);
    }
}
