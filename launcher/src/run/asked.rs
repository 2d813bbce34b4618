//! Questions of `transom ps` and `transom where`: answered from what is known, or when the agents have looked.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::job::{Job, Phase};
use super::report::Failure;
use crate::frames::ToAgent;
use crate::hang::{Question, RankView, Report, Summary, analysis, print};

/// How long agents may take to say that they look.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long those that have said so may take to answer: reading stacks takes seconds on a host that is busy.
const PATIENCE_WITH_THE_LIVING: Duration = Duration::from_secs(20);
/// Questions under way at a time: those of one user, who has no use for more.
const AT_ONCE: usize = 16;

/// Questions that agents have yet to answer.
#[derive(Debug, Default)]
pub(super) struct Looks {
    next: u64,
    open: Vec<Open>,
}

/// Who wants to know.
#[derive(Debug)]
enum To {
    /// A command.
    Asker(oneshot::Sender<String>),
    /// The user, before the job is ended for having taken too long.
    TimedOut(Failure),
}

#[derive(Debug)]
struct Open {
    number: u64,
    answer: To,
    asked: Instant,
    /// The agents that have not answered, and how long each is waited for.
    awaited: BTreeMap<usize, Instant>,
    ranks: Vec<RankView>,
}

impl Open {
    fn new(number: u64, answer: To, agents: impl Iterator<Item = usize>, now: Instant) -> Self {
        let awaited = agents.map(|index| (index, now + PATIENCE)).collect();
        Self { number, answer, asked: now, awaited, ranks: Vec::new() }
    }

    /// An agent is at it.
    fn looking(&mut self, index: usize) {
        if let Some(until) = self.awaited.get_mut(&index) {
            *until = self.asked + PATIENCE_WITH_THE_LIVING;
        }
    }

    /// When nobody is waited for any more.
    fn until(&self) -> Instant {
        self.awaited.values().copied().max().unwrap_or(self.asked)
    }
}

impl Looks {
    /// When the next is answered without those who have not come.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(Open::until).min()
    }
}

impl Job {
    fn summary(&self) -> Summary {
        let words = self.args.program.iter().map(|word| word.to_string_lossy());
        Summary {
            job: std::process::id(),
            ranks: self.plan.size,
            hosts: self.plan.hosts.iter().map(|(block, _)| block.host.clone()).collect(),
            program: words.collect::<Vec<_>>().join(" "),
            age: self.began.elapsed(),
        }
    }

    pub(super) fn asked(&mut self, question: Question, answer: oneshot::Sender<String>) {
        match question {
            Question::Job => reply(answer, &self.summary()),
            Question::Where | Question::Load if self.looks.open.len() < AT_ONCE => {
                self.look(To::Asker(answer), question == Question::Where);
            }
            Question::Where | Question::Load => {}
        }
    }

    /// `--timeout` has passed: says what the ranks wait for, and ends the job.
    pub(super) fn timed_out(&mut self, failure: Failure) {
        match self.phase {
            Phase::Running => self.look(To::TimedOut(failure), true),
            _ => self.fail(failure, 0),
        }
    }

    fn look(&mut self, answer: To, places: bool) {
        let number = self.looks.next;
        self.looks.next += 1;
        self.broadcast(|| ToAgent::Look { number, places });
        let there = |index: &usize| !self.agents[*index].is_over();
        let there = (0..self.agents.len()).filter(there);
        self.looks.open.push(Open::new(number, answer, there, Instant::now()));
        self.answer_late(Instant::now());
    }

    /// An agent has begun to look.
    pub(super) fn looking(&mut self, index: usize, number: u64) {
        let open = self.looks.open.iter_mut().find(|open| open.number == number);
        open.into_iter().for_each(|open| open.looking(index));
    }

    /// An agent has looked at its ranks.
    pub(super) fn looked(&mut self, index: usize, number: u64, ranks: Vec<RankView>) {
        let host = self.agents[index].block.host.clone();
        let Some(open) = self.looks.open.iter_mut().find(|open| open.number == number) else { return };
        open.awaited.remove(&index);
        open.ranks.extend(ranks.into_iter().map(|rank| RankView { host: host.clone(), ..rank }));
        self.answer_late(Instant::now());
    }

    /// Answers what nothing is awaited for any more, or not any longer.
    pub(super) fn answer_late(&mut self, now: Instant) {
        let is_due = |open: &mut Open| open.until() <= now;
        let due: Vec<Open> = self.looks.open.extract_if(.., is_due).collect();
        for mut open in due {
            open.ranks.sort_by_key(|rank| rank.rank);
            let silent = open.awaited.keys().map(|index| self.agents[*index].block.host.clone()).collect();
            let report = Report { summary: self.summary(), ranks: open.ranks, silent };
            match open.answer {
                To::Asker(answer) => reply(answer, &report),
                To::TimedOut(failure) => {
                    // Of programs without Transom there is nothing to say.
                    if report.ranks.iter().any(|rank| rank.joined || rank.joining) {
                        let text = print::report(&report, &analysis::find(&report.ranks));
                        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
                    }
                    self.fail(failure, 0);
                }
            }
        }
    }
}

fn reply(answer: oneshot::Sender<String>, what: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string(what) {
        // Whoever asked may have gone.
        let _ = answer.send(text + "\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looks_is_waited_for_longer_than_who_says_nothing() {
        let now = Instant::now();
        let mut open = Open::new(7, To::Asker(oneshot::channel().0), 0..3, now);
        assert_eq!(open.until(), now + PATIENCE);
        open.looking(1);
        open.looking(3);
        assert_eq!((open.until(), open.awaited.len()), (now + PATIENCE_WITH_THE_LIVING, 3));
        open.awaited.remove(&1);
        assert_eq!(open.until(), now + PATIENCE, "the silent");
        open.awaited.clear();
        assert_eq!(open.until(), now, "at once");
    }
}
