//! Questions of `transom ps` and `transom where`: answered from what is known, or when the agents have looked.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::job::{Job, Phase};
use super::report::Failure;
use crate::frames::ToAgent;
use crate::hang::{Question, RankView, Report, Summary, analysis, print};

/// How long agents may take to look at their ranks, and at their stacks.
const PATIENCE: Duration = Duration::from_secs(4);
const PATIENCE_FOR_PLACES: Duration = Duration::from_secs(8);
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
    /// The agents that have not answered.
    awaited: Vec<usize>,
    ranks: Vec<RankView>,
    until: Instant,
}

impl Looks {
    /// When the next is answered without those who have not come.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|look| look.until).min()
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
        let there = |index: &usize| !self.agents[*index].is_over();
        let awaited: Vec<usize> = (0..self.agents.len()).filter(there).collect();
        self.broadcast(|| ToAgent::Look { number, places });
        let until = Instant::now() + if places { PATIENCE_FOR_PLACES } else { PATIENCE };
        self.looks.open.push(Open { number, answer, awaited, ranks: Vec::new(), until });
        self.answer_late(Instant::now());
    }

    /// An agent has looked at its ranks.
    pub(super) fn looked(&mut self, index: usize, number: u64, ranks: Vec<RankView>) {
        let host = self.agents[index].block.host.clone();
        let Some(open) = self.looks.open.iter_mut().find(|open| open.number == number) else { return };
        open.awaited.retain(|awaited| *awaited != index);
        open.ranks.extend(ranks.into_iter().map(|rank| RankView { host: host.clone(), ..rank }));
        self.answer_late(Instant::now());
    }

    /// Answers what nothing is awaited for any more, or not any longer.
    pub(super) fn answer_late(&mut self, now: Instant) {
        let is_due = |open: &mut Open| open.awaited.is_empty() || open.until <= now;
        let due: Vec<Open> = self.looks.open.extract_if(.., is_due).collect();
        for mut open in due {
            open.ranks.sort_by_key(|rank| rank.rank);
            let silent = open.awaited.iter().map(|index| self.agents[*index].block.host.clone()).collect();
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
