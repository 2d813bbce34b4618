//! The ways to become a rank.

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;

use super::{Job, connect};
use crate::bootstrap::{self, InProcess, KeyValueSpace};
use crate::engine::JobStatus;
use crate::{Class, Error, Result};

/// Joins the job that this process was started for, by `transom run` or another launcher with PMI-1 or PMIx. Without a launcher
/// it is a job of one rank. Collective; once per process.
///
/// # Errors
/// The environment is broken, a launcher started several processes and offers neither, libpmix is missing where PMIx is all
/// that it offers, a transport is missing, or a peer could not start.
pub fn init() -> Result<Job> {
    connect::join(bootstrap::from_env()?, JobStatus::default())
}

/// Runs `main` as a rank of the job, reports its error with the rank, and returns the exit code of the process.
///
/// A rank that fails does not wait for the others: the launcher ends them.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     transom::run(|job| -> Result<(), Box<dyn std::error::Error>> {
///         println!("rank {} of {}", job.rank(), job.size());
///         Ok(())
///     })
/// }
/// ```
pub fn run<E: Display>(main: impl FnOnce(&Job) -> std::result::Result<(), E>) -> ExitCode {
    let job = match init() {
        Ok(job) => job,
        Err(error) => {
            eprintln!("transom: {error}");
            return ExitCode::FAILURE;
        }
    };
    let rank = job.rank();
    let ended = match main(&job) {
        Ok(()) => job.finalize().map_err(|e| e.to_string()),
        Err(error) => {
            let message = error.to_string();
            job.member().engine.fail(Error::new(Class::Peer, "run", message.clone()).at_rank(rank));
            Err(message)
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("transom: rank {rank}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a job of `ranks` ranks inside this process, each in a thread of its own, and returns what each returned.
///
/// The job is a real one: transports, windows and protocols are those of a job of many processes.
///
/// # Errors
/// The error of the first rank that failed; the others' calls then fail, too.
///
/// # Panics
/// If a rank panics, with its panic.
pub fn local<R: Send>(ranks: usize, main: impl Fn(Job) -> Result<R> + Sync) -> Result<Vec<R>> {
    if ranks == 0 {
        return Err(Error::new(Class::Argument, "local", "a job has at least one rank"));
    }
    let space = KeyValueSpace::new(ranks);
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| {
                scope.spawn({
                    let (space, main) = (&space, &main);
                    move || rank_of(space, rank, main)
                })
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut values = Vec::with_capacity(ranks);
    let mut failed = false;
    for result in results {
        match result {
            Ok(Ok(value)) => values.push(value),
            Ok(Err(error)) => {
                failed = true;
                let _ = space.status.failure.set(error);
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    match space.status.failure.get() {
        Some(error) if failed => Err(error.clone()),
        _ => Ok(values),
    }
}

/// Fails the whole job if a rank unwinds.
struct PanicGuard<'a>(&'a KeyValueSpace, usize);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::new(Class::Peer, "local", format!("rank {} panicked", self.1));
            let _ = self.0.status.failure.set(error);
        }
    }
}

fn rank_of<R>(space: &Arc<KeyValueSpace>, rank: usize, main: &impl Fn(Job) -> Result<R>) -> Result<R> {
    let _alarm = PanicGuard(space, rank);
    let place = Box::new(InProcess { space: space.clone(), rank });
    let result = connect::join(place, space.status.clone()).and_then(|job| {
        let member = job.member().clone();
        let result = main(job).map_err(|e| e.at_rank(rank));
        if let Err(error) = &result {
            // Before the membership ends, so that its end does not wait.
            member.engine.fail(error.clone());
        }
        result
    });
    if let Err(error) = &result {
        let _ = space.status.failure.set(error.clone());
    }
    result
}
