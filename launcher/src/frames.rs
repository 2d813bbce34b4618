//! What launcher and agent say to each other, and how it looks on the wire.
//!
//! A frame is a length (4 bytes, big endian), a kind (1 byte), a body, and a newline. The newline is there because
//! srun passes output on by lines; it counts in the length. Messages travel as JSON, output and input as they are.

use std::ffi::OsString;
use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::codec::{Decoder, LengthDelimitedCodec};

use crate::agree::{Agreed, Contribution};
use crate::cli::Bind;
use crate::hang::RankView;
use crate::nonblocking::Nonblocking;
use crate::ranks::Ranks;
use crate::tree::Place;

/// The first thing an agent writes. What a login shell prints before it is skipped.
pub const MAGIC: &[u8] = b"\0transom-agent 1\n";
/// Bytes of output that an agent may send before the launcher has written them.
pub const OUTPUT_WINDOW: u32 = 1 << 20;
/// Bytes of input that the launcher may send before ranks have taken them.
pub const INPUT_WINDOW: u32 = 256 << 10;

const MAX_FRAME: usize = 64 << 20;
/// What a login shell may print before the agent starts.
const MAX_NOISE: usize = 64 << 10;
const KIND_MESSAGE: u8 = 1;
const KIND_DATA: u8 = 2;

/// Standard input, output or error of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard input.
    In,
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One frame; `M` is [`ToAgent`] or [`ToLauncher`].
#[derive(Debug, Clone)]
pub enum Frame<M> {
    /// A message.
    Message(M),
    /// Bytes of a rank's stream.
    Data {
        /// Whose.
        rank: u32,
        /// Which.
        stream: Stream,
        /// The bytes.
        bytes: Bytes,
    },
}

/// Which ranks read the launcher's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// This one.
    Rank(u32),
    /// Each, all of it.
    All,
    /// None: theirs are empty.
    None,
}

impl Input {
    /// Whether a rank reads it.
    pub fn is_for(self, rank: u32) -> bool {
        match self {
            Self::Rank(reader) => reader == rank,
            Self::All => true,
            Self::None => false,
        }
    }
}

impl std::str::FromStr for Input {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            rank => rank.parse().map(Self::Rank).map_err(|_| "is neither a rank, all, nor none"),
        }
    }
}

/// Keys and values of PMI.
pub type Pairs = Vec<(String, String)>;

/// What some ranks are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// How many: those behind the ranks of the program before it.
    pub count: u32,
    /// Program and arguments.
    pub argv: Vec<OsString>,
}

/// Where ranks may run on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// What each is bound to.
    pub to: Bind,
    /// Whether consecutive ones are bound to different NUMA nodes.
    pub by_numa: bool,
    /// Whether the launcher is to be told of each.
    pub report: bool,
}

/// What a rank is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A core with all its hardware threads.
    Core,
    /// A hardware thread.
    Thread,
    /// A socket.
    Socket,
    /// A NUMA node.
    Numa,
    /// Nothing.
    None,
}

/// The processors of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// Which rank.
    pub rank: u32,
    /// What it is bound to.
    pub unit: Unit,
    /// The processors, as `0-3,8`.
    pub cpus: String,
    /// Of which cores, sockets and NUMA nodes they are, by the kernel's numbers.
    pub names: [String; 3],
}

/// What one agent is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobSpec {
    /// Number of ranks in the job.
    pub size: u32,
    /// The ranks on this host.
    pub ranks: Ranks,
    /// Number of hosts in the job.
    pub hosts: u32,
    /// Name of the job's key-value space.
    pub kvs: String,
    /// Value of `PMI_process_mapping`.
    pub mapping: String,
    /// Working directory.
    pub cwd: OsString,
    /// The programs of the job's ranks, in their order.
    pub programs: Vec<Program>,
    /// Environment of the ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Variables of it that hold on every host, whatever they are.
    pub exported: Vec<OsString>,
    /// Which ranks read standard input.
    pub stdin: Input,
    /// Whether the environment is that of another host.
    pub remote: bool,
    /// Where the ranks may run on a host.
    pub binding: Binding,
    /// Whether ranks are told of those that die, and go on.
    pub notify: bool,
    /// Milliseconds that launcher and agent may be silent; 0: for ever.
    pub silence_ms: u64,
    /// The hosts below this one.
    pub tree: Tree,
}

/// The agents that an agent is to start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Number of its own host among the job's.
    pub index: u32,
    /// Whether another agent has started it, and not the launcher.
    pub by_agent: bool,
    /// The hosts that it is to reach, by others if they are many.
    pub below: Vec<Place>,
    /// How many it may reach itself.
    pub fan_out: u32,
    /// The executable of the launcher, which is the agents' if they have it, too.
    pub exe: OsString,
    /// Milliseconds that a host may take to answer.
    pub connect_ms: u64,
}

impl JobSpec {
    /// Which of the programs a rank is.
    pub fn program_of(&self, rank: u32) -> usize {
        let mut end = 0_u32;
        let behind = |program: &Program| {
            end = end.saturating_add(program.count);
            rank < end
        };
        self.programs.iter().position(behind).unwrap_or(0)
    }
}

/// From the launcher to an agent, which passes on to those below it what is not for one alone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToAgent {
    /// The launcher is alive.
    Alive,
    /// Check that this job can start here.
    Prepare(Box<JobSpec>),
    /// Start it.
    Go,
    /// The ranks' input has ended.
    StdinEof,
    /// That many more bytes of output may be sent.
    OutputCredit(u32),
    /// Pass a signal to the ranks.
    Signal(i32),
    /// All ranks of the job are in the fence; what they put.
    Fence(Pairs),
    /// A rank of the job has ended, and the others go on: tell those of this host.
    Died {
        /// Which.
        rank: u32,
    },
    /// Some ranks of the job have agreed.
    Agreed(Agreed),
    /// Say what the ranks wait for.
    Look {
        /// Number of the question.
        number: u64,
        /// Whether to say where in the program they are, too.
        places: bool,
    },
    /// End: ask the ranks that still run, kill them after so many milliseconds, drain, say `Done`.
    End {
        /// Time between SIGTERM and SIGKILL.
        grace_ms: u64,
    },
    /// For one agent alone, by others.
    For {
        /// Number of its host.
        host: u32,
        /// What.
        message: Box<ToAgent>,
    },
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal {
        /// Its number.
        number: i32,
        /// Whether it left a core dump.
        core: bool,
    },
}

/// From an agent to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToLauncher {
    /// The agent is alive.
    Alive,
    /// The agent is there.
    Hello {
        /// Version of `transom` on that host.
        version: String,
    },
    /// The job can start here, and on all hosts below.
    Ready(Started),
    /// So many hosts are ready, this one and some below it.
    Starting {
        /// How many.
        ready: u32,
    },
    /// Where the ranks of this host are to run; comes before `Ready`.
    Bindings {
        /// The ranks, if that was asked for.
        ranks: Vec<Bound>,
        /// What of it cannot be done as asked.
        complaint: Option<String>,
    },
    /// It cannot, or a rank could not be started.
    CannotStart {
        /// Why.
        message: String,
        /// What the launcher should exit with.
        code: i32,
    },
    /// That many bytes of input were taken by each rank of this host, and of those below it, that reads it.
    InputCredit(u32),
    /// All ranks of this host, and of those below it, are in the fence; what they put.
    FenceEnter(Pairs),
    /// A rank ended.
    RankExit {
        /// Which.
        rank: u32,
        /// Its process.
        pid: i32,
        /// How.
        status: Status,
        /// The limit that is behind that, if it is known.
        cause: Option<String>,
        /// Whether it had begun to use PMI and not said goodbye.
        unfinished: bool,
        /// Whether it was asked to end before, as the job does.
        asked: bool,
    },
    /// Ranks wait in a fence for one that has ended.
    FenceBroken {
        /// The rank that has ended.
        rank: u32,
    },
    /// A rank asked for the end of the job.
    Abort {
        /// Which.
        rank: u32,
        /// Its process.
        pid: i32,
        /// With which exit code.
        code: i32,
    },
    /// A rank contributes to an agreement.
    Agree {
        /// Which.
        rank: u32,
        /// What.
        contribution: Contribution,
    },
    /// The agent looks at its ranks.
    Looking {
        /// Number of the question.
        number: u64,
    },
    /// What the ranks wait for.
    Looked {
        /// Number of the question.
        number: u64,
        /// The ranks of this host.
        ranks: Vec<RankView>,
    },
    /// All ranks of this host, and of those below it, have ended and all their output was sent.
    Done,
    /// Of an agent below.
    Of {
        /// Number of its host.
        host: u32,
        /// What it has said, or what is known of it.
        message: Box<ToLauncher>,
    },
    /// An agent below has ended before the job.
    Gone {
        /// How the process that started it did.
        status: Option<Status>,
        /// How its channel broke.
        error: Option<String>,
    },
    /// An agent below has not come in time.
    Unanswered,
    /// An agent below has given no sign of life for too long.
    Silent,
}

/// What is known of a part of the tree of agents that has started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its hosts.
    pub hosts: u32,
    /// Agents on the way from the first to the last.
    pub depth: u32,
    /// The most memory that one of them has taken, in KiB.
    pub memory_kib: u64,
    /// The most agents that one of them has started.
    pub children: u32,
}

impl Started {
    /// One agent and those below it, whatever these say of themselves.
    pub fn join(self, below: impl Iterator<Item = Self>) -> Self {
        below
            .fold(self, |all, part| all.beside(Self { depth: self.depth.saturating_add(part.depth), ..part }))
    }

    /// Two parts of which neither is below the other.
    pub fn beside(self, other: Self) -> Self {
        Self {
            hosts: self.hosts.saturating_add(other.hosts),
            depth: self.depth.max(other.depth),
            memory_kib: self.memory_kib.max(other.memory_kib),
            children: self.children.max(other.children),
        }
    }
}

/// Appends a frame to a buffer.
pub fn encode<M: Serialize>(frame: &Frame<M>, buffer: &mut BytesMut) -> io::Result<()> {
    let start = buffer.len();
    buffer.put_u32(0);
    match frame {
        Frame::Message(message) => {
            buffer.put_u8(KIND_MESSAGE);
            serde_json::to_writer((&mut *buffer).writer(), message)?;
        }
        Frame::Data { rank, stream, bytes } => {
            buffer.put_u8(KIND_DATA);
            buffer.put_u32(*rank);
            buffer.put_u8(*stream as u8);
            buffer.put_slice(bytes);
        }
    }
    buffer.put_u8(b'\n');
    let length = buffer.len() - start - 4;
    if length > MAX_FRAME {
        buffer.truncate(start);
        return Err(bad("frame is too long"));
    }
    let length = u32::try_from(length).map_err(|_| bad("frame is too long"))?;
    buffer[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn decode<M: DeserializeOwned>(frame: Bytes) -> io::Result<Frame<M>> {
    let body = frame.len().checked_sub(1).filter(|end| *end > 0).map(|end| frame.slice(1..end));
    match (frame.first(), body) {
        (Some(&KIND_MESSAGE), Some(body)) => Ok(Frame::Message(serde_json::from_slice(&body)?)),
        (Some(&KIND_DATA), Some(body)) if body.len() >= 5 => {
            let rank = u32::from_be_bytes([body[0], body[1], body[2], body[3]]);
            let stream = match body[4] {
                0 => Stream::In,
                1 => Stream::Out,
                2 => Stream::Err,
                _ => return Err(bad("unknown stream")),
            };
            Ok(Frame::Data { rank, stream, bytes: body.slice(5..) })
        }
        _ => Err(bad("unknown kind of frame")),
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Reads frames from a channel.
#[derive(Debug)]
pub struct FrameReader {
    source: Nonblocking,
    buffer: BytesMut,
    codec: LengthDelimitedCodec,
}

impl FrameReader {
    /// Reads from the beginning of a channel.
    pub fn new(source: Nonblocking) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME).new_codec();
        Self { source, buffer: BytesMut::new(), codec }
    }

    /// Skips to behind [`MAGIC`]; false when the channel ends first. What was skipped is added to `noise`.
    pub async fn skip_to_magic(&mut self, noise: &mut Vec<u8>) -> io::Result<bool> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].windows(MAGIC.len()).position(|window| window == MAGIC);
            if let Some(at) = found.map(|at| searched + at) {
                noise.extend_from_slice(&self.buffer.split_to(at));
                let _ = self.buffer.split_to(MAGIC.len());
                return Ok(true);
            }
            if self.buffer.len() > MAX_NOISE {
                return Err(bad("no agent answers, only other output"));
            }
            searched = self.buffer.len().saturating_sub(MAGIC.len());
            if !self.fill().await? {
                noise.extend_from_slice(&self.buffer);
                return Ok(false);
            }
        }
    }

    /// The next frame; `None` at the end.
    pub async fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<Frame<M>>> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.buffer)? {
                return decode(frame.freeze()).map(Some);
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    async fn fill(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        let count = self.source.read(&mut bytes).await?;
        self.buffer.extend_from_slice(&bytes[..count]);
        Ok(count > 0)
    }
}

/// Writes frames to a channel until their sender is gone, or the channel is.
pub async fn write_frames<M: Serialize>(
    mut frames: UnboundedReceiver<Frame<M>>,
    channel: Nonblocking,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = frames.recv().await {
        encode(&frame, &mut buffer)?;
        while buffer.len() < 64 << 10 {
            match frames.try_recv() {
                Ok(frame) => encode(&frame, &mut buffer)?,
                Err(_) => break,
            }
        }
        channel.write_all(&buffer).await?;
        buffer.clear();
    }
    Ok(())
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
