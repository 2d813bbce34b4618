//! What the launcher does when it hears of something.

use std::time::Duration;

use tokio::time::Instant;

use super::Event;
use super::agents::Agent;
use super::job::{ENDING, Job, Phase};
use super::output::Chunk;
use super::plan::Route;
use super::report::{Death, Failure, RankName};
use super::signals;
use crate::cli::OnFailure;
use crate::frames::{Frame, OUTPUT_WINDOW, Pairs, Started, Status, Stream, ToAgent, ToLauncher};
use crate::liveness::Liveness;

/// Between a signal that asks for the end and SIGKILL.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Job {
    pub(super) fn event(&mut self, event: Event) {
        if self.give_up_at.is_some() {
            self.give_up_at = Some(Instant::now() + ENDING);
        }
        if let Event::Agent(index, _) = event {
            self.agents[index].liveness.heard(Instant::now());
        }
        match event {
            Event::Agent(index, Frame::Message(message)) => self.message(index, message),
            Event::Agent(index, Frame::Data { rank, stream, bytes }) => {
                let index = self.host_of(index, rank);
                let credit = u32::try_from(bytes.len()).unwrap_or(0);
                if self.args.output_dir.is_some() {
                    let bytes = bytes.to_vec();
                    return self.send_to_writer(Chunk {
                        stream,
                        rank: Some(rank),
                        bytes,
                        agent: index,
                        credit,
                    });
                }
                let out = self.lines.push(rank, stream, &bytes, std::time::Instant::now());
                self.write(stream, out, index, credit);
            }
            Event::AgentEof(index, error) => {
                self.agents[index].eof = true;
                self.check_lost(index, error);
            }
            Event::Asked(question, answer) => self.asked(question, answer),
            Event::Signal(number) => self.signal(number),
            Event::Stdin(bytes) => {
                for index in self.plan.readers() {
                    let bytes = bytes.clone();
                    self.agents[index].send_down(Frame::Data { rank: 0, stream: Stream::In, bytes });
                }
            }
            Event::StdinEof => {
                for index in self.plan.readers() {
                    self.agents[index].send_down(Frame::Message(ToAgent::StdinEof));
                }
            }
            Event::Written(index, credit) => {
                self.unwritten = self.unwritten.saturating_sub(1);
                self.give_credit(index, credit);
            }
            Event::OutputClosed(error) => {
                self.writer = None;
                self.unwritten = 0;
                // What the writer had yet to write gives no credit back: agents would wait for it with their last output.
                self.agents.iter().for_each(|agent| agent.send(ToAgent::OutputCredit(OUTPUT_WINDOW)));
                self.fail(Failure::Output(error), 0);
            }
            Event::WriterDone => {}
        }
    }

    pub(super) fn message(&mut self, index: usize, message: ToLauncher) {
        match message {
            ToLauncher::Alive => {}
            ToLauncher::Hello { version } => self.hello(index, &version),
            ToLauncher::Ready(started) => self.ready(index, started),
            ToLauncher::Bindings { ranks, complaint } => {
                self.bindings.add(&self.agents[index].block.host, ranks, complaint);
            }
            ToLauncher::Starting { ready } => {
                self.agents[index].ready_hosts = ready;
                self.show_start();
            }
            ToLauncher::Of { host, message } => {
                let host = host as usize;
                // Of a host that is not below it nothing is believed.
                if host != index && host < self.agents.len() && self.plan.is_within(host, index) {
                    self.message(host, *message);
                }
            }
            ToLauncher::Gone { status, error } => {
                self.agents[index].status = status;
                self.lost(index, error.map(std::io::Error::other));
            }
            ToLauncher::Unanswered => self.unanswered(index),
            ToLauncher::Silent => self.silent(index),
            ToLauncher::CannotStart { message, code } => {
                let host = self.agents[index].block.host.clone();
                self.fail(Failure::CannotStart { host, message, code }, 0);
            }
            ToLauncher::InputCredit(bytes) => {
                self.agents[index].input_taken += u64::from(bytes);
                self.give_input_credit();
            }
            ToLauncher::FenceEnter(pairs) => self.fence(index, pairs),
            ToLauncher::FenceBroken { rank } => self.fail(Failure::Fence(rank), 0),
            ToLauncher::Abort { rank, pid, code } => {
                self.fail(Failure::Abort(self.name(index, rank, pid), code), 1);
            }
            ToLauncher::RankExit { rank, pid, status, cause, unfinished, asked } => {
                let death = Death(self.name(index, rank, pid), status, cause);
                self.rank_exit(death, unfinished, asked);
            }
            ToLauncher::Agree { rank, contribution } => {
                self.agreements.add(rank, contribution);
                self.tell_agreements();
            }
            ToLauncher::Looking { number } => self.looking(index, number),
            ToLauncher::Looked { number, ranks } => self.looked(index, number, ranks),
            ToLauncher::Done => {
                for host in self.within(index) {
                    self.agents[host].done = true;
                }
                self.agents[index].hang_up();
            }
        }
    }

    pub(super) fn hello(&mut self, index: usize, version: &str) {
        let own = env!("CARGO_PKG_VERSION");
        let agent = &mut self.agents[index];
        agent.hello = true;
        if version != own {
            let host = agent.block.host.clone();
            let message = format!("has transom {version}, and this is transom {own}");
            self.fail(Failure::CannotStart { host, message, code: 2 }, 0);
        } else if let Some(spec) = self.plan.spec(index) {
            agent.send_down(Frame::Message(ToAgent::Prepare(Box::new(spec))));
            if agent.route != Route::Local {
                agent.liveness = Liveness::new(self.plan.silence(), Instant::now());
            }
        }
    }

    /// An agent can start the job, and so can those below it.
    fn ready(&mut self, index: usize, started: Started) {
        for host in self.within(index) {
            self.agents[host].ready = true;
        }
        self.agents[index].ready_hosts = started.hosts;
        self.started = self.started.beside(started);
        self.show_start();
        if self.phase == Phase::Connecting && self.agents.iter().all(|agent| agent.ready) {
            self.progress = None;
            self.bindings.tell();
            if self.args.agents_only { self.end_of_agents() } else { self.go() }
        }
    }

    /// The hosts whose agents are that of this one, or below it.
    pub(super) fn within(&self, index: usize) -> Vec<usize> {
        (0..self.agents.len()).filter(|host| self.plan.is_within(*host, index)).collect()
    }

    /// The host of a rank that the agent of `index` has passed something on of.
    fn host_of(&self, index: usize, rank: u32) -> usize {
        let has = |agent: &Agent| agent.block.ranks.local(rank).is_some();
        let host = if has(&self.agents[index]) { None } else { self.agents.iter().position(has) };
        host.filter(|host| self.plan.is_within(*host, index)).unwrap_or(index)
    }

    pub(super) fn go(&mut self) {
        self.phase = Phase::Running;
        self.running.fill(true);
        self.broadcast(|| ToAgent::Go);
        if self.plan.readers().next().is_some() {
            self.stdin_credit = super::stdin::start_reader(self.events.clone()).ok();
        }
    }

    /// More of the input may be read when the slowest host has taken what there was.
    fn give_input_credit(&mut self) {
        let taken = self.plan.readers().map(|index| self.agents[index].input_taken).min().unwrap_or(0);
        let more = u32::try_from(taken - self.stdin_credited).unwrap_or(0);
        if let Some(credit) = self.stdin_credit.as_ref().filter(|_| more > 0) {
            let _ = credit.send(more);
            self.stdin_credited = taken;
        }
    }

    /// To all agents that are there.
    pub(super) fn broadcast(&self, message: impl Fn() -> ToAgent) {
        self.agents
            .iter()
            .filter(|agent| !agent.is_over())
            .for_each(|agent| agent.send_down(Frame::Message(message())));
    }

    pub(super) fn name(&self, index: usize, rank: u32, pid: i32) -> RankName {
        RankName { rank, pid, host: self.agents[index].block.host.clone() }
    }

    pub(super) fn ranks_running(&self) -> Vec<u32> {
        (0..self.plan.size).filter(|rank| self.running[*rank as usize]).collect()
    }

    pub(super) fn fence(&mut self, index: usize, pairs: Pairs) {
        self.agents[index].fence = Some(pairs);
        if self.agents.iter().filter(|agent| agent.is_direct()).all(|agent| agent.fence.is_some()) {
            let all: Vec<_> =
                self.agents.iter_mut().filter_map(|agent| agent.fence.take()).flatten().collect();
            self.broadcast(|| ToAgent::Fence(all.clone()));
        } else {
            self.check_fence();
        }
    }

    /// A host whose ranks all wait in a fence, while a rank of another host has ended, waits for ever.
    pub(super) fn check_fence(&mut self) {
        let waiting = self.agents.iter().any(|agent| agent.fence.is_some());
        let ended = self.running.iter().position(|running| !running);
        if let (Phase::Running, true, Some(rank)) = (self.phase, waiting, ended) {
            self.fail(Failure::Fence(u32::try_from(rank).unwrap_or(u32::MAX)), 0);
        }
    }

    pub(super) fn rank_exit(&mut self, death: Death, unfinished: bool, asked: bool) {
        let Death(rank, status, cause) = death;
        if let Some(running) = self.running.get_mut(rank.rank as usize) {
            *running = false;
        }
        if self.args.on_failure == OnFailure::Notify && self.phase == Phase::Running {
            // Who still waits for a rank that has left in good order must know, too.
            let rank = rank.rank;
            self.broadcast(|| ToAgent::Died { rank });
        }
        self.tell_agreements();
        match status {
            Status::Code(0) if !unfinished => self.check_fence(),
            Status::Code(_) if !unfinished => self.fail_soon(rank, status),
            _ if asked => {}
            _ if self.args.on_failure == OnFailure::Notify => self.rank_died(Death(rank, status, cause)),
            _ => self.fail(Failure::Rank(rank, status, cause), 0),
        }
        if self.phase == Phase::Running && !self.running.contains(&true) {
            self.end(0);
        }
    }

    /// Answers those who have contributed to agreements for which nobody is missing any more.
    fn tell_agreements(&mut self) {
        if self.phase == Phase::Running {
            let running = &self.running;
            for agreed in self.agreements.reached(|rank| running.get(rank as usize) == Some(&true)) {
                self.broadcast(|| ToAgent::Agreed(agreed.clone()));
            }
        }
    }

    /// A rank has died, and the others are to go on.
    fn rank_died(&mut self, death: Death) {
        // Ranks that the end of the job, or the signal that asks for it, has killed have not died of their own.
        if self.phase != Phase::Running || matches!(self.failure, Some(Failure::Signal(_))) {
            return;
        }
        self.deaths.push(death);
        self.check_fence();
    }

    pub(super) fn signal(&mut self, number: i32) {
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
                self.kill_at = Some(Instant::now() + TIMEOUT);
            }
            _ => {
                self.failure.get_or_insert(Failure::Signal(number));
                self.end(0);
            }
        }
    }

    pub(super) fn write(&mut self, stream: Stream, bytes: Vec<u8>, agent: usize, credit: u32) {
        if bytes.is_empty() {
            return self.give_credit(agent, credit);
        }
        self.send_to_writer(Chunk { stream, rank: None, bytes, agent, credit });
    }

    fn send_to_writer(&mut self, chunk: Chunk) {
        let (agent, credit) = (chunk.agent, chunk.credit);
        let sent = self.writer.as_ref().is_some_and(|writer| writer.send(chunk).is_ok());
        if sent {
            self.unwritten += 1;
        } else {
            self.give_credit(agent, credit);
        }
    }

    pub(super) fn give_credit(&self, agent: usize, credit: u32) {
        if credit > 0 {
            self.agents[agent].send(ToAgent::OutputCredit(credit));
        }
    }
}
