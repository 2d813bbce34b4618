//! The agents: starting them, and what is known of each.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use transom_transport::limits;

use super::Event;
use super::plan::Route;
use crate::frames::{Frame, FrameReader, Pairs, Status, ToAgent, write_frames};
use crate::hosts::Block;
use crate::liveness::Liveness;
use crate::nonblocking::Nonblocking;

/// One agent, as the launcher sees it.
#[derive(Debug)]
pub struct Agent {
    /// Its host and its ranks.
    pub block: Block,
    /// How it was started.
    pub route: Route,
    /// It has said hello.
    pub hello: bool,
    /// It is ready to start.
    pub ready: bool,
    /// It has said that it is done.
    pub done: bool,
    /// Its channel has ended.
    pub eof: bool,
    /// How its process (or that of ssh, or of srun) has ended.
    pub status: Option<Status>,
    /// When it is given up, after the first sign of its end.
    pub lost_at: Option<Instant>,
    /// Bytes of input that each of its ranks that reads it has taken.
    pub input_taken: u64,
    /// Whether its host is alive.
    pub liveness: Liveness,
    /// What its ranks put, while they wait in the fence.
    pub fence: Option<Pairs>,
    to: Option<UnboundedSender<Frame<ToAgent>>>,
    /// Reads what it sends: until nobody there has the channel any more.
    reader: Option<JoinHandle<()>>,
    child: Child,
}

impl Agent {
    /// Starts one. It will be heard of as number `index`.
    pub fn start(
        index: usize,
        (block, route): (Block, Route),
        exe: &Path,
        connect_timeout: Duration,
        events: UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let mut command = command(&route, &block.host, exe, connect_timeout);
        // A group of its own: what the terminal sends to this command must not end ssh before it is passed on.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|e| {
            io::Error::other(format!("host {}: {name}: {}", block.host, limits::no_process(&e, 1)))
        })?;
        let pipe =
            |fd: Option<OwnedFd>| fd.ok_or(io::ErrorKind::BrokenPipe.into()).and_then(Nonblocking::new);
        let input = pipe(child.stdin.take().map(Into::into))?;
        let output = pipe(child.stdout.take().map(Into::into))?;
        let (to, frames) = unbounded_channel();
        tokio::spawn(write_frames(frames, input));
        let reader = tokio::spawn(read_agent(index, FrameReader::new(output), events));
        Ok(Self {
            block,
            route,
            hello: false,
            ready: false,
            done: false,
            eof: false,
            status: None,
            lost_at: None,
            input_taken: 0,
            liveness: Liveness::new(Duration::ZERO, Instant::now()),
            fence: None,
            to: Some(to),
            reader: Some(reader),
            child,
        })
    }

    /// Its process, or that of ssh, or of srun.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    /// Nothing more will come from it.
    pub fn is_over(&self) -> bool {
        self.done || self.eof
    }

    /// Sends a frame, if it is still there.
    pub fn send(&self, frame: Frame<ToAgent>) {
        if let Some(to) = &self.to {
            let _ = to.send(frame);
        }
    }

    /// Asks the kernel whether its process has ended.
    pub fn poll(&mut self) {
        if self.status.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.status = Some(status.into());
        }
    }

    /// Closes the channel: an agent that still runs ends everything it started.
    pub fn hang_up(&mut self) {
        self.to = None;
    }

    /// Waits until its channel has really ended: what was started here may be gone before the agent is.
    pub async fn closed(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.await;
        }
    }

    /// It has given no sign of life: there is nothing to wait for.
    pub fn kill_silent(&mut self) {
        self.reader = None;
        self.kill();
    }

    /// Kills what was started here; for ssh that may leave the agent, which has its own reasons to end then.
    pub fn kill(&mut self) {
        self.hang_up();
        if self.status.is_none() {
            let _ = kill(Pid::from_raw(-self.pid().as_raw()), Signal::SIGKILL);
        }
    }
}

async fn read_agent(index: usize, mut frames: FrameReader, events: UnboundedSender<Event>) {
    let mut noise = Vec::new();
    let mut next = match frames.skip_to_magic(&mut noise).await {
        Ok(true) => frames.next().await,
        Ok(false) => {
            // What came instead may be why.
            let _ = io::Write::write_all(&mut io::stderr(), &noise);
            Ok(None)
        }
        Err(error) => Err(error),
    };
    loop {
        let event = match next {
            Ok(Some(frame)) => Event::Agent(index, frame),
            Ok(None) => Event::AgentEof(index, None),
            Err(error) => Event::AgentEof(index, Some(error)),
        };
        let last = matches!(event, Event::AgentEof(..));
        if events.send(event).is_err() || last {
            return;
        }
        next = frames.next().await;
    }
}

fn command(route: &Route, host: &str, exe: &Path, connect_timeout: Duration) -> Command {
    match route {
        Route::Local => {
            let mut command = Command::new(exe);
            command.arg("agent");
            command
        }
        Route::Srun { binds_cpus } => crate::slurm::agent_command(host, exe, *binds_cpus),
        Route::Ssh => {
            let mut command = Command::new("ssh");
            let seconds = connect_timeout.as_secs().max(1);
            command.args(["-x", "-T", "-o", "BatchMode=yes", "-o"]).arg(format!("ConnectTimeout={seconds}"));
            command.arg(host).arg(shell_command(exe));
            command
        }
        Route::Rsh(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words).arg(host).arg(shell_command(exe));
            command
        }
    }
}

/// For any login shell: the same file as here if the host has it, else `transom` from its PATH.
fn shell_command(exe: &Path) -> String {
    let exe = exe.to_string_lossy().replace(['\'', '\n'], "?");
    format!(
        "exec sh -c 'if [ -x \"$0\" ]; then exec \"$0\" agent keep; else exec transom agent keep; fi' '{exe}'"
    )
}
