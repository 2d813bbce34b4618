//! Where in its program a rank is: the function, and the line where symbols allow.
//!
//! Nothing of this runs in a rank, and nothing at all unless somebody asks. The agent starts `transom stacks`, a process of its own
//! (`child`), which reads the top of each sleeping thread's stack (`snapshot`), unwinds it (`process`, `calls`) and looks for the first
//! function that is the user's (`names`, `symbols`). No thread is stopped for that; one that runs is said to. What those files say is the user's: it may be wrong in any way, so that process may
//! crash, hang or grow only as far as it is let, and the agent believes of what it prints what has the form of a place.

mod calls;
pub mod child;
mod names;
mod process;
mod snapshot;
mod symbols;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::nonblocking::Nonblocking;

/// How long the process may take; what it has found until then counts.
const LIMIT: Duration = Duration::from_secs(3);
/// Threads of a host that are looked at.
const MOST: usize = 1024;
/// Bytes of a line that the process prints, and characters of a name in it.
const LONGEST_LINE: usize = 2048;
const LONGEST_NAME: usize = 160;

/// A thread to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub process: i32,
    /// Its number.
    pub thread: i32,
    /// Whether it is in a call of Transom, as far as is known.
    pub waits: bool,
}

/// Where a thread is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The innermost function that is the user's, or nobody else's.
    pub function: String,
    /// Its source file; the program or library where no line is known.
    pub file: String,
    /// The line.
    pub line: Option<u32>,
}

/// Why it is not known where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unseen {
    /// It ran whenever it was looked at.
    Runs,
    /// The kernel does not let its memory be read.
    Forbidden,
}

/// What a look at a thread has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// The thread.
    pub thread: i32,
    /// Where it is.
    pub place: Result<Place, Unseen>,
}

impl Sight {
    fn clean(self) -> Self {
        Self { place: self.place.map(Place::clean), ..self }
    }
}

impl Place {
    /// `heat.c:123`; without a line, of which program or library the function is.
    pub fn source(&self) -> String {
        let file = self.file_name();
        self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
    }

    /// The file without its folders.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or_default()
    }

    /// `in exchange at heat.c:123`.
    pub fn text(&self) -> String {
        let word = if self.line.is_some() { "at" } else { "of" };
        format!("in {} {word} {}", self.function, self.source())
    }

    /// As somebody's terminal may get it.
    fn clean(self) -> Self {
        let bounded = |text: String, from_end: bool| {
            let chars: Vec<char> = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            let over = chars.len().saturating_sub(LONGEST_NAME);
            match (over, from_end) {
                (0, _) => chars.into_iter().collect(),
                (_, true) => chars[over..].iter().collect(),
                (_, false) => chars[..LONGEST_NAME].iter().chain(&['…']).collect::<String>(),
            }
        };
        Self { function: bounded(self.function, false), file: bounded(self.file, true), ..self }
    }
}

impl std::fmt::Display for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.process, self.thread, u8::from(self.waits))
    }
}

impl FromStr for Thread {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (process, thread) = (next().parse()?, next().parse()?);
        Ok(Self { process, thread, waits: next() == "1" })
    }
}

/// Where threads of this host are, or why that is not known, of those of which there is something to say.
pub async fn places(threads: &[Thread]) -> Vec<Sight> {
    let threads = &threads[..threads.len().min(MOST)];
    let text = if threads.is_empty() { Vec::new() } else { ask(threads).await.unwrap_or_default() };
    let lines = text.split(|byte| *byte == b'\n');
    let sights = lines.filter_map(|line| serde_json::from_slice::<Sight>(line).ok());
    let is_asked = |sight: &Sight| threads.iter().any(|of| of.thread == sight.thread);
    sights.filter(is_asked).take(threads.len()).map(Sight::clean).collect()
}

async fn ask(threads: &[Thread]) -> io::Result<Vec<u8>> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("transom").arg("stacks").args(threads.iter().map(Thread::to_string));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    // The agent's loop reaps it, which has not run since: the number is still its own. A kernel without such descriptors
    // leaves its end to its alarm.
    let handle = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let output = Nonblocking::new(output)?;
    let (mut text, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    let complete = async {
        while text.len() < LONGEST_LINE * threads.len()
            && let Ok(count @ 1..) = output.read(&mut buffer).await
        {
            text.extend_from_slice(&buffer[..count]);
        }
    };
    let _ = timeout(LIMIT, complete).await;
    if let Ok(handle) = handle {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_as_arguments() {
        for thread in [
            Thread { process: 4, thread: 5, waits: true },
            Thread { process: i32::MAX, thread: -1, waits: false },
        ] {
            assert_eq!(thread.to_string().parse(), Ok(thread));
        }
        assert!(["", "1", "1:", "x:2:1"].iter().all(|text| text.parse::<Thread>().is_err()));
    }

    #[test]
    fn names_are_fit_for_a_terminal() {
        let long = |character: char| character.to_string().repeat(LONGEST_NAME + 10);
        let place = Place { function: "a\x1b[2Jb\n".into(), file: "/x/\ty.c".into(), line: Some(7) };
        assert_eq!(place.clean().text(), "in a?[2Jb? at ?y.c:7");
        let place = Place { function: long('ü'), file: long('ü') + "/y.c", line: None }.clean();
        assert!(place.function.chars().count() == LONGEST_NAME + 1 && place.function.ends_with('…'));
        assert!(place.file.chars().count() == LONGEST_NAME && place.source() == "y.c", "the end counts");
    }
}
