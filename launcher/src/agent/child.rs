//! One agent that this one has started.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::frames::{Frame, JobSpec, Pairs, Started, ToAgent, ToLauncher};
use crate::link::{Heard, Link};
use crate::liveness::Liveness;
use crate::tree::{self, Branch};

/// From the first sign that an agent is gone until it is given up without the second.
const LOST: Duration = Duration::from_millis(300);

/// What is known of it.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) branch: Branch,
    pub(super) link: Link,
    pub(super) hello: bool,
    pub(super) ready: Option<Started>,
    /// How many hosts of its branch are ready.
    pub(super) ready_hosts: u32,
    pub(super) is_done: bool,
    /// It was given up.
    pub(super) is_gone: bool,
    pub(super) lost_at: Option<Instant>,
    /// How its channel broke.
    pub(super) error: Option<String>,
    pub(super) fence: Option<Pairs>,
    /// Bytes of input that its readers have taken.
    pub(super) input_taken: u64,
    /// Whether a rank of its branch reads standard input.
    pub(super) reads: bool,
    pub(super) liveness: Liveness,
    /// Its orders, until it has said hello.
    orders: Option<Box<JobSpec>>,
    height: u32,
    /// Of its two signs of an end, how many were seen.
    has_ended: bool,
}

impl Child {
    /// Starts it, and those below it when it is there.
    pub(super) fn start<F, D>(
        branch: Branch,
        spec: &JobSpec,
        exe: &Path,
        connect: Duration,
        heard: F,
    ) -> io::Result<Self>
    where
        F: Fn(Heard) -> D + Send + 'static,
        D: Future<Output = bool> + Send + 'static,
    {
        let link = Link::start((&branch.head.block.host, &branch.head.route), exe, connect, heard)?;
        let reads = branch.places().any(|place| place.reads(spec.stdin));
        let mut orders = branch.spec(spec);
        orders.tree.by_agent = true;
        Ok(Self {
            link,
            hello: false,
            ready: None,
            ready_hosts: 0,
            is_done: false,
            is_gone: false,
            lost_at: None,
            error: None,
            fence: None,
            input_taken: 0,
            reads,
            liveness: Liveness::new(Duration::ZERO, Instant::now()),
            orders: Some(Box::new(orders)),
            height: 1 + tree::height(&branch.below, spec.tree.fan_out),
            has_ended: false,
            branch,
        })
    }

    /// Nothing more will come from it.
    pub(super) fn is_over(&self) -> bool {
        self.is_done || self.is_gone
    }

    /// Whether a host is its own, or below it.
    pub(super) fn contains(&self, host: u32) -> bool {
        self.branch.places().any(|place| place.index == host)
    }

    /// It is there: gets its orders. An error for the launcher if it cannot carry them out.
    pub(super) fn said_hello(&mut self, version: &str) -> Result<(), ToLauncher> {
        let own = env!("CARGO_PKG_VERSION");
        self.hello = true;
        if version != own {
            let message = format!("has transom {version}, and this is transom {own}");
            return Err(ToLauncher::CannotStart { message, code: 2 });
        }
        if let Some(orders) = self.orders.take() {
            let limit = Duration::from_millis(orders.silence_ms);
            self.liveness = Liveness::new(limit, Instant::now());
            self.link.send(Frame::Message(ToAgent::Prepare(orders)));
        }
        Ok(())
    }

    /// Whether it should be ready when so many times the time for an answer have passed: those below it take as long each.
    pub(super) fn is_late(&self, rounds: u32) -> bool {
        let patient = self.hello && rounds < self.height;
        self.ready.is_none() && !self.is_over() && !patient
    }

    /// An agent's end shows twice, at its channel and at its process; the message can say more after both.
    pub(super) fn noticed_end(&mut self, error: Option<String>) {
        let is_known = error.is_some() || self.link.status.is_some() && self.has_ended;
        self.error = self.error.take().or(error);
        self.has_ended = true;
        let limit = if is_known { Duration::ZERO } else { LOST };
        let at = Instant::now() + limit;
        self.lost_at = Some(self.lost_at.map_or(at, |lost_at| lost_at.min(at)));
    }

    /// It is of no use any more.
    pub(super) fn give_up(&mut self) {
        self.is_gone = true;
        self.link.kill();
    }

    /// It has given no sign of life.
    pub(super) fn give_up_silent(&mut self) {
        self.is_gone = true;
        self.link.kill_silent();
    }
}
