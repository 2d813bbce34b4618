//! Jobs: the ranks that run together, and the ways to become one of them.

mod agreement;
mod connect;
mod control;
mod cores;
mod network;
mod reach;
mod start;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::bootstrap::Bootstrap;
use crate::collective;
use crate::comm::{Channel, Communicator};
use crate::engine::Engine;
use crate::explain::Reporter;
use crate::heap::Heap;
use crate::{Class, Error, Result};
pub(crate) use control::Control;
pub use start::{init, local, run};

/// The bootstrap's barrier at the end of a job. Those at its start have lower numbers (`reach`, `network`).
const ENDED: u32 = 9;

/// A rank's membership in a job. Clones are the same membership; it ends with the last of them, window included.
///
/// The end of a membership is collective, like `MPI_Finalize`: it waits until every rank has come to it, unless an error
/// has ended the job.
///
/// A job is the communicator of all its ranks (`MPI_COMM_WORLD`): every method of [`Communicator`] is one of the job's.
#[derive(Debug, Clone)]
pub struct Job {
    world: Communicator,
}

impl Deref for Job {
    type Target = Communicator;

    #[inline]
    fn deref(&self) -> &Communicator {
        &self.world
    }
}

/// The membership itself.
#[derive(Debug)]
pub(crate) struct Member {
    pub engine: Arc<Engine>,
    pub control: Control,
    /// What allocated windows take their memory from.
    pub heap: Arc<Heap>,
    /// Reports what windows counted when they are freed.
    pub reporter: Reporter,
    /// The channel of all ranks.
    world: Arc<Channel>,
    /// How often communicators were created by their members alone, by context.
    foundings: Mutex<HashMap<u64, u64>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    bootstrap: Arc<Mutex<Box<dyn Bootstrap>>>,
    /// A thread listens for agreements. Changed by who has the bootstrap.
    listened_for: Arc<AtomicBool>,
}

impl Job {
    pub(crate) fn new(member: Member) -> Self {
        let channel = member.world.clone();
        Self { world: Communicator::new(Arc::new(member), channel, "world") }
    }

    /// The transport that leads to a rank, and what is below it: `("shm", "memory files, …")`. `None` if there is no such
    /// rank.
    pub fn transport(&self, rank: usize) -> Option<(&'static str, &str)> {
        (rank < self.size()).then(|| {
            let route = self.member().engine.routes.route(rank);
            (route.transport.name(), route.capabilities.provider.as_str())
        })
    }

    /// Asks the launcher to end the job at once, all ranks of it, with exit code `code` (0 is one like any other: the job has
    /// done what it should). Not collective. Does not wait: end this process next, with the same code.
    ///
    /// # Errors
    /// The launcher cannot be reached, or this rank is being finalized in another thread.
    pub fn abort(&self, code: i32) -> Result<()> {
        // A finalize holds the lock until the launcher answers, and an abort should not wait for that.
        match self.member().bootstrap.try_lock() {
            Some(mut bootstrap) => bootstrap.abort(code),
            None => Err(Error::new(Class::Launch, "abort", "the job is ending already")),
        }
    }

    /// Which of the programs that the launcher started together this process is, from 0 on (`MPI_APPNUM`, MPI-4.1 §11.10.3). Not
    /// collective.
    ///
    /// # Errors
    /// The launcher cannot be reached.
    pub fn program(&self) -> Result<u32> {
        self.member().bootstrap.lock().program()
    }

    /// Leaves the job in good order. Collective. Windows must have been freed before; the same happens when the last
    /// clone is dropped, but here errors are reported.
    ///
    /// # Errors
    /// A peer is gone or calls something else; the deadline passes.
    pub fn finalize(self) -> Result<()> {
        self.member().finalize()
    }
}

impl Member {
    fn finalize(&self) -> Result<()> {
        // Only the first call does anything.
        if self.thread.lock().is_none() {
            return Ok(());
        }
        let result = if self.engine.outlives { self.part() } else { self.meet() };
        let result = result.and_then(|()| self.engine.send_out("finalize"));
        self.stop();
        result?;
        self.bootstrap.lock().finalize()
    }

    /// The barrier at the end of a job that ends with its first dead.
    fn meet(&self) -> Result<()> {
        self.engine.routes.transports().iter().for_each(|transport| transport.begin_to_leave());
        collective::barrier_as(&self.world.end(), collective::Kind::Finalize)?;
        self.stay()
    }

    /// Waits, by the launcher, until the barrier is over at all ranks, if a message of it could be lost with this process: the network
    /// may have lost it, and its repetition be yet to come. The progress thread is at work meanwhile.
    fn stay(&self) -> Result<()> {
        let transports = self.engine.routes.transports();
        if self.engine.in_one_process()
            || transports.iter().all(|transport| transport.delivers_after_the_end())
        {
            return Ok(());
        }
        let awaits = "all ranks to have what was sent to them last".to_owned();
        let board = self.engine.board.as_ref();
        let _noted = board.and_then(|board| board.note("finalize", awaits.into(), Duration::ZERO));
        self.bootstrap.lock().barrier(ENDED)
    }

    /// The barrier at the end of a job whose ranks may die: of those that live. Whom one more death surprises there begins anew
    /// without the dead; who has left meanwhile is told of as they are. With one that lives and cannot be reached there is no end.
    fn part(&self) -> Result<()> {
        loop {
            let living = self.world.living();
            match collective::barrier_as(&living, collective::Kind::Finalize) {
                Err(error) if error.dead().is_some() => self.engine.explain_losses()?,
                result => return result,
            }
        }
    }

    /// How often a communicator was founded in this context before.
    pub fn next_founding(&self, context: u64) -> u64 {
        let mut foundings = self.foundings.lock();
        let count = foundings.entry(context).or_insert(0);
        std::mem::replace(count, *count + 1)
    }

    fn stop(&self) {
        self.engine.stop_progress_thread();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the progress thread panicked");
        }
    }

    /// Whether the job is alive, as far as this rank knows.
    pub fn is_alive(&self) -> bool {
        self.engine.failure().is_none() && !std::thread::panicking()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.is_alive()
            && let Err(error) = self.finalize()
        {
            tracing::error!(%error, "the job did not end in good order");
        }
        self.reporter.end();
        self.stop();
        self.engine.tell_of_doubts();
        self.engine.drop_tasks();
        self.engine.two_sided.clear();
        self.engine.leave();
    }
}
