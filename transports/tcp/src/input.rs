//! What comes from a peer: the record that is being received, and where its bytes go.

use std::ops::Range;
use std::sync::Arc;

use arrayvec::ArrayVec;
use transom_transport::{Completion, Event, Span};

use crate::wire::{LONGEST_HEAD, MAX_MESSAGE};

/// Bytes that are received at once, of records and short data: a whole message, what its head lacks, and the beginning of the next.
const BUFFER: usize = MAX_MESSAGE + (4 << 10);
/// Messages whose memory is kept for the next: fresh memory is filled with zeros first.
const SPARE: usize = 2;

/// Data of a record of which not all has come.
#[derive(Debug, Default)]
pub(crate) enum Incoming {
    /// None: the next is a record's head.
    #[default]
    Head,
    /// A put to a region.
    Put { region: Arc<Span>, at: usize, left: usize },
    /// A put that is refused: its bytes go nowhere.
    Refused { left: usize },
    /// Bytes for the oldest get.
    Reply { left: usize },
    /// A message.
    Message { bytes: Vec<u8>, left: usize },
}

impl Incoming {
    /// Bytes that have not come.
    pub fn left(&self) -> usize {
        match self {
            Self::Head => 0,
            Self::Put { left, .. }
            | Self::Refused { left }
            | Self::Reply { left }
            | Self::Message { left, .. } => *left,
        }
    }
}

/// What comes from a peer.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub incoming: Incoming,
    /// The beginning of a head of which not all has come.
    pub stash: ArrayVec<u8, LONGEST_HEAD>,
    /// Records received.
    pub number: u32,
    /// The last record had long data: so may the next, which then should not come to the buffer.
    pub is_long: bool,
}

impl Input {
    /// A region goes.
    pub fn release(&mut self, gone: &Arc<Span>) {
        if let Incoming::Put { region, left, .. } = &self.incoming
            && Arc::ptr_eq(region, gone)
        {
            self.incoming = Incoming::Refused { left: *left };
        }
    }
}

/// A message that has arrived.
#[derive(Debug)]
pub(crate) enum Message {
    /// In the buffer.
    Here(Range<usize>),
    /// In memory of its own.
    Whole(Vec<u8>),
}

/// What was found and is to be handed out.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub messages: Vec<Message>,
    pub completions: Vec<Completion>,
    /// Puts and gets of peers that were served.
    pub served: usize,
    /// Memory of messages that were handed out, for the next.
    spare: ArrayVec<Vec<u8>, SPARE>,
}

impl Found {
    /// Whether nothing is to be handed out.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.completions.is_empty()
    }

    /// Memory for a message of so many bytes, with anything in it.
    pub fn memory(&mut self, len: usize) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.resize(len, 0);
        memory
    }
}

/// Where records arrive, whatever peer they are of.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub buffer: Box<[u8]>,
    pub found: Found,
    /// Peers to read from.
    pub readable: Vec<usize>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { buffer: vec![0; BUFFER].into(), found: Found::default(), readable: Vec::new() }
    }
}

impl Inbox {
    /// Hands everything out; how much it was.
    pub fn hand_out(&mut self, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let Self { buffer, found, .. } = self;
        let Found { messages, completions, spare, .. } = found;
        let count = completions.len() + messages.len();
        for completion in completions.drain(..) {
            sink(Event::Complete(completion));
        }
        for message in messages.drain(..) {
            match message {
                Message::Here(range) => sink(Event::Message(buffer.get(range).unwrap_or_default())),
                Message::Whole(bytes) => {
                    sink(Event::Message(&bytes));
                    // What is beyond them is dropped.
                    let _ = spare.try_push(bytes);
                }
            }
        }
        count
    }
}
