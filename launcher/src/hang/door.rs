//! Where a running job is asked: a Unix socket with an abstract name (unix(7)), which goes with its process.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{Uid, getuid};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Question;
use crate::run::Event;

/// How long who has connected may take to ask.
const ASKING: Duration = Duration::from_secs(2);
/// How long a launcher may take to answer: it waits for those of other hosts.
const ANSWER: Duration = Duration::from_secs(25);
/// Longest question and answer, in bytes.
const LONGEST_QUESTION: u64 = 16;
const LONGEST_ANSWER: u64 = 256 << 20;

impl Question {
    fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Where => "where",
            Self::Load => "load",
        }
    }

    fn of(line: &[u8]) -> Option<Self> {
        [Self::Job, Self::Where, Self::Load].into_iter().find(|question| line == question.word().as_bytes())
    }
}

/// Jobs of this user have this name, and behind it their number.
fn prefix(user: Uid) -> String {
    format!("transom/{user}/")
}

fn name(job: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{}{job}", prefix(getuid())))
}

/// Whether the other end belongs to this user.
fn is_own(fd: &impl std::os::fd::AsFd) -> bool {
    getsockopt(fd, PeerCredentials).is_ok_and(|peer| peer.uid() == getuid().as_raw())
}

/// Has the questions of this user's commands come to the launcher's loop.
///
/// # Errors
/// The name is taken, or sockets are not to be had: then nobody can ask.
pub fn listen(events: UnboundedSender<Event>) -> io::Result<()> {
    let listener = UnixListener::bind_addr(&name(std::process::id())?)?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(listener)?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                // Anybody on this host can connect.
                Ok((stream, _)) if is_own(&stream) => {
                    tokio::spawn(timeout(ASKING + 2 * ANSWER, serve(stream, events.clone())));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    });
    Ok(())
}

async fn serve(mut stream: tokio::net::UnixStream, events: UnboundedSender<Event>) {
    let mut line = Vec::new();
    let mut asked = (&mut stream).take(LONGEST_QUESTION);
    let complete = async {
        while asked.read_buf(&mut line).await? > 0 && !line.ends_with(b"\n") {}
        io::Result::Ok(())
    };
    if !matches!(timeout(ASKING, complete).await, Ok(Ok(()))) {
        return;
    }
    let Some(question) = line.strip_suffix(b"\n").and_then(Question::of) else { return };
    let (sender, answer) = oneshot::channel();
    if events.send(Event::Asked(question, sender)).is_err() {
        return;
    }
    if let Ok(answer) = answer.await {
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// The jobs of this user that are there, by number.
///
/// # Errors
/// /proc cannot be read.
pub fn jobs() -> io::Result<Vec<u32>> {
    let table = std::fs::read_to_string("/proc/net/unix")?;
    let prefix = format!("@{}", prefix(getuid()));
    let mut jobs: Vec<u32> = table
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix)?.parse().ok())
        .collect();
    jobs.sort_unstable();
    // Connections that are open have the name, too.
    jobs.dedup();
    Ok(jobs)
}

/// Asks a job.
///
/// # Errors
/// It is not there, is not this user's, does not answer, or answers nonsense.
pub fn ask<A: DeserializeOwned>(job: u32, question: Question) -> io::Result<A> {
    let mut stream = UnixStream::connect_addr(&name(job)?)?;
    if !is_own(&stream) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "somebody else answers by this job's name",
        ));
    }
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    stream.write_all(format!("{}\n", question.word()).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream.take(LONGEST_ANSWER)).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is about to end"));
    }
    Ok(serde_json::from_str(&answer)?)
}
