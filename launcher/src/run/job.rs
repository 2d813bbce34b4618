//! A job from start to end: the launcher's one loop.

use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout};

use super::Event;
use super::agents::Agent;
use super::output::{Chunk, Lines, start_writer};
use super::plan::{Plan, Route};
use super::report::{Failure, RankName, Unreachable};
use super::signals;
use crate::cli::RunArgs;
use crate::frames::{Frame, Status, Stream, ToAgent, ToLauncher};
use crate::process::{children, kill_descendants, reap_any};

/// Between SIGTERM and SIGKILL when the job has failed.
const GRACE_MS: u64 = 100;
/// Between a signal that asks for the end and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);
/// From the first sign that an agent is gone until it is given up without the second.
const LOST: Duration = Duration::from_millis(300);
/// How long agents may be silent while they end the job.
const ENDING: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Connecting,
    Running,
    Ending,
}

/// A job that runs.
pub struct Job {
    args: RunArgs,
    plan: Plan,
    agents: Vec<Agent>,
    /// Children that this process had before (a shell's background jobs, before it became this by `exec`).
    spared: Vec<Pid>,
    running: Vec<bool>,
    phase: Phase,
    failure: Option<Failure>,
    /// Ranks that ran when it failed, besides the one to blame.
    others: usize,
    events: UnboundedSender<Event>,
    lines: Lines,
    writer: Option<mpsc::Sender<Chunk>>,
    unwritten: usize,
    stdin_credit: Option<mpsc::Sender<u32>>,
    connect_by: Instant,
    time_out_at: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
    /// Asked twice to end: do not wait for anything any more.
    abandoned: bool,
}

impl Job {
    /// Runs a job and gives this command's exit code. An error means that nothing was started.
    pub async fn run(args: RunArgs, plan: Plan) -> io::Result<u8> {
        let (sender, mut events) = unbounded_channel();
        signals::listen(&sender)?;
        let spared = children();
        if plan.hosts.iter().all(|(_, route)| *route == Route::Local) {
            // If an agent of this host is killed, what its ranks left behind comes here to be killed.
            let _ = nix::sys::prctl::set_child_subreaper(true);
        }
        let mut job = Self::new(args, plan, sender)?;
        job.spared = spared;
        job.start_agents()?;
        job.until_ended(&mut events).await?;
        job.flush(&mut events).await;
        job.bury_agents().await?;
        let Some(failure) = job.failure else { return Ok(0) };
        if let Some(message) = failure.message(job.others) {
            crate::tell(&message);
        }
        Ok(failure.code())
    }

    fn new(args: RunArgs, plan: Plan, events: UnboundedSender<Event>) -> io::Result<Self> {
        // People wait for a prompt; a file or a pipe is better served with whole lines on a busy machine.
        let at_terminal = io::stdout().is_terminal();
        let patience = Duration::from_millis(if at_terminal { 50 } else { 250 });
        let connect_by = Instant::now() + args.connect_timeout;
        Ok(Self {
            lines: Lines::new(args.tag, plan.size, patience),
            running: vec![false; plan.size as usize],
            agents: Vec::new(),
            spared: Vec::new(),
            phase: Phase::Connecting,
            failure: None,
            others: 0,
            writer: Some(start_writer(events.clone())?),
            unwritten: 0,
            stdin_credit: None,
            time_out_at: args.timeout.map(|limit| Instant::now() + limit),
            connect_by,
            kill_at: None,
            give_up_at: None,
            abandoned: false,
            args,
            plan,
            events,
        })
    }

    fn start_agents(&mut self) -> io::Result<()> {
        for (index, host) in self.plan.hosts.clone().into_iter().enumerate() {
            let limit = self.args.connect_timeout;
            let agent = Agent::start(index, host, &self.plan.exe, limit, self.events.clone());
            match agent {
                Ok(agent) => self.agents.push(agent),
                Err(error) => {
                    self.agents.iter_mut().for_each(Agent::kill);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    async fn until_ended(&mut self, events: &mut UnboundedReceiver<Event>) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        // An agent that ended before the signal was listened for.
        self.poll_agents();
        while !(self.abandoned || self.phase == Phase::Ending && self.agents.iter().all(Agent::is_over)) {
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

    fn deadlines(&self) -> [Option<Instant>; 6] {
        [
            (self.phase == Phase::Connecting).then_some(self.connect_by),
            self.time_out_at,
            self.kill_at,
            self.give_up_at,
            self.lines.deadline().map(Instant::from_std),
            self.agents.iter().filter_map(|agent| agent.lost_at).min(),
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
        if self.phase == Phase::Connecting && self.connect_by <= now {
            self.connect_timed_out();
        }
        if passed(self.time_out_at) {
            let limit = self.args.timeout.unwrap_or_default();
            self.time_out_at = None;
            self.fail(Failure::Timeout { limit, running: self.ranks_running() }, 0);
        }
        if passed(self.kill_at) {
            self.kill_at = None;
            self.end(0);
        }
        if passed(self.give_up_at) {
            self.give_up_at = None;
            self.give_up();
        }
    }

    fn connect_timed_out(&mut self) {
        let Some(agent) = self.agents.iter().find(|agent| !agent.ready) else { return };
        let why = Unreachable::Silence(self.args.connect_timeout);
        let (host, route) = (agent.block.host.clone(), agent.route.clone());
        self.fail(Failure::Unreachable { host, route, why }, 0);
    }

    fn give_up(&mut self) {
        if self.unwritten > 0 {
            // Not the agents are slow, but whoever reads this command's output.
            self.give_up_at = Some(Instant::now() + ENDING);
            return;
        }
        for agent in self.agents.iter_mut().filter(|agent| !agent.is_over()) {
            agent.kill();
            agent.eof = true;
        }
    }

    fn event(&mut self, event: Event) {
        if self.give_up_at.is_some() {
            self.give_up_at = Some(Instant::now() + ENDING);
        }
        match event {
            Event::Agent(index, Frame::Message(message)) => self.message(index, message),
            Event::Agent(index, Frame::Data { rank, stream, bytes }) => {
                let out = self.lines.push(rank, stream, &bytes, std::time::Instant::now());
                self.write(stream, out, index, u32::try_from(bytes.len()).unwrap_or(0));
            }
            Event::AgentEof(index, error) => {
                self.agents[index].eof = true;
                self.check_lost(index, error);
            }
            Event::Signal(number) => self.signal(number),
            Event::Stdin(bytes) => self.agents[0].send(Frame::Data { rank: 0, stream: Stream::In, bytes }),
            Event::StdinEof => self.agents[0].send(Frame::Message(ToAgent::StdinEof)),
            Event::Written(index, credit) => {
                self.unwritten = self.unwritten.saturating_sub(1);
                self.give_credit(index, credit);
            }
            Event::OutputClosed(error) => {
                self.writer = None;
                self.unwritten = 0;
                self.fail(Failure::Output(error), 0);
            }
            Event::WriterDone => {}
        }
    }

    fn message(&mut self, index: usize, message: ToLauncher) {
        match message {
            ToLauncher::Hello { version } => self.hello(index, &version),
            ToLauncher::Ready => {
                self.agents[index].ready = true;
                if self.phase == Phase::Connecting && self.agents.iter().all(|agent| agent.ready) {
                    self.go();
                }
            }
            ToLauncher::CannotStart { message, code } => {
                let host = self.agents[index].block.host.clone();
                self.fail(Failure::CannotStart { host, message, code }, 0);
            }
            ToLauncher::InputCredit(bytes) => {
                if let Some(credit) = &self.stdin_credit {
                    let _ = credit.send(bytes);
                }
            }
            ToLauncher::FenceEnter(pairs) => self.fence(index, pairs),
            ToLauncher::FenceBroken { rank } => self.fail(Failure::Fence(rank), 0),
            ToLauncher::Abort { rank, pid, code } => {
                self.fail(Failure::Abort(self.name(index, rank, pid), code), 1);
            }
            ToLauncher::RankExit { rank, pid, status, unfinished } => {
                self.rank_exit(self.name(index, rank, pid), status, unfinished);
            }
            ToLauncher::Done => {
                let agent = &mut self.agents[index];
                agent.done = true;
                agent.hang_up();
            }
        }
    }

    fn hello(&mut self, index: usize, version: &str) {
        let own = env!("CARGO_PKG_VERSION");
        let agent = &mut self.agents[index];
        agent.hello = true;
        if version != own {
            let host = agent.block.host.clone();
            let message = format!("has transom {version}, and this is transom {own}");
            self.fail(Failure::CannotStart { host, message, code: 2 }, 0);
        } else if let Some(spec) = self.plan.spec(index) {
            agent.send(Frame::Message(ToAgent::Prepare(Box::new(spec))));
        }
    }

    fn go(&mut self) {
        self.phase = Phase::Running;
        self.running.fill(true);
        self.broadcast(|| ToAgent::Go);
        self.stdin_credit = super::stdin::start_reader(self.events.clone()).ok();
    }

    fn broadcast(&self, message: impl Fn() -> ToAgent) {
        self.agents
            .iter()
            .filter(|agent| !agent.is_over())
            .for_each(|agent| agent.send(Frame::Message(message())));
    }

    fn name(&self, index: usize, rank: u32, pid: i32) -> RankName {
        RankName { rank, pid, host: self.agents[index].block.host.clone() }
    }

    fn ranks_running(&self) -> Vec<u32> {
        (0..self.plan.size).filter(|rank| self.running[*rank as usize]).collect()
    }

    fn fence(&mut self, index: usize, pairs: crate::frames::Pairs) {
        self.agents[index].fence = Some(pairs);
        if self.agents.iter().all(|agent| agent.fence.is_some()) {
            let all: Vec<_> =
                self.agents.iter_mut().filter_map(|agent| agent.fence.take()).flatten().collect();
            self.broadcast(|| ToAgent::Fence(all.clone()));
        } else {
            self.check_fence();
        }
    }

    /// A host whose ranks all wait in a fence, while a rank of another host has ended, waits for ever.
    fn check_fence(&mut self) {
        let waiting = self.agents.iter().any(|agent| agent.fence.is_some());
        let ended = self.running.iter().position(|running| !running);
        if let (Phase::Running, true, Some(rank)) = (self.phase, waiting, ended) {
            self.fail(Failure::Fence(u32::try_from(rank).unwrap_or(u32::MAX)), 0);
        }
    }

    fn rank_exit(&mut self, rank: RankName, status: Status, unfinished: bool) {
        if let Some(running) = self.running.get_mut(rank.rank as usize) {
            *running = false;
        }
        if status != Status::Code(0) || unfinished {
            self.fail(Failure::Rank(rank, status), 0);
        } else {
            self.check_fence();
        }
        if self.phase == Phase::Running && !self.running.contains(&true) {
            self.end(0);
        }
    }

    /// Takes note of a failure, if it is the first, and ends the job. `culprits` of the running ranks are to blame.
    fn fail(&mut self, failure: Failure, culprits: usize) {
        // Ranks that die of the signal that ends the job, or in time after it, have not failed.
        let of_signal = matches!(self.failure, Some(Failure::Signal(_))) && self.phase == Phase::Running;
        if of_signal && matches!(failure, Failure::Rank(..)) {
            return;
        }
        if self.failure.is_none() && self.phase != Phase::Ending {
            self.others = self.running.iter().filter(|running| **running).count().saturating_sub(culprits);
            self.failure = Some(failure);
        }
        if self.phase != Phase::Ending {
            self.end(GRACE_MS);
        }
    }

    fn end(&mut self, grace_ms: u64) {
        self.phase = Phase::Ending;
        self.time_out_at = None;
        self.give_up_at = Some(Instant::now() + ENDING);
        for agent in &mut self.agents {
            if agent.hello {
                agent.send(Frame::Message(ToAgent::End { grace_ms }));
            } else {
                // Nothing runs there, and ssh may sit in a connect for minutes.
                agent.kill();
                agent.eof = true;
            }
        }
    }

    fn poll_agents(&mut self) {
        let known: Vec<usize> = (0..self.agents.len()).filter(|i| self.agents[*i].status.is_some()).collect();
        self.agents.iter_mut().for_each(Agent::poll);
        for (pid, status) in reap_any() {
            if let Some(agent) = self.agents.iter_mut().find(|agent| agent.pid() == pid) {
                agent.status.get_or_insert(status);
            }
        }
        for index in 0..self.agents.len() {
            if self.agents[index].status.is_some() && !known.contains(&index) {
                self.check_lost(index, None);
            }
        }
    }

    /// An agent's end shows twice, at its channel and at its process; the message can say more after both.
    fn check_lost(&mut self, index: usize, error: Option<io::Error>) {
        let agent = &mut self.agents[index];
        if agent.done {
            return;
        }
        if error.is_some() || agent.eof && agent.status.is_some() {
            self.lost(index, error);
        } else if agent.lost_at.is_none() {
            agent.lost_at = Some(Instant::now() + LOST);
        }
    }

    fn lost(&mut self, index: usize, error: Option<io::Error>) {
        let agent = &mut self.agents[index];
        agent.lost_at = None;
        agent.eof = true;
        agent.hang_up();
        if agent.done {
            return;
        }
        let (host, status, ready) = (agent.block.host.clone(), agent.status, agent.ready);
        let error = error.map(|error| error.to_string());
        if !ready {
            let why = error.map_or(Unreachable::Ended(status), Unreachable::Nonsense);
            let route = agent.route.clone();
            return self.fail(Failure::Unreachable { host, route, why }, 0);
        }
        let (first, count) = (agent.block.first as usize, agent.block.count);
        let own = &mut self.running[first..first + count as usize];
        let ranks = u32::try_from(own.iter().filter(|running| **running).count()).unwrap_or(count);
        own.fill(false);
        self.fail(Failure::AgentLost { host, ranks, status, error }, 0);
    }

    fn signal(&mut self, number: i32) {
        if !signals::ends_job(number) {
            self.broadcast(|| ToAgent::Signal(number));
            if number == nix::sys::signal::Signal::SIGTSTP as i32 {
                signals::stop_self_soon();
            }
            return;
        }
        let again = matches!(self.failure, Some(Failure::Signal(_)));
        match self.phase {
            Phase::Ending if again => self.abandoned = true,
            Phase::Running if !again => {
                self.failure = Some(Failure::Signal(number));
                self.broadcast(|| ToAgent::Signal(number));
                self.kill_at = Some(Instant::now() + PATIENCE);
            }
            _ => {
                self.failure.get_or_insert(Failure::Signal(number));
                self.end(0);
            }
        }
    }

    fn write(&mut self, stream: Stream, bytes: Vec<u8>, agent: usize, credit: u32) {
        if bytes.is_empty() {
            return self.give_credit(agent, credit);
        }
        let chunk = Chunk { stream, bytes, agent, credit };
        let sent = self.writer.as_ref().is_some_and(|writer| writer.send(chunk).is_ok());
        if sent {
            self.unwritten += 1;
        } else {
            self.give_credit(agent, credit);
        }
    }

    fn give_credit(&self, agent: usize, credit: u32) {
        if credit > 0 {
            self.agents[agent].send(Frame::Message(ToAgent::OutputCredit(credit)));
        }
    }

    /// Writes what is left, for as long as that takes; one more signal ends it.
    async fn flush(&mut self, events: &mut UnboundedReceiver<Event>) {
        for (stream, bytes) in self.lines.flush(std::time::Instant::now(), true) {
            self.write(stream, bytes, 0, 0);
        }
        if self.writer.take().is_none() || self.abandoned {
            return;
        }
        while let Some(event) = events.recv().await {
            match event {
                Event::WriterDone => return,
                Event::Signal(number) if signals::ends_job(number) => {
                    self.failure.get_or_insert(Failure::Signal(number));
                    return;
                }
                Event::OutputClosed(error) => {
                    self.failure.get_or_insert(Failure::Output(error));
                    return;
                }
                _ => {}
            }
        }
    }

    /// Waits for the processes of the agents, and kills those that do not end.
    async fn bury_agents(&mut self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let patience = if self.abandoned { Duration::ZERO } else { Duration::from_secs(2) };
        self.agents.iter_mut().for_each(Agent::hang_up);
        let wait = async {
            loop {
                self.agents.iter_mut().for_each(Agent::poll);
                if self.agents.iter().all(|agent| agent.status.is_some()) {
                    return;
                }
                children.recv().await;
            }
        };
        let _ = timeout(patience, wait).await;
        self.agents.iter_mut().for_each(Agent::kill);
        if self.agents.iter().all(|agent| agent.route == Route::Local) {
            kill_descendants(Duration::from_secs(1), &self.spared);
        }
        Ok(())
    }
}
