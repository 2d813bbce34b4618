//! A rank's half of PMI-1.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{MsgFlags, recv};

use crate::agreement::Agreements;
use crate::each::{self, Each};
use crate::environment::{Environment, bad};
use crate::error::{Error, Result};
use crate::wire::{LineBuffer, Message};

/// A value must be shorter than this. (Slurm drops longer lines and says that all is well.)
pub const MAX_VALUE: usize = 512;

/// A connection to the launcher, initialised.
///
/// Calls block. After an error other than [`Error::Unsendable`], [`Error::Refused`] or a timeout the connection
/// is of no more use.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    lines: LineBuffer,
    timeout: Option<Duration>,
    rank: u32,
    size: u32,
    kvs: String,
    max_key: usize,
    /// The launcher answers [`Each`].
    knows_each: bool,
    pub(crate) agreements: Agreements,
}

impl Client {
    /// Connects to the launcher that started this process; `None` when there is none (a job of one rank).
    pub fn from_environment() -> Result<Option<Self>> {
        Environment::read()?.map(Self::connect).transpose()
    }

    /// Connects and initialises.
    pub fn connect(environment: Environment) -> Result<Self> {
        match environment {
            Environment::Inherited { fd, rank, size } => Self::over(take_inherited(fd)?, rank, size),
            Environment::Port { address, id } => Self::over_port(&address, id),
        }
    }

    /// Initialises over a connection that is already there.
    pub fn over(stream: UnixStream, rank: u32, size: u32) -> Result<Self> {
        let mut client = Self::raw(stream, rank, size);
        client.init()?;
        Ok(client)
    }

    fn raw(stream: UnixStream, rank: u32, size: u32) -> Self {
        let (lines, agreements) = (LineBuffer::new(), Agreements::default());
        let (kvs, knows_each) = (String::new(), false);
        Self { stream, lines, timeout: None, rank, size, kvs, max_key: 0, knows_each, agreements }
    }

    /// `PMI_PORT`: say who we are; the launcher tells rank and size.
    fn over_port(address: &str, id: u32) -> Result<Self> {
        let refused = |e: std::io::Error| bad("PMI_PORT", address, &format!("cannot be connected to: {e}"));
        let stream = TcpStream::connect(address).map_err(refused)?;
        stream.set_nodelay(true)?;
        // A `UnixStream` is used for its send and recv only, which are the same for TCP.
        let mut client = Self::raw(UnixStream::from(OwnedFd::from(stream)), 0, 0);
        client.send(&Message::new("initack").with("pmiid", id))?;
        client.receive("initack")?;
        let (mut rank, mut size) = (None, None);
        for _ in 0..3 {
            let set = client.receive("set")?;
            let value = |key| set.get(key).and_then(|value| value.parse::<u32>().ok());
            rank = rank.or(value("rank"));
            size = size.or(value("size"));
        }
        match (rank, size) {
            (Some(rank), Some(size)) if rank < size => {
                (client.rank, client.size) = (rank, size);
                client.init()?;
                Ok(client)
            }
            _ => Err(Error::Unexpected { expected: "rank and size", got: format!("{rank:?} of {size:?}") }),
        }
    }

    fn init(&mut self) -> Result<()> {
        let hello = Message::new("init").with("pmi_version", 1).with("pmi_subversion", 1);
        self.ask("init", &hello, "response_to_init")?;
        let maxes = self.ask("get_maxes", &Message::new("get_maxes"), "maxes")?;
        self.max_key = maxes.get("keylen_max").and_then(|max| max.parse().ok()).unwrap_or(64);
        self.knows_each = maxes.get(each::COMMAND).is_some();
        let name = self.ask("get_my_kvsname", &Message::new("get_my_kvsname"), "my_kvsname")?;
        let missing = || Error::Unexpected { expected: "kvsname", got: format!("{name:?}") };
        self.kvs = name.get("kvsname").ok_or_else(missing)?.to_owned();
        Ok(())
    }

    /// This process's rank in the job.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks in the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// How long each later call waits for the launcher's answer; `None`, the default, is for ever.
    ///
    /// After a timeout the answer may still come: do not go on using the client, except to abort.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Publishes a value, which the others can get after the next fence.
    ///
    /// Key and value are printable ASCII without blanks, not empty; the value is shorter than [`MAX_VALUE`].
    pub fn put(&mut self, key: &str, value: &str) -> Result<()> {
        check("key", key, self.max_key)?;
        check("value", value, MAX_VALUE)?;
        let put = Message::new("put").with("kvsname", &self.kvs).with("key", key).with("value", value);
        self.ask("put", &put, "put_result").map(drop)
    }

    /// What some rank put under that key before the last fence; `None` when nobody did.
    pub fn get(&mut self, key: &str) -> Result<Option<String>> {
        check("key", key, self.max_key)?;
        let get = Message::new("get").with("kvsname", &self.kvs).with("key", key);
        match self.ask("get", &get, "get_result") {
            Ok(answer) => Ok(answer.get("value").map(str::to_owned)),
            Err(Error::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What was put under `prefix`0`suffix`, `prefix`1`suffix`, … before the last fence, as [`Client::get`] finds it. The bundled
    /// launcher is asked once for many.
    pub fn get_each(&mut self, prefix: &str, suffix: &str, count: u32) -> Result<Vec<Option<String>>> {
        let mut each = Each { prefix: prefix.to_owned(), suffix: suffix.to_owned(), numbers: 0..count };
        let mut found = Vec::new();
        while !each.numbers.is_empty() {
            if self.knows_each {
                check("key", &each.key(count), self.max_key)?;
                let answer = self.ask("values", &each.message(&self.kvs), each::COMMAND)?;
                found.extend(each.values(&answer).map(|value| Some(value.to_owned())));
                if found.len() as u32 > each.numbers.start {
                    each.numbers.start = found.len() as u32;
                    continue;
                }
            }
            // What was not among them: none was put, or no word.
            if let Some(number) = each.numbers.next() {
                found.push(self.get(&each.key(number))?);
            }
        }
        Ok(found)
    }

    /// Waits until every rank is here; what was put before can be got after.
    pub fn fence(&mut self) -> Result<()> {
        self.ask("the fence", &Message::new("barrier_in"), "barrier_out").map(drop)
    }

    /// Which of the programs that were started together this process is, from 0 on; `None` if the server does not say.
    pub fn program(&mut self) -> Result<Option<u32>> {
        let answer = self.ask("get_appnum", &Message::new("get_appnum"), "appnum");
        match answer {
            Ok(answer) => Ok(answer.get("appnum").and_then(|number| number.parse().ok())),
            Err(Error::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says goodbye. A rank that ends without is taken for one that failed.
    pub fn finalize(mut self) -> Result<()> {
        self.ask("finalize", &Message::new("finalize"), "finalize_ack").map(drop)
    }

    /// Asks the launcher to end the whole job with that exit code. It does not answer; end this process next.
    pub fn abort(&mut self, code: i32) -> Result<()> {
        self.send(&Message::new("abort").with("exitcode", code))
    }

    fn ask(&mut self, request: &'static str, message: &Message, answer: &'static str) -> Result<Message> {
        self.send(message)?;
        let answer = self.receive(answer)?;
        match answer.get("rc") {
            None | Some("0") => Ok(answer),
            Some(rc) => Err(Error::Refused { request, rc: rc.to_owned() }),
        }
    }

    pub(crate) fn send(&mut self, message: &Message) -> Result<()> {
        Ok(self.stream.write_all(message.to_line()?.as_bytes())?)
    }

    fn receive(&mut self, expected: &'static str) -> Result<Message> {
        let deadline = self.timeout.map(|limit| (Instant::now() + limit, limit));
        loop {
            match self.next_message()? {
                Some(message) if message.cmd() == expected => return Ok(message),
                Some(message) => {
                    return Err(Error::Unexpected { expected, got: message.cmd().to_owned() });
                }
                None => self.read_some(expected, deadline)?,
            }
        }
    }

    /// The next that was read, but for agreements, which those are told of who wait for them.
    pub(crate) fn next_message(&mut self) -> Result<Option<Message>> {
        while let Some(line) = self.lines.next_line() {
            let message = Message::parse(&line?)?;
            if !self.agreements.takes(&message) {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Reads what is there without waiting. Says whether that was anything.
    pub(crate) fn read_at_once(&mut self, waiting_for: &'static str) -> Result<bool> {
        let mut bytes = [0; 4096];
        match recv(self.stream.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) {
            Ok(0) | Err(Errno::ECONNRESET) => Err(Error::Closed(waiting_for)),
            Ok(count) => {
                self.lines.push(&bytes[..count]);
                Ok(true)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(false),
            Err(e) => Err(std::io::Error::from(e).into()),
        }
    }

    /// One more descriptor of the connection, to wait for what can be read.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd> {
        Ok(self.stream.try_clone()?.into())
    }

    fn read_some(&mut self, waiting_for: &'static str, deadline: Option<(Instant, Duration)>) -> Result<()> {
        if let Some((at, limit)) = deadline {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Timeout { waiting_for, limit });
            }
            self.stream.set_read_timeout(Some(left))?;
        } else {
            self.stream.set_read_timeout(None)?;
        }
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Error::Closed(waiting_for)),
            Ok(count) => {
                self.lines.push(&bytes[..count]);
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => Ok(()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Err(Error::Closed(waiting_for)),
            Err(e) => Err(e.into()),
        }
    }
}

/// Takes possession of the socket, once in a process, and keeps it from the process's children.
fn take_inherited(fd: RawFd) -> Result<UnixStream> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(Error::AlreadyInUse);
    }
    // SAFETY: `from_raw_fd` asks for an open descriptor that nobody else owns. `Environment` saw that it is an
    // open socket. The launcher opened it for this client and named it in PMI_FD, so that no other code has a
    // claim on it, and `TAKEN` keeps a second client from owning it too.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl(&owned, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(std::io::Error::from)?;
    Ok(UnixStream::from(owned))
}

fn check(what: &'static str, text: &str, max: usize) -> Result<()> {
    let unsendable = |reason: String| Err(Error::Unsendable { what, length: text.len(), reason });
    if text.is_empty() {
        return unsendable("must not be empty".into());
    }
    if text.len() >= max {
        return unsendable(format!("must be shorter than {max} bytes; split it over several keys"));
    }
    match text.chars().find(|c| !c.is_ascii_graphic() || (what == "key" && *c == '=')) {
        Some(c) => unsendable(format!("must not contain {c:?}")),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
