//! The agents: what the launcher knows of each.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::unistd::Pid;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};
use tokio::time::Instant;

use super::Event;
use super::plan::Route;
use crate::frames::{Frame, Pairs, Status, ToAgent};
use crate::hosts::Block;
use crate::link::{Heard, Link};
use crate::liveness::Liveness;

/// One agent, as the launcher sees it.
#[derive(Debug)]
pub struct Agent {
    /// Its number.
    index: u32,
    /// Whether it starts others.
    is_inner: bool,
    /// Its host and its ranks.
    pub block: Block,
    /// How it was started.
    pub route: Route,
    /// It has said hello.
    pub hello: bool,
    /// It is ready to start, and so are those below it.
    pub ready: bool,
    /// How many of them are, itself counted.
    pub ready_hosts: u32,
    /// It has said that it is done, and those below it are.
    pub done: bool,
    /// Its channel has ended.
    pub eof: bool,
    /// How its process (or that of ssh, or of srun) has ended.
    pub status: Option<Status>,
    /// When it is given up, after the first sign of its end.
    pub lost_at: Option<Instant>,
    /// Bytes of input that each of its ranks (and of those below it) that reads it has taken.
    pub input_taken: u64,
    /// Whether its host is alive.
    pub liveness: Liveness,
    /// What its ranks and those below it put, while they wait in the fence.
    pub fence: Option<Pairs>,
    way: Way,
}

/// How an agent is reached.
#[derive(Debug)]
enum Way {
    /// By this process's own channel.
    Direct(Link),
    /// By the channel to another.
    Through(WeakUnboundedSender<Frame<ToAgent>>),
    /// Not any more.
    None,
}

impl Agent {
    /// Starts one. It will be heard of as number `index`.
    pub fn start(
        index: usize,
        (block, route): (Block, Route),
        is_inner: bool,
        exe: &Path,
        connect_timeout: Duration,
        events: UnboundedSender<Event>,
    ) -> io::Result<Self> {
        let heard = move |heard| {
            let event = match heard {
                Heard::Frame(frame) => Event::Agent(index, frame),
                Heard::End(error) => Event::AgentEof(index, error),
            };
            std::future::ready(events.send(event).is_ok())
        };
        let link = Link::start((&block.host, &route), exe, connect_timeout, heard)?;
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Ok(Self { is_inner, ..Self::new(index, (block, route), Way::Direct(link)) })
    }

    /// One that another agent starts, of which `self` is the first on the way.
    pub fn below(&self, index: u32, place: (Block, Route)) -> Self {
        let sender = match &self.way {
            Way::Direct(link) => link.sender(),
            _ => None,
        };
        let way = sender.map_or(Way::None, Way::Through);
        Self::new(index, place, way)
    }

    fn new(index: u32, (block, route): (Block, Route), way: Way) -> Self {
        Self {
            index,
            is_inner: false,
            block,
            route,
            hello: false,
            ready: false,
            ready_hosts: 0,
            done: false,
            eof: false,
            status: None,
            lost_at: None,
            input_taken: 0,
            liveness: Liveness::new(Duration::ZERO, Instant::now()),
            fence: None,
            way,
        }
    }

    /// Whether this process has a channel to it.
    pub fn is_direct(&self) -> bool {
        matches!(self.way, Way::Direct(_))
    }

    /// Its process, or that of ssh, or of srun.
    pub fn pid(&self) -> Option<Pid> {
        match &self.way {
            Way::Direct(link) => Some(link.pid()),
            _ => None,
        }
    }

    /// Nothing more will come from it.
    pub fn is_over(&self) -> bool {
        self.done || self.eof
    }

    /// Sends a message to this agent, if it is still there.
    pub fn send(&self, message: ToAgent) {
        let host = self.index;
        let to_one = |message| Frame::Message(ToAgent::For { host, message: Box::new(message) });
        match &self.way {
            Way::Direct(link) if self.is_inner => link.send(to_one(message)),
            Way::Direct(link) => link.send(Frame::Message(message)),
            Way::Through(sender) => drop(sender.upgrade().map(|sender| sender.send(to_one(message)))),
            Way::None => {}
        }
    }

    /// Sends a frame to this agent and to all below it. (Those below one with a channel are not sent it again.)
    pub fn send_down(&self, frame: Frame<ToAgent>) {
        if let Way::Direct(link) = &self.way {
            link.send(frame);
        }
    }

    /// Asks the kernel whether its process has ended.
    pub fn poll(&mut self) {
        if let Way::Direct(link) = &mut self.way {
            link.status = link.status.or(self.status);
            link.poll();
            self.status = link.status;
        }
    }

    /// Closes the channel: an agent that still runs ends everything it started.
    pub fn hang_up(&mut self) {
        match &mut self.way {
            Way::Direct(link) => link.hang_up(),
            _ => self.way = Way::None,
        }
    }

    /// Waits until its channel has really ended: what was started here may be gone before the agent is.
    pub async fn closed(&mut self) {
        if let Way::Direct(link) = &mut self.way {
            link.closed().await;
        }
    }

    /// It has given no sign of life: there is nothing to wait for.
    pub fn kill_silent(&mut self) {
        if let Way::Direct(link) = &mut self.way {
            link.kill_silent();
        }
    }

    /// Kills what was started here; for ssh that may leave the agent, which has its own reasons to end then.
    pub fn kill(&mut self) {
        if let Way::Direct(link) = &mut self.way {
            link.status = link.status.or(self.status);
            link.kill();
        }
    }
}
