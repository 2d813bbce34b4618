//! The commands `transom ps` and `transom where`.

use std::io::{self, Write};
use std::process::ExitCode;

use super::{Question, Report, Summary, analysis, door, print};
use crate::cli::{PsArgs, USAGE, WhereArgs};

pub(crate) fn out(text: &str) -> ExitCode {
    // Whoever reads this may have had enough.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

pub(crate) fn failed(message: &str) -> ExitCode {
    crate::tell(message);
    ExitCode::from(USAGE)
}

/// `transom ps`.
pub fn ps(args: &PsArgs) -> ExitCode {
    let jobs = match door::jobs() {
        Ok(jobs) => jobs,
        Err(error) => return failed(&format!("/proc/net/unix: {error}")),
    };
    let jobs: Vec<Summary> = jobs.into_iter().filter_map(|job| door::ask(job, Question::Job).ok()).collect();
    if args.json {
        return out(&lines(&jobs));
    }
    out(&print::jobs(&jobs))
}

fn lines<T: serde::Serialize>(values: &[T]) -> String {
    values.iter().filter_map(|value| serde_json::to_string(value).ok()).map(|line| line + "\n").collect()
}

/// `transom where`.
pub fn whereabouts(args: &WhereArgs) -> ExitCode {
    let job = match args.job.map_or_else(only_job, Ok) {
        Ok(job) => job,
        Err(message) => return failed(&message),
    };
    let report: Report = match door::ask(job, Question::Where) {
        Ok(report) => report,
        Err(error) => return failed(&refusal(job, &error)),
    };
    if args.json {
        return out(&lines(&[report]));
    }
    let finding = analysis::find(&report.ranks);
    out(&print::report(&report, &finding))
}

pub(crate) fn only_job() -> Result<u32, String> {
    let jobs = door::jobs().map_err(|error| format!("/proc/net/unix: {error}"))?;
    match jobs[..] {
        [job] => Ok(job),
        [] => Err("no job of yours runs on this host: where was `transom run` started?".into()),
        _ => {
            let jobs: Vec<String> = jobs.iter().map(u32::to_string).collect();
            Err(format!("several jobs of yours run here: name one of {} (`transom ps`)", jobs.join(", ")))
        }
    }
}

pub(crate) fn refusal(job: u32, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("no job {job} of yours runs on this host: `transom ps` lists those that do")
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            format!(
                "job {job} does not answer: is its `transom run` stopped? `kill -CONT {job}` continues it"
            )
        }
        _ => format!("job {job}: {error}"),
    }
}
