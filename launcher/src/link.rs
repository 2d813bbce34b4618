//! The way to an agent, for the launcher and for agents that start others: the process that starts it, and the channel through
//! that process's standard input and output.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use transom_transport::limits;

use crate::frames::{Frame, FrameReader, Status, ToAgent, ToLauncher, write_frames};
use crate::nonblocking::Nonblocking;
use crate::run::plan::Route;

/// What comes from an agent.
#[derive(Debug)]
pub enum Heard {
    /// A frame.
    Frame(Frame<ToLauncher>),
    /// Its channel has ended, with the reason if it broke.
    End(Option<io::Error>),
}

/// A process that starts an agent, and the channel to that.
#[derive(Debug)]
pub struct Link {
    /// How the process has ended.
    pub status: Option<Status>,
    to: Option<UnboundedSender<Frame<ToAgent>>>,
    /// Reads what the agent sends: until nobody there has the channel any more.
    reader: Option<JoinHandle<()>>,
    child: Child,
}

impl Link {
    /// Starts an agent on a host. `heard` is called with what comes from it, until it says false.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start<F, D>(
        (host, route): (&str, &Route),
        exe: &Path,
        connect_timeout: Duration,
        heard: F,
    ) -> io::Result<Self>
    where
        F: Fn(Heard) -> D + Send + 'static,
        D: Future<Output = bool> + Send + 'static,
    {
        let mut command = command(route, host, exe, connect_timeout);
        // A group of its own: what the terminal sends to this command must not end ssh before it is passed on.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .spawn()
            .map_err(|e| io::Error::other(format!("host {host}: {name}: {}", limits::no_process(&e, 1))))?;
        let pipe =
            |fd: Option<OwnedFd>| fd.ok_or(io::ErrorKind::BrokenPipe.into()).and_then(Nonblocking::new);
        let input = pipe(child.stdin.take().map(Into::into))?;
        let output = pipe(child.stdout.take().map(Into::into))?;
        let (to, frames) = unbounded_channel();
        tokio::spawn(write_frames(frames, input));
        let reader = tokio::spawn(read_agent(FrameReader::new(output), heard));
        Ok(Self { status: None, to: Some(to), reader: Some(reader), child })
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    /// Sends a frame, if the agent is still there.
    pub fn send(&self, frame: Frame<ToAgent>) {
        if let Some(to) = &self.to {
            let _ = to.send(frame);
        }
    }

    /// For frames to agents that this one passes them on to, as long as this link is there.
    pub fn sender(&self) -> Option<WeakUnboundedSender<Frame<ToAgent>>> {
        self.to.as_ref().map(UnboundedSender::downgrade)
    }

    /// Asks the kernel whether the process has ended.
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

    /// Waits until the channel has really ended: what was started here may be gone before the agent is.
    pub async fn closed(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.await;
        }
    }

    /// The agent has given no sign of life: there is nothing to wait for.
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

async fn read_agent<F, D>(mut frames: FrameReader, heard: F)
where
    F: Fn(Heard) -> D,
    D: Future<Output = bool>,
{
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
        let what = match next {
            Ok(Some(frame)) => Heard::Frame(frame),
            Ok(None) => Heard::End(None),
            Err(error) => Heard::End(Some(error)),
        };
        let last = matches!(what, Heard::End(_));
        if !heard(what).await || last {
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
        Route::Srun { binds_cpus, component } => {
            crate::slurm::agent_command(host, exe, *binds_cpus, *component)
        }
        Route::Step(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            // As words, not as a line: some of these commands have a shell read them, others have not.
            command.args(words).arg(host).arg(exe).args(["agent", "keep"]);
            command
        }
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
