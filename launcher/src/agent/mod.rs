//! `transom agent`: one on each host. Starts the host's ranks, serves them PMI, carries their output, ends them.
//!
//! The launcher is at the other end of standard input and output, or another agent: where there are many hosts, agents start agents.
//! When that channel ends, so does everything
//! that this process ever started.

mod below;
pub mod causes;
mod child;
mod io;
pub mod pmi_server;
mod ranks;
mod serve;
mod spawn;
pub mod topology;
pub mod victim;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use transom_pmi::wire::WireError;
use transom_transport::limits;

use crate::frames::{Frame, FrameReader, MAGIC, Status, ToAgent, ToLauncher, write_frames};
use crate::link::Heard;
use crate::nonblocking::Nonblocking;
use crate::process::kill_descendants;

/// What the agent's one loop hears of.
#[derive(Debug)]
pub enum Event {
    /// From the launcher; `None` when it is gone.
    Frame(Option<Frame<ToAgent>>),
    /// A line from a rank's PMI socket.
    PmiLine(usize, Result<Vec<u8>, WireError>),
    /// A rank's process has ended and all its PMI lines have come.
    RankEnded(usize),
    /// One more pipe of a rank has ended.
    OutputEnd,
    /// The ranks of this host that read the input have taken so many bytes of it.
    InputTaken(u32),
    /// From the agent below of that number.
    Below(usize, Heard),
}

/// How long an agent may go on after the launcher has hung up: it kills what it started, and drains pipes.
const HUNG_UP: Duration = Duration::from_secs(4);

/// Runs the agent of this host; with the argument `keep`, below a keeper.
pub fn main(args: &[OsString]) -> ExitCode {
    if args.first().is_some_and(|arg| arg == "keep") { keep() } else { serve_host() }
}

/// The agent's parent on another host: if the agent is killed, what its ranks left behind comes here and ends too.
/// (On its own host the launcher does that.)
fn keep() -> ExitCode {
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let agent = std::env::current_exe().and_then(|exe| Command::new(exe).arg("agent").spawn());
    let status = agent.and_then(|mut agent| {
        kill_when_hung_up(&agent);
        agent.wait()
    });
    kill_descendants(Duration::from_secs(1), &[]);
    match status.map(Status::from) {
        Ok(Status::Code(code)) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Ok(Status::Signal { number, .. }) => {
            // End as it did, so that the launcher's message is right.
            let _ = Signal::try_from(number).map(|signal| kill(getpid(), signal));
            ExitCode::FAILURE
        }
        Err(error) => {
            crate::tell(&format!("agent on {}: {error}", crate::process::host_name()));
            ExitCode::FAILURE
        }
    }
}

/// Kills the agent if it goes on long after the launcher has hung up: it may have been stopped.
fn kill_when_hung_up(agent: &Child) {
    let Ok(pid) = i32::try_from(agent.id()) else { return };
    std::thread::spawn(move || {
        let stdin = std::io::stdin();
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
        while !fds[0].revents().is_some_and(|events| events.intersects(PollFlags::POLLHUP)) {
            if poll(&mut fds, PollTimeout::NONE).is_err_and(|error| error != Errno::EINTR) {
                return;
            }
        }
        std::thread::sleep(HUNG_UP);
        // This process ends with the agent: the number is still the agent's.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    });
}

fn serve_host() -> ExitCode {
    if let Err(error) = crate::room::for_files("an agent", 0) {
        crate::tell(&format!("agent on {}: {error}", crate::process::host_name()));
        return ExitCode::FAILURE;
    }
    // Orphans of ranks become this process's children, and cannot escape.
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.and_then(|runtime| runtime.block_on(run()));
    let all_gone = kill_descendants(Duration::from_secs(1), &[]);
    if let Err(error) = result.map_err(|error| limits::no_process(&error, 1)) {
        crate::tell(&format!("agent on {}: {error}", crate::process::host_name()));
        return ExitCode::FAILURE;
    }
    ExitCode::from(u8::from(!all_gone))
}

async fn run() -> std::io::Result<()> {
    let input = Nonblocking::new(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    let output = Nonblocking::new(std::io::stdout().as_fd().try_clone_to_owned()?)?;
    output.write_all(MAGIC).await?;
    let (up, frames) = unbounded_channel();
    let writer = tokio::spawn(write_frames(frames, output));
    let (event_sender, events) = channel(256);
    tokio::spawn(read_launcher(FrameReader::new(input), event_sender.clone()));
    let hello = ToLauncher::Hello { version: env!("CARGO_PKG_VERSION").to_owned() };
    let _ = up.send(Frame::Message(hello));
    serve_until_end(up, event_sender, events).await?;
    // All that held a sender was dropped with the agent, so that the writer ends after the last frame.
    let _ = tokio::time::timeout(Duration::from_secs(5), writer).await;
    Ok(())
}

async fn serve_until_end(
    up: UnboundedSender<Frame<ToLauncher>>,
    sender: Sender<Event>,
    events: Receiver<Event>,
) -> std::io::Result<()> {
    let mut agent = serve::Agent::new(up, sender)?;
    agent.serve(events).await
}

async fn read_launcher(mut frames: FrameReader, events: Sender<Event>) {
    loop {
        // A broken frame is as bad as none: end.
        let frame = frames.next().await.ok().flatten();
        let last = frame.is_none();
        if events.send(Event::Frame(frame)).await.is_err() || last {
            return;
        }
    }
}
