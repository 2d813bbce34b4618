//! The start of a job: its agents, and what a terminal shows of it.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::agents::Agent;
use super::job::Job;

/// A start that takes no longer shows nothing.
const QUICK: Duration = Duration::from_millis(500);

/// How far the start is, on a terminal's standard error. Gone without a trace when dropped.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    since: std::time::Instant,
}

impl Progress {
    /// Of a job on several hosts, if there is a terminal.
    pub(super) fn new(hosts: usize) -> Option<Self> {
        (hosts > 1 && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(hosts as u64), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} hosts ready, {elapsed}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            Self { bar, since: std::time::Instant::now() }
        })
    }

    fn show(&self, ready: u64) {
        if self.since.elapsed() > QUICK && self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(ready);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Job {
    pub(super) fn start_agents(&mut self) -> io::Result<()> {
        let limit = self.args.reach.connect_timeout;
        let mut agents: Vec<Option<Agent>> = self.plan.hosts.iter().map(|_| None).collect();
        for branch in &self.plan.branches {
            let (index, inner) = (branch.head.index as usize, !branch.below.is_empty());
            let place = self.plan.hosts[index].clone();
            let agent = Agent::start(index, place, inner, &self.plan.exe, limit, self.events.clone());
            let agent = match agent {
                Ok(agent) => agent,
                Err(error) => {
                    agents.iter_mut().flatten().for_each(Agent::kill);
                    return Err(error);
                }
            };
            for place in &branch.below {
                let of_host = self.plan.hosts[place.index as usize].clone();
                agents[place.index as usize] = Some(agent.below(place.index, of_host));
            }
            agents[index] = Some(agent);
        }
        // Each host is in one branch.
        self.agents = agents.into_iter().flatten().collect();
        Ok(())
    }

    /// Says how many hosts are ready.
    pub(super) fn show_start(&self) {
        if let Some(progress) = &self.progress {
            progress.show(self.agents.iter().map(|agent| u64::from(agent.ready_hosts)).sum());
        }
    }

    /// All agents are there, and no rank is to be started (`--agents-only`).
    pub(super) fn end_of_agents(&mut self) {
        let (of, seconds) = (self.started, self.began.elapsed().as_secs_f64());
        let here = self.plan.branches.len();
        crate::tell(&format!(
            "{} agents ready after {seconds:.2} s: {here} started from here, at most {} by another; {} on the way to the farthest; \
             at most {} KiB of memory each",
            of.hosts, of.children, of.depth, of.memory_kib
        ));
        self.end(0);
    }
}
