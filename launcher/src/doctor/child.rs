//! The process that examines one subject, seen from both ends of the pipe.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use transom_litmus::{Effort, TESTS, Verdict};

use super::Examination;
use super::subject::Subject;

/// A line from the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Opened(String),
    Unavailable(String),
    Verdict(Verdict),
    Done,
}

/// Examines a subject in this process, and prints lines.
pub fn main(subject: &str, effort: Effort) -> ExitCode {
    // Not to be left behind; if that cannot be had, the end of the pipe ends it.
    let _ = set_pdeathsig(Signal::SIGKILL);
    let lines = |line: &Line| {
        let text = serde_json::to_string(line).map_err(std::io::Error::other)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush())
    };
    let examined = subject.parse::<Subject>().and_then(|subject| subject.open().map_err(|e| e.to_string()));
    let ended = match examined {
        Err(why) => lines(&Line::Unavailable(why)),
        Ok((provider, pair)) => lines(&Line::Opened(provider))
            .and_then(|()| TESTS.iter().try_for_each(|test| lines(&Line::Verdict(test(&pair, effort)))))
            .and_then(|()| {
                // Closing is a part of the examination.
                drop(pair);
                lines(&Line::Done)
            }),
    };
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Has a subject examined, for as long as `time_limit`.
pub fn examine(subject: Subject, rounds: Option<u64>, time_limit: Duration) -> Examination {
    let mut examination =
        Examination { subject, provider: String::new(), verdicts: Vec::new(), broken: None };
    match start(&examination.subject, rounds) {
        Ok((mut child, lines)) => {
            let end = listen(&mut examination, &lines, time_limit);
            if end == End::Timeout {
                let _ = child.kill();
            }
            let status = child.wait();
            match end {
                End::Told => {}
                End::Timeout => {
                    examination.broken = Some(broken(
                        &examination,
                        &format!("hangs: killed after {} s", time_limit.as_secs()),
                    ));
                }
                End::Closed => {
                    let how = status.map_or_else(
                        |e| e.to_string(),
                        |status| match status.signal() {
                            Some(signal) => format!("crashed with signal {signal}"),
                            None => format!("ended the process: {status}"),
                        },
                    );
                    examination.broken = Some(broken(&examination, &how));
                }
            }
        }
        Err(error) => examination.broken = Some(format!("cannot start the examination: {error}")),
    }
    examination
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Told,
    Closed,
    Timeout,
}

fn start(subject: &Subject, rounds: Option<u64>) -> std::io::Result<(Child, Receiver<Line>)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["doctor", "--subject", &subject.to_string()]);
    if let Some(rounds) = rounds {
        command.args(["--rounds", &rounds.to_string()]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let (sender, lines) = channel();
    if let Some(out) = child.stdout.take() {
        std::thread::spawn(move || {
            // Libraries may print, too.
            let texts = BufReader::new(out).lines().map_while(Result::ok);
            let mut lines = texts.filter_map(|text| serde_json::from_str(&text).ok());
            lines.try_for_each(|line| sender.send(line))
        });
    }
    Ok((child, lines))
}

fn listen(examination: &mut Examination, lines: &Receiver<Line>, time_limit: Duration) -> End {
    let end = Instant::now() + time_limit;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Line::Opened(provider)) => examination.provider = provider,
            Ok(Line::Verdict(verdict)) => examination.verdicts.push(verdict),
            Ok(Line::Unavailable(why)) => {
                examination.broken = Some(why);
                return End::Told;
            }
            Ok(Line::Done) => return End::Told,
            Err(RecvTimeoutError::Timeout) => return End::Timeout,
            Err(RecvTimeoutError::Disconnected) => return End::Closed,
        }
    }
}

fn broken(examination: &Examination, how: &str) -> String {
    match examination.verdicts.last() {
        Some(last) if examination.verdicts.len() == TESTS.len() => {
            format!("{how}, when it was closed after {:?}", last.test)
        }
        Some(last) => format!("{how}, in the test after {:?}", last.test),
        None => format!("{how}, before the first test"),
    }
}
