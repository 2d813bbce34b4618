//! The agents that this one has started on other hosts: orders go down to them, and what they say goes up, merged where that
//! can be: one fence, one `Ready`, one `Done` and one credit of input for all of them and this host.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use nix::unistd::Pid;
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::time::Instant;

use super::Event;
use super::child::Child;
use crate::frames::{Frame, Input, JobSpec, Pairs, Started, Status, Stream, ToAgent, ToLauncher};
use crate::link::Heard;
use crate::liveness::Look;
use crate::tree::{self, Branch};

/// Between two reports of how many hosts are ready.
const REPORTS: Duration = Duration::from_millis(100);

/// What is merged of this host and those below.
#[derive(Debug, Default)]
struct Own {
    ready: Option<Started>,
    fence: Option<Pairs>,
    input_taken: u64,
    reads: bool,
}

/// The agents below.
#[derive(Debug)]
pub(super) struct Below {
    up: UnboundedSender<Frame<ToLauncher>>,
    children: Vec<Child>,
    own: Own,
    /// Bytes of input that were reported as taken.
    credited: u64,
    /// A rank of this host or below that has ended.
    ended: Option<u32>,
    connect: Duration,
    answer_by: Option<Instant>,
    rounds: u32,
    report_at: Option<Instant>,
    running: bool,
    ending: bool,
}

impl Below {
    pub(super) fn new(up: UnboundedSender<Frame<ToLauncher>>) -> Self {
        Self {
            up,
            children: Vec::new(),
            own: Own::default(),
            credited: 0,
            ended: None,
            connect: Duration::ZERO,
            answer_by: None,
            rounds: 0,
            report_at: None,
            running: false,
            ending: false,
        }
    }

    fn say(&self, message: ToLauncher) {
        let _ = self.up.send(Frame::Message(message));
    }

    /// Says something of an agent below.
    fn say_of(&self, child: usize, message: ToLauncher) {
        let host = self.children[child].branch.head.index;
        self.say(ToLauncher::Of { host, message: Box::new(message) });
    }

    /// Starts them. This host is ready.
    pub(super) fn start(&mut self, spec: &JobSpec, events: &Sender<Event>) {
        let branches = tree::split(spec.tree.below.clone(), spec.tree.fan_out);
        self.own.reads = spec.stdin == Input::All
            || matches!(spec.stdin, Input::Rank(rank) if spec.ranks.local(rank).is_some());
        self.connect = Duration::from_millis(spec.tree.connect_ms);
        self.answer_by = (!branches.is_empty()).then(|| Instant::now() + self.connect);
        let children = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        for branch in branches {
            self.start_one(branch, spec, events);
        }
        self.own.ready = Some(Started { hosts: 1, depth: 1, memory_kib: memory_kib(), children });
        self.check_ready();
    }

    fn start_one(&mut self, branch: Branch, spec: &JobSpec, events: &Sender<Event>) {
        let (number, events) = (self.children.len(), events.clone());
        let heard = move |heard| {
            let events = events.clone();
            async move { events.send(Event::Below(number, heard)).await.is_ok() }
        };
        let host = branch.head.index;
        match Child::start(branch, spec, Path::new(&spec.tree.exe), self.connect, heard) {
            Ok(child) => self.children.push(child),
            Err(error) => {
                let gone = ToLauncher::Gone { status: None, error: Some(error.to_string()) };
                self.say(ToLauncher::Of { host, message: Box::new(gone) });
            }
        }
    }

    /// Processes that start agents: not to be killed with the ranks.
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.children.iter().map(|child| child.link.pid()).collect()
    }

    /// Nothing more will come from below.
    pub(super) fn is_over(&self) -> bool {
        self.children.iter().all(Child::is_over)
    }

    /// Passes a message on to all.
    pub(super) fn send_all(&mut self, message: &ToAgent) {
        match message {
            // Each says that it is alive, and is told so, by itself.
            ToAgent::Alive | ToAgent::Prepare(_) | ToAgent::OutputCredit(_) | ToAgent::For { .. } => return,
            ToAgent::Go => self.running = true,
            ToAgent::End { .. } => {
                self.ending = true;
                self.answer_by = None;
                // Nothing runs there, and ssh may sit in a connect for minutes.
                self.children.iter_mut().filter(|child| !child.hello).for_each(Child::give_up);
            }
            _ => {}
        }
        for child in self.children.iter().filter(|child| !child.is_over()) {
            child.link.send(Frame::Message(message.clone()));
        }
    }

    /// Passes a message on to one of them, or to one below that.
    pub(super) fn send_to(&self, host: u32, message: Box<ToAgent>) {
        if let Some(child) = self.children.iter().find(|child| child.contains(host)) {
            child.link.send(Frame::Message(ToAgent::For { host, message }));
        }
    }

    /// Passes input on to those who read it.
    pub(super) fn input(&self, bytes: &Bytes) {
        for child in self.children.iter().filter(|child| child.reads) {
            child.link.send(Frame::Data { rank: 0, stream: Stream::In, bytes: bytes.clone() });
        }
    }

    /// Something has come from one of them.
    pub(super) fn heard(&mut self, number: usize, heard: Heard) {
        if self.children[number].is_gone {
            return;
        }
        match heard {
            Heard::Frame(frame) => {
                self.children[number].liveness.heard(Instant::now());
                match frame {
                    Frame::Message(message) => self.message(number, message),
                    data @ Frame::Data { .. } => drop(self.up.send(data)),
                }
            }
            Heard::End(error) => {
                self.children[number].noticed_end(error.map(|error| error.to_string()));
                self.report_lost(Instant::now());
            }
        }
    }

    fn message(&mut self, number: usize, message: ToLauncher) {
        let child = &mut self.children[number];
        match message {
            ToLauncher::Alive => {}
            ToLauncher::Hello { version } => {
                if let Err(refused) = child.said_hello(&version) {
                    self.say_of(number, refused);
                } else if self.ending {
                    child.link.send(Frame::Message(ToAgent::End { grace_ms: 0 }));
                }
            }
            ToLauncher::Ready(started) => {
                (child.ready, child.ready_hosts) = (Some(started), started.hosts);
                self.check_ready();
            }
            ToLauncher::Starting { ready } => {
                child.ready_hosts = ready;
                self.report_soon();
            }
            ToLauncher::InputCredit(bytes) => {
                child.input_taken += u64::from(bytes);
                self.give_input_credit();
            }
            ToLauncher::FenceEnter(pairs) => {
                child.fence = Some(pairs);
                self.check_fence();
            }
            ToLauncher::Done => child.is_done = true,
            // It says no more than of hosts that it was given.
            ToLauncher::Of { host, message } if child.contains(host) => {
                self.note_end(&message);
                self.say(ToLauncher::Of { host, message });
                self.check_broken();
            }
            ToLauncher::Of { .. } => {}
            other => {
                self.note_end(&other);
                self.say_of(number, other);
                self.check_broken();
            }
        }
    }

    fn check_ready(&mut self) {
        let below: Option<Vec<Started>> = self.children.iter().map(|child| child.ready).collect();
        match (self.own.ready, below) {
            (Some(own), Some(below)) => {
                self.answer_by = None;
                self.report_at = None;
                self.say(ToLauncher::Ready(own.join(below.into_iter())));
            }
            _ => self.report_soon(),
        }
    }

    fn report_soon(&mut self) {
        self.report_at.get_or_insert_with(|| Instant::now() + REPORTS);
    }

    /// The ranks of this host have taken so much of the input.
    pub(super) fn own_input_taken(&mut self, bytes: u32) {
        self.own.input_taken += u64::from(bytes);
        self.give_input_credit();
    }

    /// More may come when the slowest has taken what there was.
    fn give_input_credit(&mut self) {
        let below = self.children.iter().filter(|child| child.reads && !child.is_over());
        let own = self.own.reads.then_some(self.own.input_taken);
        let taken = below.map(|child| child.input_taken).chain(own).min().unwrap_or(0);
        let more = u32::try_from(taken.saturating_sub(self.credited)).unwrap_or(0);
        if more > 0 {
            self.credited = taken;
            self.say(ToLauncher::InputCredit(more));
        }
    }

    /// The ranks of this host are in the fence.
    pub(super) fn own_fence(&mut self, pairs: Pairs) {
        self.own.fence = Some(pairs);
        self.check_fence();
    }

    fn check_fence(&mut self) {
        if self.own.fence.is_some() && self.children.iter().all(|child| child.fence.is_some()) {
            let below = self.children.iter_mut().filter_map(|child| child.fence.take());
            let all = self.own.fence.take().into_iter().chain(below).flatten().collect();
            return self.say(ToLauncher::FenceEnter(all));
        }
        self.check_broken();
    }

    fn note_end(&mut self, message: &ToLauncher) {
        if let ToLauncher::RankExit { rank, .. } = message {
            self.rank_ended(*rank);
        }
    }

    /// A rank of this host or below has ended, and that was said.
    pub(super) fn rank_ended(&mut self, rank: u32) {
        self.ended.get_or_insert(rank);
    }

    /// A host whose ranks all wait in a fence, while a rank of another one here has ended, waits for ever.
    pub(super) fn check_broken(&self) {
        let waiting = self.own.fence.is_some() || self.children.iter().any(|child| child.fence.is_some());
        if let (Some(rank), true, false) = (self.ended, waiting, self.ending) {
            self.say(ToLauncher::FenceBroken { rank });
        }
    }

    /// A process has ended that this one has started.
    pub(super) fn reaped(&mut self, pid: Pid, status: Status) {
        if let Some(child) = self.children.iter_mut().find(|child| child.link.pid() == pid) {
            child.link.status.get_or_insert(status);
        }
    }

    /// Asks the kernel which of the processes have ended.
    pub(super) fn poll(&mut self) {
        for child in self.children.iter_mut().filter(|child| !child.is_over()) {
            child.link.poll();
            if child.link.status.is_some() {
                child.noticed_end(None);
            }
        }
        self.report_lost(Instant::now());
    }

    fn report_lost(&mut self, now: Instant) {
        for number in 0..self.children.len() {
            let child = &mut self.children[number];
            if !child.is_over() && child.lost_at.is_some_and(|at| at <= now) {
                child.give_up();
                let gone = ToLauncher::Gone { status: child.link.status, error: child.error.take() };
                self.say_of(number, gone);
            }
        }
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        let open = self.children.iter().filter(|child| !child.is_over());
        let of_children = open.flat_map(|child| [child.lost_at, child.liveness.next()]).flatten();
        of_children.chain(self.answer_by).chain(self.report_at).min()
    }

    /// Does it.
    pub(super) fn time_passed(&mut self, now: Instant) {
        self.report_lost(now);
        if self.report_at.is_some_and(|at| at <= now) {
            self.report_at = None;
            let ready = self.children.iter().map(|child| child.ready_hosts).sum::<u32>();
            self.say(ToLauncher::Starting { ready: ready + u32::from(self.own.ready.is_some()) });
        }
        if self.answer_by.is_some_and(|at| at <= now) {
            self.rounds += 1;
            self.answer_by = Some(now + self.connect);
            if let Some(late) = self.children.iter().position(|child| child.is_late(self.rounds)) {
                self.answer_by = None;
                self.children[late].give_up();
                self.say_of(late, ToLauncher::Unanswered);
            }
        }
        for number in 0..self.children.len() {
            let child = &mut self.children[number];
            if child.is_over() {
                continue;
            }
            match child.liveness.look(now) {
                Look::Early => {}
                Look::Silent if self.running => {
                    child.give_up_silent();
                    self.say_of(number, ToLauncher::Silent);
                }
                // How long it may take to be ready is another matter.
                Look::Say | Look::Silent => child.link.send(Frame::Message(ToAgent::Alive)),
            }
        }
    }
}

/// The most memory that this process has had, in KiB; 0 where the kernel does not say.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
