//! The agent's one loop.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use transom_transport::limits;

use super::Event;
use super::below::Below;
use super::causes::Causes;
use super::io::{ToRank, carry_pmi, forward_input, forward_output};
use super::pmi_server::{Effect, Server};
use super::ranks::{Rank, Started, Starter};
use crate::agree::Agreed;
use crate::frames::{Frame, JobSpec, OUTPUT_WINDOW, Status, Stream, ToAgent, ToLauncher};
use crate::hang::look::{Pages, Subject, look};
use crate::liveness::{Liveness, Look};
use crate::nonblocking::Nonblocking;
use crate::process::{kill_descendants, reap_any};
use crate::ranks::Ranks;

/// How long descendants of ranks may go on writing after the last rank has ended well.
const STRAGGLERS: Duration = Duration::from_millis(100);
/// How long a pipe may stay silent after everything that could write to it was killed.
const SILENCE: Duration = Duration::from_secs(1);

/// The launcher may be silent for so many times as long as an agent: it may be in a debugger's hands.
const PATIENCE: u32 = 3;

pub(super) struct Agent {
    up: UnboundedSender<Frame<ToLauncher>>,
    events: Sender<Event>,
    credit: Arc<Semaphore>,
    starter: Option<Starter>,
    causes: Option<Causes>,
    pages: Option<Arc<Pages>>,
    server: Server,
    /// Number of this host among the job's.
    index: Option<u32>,
    /// Which ranks of the job are here.
    numbers: Ranks,
    ranks: Vec<Rank>,
    inboxes: Vec<UnboundedSender<ToRank>>,
    /// Standard inputs of the ranks that read the launcher's, until all are started.
    readers: Vec<Nonblocking>,
    input: Option<UnboundedSender<Bytes>>,
    pipes: JoinSet<()>,
    open_pipes: usize,
    reported: usize,
    kill_at: Option<Instant>,
    /// Ranks were sent SIGKILL.
    kills: bool,
    liveness: Liveness,
    /// The launcher is about to be stopped, as its user wishes: it may be silent until it goes on.
    stopped: bool,
    /// The ranks are to be started, once those below have been told so.
    go: bool,
    ending: bool,
    below: Below,
}

/// Whether the launcher, or the agent in its place, is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launcher {
    There,
    Gone,
}

impl Agent {
    pub(super) fn new(
        up: UnboundedSender<Frame<ToLauncher>>,
        events: Sender<Event>,
    ) -> std::io::Result<Self> {
        Ok(Self {
            below: Below::new(up.clone()),
            up,
            events,
            credit: Arc::new(Semaphore::new(OUTPUT_WINDOW as usize)),
            starter: None,
            causes: None,
            pages: None,
            server: Server::new(0, 0, "", ""),
            index: None,
            numbers: Ranks::default(),
            ranks: Vec::new(),
            inboxes: Vec::new(),
            readers: Vec::new(),
            input: None,
            pipes: JoinSet::new(),
            open_pipes: 0,
            reported: 0,
            kill_at: None,
            kills: false,
            liveness: Liveness::new(Duration::ZERO, Instant::now()),
            stopped: false,
            go: false,
            ending: false,
        })
    }

    /// Until the job has ended or the launcher is gone.
    pub(super) async fn serve(&mut self, mut events: Receiver<Event>) -> std::io::Result<()> {
        let mut children = signal(SignalKind::child())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut finished = false;
        loop {
            let far = Instant::now() + Duration::from_secs(3600);
            let below_at = self.below.next().unwrap_or(far);
            let (kill_at, look_at) = (self.kill_at.unwrap_or(far), self.liveness.next().unwrap_or(far));
            tokio::select! {
                event = events.recv() => if self.event(event) == Launcher::Gone {
                    self.signal_ranks(Signal::SIGKILL as i32);
                    return Ok(());
                },
                _ = children.recv() => self.reap(),
                () = sleep_until(kill_at), if self.kill_at.is_some() => {
                    self.kill_at = None;
                    self.signal_ranks(Signal::SIGKILL as i32);
                }
                () = sleep_until(look_at) => self.look_at_launcher()?,
                () = sleep_until(below_at) => self.below.time_passed(Instant::now()),
                _ = terminate.recv() => return Err(std::io::Error::other("ended by SIGTERM")),
                _ = hangup.recv() => return Err(std::io::Error::other("ended by SIGHUP")),
            }
            if std::mem::take(&mut self.go) {
                // To start ranks takes this thread a while: what goes down goes first.
                tokio::task::yield_now().await;
                if self.go() == Launcher::Gone {
                    self.signal_ranks(Signal::SIGKILL as i32);
                    return Ok(());
                }
            }
            if self.ending && !finished && self.reported == self.ranks.len() {
                finished = true;
                if self.finish(&mut events).await == Launcher::Gone {
                    return Ok(());
                }
            }
            if finished && self.below.is_over() {
                self.say(ToLauncher::Done);
                self.pipes.shutdown().await;
                return Ok(());
            }
        }
    }

    fn event(&mut self, event: Option<Event>) -> Launcher {
        match event {
            None | Some(Event::Frame(None)) => return Launcher::Gone,
            Some(Event::Frame(Some(Frame::Message(message)))) => return self.message(message),
            Some(Event::Frame(Some(Frame::Data { bytes, .. }))) => {
                self.below.input(&bytes);
                if let Some(input) = &self.input {
                    let _ = input.send(bytes);
                }
            }
            Some(Event::PmiLine(local, line)) => self.pmi_line(local, &line),
            Some(Event::RankEnded(local)) => self.rank_ended(local),
            Some(Event::InputTaken(bytes)) => self.below.own_input_taken(bytes),
            Some(Event::Below(child, heard)) => self.below.heard(child, heard),
            Some(Event::OutputEnd) => self.open_pipes = self.open_pipes.saturating_sub(1),
        }
        Launcher::There
    }

    /// Says that this host is alive; an error if the launcher's is not.
    fn look_at_launcher(&mut self) -> std::io::Result<()> {
        match self.liveness.look(Instant::now()) {
            Look::Silent if !self.stopped => {
                Err(std::io::Error::other("the host of `transom run` gives no sign of life"))
            }
            Look::Early => Ok(()),
            Look::Say | Look::Silent => {
                self.say(ToLauncher::Alive);
                Ok(())
            }
        }
    }

    fn message(&mut self, message: ToAgent) -> Launcher {
        self.liveness.heard(Instant::now());
        self.below.send_all(&message);
        self.message_for_this(message)
    }

    fn message_for_this(&mut self, message: ToAgent) -> Launcher {
        match message {
            ToAgent::Alive => {}
            ToAgent::Prepare(spec) => self.prepare(*spec),
            ToAgent::Go => self.go = true,
            ToAgent::StdinEof => self.input = None,
            ToAgent::OutputCredit(bytes) => self.credit.add_permits(bytes as usize),
            ToAgent::Signal(number) => self.signal(number),
            ToAgent::Fence(pairs) => {
                let line = self.server.fence_done(pairs);
                for inbox in &self.inboxes {
                    let _ = inbox.send(ToRank::Line(line.clone()));
                }
            }
            ToAgent::Died { rank } => self.tell_of_death(rank),
            ToAgent::Agreed(agreed) => self.tell_of_agreement(&agreed),
            ToAgent::Look { number, places } => self.look(number, places),
            ToAgent::For { host, message } if self.index == Some(host) => {
                return self.message_for_this(*message);
            }
            ToAgent::For { host, message } => self.below.send_to(host, message),
            ToAgent::End { grace_ms } => self.end(Duration::from_millis(grace_ms)),
        }
        Launcher::There
    }

    /// Looks at the ranks, and says what they wait for when those that can have answered.
    fn look(&self, number: u64, places: bool) {
        self.say(ToLauncher::Looking { number });
        let of = |(local, rank): (usize, &Rank)| Subject {
            rank: self.number(local),
            pid: rank.pid.as_raw(),
            ended: rank.status.is_some(),
            joining: self.server.is_in_fence(local),
        };
        let subjects = self.ranks.iter().enumerate().map(of).collect();
        let (pages, up) = (self.pages.clone(), self.up.clone());
        tokio::spawn(async move {
            let ranks = look(pages, subjects, places).await;
            let _ = up.send(Frame::Message(ToLauncher::Looked { number, ranks }));
        });
    }

    /// Ranks that could not hear of a death would wait for the dead for ever.
    fn tell_of_death(&self, rank: u32) {
        let told = self.pages.as_ref().map_or(Ok(()), |pages| pages.add_death(rank));
        if let Err(error) = told {
            let message = format!("the death of rank {rank} cannot be told: {error}");
            self.say(ToLauncher::CannotStart { message, code: 1 });
        }
    }

    fn tell_of_agreement(&self, agreed: &Agreed) {
        for rank in &agreed.told {
            let local = self.numbers.local(*rank).and_then(|local| self.inboxes.get(local as usize));
            if let Some(inbox) = local {
                let _ = inbox.send(ToRank::Line(agreed.line()));
            }
        }
    }

    fn say(&self, message: ToLauncher) {
        let _ = self.up.send(Frame::Message(message));
    }

    fn prepare(&mut self, spec: JobSpec) {
        self.server = Server::new(spec.size, spec.ranks.count(), &spec.kvs, &spec.mapping);
        self.server.of_programs(spec.ranks.iter().map(|rank| spec.program_of(rank)));
        self.numbers = spec.ranks.clone();
        if spec.remote {
            let limit = Duration::from_millis(spec.silence_ms);
            let times = if spec.tree.by_agent { 1 } else { PATIENCE };
            self.liveness = Liveness::new(limit, Instant::now()).patient(times);
        }
        self.index = Some(spec.tree.index);
        match Starter::new(spec.clone()) {
            Ok(mut starter) => {
                if let Some(bindings) = starter.bindings() {
                    self.say(bindings);
                }
                self.starter = Some(starter);
                self.below.start(&spec, &self.events);
            }
            Err((message, code)) => self.say(ToLauncher::CannotStart { message, code }),
        }
    }

    fn go(&mut self) -> Launcher {
        let Some(starter) = self.starter.take() else { return Launcher::There };
        self.causes = Some(Causes::now());
        self.pages = starter.pages();
        for local in 0..starter.count() {
            if launcher_hung_up() {
                return Launcher::Gone;
            }
            let started = starter.start(local).and_then(|started| self.adopt(started));
            if let Err(error) = started {
                let left = (starter.count() - local) as usize;
                let reason = limits::no_process(&error, left);
                let message = format!("rank {} cannot be started: {reason}", self.number(local as usize));
                self.say(ToLauncher::CannotStart { message, code: 2 });
                break;
            }
        }
        if !self.readers.is_empty() {
            let (sender, input) = unbounded_channel();
            self.input = Some(sender);
            let readers = std::mem::take(&mut self.readers);
            self.pipes.spawn(forward_input(readers, starter.input_is_for_all(), input, self.events.clone()));
        }
        // A rank that ended before the signal handler was there left no signal.
        self.reap();
        Launcher::There
    }

    /// Connects a rank's pipes and socket to tasks of this process.
    fn adopt(&mut self, started: Started) -> std::io::Result<()> {
        let local = self.ranks.len();
        let rank = self.number(local);
        self.ranks.push(started.rank);
        let (inbox, from_agent) = unbounded_channel();
        self.inboxes.push(inbox);
        tokio::spawn(carry_pmi(Nonblocking::new(started.pmi)?, local, from_agent, self.events.clone()));
        self.read_output(started.stdout, rank, Stream::Out)?;
        self.read_output(started.stderr, rank, Stream::Err)?;
        if let Some(stdin) = started.stdin {
            self.readers.push(Nonblocking::new(stdin)?);
        }
        Ok(())
    }

    fn read_output(&mut self, pipe: OwnedFd, rank: u32, stream: Stream) -> std::io::Result<()> {
        let pipe = Nonblocking::new(pipe)?;
        let (credit, up, events) = (self.credit.clone(), self.up.clone(), self.events.clone());
        self.pipes.spawn(forward_output(pipe, rank, stream, credit, up, events));
        self.open_pipes += 1;
        Ok(())
    }

    fn pmi_line(&mut self, local: usize, line: &Result<Vec<u8>, transom_pmi::wire::WireError>) {
        let (answer, effect) = self.server.handle(local, line);
        if let (Some(answer), Some(inbox)) = (answer, self.inboxes.get(local)) {
            let _ = inbox.send(ToRank::Line(answer));
        }
        match effect {
            Effect::None => {}
            Effect::Abort(code) => {
                let pid = self.ranks.get(local).map_or(0, |rank| rank.pid.as_raw());
                self.say(ToLauncher::Abort { rank: self.number(local), pid, code });
            }
            Effect::Agree(contribution) => {
                self.say(ToLauncher::Agree { rank: self.number(local), contribution })
            }
            Effect::Fence => match self.server.fence_ready() {
                Some(pairs) => self.below.own_fence(pairs),
                None => self.check_fence(),
            },
        }
    }

    fn number(&self, local: usize) -> u32 {
        u32::try_from(local).ok().and_then(|local| self.numbers.rank(local)).unwrap_or(u32::MAX)
    }

    fn check_fence(&self) {
        if let Some(local) = self.server.fence_broken() {
            self.say(ToLauncher::FenceBroken { rank: self.number(local) });
        }
    }

    fn rank_ended(&mut self, local: usize) {
        let unfinished = self.server.gone(local);
        let Some(Rank { pid, status: Some(status), asked, .. }) = self.ranks.get(local) else { return };
        // What was killed by somebody else may take longer to end than others take to fail because of it.
        let of_others = matches!(status, Status::Signal { number, .. } if *number == Signal::SIGKILL as i32)
            && !self.kills;
        let (pid, status, asked) = (pid.as_raw(), *status, *asked && !of_others);
        let cause = self.causes.as_ref().filter(|_| !asked).and_then(|causes| causes.of(status));
        self.say(ToLauncher::RankExit { rank: self.number(local), pid, status, cause, unfinished, asked });
        self.reported += 1;
        self.below.rank_ended(self.number(local));
        self.check_fence();
        self.below.check_broken();
    }

    /// Notices which ranks have ended. Of those that ended at once, the killed come first: the others may have
    /// failed because of them.
    fn reap(&mut self) {
        let mut ended: Vec<usize> = (0..self.ranks.len())
            .filter(|local| self.ranks[*local].status.is_none() && self.ranks[*local].poll().is_some())
            .collect();
        for (pid, status) in reap_any() {
            self.below.reaped(pid, status);
            if let Some(local) = self.ranks.iter().position(|rank| rank.pid == pid && rank.status.is_none()) {
                self.ranks[local].status = Some(status);
                ended.push(local);
            }
        }
        ended.sort_by_key(|local| !matches!(self.ranks[*local].status, Some(Status::Signal { .. })));
        for local in ended {
            let _ = self.inboxes[local].send(ToRank::Exited);
        }
        self.below.poll();
    }

    /// A signal that the launcher got. What it sends between SIGTSTP and its own stop says nothing of later.
    fn signal(&mut self, number: i32) {
        match Signal::try_from(number) {
            Ok(Signal::SIGTSTP) => self.stopped = true,
            Ok(Signal::SIGCONT) => self.stopped = false,
            _ => {}
        }
        self.signal_ranks(number);
    }

    fn signal_ranks(&mut self, number: i32) {
        self.kills |= number == Signal::SIGKILL as i32;
        self.ranks.iter().for_each(|rank| rank.signal(number));
    }

    fn end(&mut self, grace: Duration) {
        self.ending = true;
        self.starter = None;
        // What has ended by now did so by itself.
        self.reap();
        self.ranks.iter_mut().for_each(|rank| rank.asked = rank.status.is_none());
        if grace.is_zero() {
            self.signal_ranks(Signal::SIGKILL as i32);
        } else {
            self.signal_ranks(Signal::SIGTERM as i32);
            self.signal_ranks(Signal::SIGCONT as i32);
            self.kill_at = Some(Instant::now() + grace);
        }
    }

    /// All ranks have ended: lets their last output through, and kills what they left behind.
    async fn finish(&mut self, events: &mut Receiver<Event>) -> Launcher {
        self.input = None;
        let ended_well = self.ranks.iter().all(|rank| rank.status == Some(Status::Code(0)));
        if ended_well && self.open_pipes > 0 {
            let drained = timeout(STRAGGLERS, self.drain(events)).await;
            if drained == Ok(Launcher::Gone) {
                return Launcher::Gone;
            }
        }
        kill_descendants(SILENCE, &self.below.pids());
        self.drain(events).await
    }

    /// Until every pipe has ended, the launcher is gone, or nothing comes though the launcher would take more.
    async fn drain(&mut self, events: &mut Receiver<Event>) -> Launcher {
        while self.open_pipes > 0 {
            self.below.time_passed(Instant::now());
            match timeout(SILENCE, events.recv()).await {
                Ok(event) => {
                    if self.event(event) == Launcher::Gone {
                        return Launcher::Gone;
                    }
                }
                Err(_) if self.credit.available_permits() > 0 => break,
                // Whoever reads the launcher's output is slow, and this host alive.
                Err(_) => self.say(ToLauncher::Alive),
            }
        }
        Launcher::There
    }
}

/// Whether the launcher closed the channel; looked at between the starts of ranks, when no task runs.
fn launcher_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    let polled = poll(&mut fds, PollTimeout::ZERO).is_ok();
    polled && fds[0].revents().is_some_and(|events| events.intersects(PollFlags::POLLHUP))
}
