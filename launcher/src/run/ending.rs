//! How a job ends: the first failure, the agents' ends, the last output.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout};

use super::Event;
use super::agents::Agent;
use super::job::{ENDING, Job, Phase};
use super::plan::Route;
use super::report::{Failure, RankName, Unreachable};
use super::signals;
use crate::cli::OnFailure;
use crate::frames::{Frame, Status, ToAgent};
use crate::liveness::Look;
use crate::process::{kill_descendants, reap_any};

/// Between SIGTERM and SIGKILL when the job has failed.
const GRACE_MS: u64 = 100;
/// From the end of a rank that has left the job, with a code other than 0, to that of the others: time to say what went
/// wrong, if they are about to end, too.
const END_OTHERS_AFTER: Duration = Duration::from_millis(500);
/// From the failure of a rank until the first sign that an agent is lost is no longer taken for its cause: a rank may tell of
/// peers that died with their agent before the end of that agent shows here.
const CAUSE_WITHIN: Duration = Duration::from_secs(2);
/// From the first sign that an agent is gone until it is given up without the second.
const LOST: Duration = Duration::from_secs(1);

impl Job {
    pub(super) fn connect_timed_out(&mut self) {
        self.connect_rounds += 1;
        self.connect_by += self.args.reach.connect_timeout;
        // Who has agents below it has as many times as long as there are levels of them, to say which of them is late.
        let late = |index: &usize| {
            let agent = &self.agents[*index];
            let alone = self.plan.parents.iter().all(|parent| *parent != u32::try_from(*index).ok());
            let patient = agent.hello && !alone && self.connect_rounds < self.plan.height;
            agent.is_direct() && !agent.ready && !patient
        };
        if let Some(index) = (0..self.agents.len()).find(late) {
            self.unanswered(index);
        }
    }

    /// An agent has not come in time.
    pub(super) fn unanswered(&mut self, index: usize) {
        let why = Unreachable::Silence(self.args.reach.connect_timeout);
        self.unreachable(index, why);
    }

    fn unreachable(&mut self, index: usize, why: Unreachable) {
        let name = |index: usize| self.agents[index].block.host.clone();
        let from = self.plan.parents[index].map(|parent| name(parent as usize));
        let (host, route) = (name(index), self.agents[index].route.clone());
        self.fail(Failure::Unreachable { host, from, route, why }, 0);
    }

    pub(super) fn give_up(&mut self) {
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

    /// Takes note of a failure, if it is the first, and ends the job. `culprits` of the running ranks are to blame.
    pub(super) fn fail(&mut self, failure: Failure, culprits: usize) {
        self.fail_since(Instant::now(), failure, culprits);
    }

    /// The same of what has shown before.
    fn fail_since(&mut self, since: Instant, failure: Failure, culprits: usize) {
        // Ranks that die of the signal that ends the job, or in time after it, have not failed.
        let of_signal = matches!(self.failure, Some(Failure::Signal(_))) && self.phase == Phase::Running;
        if of_signal && matches!(failure, Failure::Rank(..)) {
            return;
        }
        let recent = self.failed_at.is_some_and(|at| since < at + CAUSE_WITHIN);
        let explains = recent && self.failure.as_ref().is_some_and(|first| failure.explains(first));
        if self.phase == Phase::Ending && explains {
            // Those that the agent took with it were counted as ended.
            self.others = self.others.saturating_sub(failure.ranks_lost());
        }
        match &mut self.failure {
            Some(first) if explains => *first = failure,
            None if self.phase != Phase::Ending => {
                (self.failure, self.failed_at) = (Some(failure), Some(Instant::now()))
            }
            _ => {}
        }
        if self.phase != Phase::Ending {
            self.end_others(culprits);
        }
    }

    /// Takes note of the failure of a rank that owes nothing to the others, and lets them end by themselves for a moment.
    pub(super) fn fail_soon(&mut self, rank: RankName, status: Status) {
        if self.failure.is_none() && self.phase != Phase::Ending {
            self.failure = Some(Failure::Rank(rank, status, None));
            self.failed_at = Some(Instant::now());
            if self.args.on_failure == OnFailure::End {
                self.end_others_at = Some(Instant::now() + END_OTHERS_AFTER);
            }
        }
    }

    pub(super) fn end_others(&mut self, culprits: usize) {
        self.others = self.running.iter().filter(|running| **running).count().saturating_sub(culprits);
        self.end(GRACE_MS);
    }

    pub(super) fn end(&mut self, grace_ms: u64) {
        self.phase = Phase::Ending;
        (self.time_out_at, self.end_others_at) = (None, None);
        self.give_up_at = Some(Instant::now() + ENDING);
        for agent in &mut self.agents {
            if !agent.is_direct() {
                // It hears of it from the one above it.
            } else if agent.hello {
                agent.send_down(Frame::Message(ToAgent::End { grace_ms }));
            } else {
                // Nothing runs there, and ssh may sit in a connect for minutes.
                agent.kill();
                agent.eof = true;
            }
        }
    }

    pub(super) fn poll_agents(&mut self) {
        let known: Vec<usize> = (0..self.agents.len()).filter(|i| self.agents[*i].status.is_some()).collect();
        self.agents.iter_mut().for_each(Agent::poll);
        for (pid, status) in reap_any() {
            if let Some(agent) = self.agents.iter_mut().find(|agent| agent.pid() == Some(pid)) {
                agent.status.get_or_insert(status);
            }
        }
        for index in 0..self.agents.len() {
            if self.agents[index].is_direct()
                && self.agents[index].status.is_some()
                && !known.contains(&index)
            {
                self.check_lost(index, None);
            }
        }
    }

    /// An agent's end shows twice, at its channel and at its process; the message can say more after both.
    pub(super) fn check_lost(&mut self, index: usize, error: Option<io::Error>) {
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

    pub(super) fn lost(&mut self, index: usize, error: Option<io::Error>) {
        // Nothing comes from those below it any more, either.
        for host in self.within(index) {
            self.agents[host].eof = true;
        }
        let agent = &mut self.agents[index];
        // Between the two signs of its end a busy machine has its time.
        let since = agent.lost_at.take().map_or_else(Instant::now, |until| until - LOST);
        agent.hang_up();
        if agent.done {
            return;
        }
        let (host, status, ready) = (agent.block.host.clone(), agent.status, agent.ready);
        let error = error.map(|error| error.to_string());
        if !ready {
            return self.unreachable(index, error.map_or(Unreachable::Ended(status), Unreachable::Nonsense));
        }
        let (_, ranks) = self.forget_ranks(index);
        self.fail_since(since, Failure::AgentLost { host, ranks, status, error }, 0);
    }

    /// Tells remote agents that this host is alive, and ends the job if one of theirs is not.
    pub(super) fn look_at_hosts(&mut self, now: Instant) {
        for index in 0..self.agents.len() {
            let agent = &mut self.agents[index];
            if agent.is_over() || !agent.is_direct() {
                continue;
            }
            match agent.liveness.look(now) {
                Look::Early => {}
                // How long it may take to be ready is another matter.
                Look::Silent if self.phase != Phase::Connecting => self.silent(index),
                Look::Say | Look::Silent => agent.send_down(Frame::Message(ToAgent::Alive)),
            }
        }
    }

    /// A host has given no sign of life for too long.
    pub(super) fn silent(&mut self, index: usize) {
        for host in self.within(index) {
            self.agents[host].eof = true;
        }
        self.agents[index].kill_silent();
        let (host, ranks) = self.forget_ranks(index);
        self.fail(Failure::Silent { host, ranks, limit: self.plan.silence() }, 0);
    }

    /// The ranks of an agent that is gone run no more, nor do those of the agents below it: its host, and how many did.
    fn forget_ranks(&mut self, index: usize) -> (String, u32) {
        let mut ranks = 0;
        for host in self.within(index) {
            for rank in self.agents[host].block.ranks.iter() {
                let running = self.running.get_mut(rank as usize).map(std::mem::take);
                ranks += u32::from(running == Some(true));
            }
        }
        (self.agents[index].block.host.clone(), ranks)
    }

    /// Writes what is left, for as long as that takes; one more signal ends it.
    pub(super) async fn flush(&mut self, events: &mut UnboundedReceiver<Event>) {
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
    pub(super) async fn reap_agents(&mut self) -> io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let time_limit = if self.abandoned { Duration::ZERO } else { Duration::from_secs(2) };
        self.agents.iter_mut().for_each(Agent::hang_up);
        let wait = async {
            loop {
                self.agents.iter_mut().for_each(Agent::poll);
                if self.agents.iter().all(|agent| agent.status.is_some() || !agent.is_direct()) {
                    return;
                }
                children.recv().await;
            }
        };
        let _ = timeout(time_limit, wait).await;
        self.agents.iter_mut().for_each(Agent::kill);
        let closed = async {
            for agent in &mut self.agents {
                agent.closed().await;
            }
        };
        let _ = timeout(time_limit / 2, closed).await;
        if self.agents.iter().all(|agent| agent.route == Route::Local) {
            kill_descendants(Duration::from_secs(1), &self.spared);
        }
        Ok(())
    }
}
