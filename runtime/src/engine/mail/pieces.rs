//! Long messages as series of short ones, where the transport cannot get them.

use zerocopy::IntoBytes;

use super::{Errand, OnLanded, Turn};
use crate::engine::Engine;
use crate::protocol::wire::{HEADER_BYTES, Kind};
use crate::{Element, Result};

/// Pieces sent in one turn.
const AT_ONCE: usize = 32;

/// A message that comes as pieces.
pub(super) struct Filling {
    peer: usize,
    buffer: Box<dyn Buffer>,
    left: usize,
}

trait Buffer: Send {
    /// Where a piece belongs.
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]>;
    /// All pieces are there.
    fn finish(self: Box<Self>, engine: &Engine);
}

struct Filled<T> {
    vec: Vec<T>,
    then: OnLanded<T>,
}

impl<T: Element> Buffer for Filled<T> {
    fn part(&mut self, start: usize, len: usize) -> Option<&mut [u8]> {
        self.vec.as_mut_bytes().get_mut(start..start.checked_add(len)?)
    }

    fn finish(self: Box<Self>, engine: &Engine) {
        (self.then)(engine, Ok(self.vec));
    }
}

/// Asks the sender of number `number` for its message.
pub(super) fn ask<T: Element>(
    engine: &Engine,
    peer: usize,
    number: Option<u64>,
    vec: Vec<T>,
    then: OnLanded<T>,
) {
    let left = size_of_val(&vec[..]);
    if left == 0 {
        engine.release_mail(peer, number, true);
        return then(engine, Ok(vec));
    }
    let own = engine.mail.number();
    let buffer = Box::new(Filled { vec, then });
    engine.mail.filling.lock().insert(own, Filling { peer, buffer, left });
    let mut header = engine.header(Kind::Clear);
    header.value = number.unwrap_or_default();
    header.compare = own;
    engine.send_mail_later(peer, &header, &[]);
}

/// A piece has come. `None` if it makes no sense.
pub(super) fn fill(engine: &Engine, peer: usize, number: u64, start: u64, bytes: &[u8]) -> Option<()> {
    let mut all = engine.mail.filling.lock();
    let filling =
        all.get_mut(&number).filter(|filling| filling.peer == peer && bytes.len() <= filling.left)?;
    filling.buffer.part(usize::try_from(start).ok()?, bytes.len())?.copy_from_slice(bytes);
    filling.left -= bytes.len();
    if filling.left == 0 {
        let filling = all.remove(&number)?;
        drop(all);
        filling.buffer.finish(engine);
    }
    Some(())
}

/// What is done when all of a message is sent.
pub(crate) type OnPushed<T> = Box<dyn FnOnce(&Engine, Result<Vec<T>>) + Send>;

/// Sends a message as pieces.
pub(crate) struct Push<T> {
    pub operation: &'static str,
    pub peer: usize,
    /// The receiver's number.
    pub number: u64,
    pub vec: Vec<T>,
    pub at: usize,
    pub then: OnPushed<T>,
}

impl<T: Element> Errand for Push<T> {
    fn go(mut self: Box<Self>, engine: &Engine) -> Turn {
        let Self { operation, peer, number, .. } = *self;
        let room = engine.routes.route(peer).capabilities.max_message - HEADER_BYTES;
        let mut header = engine.header(Kind::Piece);
        header.value = number;
        for _ in 0..AT_ONCE {
            let bytes = self.vec.as_bytes();
            let piece = &bytes[self.at..bytes.len().min(self.at + room)];
            if piece.is_empty() {
                (self.then)(engine, Ok(self.vec));
                return Turn::Over;
            }
            header.offset = self.at as u64;
            match engine.try_send(operation, peer, &header, piece) {
                None => return Turn::Stuck(self),
                Some(Ok(())) => self.at += piece.len(),
                Some(Err(error)) => {
                    (self.then)(engine, Err(error));
                    return Turn::Over;
                }
            }
        }
        Turn::Moved(self)
    }
}
