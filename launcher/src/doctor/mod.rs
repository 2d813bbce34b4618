//! `transom doctor`: tries what jobs rely on, and says what to do where it does not hold.
//!
//! Each subject (shared memory, a device, a provider) is examined in a process of its own, so that one that crashes or
//! hangs is a finding and not the end of the examination.

mod child;
mod fabric;
mod limits;
mod network;
mod print;
mod subject;

use std::process::ExitCode;
use std::time::Duration;

use transom_litmus::{Effort, Verdict, flush_method};

use crate::cli::DoctorArgs;
use limits::Level;
use subject::{Found, Subject};

/// What was found out about a subject.
#[derive(Debug)]
struct Examination {
    subject: Subject,
    /// The provider or device as it calls itself.
    provider: String,
    verdicts: Vec<Verdict>,
    /// Why there are no more verdicts.
    broken: Option<String>,
}

impl Examination {
    fn is_bad(&self) -> bool {
        let no_flush =
            !self.verdicts.is_empty() && flush_method(&self.verdicts) == transom_litmus::FlushMethod::None;
        self.broken.is_some() || no_flush || self.verdicts.iter().any(Verdict::is_bad)
    }
}

/// Examines this host.
pub fn main(args: &DoctorArgs) -> ExitCode {
    let effort = args.rounds.map_or_else(Effort::default, Effort::rounds);
    if let Some(subject) = &args.subject {
        return child::main(subject, effort);
    }
    let Found { subjects, missing } = subject::find(&args.provider);
    let mut printer = print::Printer::new(args);
    printer.missing(&missing);
    let mut bad = missing.iter().any(|missing| missing.was_asked_for) || subjects.is_empty();
    for subject in subjects {
        let examination = child::examine(subject, args.rounds, time_limit(effort));
        bad |= examination.is_bad();
        printer.examination(&examination);
    }
    let limits = limits::all(args.ranks);
    bad |= limits.iter().any(|limit| limit.level == Level::TooLow);
    printer.limits(&limits, args.ranks);
    printer.summary(bad);
    if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// After so long a subject hangs.
fn time_limit(effort: Effort) -> Duration {
    Duration::from_secs(60) + effort.time * 3 * transom_litmus::TESTS.len() as u32
}
