//! The agent's ends of a rank's pipes and of its PMI socket: one small task each.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender};
use transom_pmi::wire::LineBuffer;

use super::Event;
use crate::frames::{Frame, Stream, ToLauncher};
use crate::nonblocking::Nonblocking;

const CHUNK: usize = 16 << 10;
/// Answers that a rank has not read: beyond this, its requests are not read either.
const MAX_UNREAD: usize = 64 << 10;

/// To the task that holds a rank's PMI socket.
#[derive(Debug)]
pub enum ToRank {
    /// Send this line.
    Line(String),
    /// The process has ended: read what it still said, and stop.
    Exited,
}

/// Passes a pipe on to the launcher until it ends, no faster than the launcher writes.
pub async fn forward_output(
    pipe: Nonblocking,
    rank: u32,
    stream: Stream,
    credit: Arc<Semaphore>,
    up: UnboundedSender<Frame<ToLauncher>>,
    events: Sender<Event>,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let Ok(permits) = credit.acquire_many(u32::try_from(count).unwrap_or(u32::MAX)).await else { break };
        permits.forget();
        let bytes = Bytes::copy_from_slice(&buffer[..count]);
        if up.send(Frame::Data { rank, stream, bytes }).is_err() {
            break;
        }
    }
    let _ = events.send(Event::OutputEnd).await;
}

/// Writes the launcher's input to the ranks that read it, no faster than the slowest takes it; ends (and closes the pipes) when the
/// sender is dropped. `of_all`: ranks of other hosts read it, too.
pub async fn forward_input(
    mut readers: Vec<Nonblocking>,
    of_all: bool,
    mut input: UnboundedReceiver<Bytes>,
    events: Sender<Event>,
) {
    while let Some(bytes) = input.recv().await {
        let mut left = Vec::with_capacity(readers.len());
        for reader in readers {
            if reader.write_all(&bytes).await.is_ok() {
                left.push(reader);
            }
        }
        readers = left;
        if readers.is_empty() && !of_all {
            return; // the rank does not read any more: no credit, no more input
        }
        // Ranks of other hosts may still read when none here does: for them it counts as taken.
        let taken = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let _ = events.send(Event::InputTaken(taken)).await;
    }
}

/// Carries lines between a rank's PMI socket and the agent.
pub async fn carry_pmi(
    socket: Nonblocking,
    local: usize,
    mut inbox: UnboundedReceiver<ToRank>,
    events: Sender<Event>,
) {
    let mut pmi = PmiSocket { socket, local, lines: LineBuffer::new(), events };
    let (mut unread, mut ended) = (Vec::new(), false);
    let mut buffer = [0; 4096];
    loop {
        tokio::select! {
            message = inbox.recv() => match message {
                Some(ToRank::Line(line)) if !ended => unread.extend_from_slice(line.as_bytes()),
                Some(ToRank::Line(_)) => {}
                Some(ToRank::Exited) => return pmi.finish(ended).await,
                None => return,
            },
            read = pmi.socket.read(&mut buffer), if !ended && unread.len() < MAX_UNREAD => match read {
                Ok(count @ 1..) => pmi.take(&buffer[..count]).await,
                _ => ended = true,
            },
            written = pmi.socket.write(&unread), if !ended && !unread.is_empty() => match written {
                Ok(count) => drop(unread.drain(..count)),
                Err(_) => ended = true,
            },
        }
    }
}

struct PmiSocket {
    socket: Nonblocking,
    local: usize,
    lines: LineBuffer,
    events: Sender<Event>,
}

impl PmiSocket {
    async fn take(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next_line() {
            let _ = self.events.send(Event::PmiLine(self.local, line)).await;
        }
    }

    /// What a process said before it ended counts; its descendants may hold the socket for longer.
    async fn finish(mut self, ended: bool) {
        let mut buffer = [0; 4096];
        for _ in 0..256 {
            match self.socket.try_read(&mut buffer) {
                Ok(count @ 1..) if !ended => self.take(&buffer[..count]).await,
                _ => break,
            }
        }
        let _ = self.events.send(Event::RankEnded(self.local)).await;
    }
}
