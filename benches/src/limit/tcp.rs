//! The limit of a transport over TCP: a raw socket between the same two processes. Both spin on it, like the fastest
//! runtime would, so that no wake-up of the kernel is in the figure.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::socket::{setsockopt, sockopt};
use transom::Communicator;

use super::address;
use crate::operation::{Offsets, Transfers};

/// How long a side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Polls between two looks at the clock; then the core is yielded, maybe to the other rank.
const POLLS: u32 = 100;

/// What one operation sends there and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Messages to the other rank, each a system call.
    pub messages: usize,
    /// Where these are in memory, one behind the other at both ends: they go through the places in turns.
    pub places: usize,
    /// Bytes of each.
    pub out: usize,
    /// Bytes of the answer.
    pub back: usize,
    /// Whether both ranks send messages, and answer, at once.
    pub both_ways: bool,
}

impl Exchange {
    /// 8 bytes there and back.
    pub const ROUND_TRIP: Self = Self { messages: 1, places: 1, out: 8, back: 8, both_ways: false };

    /// For the table.
    pub fn name(self) -> String {
        match self {
            Self::ROUND_TRIP => "TCP round trip".into(),
            Self { messages: 1, out: 8, .. } => "TCP: ask, data back".into(),
            Self { messages: 1, back, .. } => format!("TCP: data, {back} B back"),
            Self { messages, back, both_ways: false, .. } => format!("TCP: {messages} writes, {back} B back"),
            Self { messages, back, .. } => format!("TCP: {messages} writes, {back} B back, both ways"),
        }
    }
}

/// A connection between the two ranks.
#[derive(Debug)]
pub struct Tcp {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What comes while the other is sent.
    inbox: Vec<u8>,
}

impl Tcp {
    /// A connection, if rank 0 reaches rank 1, at `address` or at one that is found out. Collective.
    pub fn connect(pair: &Communicator, address: Option<IpAddr>) -> anyhow::Result<Option<Self>> {
        let Some(stream) = address::connect(pair, address)? else { return Ok(None) };
        stream.set_nodelay(true)?;
        // The least that the machine can do is asked for: BBR slows large transfers between its own containers.
        if address::are_of_one_machine(pair)? {
            let _ = setsockopt(&stream, sockopt::TcpCongestion, &OsString::from("reno"));
        }
        stream.set_nonblocking(true)?;
        Ok(Some(Self { stream, buffer: Vec::new(), inbox: Vec::new() }))
    }

    /// `count` exchanges; to be called by both ranks.
    pub fn sample(&mut self, origin: bool, exchange: Exchange, count: u64) -> anyhow::Result<Duration> {
        let Exchange { messages, places, out, back, both_ways } = exchange;
        let places = Transfers { bytes: out, places };
        self.buffer.resize(places.memory().max(back), 1);
        let mut start = Instant::now();
        // One more, to meet.
        for round in 0..=count {
            if both_ways {
                self.both_ways(exchange)?;
            } else if origin {
                let mut offsets = places.offsets();
                (0..messages).try_for_each(|_| self.send(offsets.step(), out))?;
                self.receive(0, back)?;
            } else {
                let mut offsets = places.offsets();
                (0..messages).try_for_each(|_| self.receive(offsets.step(), out))?;
                self.send(0, back)?;
            }
            if round == 0 {
                start = Instant::now();
            }
        }
        Ok(start.elapsed())
    }

    /// Sends all messages and an answer, and receives as many: whichever of both goes on.
    fn both_ways(&mut self, exchange: Exchange) -> anyhow::Result<()> {
        self.inbox.resize(self.buffer.len(), 1);
        let mut stream = &self.stream;
        let (mut going, mut coming) = (Half::new(exchange), Half::new(exchange));
        spin(|| {
            let sent = match going.place() {
                Some(place) => going.moved(stream.write(&self.buffer[place]))?,
                None => false,
            };
            let got = match coming.place() {
                Some(place) => match stream.read(&mut self.inbox[place]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    result => coming.moved(result)?,
                },
                None => false,
            };
            match (sent || got, going.place().or(coming.place())) {
                (_, None) => Ok(true),
                (true, _) => Ok(false),
                (false, _) => Err(ErrorKind::WouldBlock.into()),
            }
        })
    }

    /// A word there and back, at the end that begins.
    pub fn ask(&mut self) -> anyhow::Result<()> {
        let Exchange { out, back, .. } = Exchange::ROUND_TRIP;
        self.buffer.resize(out.max(back), 1);
        self.send(0, out)?;
        self.receive(0, back)
    }

    /// The connection, for a thread that sleeps on it.
    pub fn blocking(&self) -> std::io::Result<TcpStream> {
        let stream = self.stream.try_clone()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn send(&mut self, at: usize, bytes: usize) -> anyhow::Result<()> {
        let mut rest = &self.buffer[at..at + bytes];
        let mut stream = &self.stream;
        spin(|| {
            let sent = stream.write(rest)?;
            rest = &rest[sent..];
            Ok(rest.is_empty())
        })
    }

    fn receive(&mut self, at: usize, bytes: usize) -> anyhow::Result<()> {
        let mut rest = &mut self.buffer[at..at + bytes];
        let mut stream = &self.stream;
        spin(|| {
            let got = stream.read(rest)?;
            if got == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            rest = &mut std::mem::take(&mut rest)[got..];
            Ok(rest.is_empty())
        })
    }
}

/// How far one direction of an exchange is.
struct Half {
    exchange: Exchange,
    offsets: Offsets,
    /// Messages that have not begun.
    left: usize,
    place: Option<Range<usize>>,
}

impl Half {
    fn new(exchange: Exchange) -> Self {
        let offsets = Transfers { bytes: exchange.out, places: exchange.places }.offsets();
        let mut half = Self { exchange, offsets, left: exchange.messages, place: None };
        half.begin();
        half
    }

    /// What is to be moved of the message or answer that has begun.
    fn place(&self) -> Option<Range<usize>> {
        self.place.clone()
    }

    fn begin(&mut self) {
        if self.left > 0 {
            let at = self.offsets.step();
            self.place = Some(at..at + self.exchange.out);
            self.left -= 1;
        } else if self.exchange.back > 0 {
            self.place = Some(0..std::mem::take(&mut self.exchange.back));
        } else {
            self.place = None;
        }
    }

    /// The result of a system call. Whether anything was moved.
    fn moved(&mut self, result: std::io::Result<usize>) -> std::io::Result<bool> {
        let moved = match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            other => other?,
        };
        let place = self.place.take().unwrap_or_default();
        self.place = Some(place.start + moved..place.end);
        if place.start + moved == place.end {
            self.begin();
        }
        Ok(true)
    }
}

/// Repeats `step` until it is done.
fn spin(mut step: impl FnMut() -> std::io::Result<bool>) -> anyhow::Result<()> {
    let mut since: Option<Instant> = None;
    let mut polls = 0u32;
    loop {
        match step() {
            Ok(true) => return Ok(()),
            Ok(false) => since = None,
            Err(error) if error.kind() == ErrorKind::WouldBlock => polls += 1,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).context("the raw TCP connection"),
        }
        if polls == POLLS {
            polls = 0;
            if since.get_or_insert_with(Instant::now).elapsed() > TIMEOUT {
                bail!("the other rank does not answer on the raw TCP connection");
            }
            std::thread::yield_now();
        }
    }
}
