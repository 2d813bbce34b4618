//! A job from start to end: the launcher's one loop.

use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use super::Event;
use super::agents::Agent;
use super::asked::Looks;
use super::bindings::Bindings;
use super::output::{Chunk, Lines, Places, start_writer};
use super::plan::{Plan, Route};
use super::report::{Death, Failure, tell_of};
use super::signals;
use super::start::Progress;
use crate::agree::Agreements;
use crate::cli::RunArgs;
use crate::frames::Started;
use crate::process::children;

/// How long agents may be silent while they end the job.
pub(super) const ENDING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Running,
    Ending,
}

/// A job that runs.
pub struct Job {
    pub(super) args: RunArgs,
    pub(super) plan: Plan,
    pub(super) agents: Vec<Agent>,
    /// Children that this process had before (a shell's background jobs, before it became this by `exec`).
    pub(super) spared: Vec<Pid>,
    pub(super) running: Vec<bool>,
    pub(super) phase: Phase,
    pub(super) failure: Option<Failure>,
    /// When it was taken note of.
    pub(super) failed_at: Option<Instant>,
    /// Ranks that have died while the others went on.
    pub(super) deaths: Vec<Death>,
    pub(super) agreements: Agreements,
    /// Ranks that ran when it failed, besides the one to blame.
    pub(super) others: usize,
    pub(super) events: UnboundedSender<Event>,
    /// When this command began.
    pub(super) began: Instant,
    /// Questions that agents have yet to answer.
    pub(super) looks: Looks,
    pub(super) lines: Lines,
    pub(super) writer: Option<mpsc::Sender<Chunk>>,
    pub(super) unwritten: usize,
    pub(super) stdin_credit: Option<mpsc::Sender<u32>>,
    /// Bytes of input beyond the first window that its reader may have read.
    pub(super) stdin_credited: u64,
    /// What is known of the tree of agents.
    pub(super) started: Started,
    pub(super) progress: Option<Progress>,
    pub(super) bindings: Bindings,
    pub(super) connect_by: Instant,
    /// How often that has passed.
    pub(super) connect_rounds: u32,
    pub(super) time_out_at: Option<Instant>,
    pub(super) kill_at: Option<Instant>,
    pub(super) give_up_at: Option<Instant>,
    /// When a rank has failed and the others may not go on any longer.
    pub(super) end_others_at: Option<Instant>,
    /// Asked twice to end: do not wait for anything any more.
    pub(super) abandoned: bool,
}

impl Job {
    /// Runs a job and gives this command's exit code. An error means that nothing was started.
    pub async fn run(args: RunArgs, plan: Plan, places: Places) -> io::Result<u8> {
        let (sender, mut events) = unbounded_channel();
        signals::listen(&sender)?;
        let spared = children();
        if plan.hosts.iter().all(|(_, route)| *route == Route::Local) {
            // If an agent of this host is killed, what its ranks left behind comes here to be killed.
            let _ = nix::sys::prctl::set_child_subreaper(true);
        }
        let mut job = Self::new(args, plan, sender, places)?;
        job.spared = spared;
        job.start_agents()?;
        // A job that cannot be asked runs all the same.
        let _ = crate::hang::door::listen(job.events.clone());
        job.until_ended(&mut events).await?;
        job.flush(&mut events).await;
        job.reap_agents().await?;
        let died = tell_of(&job.deaths, job.plan.size);
        let Some(failure) = job.failure else { return Ok(died.unwrap_or(0)) };
        if let Some(message) = failure.message(job.others) {
            crate::tell(&message);
        }
        Ok(failure.code())
    }

    fn new(args: RunArgs, plan: Plan, events: UnboundedSender<Event>, places: Places) -> io::Result<Self> {
        // People wait for a prompt; a file or a pipe is better served with whole lines on a busy machine.
        let at_terminal = io::stdout().is_terminal();
        let time_limit = Duration::from_millis(if at_terminal { 50 } else { 250 });
        let connect_by = Instant::now() + args.reach.connect_timeout;
        Ok(Self {
            lines: Lines::new(args.tag, plan.size, time_limit),
            running: vec![false; plan.size as usize],
            agents: Vec::new(),
            began: Instant::now(),
            looks: Looks::default(),
            spared: Vec::new(),
            phase: Phase::Connecting,
            failure: None,
            failed_at: None,
            deaths: Vec::new(),
            agreements: Agreements::default(),
            others: 0,
            writer: Some(start_writer(events.clone(), places)?),
            unwritten: 0,
            stdin_credit: None,
            stdin_credited: 0,
            time_out_at: args.timeout.map(|limit| Instant::now() + limit),
            started: Started::default(),
            bindings: Bindings::default(),
            progress: Progress::new(plan.hosts.len()),
            connect_by,
            connect_rounds: 0,
            kill_at: None,
            give_up_at: None,
            end_others_at: None,
            abandoned: false,
            args,
            plan,
            events,
        })
    }

    async fn until_ended(&mut self, events: &mut UnboundedReceiver<Event>) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        // An agent that ended before the signal was listened for.
        self.poll_agents();
        // Of an agent that is gone is waited for how it ended.
        let is_over = |agent: &Agent| agent.done || agent.is_over() && agent.lost_at.is_none();
        while !(self.abandoned || self.phase == Phase::Ending && self.agents.iter().all(is_over)) {
            let far = Instant::now() + Duration::from_secs(3600);
            let next = self.deadlines().into_iter().flatten().min().unwrap_or(far);
            tokio::select! {
                Some(event) = events.recv() => self.event(event),
                _ = children.recv() => self.poll_agents(),
                () = sleep_until(next) => self.time_passed(Instant::now()),
            }
        }
        Ok(())
    }

    fn deadlines(&self) -> [Option<Instant>; 9] {
        [
            (self.phase == Phase::Connecting).then_some(self.connect_by),
            self.time_out_at,
            self.kill_at,
            self.give_up_at,
            self.end_others_at,
            self.looks.deadline(),
            self.lines.deadline().map(Instant::from_std),
            self.agents.iter().filter_map(|agent| agent.lost_at).min(),
            self.agents.iter().filter(|agent| !agent.is_over()).filter_map(|a| a.liveness.next()).min(),
        ]
    }

    fn time_passed(&mut self, now: Instant) {
        for (stream, bytes) in self.lines.flush(now.into_std(), false) {
            self.write(stream, bytes, 0, 0);
        }
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for index in 0..self.agents.len() {
            if passed(self.agents[index].lost_at) {
                self.lost(index, None);
            }
        }
        self.look_at_hosts(now);
        if self.phase == Phase::Connecting && self.connect_by <= now {
            self.connect_timed_out();
        }
        if passed(self.time_out_at) {
            let limit = self.args.timeout.unwrap_or_default();
            self.time_out_at = None;
            self.timed_out(Failure::Timeout { limit, running: self.ranks_running() });
        }
        self.answer_late(now);
        if passed(self.kill_at) {
            self.kill_at = None;
            self.end(0);
        }
        if passed(self.end_others_at) {
            self.end_others(0);
        }
        if passed(self.give_up_at) {
            self.give_up_at = None;
            self.give_up();
        }
    }
}
