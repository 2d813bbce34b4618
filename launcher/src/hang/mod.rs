//! `transom ps` and `transom where`: the user's running jobs on this host, and what the ranks of one wait for (and do: [`crate::top`]).
//!
//! `transom run` listens at a Unix socket with an abstract name ([`door`]), so that nothing is left behind however it ends; only its own
//! user is answered. What ranks wait for stands in memory that their agent shares with them (`transom::waits`); the agent
//! reads it when it is asked ([`look`]), beside what /proc says of their processes, and where in the program they are ([`stacks`]). Who waits for whom, and who is to
//! blame, is worked out by the command that asked ([`analysis`]).

pub mod analysis;
pub mod ask;
pub mod door;
pub mod look;
pub mod print;
pub mod stacks;
pub(crate) mod verdict;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stacks::{Place, Sight, Unseen};
use transom::waits::{Held, Traffic, Wait, Way};

/// What is known of a running job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Its name: the process number of its `transom run`.
    pub job: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Its hosts, in the order of their ranks.
    pub hosts: Vec<String>,
    /// The program and its arguments.
    pub program: String,
    /// How long it has run.
    pub age: Duration,
}

/// What a process does, as its kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It uses a processor, or would.
    Runs,
    /// It sleeps in the kernel.
    Sleeps,
    /// It is stopped, by a signal or a debugger.
    Stopped,
    /// It has ended.
    Ended,
}

/// One rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RankView {
    /// Its number.
    pub rank: u32,
    /// Its host; the launcher knows the name.
    pub host: String,
    /// Its process.
    pub pid: i32,
    /// What the process does.
    pub state: State,
    /// Where in the kernel it sleeps, if that can be had.
    pub sleeps_in: Option<String>,
    /// Whether it has joined the job, and says what it waits for.
    pub joined: bool,
    /// Whether it has answered now, so that `held` is true now.
    pub answered: bool,
    /// Whether it has left the job, as a rank does that is done.
    pub left: bool,
    /// Whether it waits for the others to join.
    pub joining: bool,
    /// The locks that it holds.
    pub held: Vec<Held>,
    /// The calls that block, and for how long they have.
    pub waits: Vec<(Wait, Duration)>,
    /// Where in the program those calls were made; of a rank without any, where its first thread is; or why that is not known. Some may be missing.
    pub places: Vec<Sight>,
    /// What it uses and does.
    pub load: Load,
}

impl RankView {
    /// Where in the program a call was made, or why that is not known.
    pub fn sight_of(&self, wait: &Wait) -> Option<Result<&Place, Unseen>> {
        let sight = self.places.iter().find(|sight| sight.thread == wait.thread)?;
        Some(sight.place.as_ref().map_err(|unseen| *unseen))
    }

    /// Where in the program it is: in the call that is noted first, or elsewhere.
    pub fn place(&self) -> Option<&Place> {
        match self.waits.first() {
            Some((wait, _)) => self.sight_of(wait)?.ok(),
            None => self.places.first()?.place.as_ref().ok(),
        }
    }
}

/// What a rank uses and does.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Load {
    /// When this was so, by its host's monotonic clock.
    pub at: Duration,
    /// Processor time of all its threads.
    pub cpu: Duration,
    /// Memory that it has in use, in bytes; shared memory counts at each rank that has touched it.
    pub resident: u64,
    /// The transports to the other ranks.
    pub ways: Vec<Way>,
    /// What it has counted by path since it joined; none if no window of it counts.
    pub traffic: Option<Vec<Traffic>>,
}

/// The ranks of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The job.
    pub summary: Summary,
    /// What was heard of its ranks.
    pub ranks: Vec<RankView>,
    /// Hosts that have not answered.
    pub silent: Vec<String>,
}

/// What can be asked of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// [`Summary`].
    Job,
    /// [`Report`].
    Where,
    /// The same without places, which only readers need.
    Load,
}
