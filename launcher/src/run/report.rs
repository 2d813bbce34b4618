//! Why a job ended badly: the line that says so, and the exit code.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::plan::Route;
use crate::agent::causes;
use crate::frames::Status;
use crate::process::signal_name;

/// A rank, as a message names it.
#[derive(Debug, Clone)]
pub struct RankName {
    /// Its number.
    pub rank: u32,
    /// Its process.
    pub pid: i32,
    /// Its host.
    pub host: String,
}

/// A rank that has died, how, and the limit that is behind that.
#[derive(Debug)]
pub struct Death(pub RankName, pub Status, pub Option<String>);

/// The first thing that went wrong.
#[derive(Debug)]
pub enum Failure {
    /// A rank ended with a code other than 0, by a signal, or with 0 in the middle of the job; and the limit that is behind that.
    Rank(RankName, Status, Option<String>),
    /// A rank asked for the end.
    Abort(RankName, i32),
    /// Ranks wait in a fence for one that has ended.
    Fence(u32),
    /// An agent could not start the job.
    CannotStart { host: String, message: String, code: i32 },
    /// No agent answers on a host; `from`: the other host that should have started it.
    Unreachable { host: String, from: Option<String>, route: Route, why: Unreachable },
    /// An agent has ended in the middle of the job.
    AgentLost { host: String, ranks: u32, status: Option<Status>, error: Option<String> },
    /// Nothing has come from a host for too long.
    Silent { host: String, ranks: u32, limit: Duration },
    /// `--timeout` has passed.
    Timeout { limit: Duration, running: Vec<u32> },
    /// Standard output cannot be written.
    Output(std::io::Error),
    /// A signal asked for the end.
    Signal(i32),
}

/// Why no agent answers.
#[derive(Debug)]
pub enum Unreachable {
    /// Nothing came in time.
    Silence(Duration),
    /// The command that should start it has ended.
    Ended(Option<Status>),
    /// It talks, but not so.
    Nonsense(String),
}

impl Failure {
    /// This command's exit code.
    pub fn code(&self) -> u8 {
        let code = match self {
            Self::Rank(_, Status::Code(code), _) | Self::Abort(_, code) => *code,
            Self::Rank(_, Status::Signal { number, .. }, _) | Self::Signal(number) => 128 + number,
            Self::CannotStart { code, .. } => *code,
            Self::Unreachable { .. } => i32::from(crate::cli::USAGE),
            Self::AgentLost { .. } | Self::Fence(_) => 1,
            Self::Timeout { .. } => 124,
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 128 + 13,
            Self::Output(_) | Self::Silent { .. } => 1,
        };
        // A rank may abort the job with 0: then it says that all went well. Any other end is never 0, not even by 256.
        let asked_for = matches!(self, Self::Abort(_, 0));
        u8::try_from(code & 0xff).ok().filter(|code| *code != 0 || asked_for).unwrap_or(1)
    }

    /// Whether it is the loss of an agent, or of a rank that was killed, and another may have come of that: the failure of a rank on
    /// another host, or, of SIGKILL, on the same. Connections of a process that is killed end before the process does.
    pub fn explains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AgentLost { host, .. }, Self::Rank(rank, ..) | Self::Abort(rank, 1..)) => {
                rank.host != *host
            }
            (
                Self::Rank(killed, Status::Signal { number, .. }, _),
                Self::Rank(rank, Status::Code(_), _) | Self::Abort(rank, 1..),
            ) => (rank.host != killed.host || is_kill(*number)) && !is_reaction(*number),
            _ => false,
        }
    }

    /// Ranks that were lost by it.
    pub fn ranks_lost(&self) -> usize {
        match self {
            Self::AgentLost { ranks, .. } => *ranks as usize,
            Self::Rank(..) => 1,
            _ => 0,
        }
    }

    /// The line for people, without `transom: `; none when there is nothing to say. `others` ranks were ended.
    pub fn message(&self, others: usize) -> Option<String> {
        let line = match self {
            Self::Rank(rank, status, cause) => died(rank, *status, cause.as_ref()) + &others_ended(others),
            Self::Abort(rank, code) => {
                format!("{} aborted the job with code {code}{}", name(rank), others_ended(others))
            }
            Self::Fence(rank) => format!(
                "rank {rank} ended before a PMI fence in which other ranks wait for it{}",
                others_ended(others)
            ),
            Self::CannotStart { host, message, .. } => {
                format!("host {host}: {message}{}", others_ended(others))
            }
            Self::Unreachable { host, from, route, why } => unreachable(host, from.as_deref(), route, why),
            Self::AgentLost { host, ranks, status, error } => {
                let how = match (status, error) {
                    (Some(status), _) => ended(*status),
                    (None, Some(error)) => format!("broke off: {error}"),
                    (None, None) => "is gone".to_owned(),
                };
                format!(
                    "the agent on host {host} {how}, and with it {}{}",
                    count(*ranks),
                    others_ended(others)
                )
            }
            Self::Silent { host, ranks, limit } => format!(
                "host {host} has given no sign of life for {} s (--host-timeout): {} lost{}",
                limit.as_secs_f64(),
                if *ranks == 1 { "its rank is".to_owned() } else { format!("its {ranks} ranks are") },
                others_ended(others)
            ),
            Self::Timeout { limit, running } => format!(
                "the job was ended after {} s (--timeout); {}",
                limit.as_secs_f64(),
                if running.is_empty() {
                    "no rank had been started".to_owned()
                } else {
                    format!("still running: {}", ranges(running))
                }
            ),
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return None,
            // A file's error names the file.
            Self::Output(error) if error.kind() == std::io::ErrorKind::Other => {
                format!("{error}{}", others_ended(others))
            }
            Self::Output(error) => format!("standard output: {error}{}", others_ended(others)),
            Self::Signal(number) => format!("ended by signal {}", signal_name(*number)),
        };
        Some(line)
    }
}

/// Says which ranks have died while the others went on: this command's exit code, if any have.
pub fn tell_of(deaths: &[Death], ranks: u32) -> Option<u8> {
    let first = deaths.first()?;
    crate::tell(&deaths_of(deaths, ranks));
    Some(Failure::Rank(first.0.clone(), first.1, None).code())
}

fn deaths_of(deaths: &[Death], ranks: u32) -> String {
    let each = deaths.iter().map(|Death(rank, status, cause)| died(rank, *status, cause.as_ref()));
    let left = (ranks as usize).saturating_sub(deaths.len());
    let went_on = match left {
        0 => "none was left".to_owned(),
        1 => "the other rank went on".to_owned(),
        n => format!("the other {n} ranks went on"),
    };
    format!("{}; {went_on} (--on-failure notify)", each.collect::<Vec<_>>().join("; "))
}

fn died(rank: &RankName, status: Status, cause: Option<&String>) -> String {
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    format!("{} {}{cause}", name(rank), ended(status))
}

fn name(rank: &RankName) -> String {
    format!("rank {} (pid {}) on host {}", rank.rank, rank.pid, rank.host)
}

fn ended(status: Status) -> String {
    match status {
        Status::Code(0) => "exited with code 0 without finalizing".to_owned(),
        Status::Code(code) => format!("exited with code {code}"),
        Status::Signal { number, core } => {
            let core = if core { ", core dumped" } else { "" };
            format!("was killed by signal {}{core}", signal_name(number))
        }
    }
}

/// Signals by which a program may end because another has.
fn is_reaction(number: i32) -> bool {
    let signals = [Signal::SIGABRT, Signal::SIGPIPE, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    Signal::try_from(number).is_ok_and(|signal| signals.contains(&signal))
}

/// Whether no program ends so by itself.
fn is_kill(number: i32) -> bool {
    number == Signal::SIGKILL as i32
}

fn others_ended(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; the other rank was ended".to_owned(),
        n => format!("; the other {n} ranks were ended"),
    }
}

fn count(ranks: u32) -> String {
    if ranks == 1 { "1 rank".to_owned() } else { format!("{ranks} ranks") }
}

fn unreachable(host: &str, from: Option<&str>, route: &Route, why: &Unreachable) -> String {
    let (there, alone) = from.map_or_else(Default::default, |from| {
        (format!(" from host {from}"), " (there, or give --fan-out 0 to start all from here)".to_owned())
    });
    let (how, advice) = match route {
        Route::Local => ("a child process".to_owned(), String::new()),
        Route::Ssh => ("ssh".to_owned(), format!("; `ssh {host} true` must work without a password")),
        Route::Rsh(words) => (words.join(" "), format!("; `{} {host} true` must work", words.join(" "))),
        Route::Step(words) => {
            let words = words.join(" ");
            let advice = format!("; `{words} {host} true` must work, or give another way (--rsh ssh)");
            (words, advice)
        }
        Route::Srun { .. } => {
            ("srun".to_owned(), format!("; `srun --overlap -N1 -n1 -w {host} true` must work"))
        }
    };
    let what = match why {
        Unreachable::Silence(limit) => {
            format!("did not answer within {} s (--connect-timeout)", limit.as_secs_f64())
        }
        Unreachable::Ended(Some(Status::Code(127))) => {
            format!("{how} exited with code 127: is transom installed there, in the same place or in PATH?")
        }
        Unreachable::Ended(Some(status)) => {
            let cause = match status {
                Status::Signal { number, .. } if *route == Route::Local => {
                    Signal::try_from(*number).ok().and_then(causes::by_process)
                }
                _ => None,
            };
            let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
            format!("{how} {}{cause}", ended(*status).replace(" without finalizing", ""))
        }
        Unreachable::Ended(None) => format!("{how} closed the connection"),
        Unreachable::Nonsense(error) => error.clone(),
    };
    format!("cannot start on host {host}{there}: {what}{advice}{alone}; nothing was started")
}

/// `ranks 0-3, 7`.
fn ranges(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let list = runs.iter().map(text).collect::<Vec<_>>().join(", ");
    format!("{} {list}", if ranks.len() == 1 { "rank" } else { "ranks" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank() -> RankName {
        RankName { rank: 2, pid: 4711, host: "n1".into() }
    }

    #[test]
    fn kills_explain_what_fails_elsewhere() {
        let at = |host: &str, status| Failure::Rank(RankName { host: host.into(), ..rank() }, status, None);
        let signal = |signal| Status::Signal { number: signal as i32, core: false };
        let failed = at("n1", Status::Code(3));
        assert!(at("n2", signal(Signal::SIGKILL)).explains(&failed));
        assert!(at("n2", signal(Signal::SIGSEGV)).explains(&Failure::Abort(rank(), 3)));
        // On one host the agent says what was first, but for what takes long to be seen; and a program may abort because another has
        // failed.
        assert!(at("n1", signal(Signal::SIGKILL)).explains(&failed));
        assert!(!at("n1", signal(Signal::SIGSEGV)).explains(&failed));
        assert!(!at("n2", signal(Signal::SIGABRT)).explains(&failed));
        assert!(!at("n2", Status::Code(4)).explains(&failed));
    }

    #[test]
    fn messages_and_codes() {
        let killed =
            Failure::Rank(rank(), Status::Signal { number: 9, core: false }, Some("no memory".into()));
        let line = "rank 2 (pid 4711) on host n1 was killed by signal 9 (SIGKILL) (no memory); the other 3 ranks were ended";
        assert_eq!((killed.message(3).as_deref(), killed.code()), (Some(line), 137));
        let exited = Failure::Rank(rank(), Status::Code(3), None);
        assert_eq!(exited.message(0).as_deref(), Some("rank 2 (pid 4711) on host n1 exited with code 3"));
        assert_eq!(exited.code(), 3);
        assert_eq!(Failure::Rank(rank(), Status::Code(0), None).code(), 1);
        let deaths = [Death(rank(), Status::Signal { number: 9, core: false }, None)];
        let line = "rank 2 (pid 4711) on host n1 was killed by signal 9 (SIGKILL); the other 3 ranks went on (--on-failure notify)";
        assert_eq!(deaths_of(&deaths, 4), line);
        let aborted = [0, 5, 256].map(|code| Failure::Abort(rank(), code).code());
        assert_eq!(aborted, [0, 5, 1]);
        let pipe = Failure::Output(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!((pipe.message(3), pipe.code()), (None, 141));
        let timeout = Failure::Timeout { limit: Duration::from_millis(1500), running: vec![0, 1, 2, 7] };
        assert!(
            timeout
                .message(4)
                .is_some_and(|line| line.ends_with("after 1.5 s (--timeout); still running: ranks 0-2, 7"))
        );
        let early = Failure::Timeout { limit: Duration::from_millis(1500), running: Vec::new() };
        assert!(early.message(0).is_some_and(|line| line.ends_with("(--timeout); no rank had been started")));
    }
}
