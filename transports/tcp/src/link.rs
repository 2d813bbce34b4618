//! What there is between this rank and one peer: the connection, what is under way, and what waits to be sent.

use std::collections::VecDeque;
use std::sync::Arc;

use arrayvec::ArrayVec;
use transom_transport::Span;
use zerocopy::IntoBytes;

use crate::card::Card;
use crate::dial::Dial;
use crate::input::Input;
use crate::output::Output;
use crate::replies::Replies;
use crate::socket::{PARTS, Socket};
use crate::under_way::{Get, Puts};
use crate::wire::{Header, Kind, MAX_GETS, MAX_MESSAGE, MAX_PUTS};

/// A peer that asks for answers and does not read them is one that this rank stops to serve when so much waits for it: its
/// honest peers have at most so many requests under way, and of this rank's own records less than half of it wait.
const MOST_BUFFERED: usize = 2 << 20;
/// Bytes of this rank's records that may wait before a caller is told to try again.
const ROOM: usize = 256 << 10;
/// Bytes that one flush sends before others have their turn.
const TURN: usize = 4 << 20;
/// A record of which so many bytes lack or fewer is about to be complete: who is told of its end is told of puts before it, too.
const ABOUT: usize = 256 << 10;

/// Messages that are sent with one call: each is three pieces of memory.
const SEVERAL: usize = PARTS / 3;

const _: () = assert!(ROOM + MAX_MESSAGE + (MAX_PUTS + MAX_GETS) * Header::BYTES < MOST_BUFFERED / 2);

/// Why a connection is over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub reason: String,
    pub told: Told,
}

/// Where it is told that a connection is over to who only waits for a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// By this transport, at once.
    Here,
    /// By this transport, if nothing else has ended the wait by then: the peer's host knows the connection no longer. Its process
    /// has died, or left in order (who starts processes tells, or the wait is soon over); or what it sent last is lost.
    Late,
    /// The peer's process has ended it, which may be in order, or has sent nonsense (who starts processes tells what became of
    /// them), or memory is gone under an operation of the peer's (who is told).
    Elsewhere,
}

impl Broken {
    pub fn by_peer(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), told: Told::Elsewhere }
    }
}

impl From<String> for Broken {
    fn from(reason: String) -> Self {
        Self { reason, told: Told::Here }
    }
}

/// The connection.
#[derive(Debug)]
pub(crate) enum State {
    Unconnected,
    Dialing(Box<Dial>),
    Ready(Socket),
    /// There was one, or none could be made.
    Lost(String),
}

/// What there is between this rank and one peer.
#[derive(Debug)]
pub(crate) struct Link {
    pub card: Card,
    pub state: State,
    pub output: Output,
    pub input: Input,
    pub puts: Puts,
    pub gets: VecDeque<Get>,
    pub replies: Replies,
    /// Puts of the peer's that are in memory or refused, modulo 2^32; and how many of these it was told.
    pub served: u32,
    told: u32,
    /// Records sent.
    number: u32,
    /// The port's look at which something was sent last.
    pub sent_at: u64,
    /// Receives that brought something, while nobody slept.
    pub finds: u32,
    /// It is among the port's links with something to send.
    pub is_listed: bool,
    /// The socket took less than there was.
    is_blocked: bool,
    /// Why nothing can be sent any more.
    pub broken: Option<Broken>,
    /// The port sleeps for room in the socket, too.
    pub is_watched: bool,
}

impl Link {
    pub fn new(card: Card) -> Self {
        Self {
            card,
            state: State::Unconnected,
            output: Output::default(),
            input: Input::default(),
            puts: Puts::default(),
            gets: VecDeque::new(),
            replies: Replies::default(),
            served: 0,
            told: 0,
            number: 0,
            sent_at: 0,
            finds: 0,
            is_listed: false,
            is_blocked: false,
            broken: None,
            is_watched: false,
        }
    }

    /// Begins a record.
    #[inline]
    pub fn begin(&mut self, kind: Kind, len: usize) {
        let header = Header::new(kind, len as u32, self.served, self.number);
        self.number = self.number.wrapping_add(1);
        self.told = self.served;
        self.output.push(&header);
    }

    /// Whether there is room for more of this rank's records.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.output.buffered() < ROOM
    }

    /// Whether there is something to send.
    #[inline]
    pub fn has_output(&self) -> bool {
        self.is_to_tell() || !self.output.is_empty() || !self.replies.is_empty()
    }

    /// Whether puts that were served are to be told by themselves, if nothing else is sent: of many that come one behind the other,
    /// each would cost a packet more.
    #[inline]
    fn is_to_tell(&self) -> bool {
        self.served != self.told && !(1..=ABOUT).contains(&self.input.incoming.left())
    }

    /// Whether nothing is to be sent, now or soon.
    pub fn is_done(&self) -> bool {
        self.served == self.told && !self.has_output()
    }

    /// Whether the peer makes this rank keep more than it may.
    #[inline]
    pub fn is_overrun(&self) -> bool {
        self.output.buffered() > MOST_BUFFERED
    }

    /// Sends what there is. Whether that was all.
    #[inline]
    pub fn flush(&mut self) -> Result<bool, Broken> {
        let State::Ready(socket) = &self.state else { return Ok(true) };
        if self.is_blocked {
            if !self.output.send(socket).map_err(|e| socket.failed(&e))? {
                return Ok(false);
            }
            self.is_blocked = false;
        }
        self.push_replies();
        if self.is_to_tell() {
            self.begin(Kind::Served, 0);
        }
        let mut turn = 0;
        loop {
            let State::Ready(socket) = &self.state else { return Ok(true) };
            turn += self.output.buffered() + self.output.of_regions();
            self.is_blocked = !self.output.send(socket).map_err(|e| socket.failed(&e))?;
            if self.is_blocked {
                return Ok(false);
            }
            if self.replies.is_empty() {
                return Ok(true);
            }
            if turn >= TURN {
                return Ok(false);
            }
            self.push_replies();
        }
    }

    /// Adds data to the record that was begun, and sends it from where it is as far as the socket takes it.
    pub fn push_through(&mut self, data: &[u8]) {
        if let (State::Ready(socket), false) = (&self.state, self.is_blocked) {
            if let Err(error) = self.output.send_with(socket, data) {
                let broken = socket.failed(&error);
                self.stop_sending(broken);
            }
        } else {
            self.output.push(data);
        }
    }

    /// Sends messages, each of header and payload, with one call, if nothing waits before them: how many were begun.
    pub fn send_messages(&mut self, messages: &[(&[u8], &[u8])]) -> Result<usize, Broken> {
        let State::Ready(socket) = &self.state else { return Ok(0) };
        let messages = &messages[..messages.len().min(SEVERAL)];
        let mut heads: ArrayVec<Header, SEVERAL> = ArrayVec::new();
        let mut number = self.number;
        for (header, payload) in messages {
            heads.push(Header::new(
                Kind::Message,
                (header.len() + payload.len()) as u32,
                self.served,
                number,
            ));
            number = number.wrapping_add(1);
        }
        let pieces = heads.iter().zip(messages);
        let records: ArrayVec<[&[u8]; 3], SEVERAL> =
            pieces.map(|(head, (header, payload))| [head.as_bytes(), header, payload]).collect();
        let begun = self.output.send_records(socket, &records).map_err(|e| socket.failed(&e))?;
        if begun > 0 {
            self.number = self.number.wrapping_add(begun as u32);
            self.told = self.served;
        }
        self.is_blocked = begun < records.len() || !self.output.is_empty();
        Ok(begun)
    }

    /// Nothing can be sent any more. What the peer has sent before is still to be read; behind it is the connection's end.
    #[cold]
    pub fn stop_sending(&mut self, broken: Broken) {
        self.output = Output::default();
        self.replies = Replies::default();
        self.is_blocked = false;
        // Half a record may be on its way: nothing may follow it, and the peer must learn of it.
        if let State::Ready(socket) = &self.state {
            socket.end();
        }
        self.broken.get_or_insert(broken);
    }

    /// A region goes: nothing of it is read or written from now on.
    pub fn release(&mut self, region: &Arc<Span>) {
        self.output.release(region);
        self.replies.release(region);
        self.input.release(region);
    }
}
