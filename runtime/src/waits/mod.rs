//! What the ranks of a job wait for, as each notes it for `transom where`.
//!
//! The launcher's agent gives its ranks one memory file, with a *page* for each. A call that blocks for long writes a [`Wait`] to its
//! rank's page, and takes it away when it returns; so what a rank waits for can be read while it is stopped, too. What changes
//! all the time, such as the locks that a rank holds, is asked for: its [`Notes`] are written anew by whichever of its
//! threads serves the transports. Neither costs a call anything that returns soon.

mod board;
mod deaths;
mod page;

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::comm::{Channel, Group};

pub(crate) use board::{Board, Holds, WaitSlot};
pub use deaths::{Deaths, ON_FAILURE};
pub use page::{PAGE_BYTES, Page};

/// The variable that names the memory file and the event descriptor of a rank: two numbers with a comma between.
pub const VARIABLE: &str = "TRANSOM_WAITS_FD";
/// How the memory file is named.
pub const FILE_NAME: &str = "transom-waits";
/// What is written to a rank's event descriptor to have it write its [`Notes`], and look at the [`Deaths`].
pub const ASK: u64 = 1 << 32;

/// Most ranks and locks that a note lists.
pub(crate) const LISTED: usize = 24;
/// Longest description, in bytes.
pub(crate) const LONGEST: usize = 400;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A window's lock.
    Lock {
        /// The rank of the job whose lock it is.
        owner: u32,
        /// That rank's number of the window.
        window: u32,
        /// Whether others are to be excluded.
        exclusive: bool,
        /// The place in the queue, where it is known: smaller numbers come first.
        ticket: Option<u32>,
    },
    /// The post of another rank (MPI-4.1 §12.5.2).
    Post,
    /// The complete of another rank.
    Complete,
    /// Other ranks in a collective.
    Collective {
        /// The communicator's number, as its members know it.
        context: u64,
        /// How many were before.
        sequence: u64,
    },
    /// A message.
    Receive,
    /// That a message is received.
    Send,
    /// That a target completes operations, or answers.
    Target,
    /// Room in a queue.
    Room,
    /// Something else.
    Other,
}

/// A call that blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Its thread, as the kernel numbers it.
    pub thread: i32,
    /// The call.
    pub call: String,
    /// What it waits for, in words.
    pub what: String,
    /// Since when: milliseconds of [`now_ms`].
    pub since_ms: u64,
    /// The ranks of the job that it waits for, all of them; none where that is not known.
    pub on: Vec<u32>,
    /// What it waits for.
    pub subject: Subject,
}

/// A lock that a rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The rank of the job whose lock it is.
    pub owner: u32,
    /// That rank's number of the window.
    pub window: u32,
    /// Whether others are excluded.
    pub exclusive: bool,
}

/// What a rank says of itself when it is asked, and when a call blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// When: milliseconds of [`now_ms`].
    pub at_ms: u64,
    /// Its process, as it knows itself, and the inode of the namespace in which it has that number.
    pub pid: i32,
    /// See `pid`.
    pub pid_namespace: u64,
    /// The thread that has joined the job, as the kernel numbers it.
    pub thread: i32,
    /// The locks that it holds.
    pub held: Vec<Held>,
    /// Whether it has left the job, and says nothing any more.
    pub left: bool,
    /// The transports to the other ranks.
    pub ways: Vec<Way>,
    /// What it has counted by path since it joined; none if no window of it counts.
    pub traffic: Option<Vec<Traffic>>,
}

/// A transport, and how many ranks it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// Its name.
    pub transport: String,
    /// Number of ranks.
    pub ranks: u32,
}

/// Operations that took one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// The path of `explain`, in front of it the transport where it could be any.
    pub path: String,
    /// Number of operations.
    pub operations: u64,
    /// Bytes that they named at their targets.
    pub bytes: u64,
}

/// Milliseconds of the host's monotonic clock, which all its processes share.
pub fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// What a call awaits: words for people, and what `transom where` goes by.
#[derive(Debug, Clone)]
pub(crate) struct Awaits {
    pub text: String,
    pub on: Vec<usize>,
    pub subject: Subject,
    /// Ranks of which any may be needed.
    pub among: Option<Group>,
    /// The context of the communicator whose revocation ends it.
    pub context: Option<u64>,
    /// How many of the ranks that are gone, in the order in which they are told of, need not be waited for.
    pub known: usize,
    /// Whether what is awaited goes on when a wait for it has ended by a death of which the program did not know.
    pub goes_on: bool,
}

impl Awaits {
    pub fn new(text: impl Into<String>, subject: Subject, on: impl IntoIterator<Item = usize>) -> Self {
        Self {
            text: text.into(),
            on: on.into_iter().take(LISTED).collect(),
            subject,
            among: None,
            context: None,
            known: 0,
            goes_on: false,
        }
    }

    /// The same, on this channel.
    pub fn on_channel(self, channel: &Channel) -> Self {
        Self { context: Some(channel.context), ..self }
    }

    /// The same, where any of these ranks may be needed.
    pub fn among(self, group: &Group) -> Self {
        Self { among: Some(group.clone()), ..self }
    }

    /// Room in a queue to a rank of the job.
    pub fn room(text: impl Into<String>, world: usize) -> Self {
        Self::new(text, Subject::Room, [world])
    }

    /// An answer of a rank of the job, or the end of operations there.
    pub fn target(text: impl Into<String>, world: usize) -> Self {
        Self::new(text, Subject::Target, [world])
    }
}

impl From<String> for Awaits {
    fn from(text: String) -> Self {
        Self::new(text, Subject::Other, [])
    }
}

impl std::fmt::Display for Awaits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
