//! Answers to a peer's gets, which are sent as the peer takes them: in pieces, so that other records go between them, and the
//! peer never makes this rank keep a copy of much.

use std::collections::VecDeque;
use std::sync::Arc;

use transom_transport::Span;

use crate::link::Link;
use crate::output::Hold;
use crate::posting::COPIED;
use crate::wire::{Kind, MAX_GETS, PIECE};

/// Replies are copied to the buffer as long as it has less than this.
const ROOM: usize = 64 << 10;

/// A get of the peer's that is not answered in full.
#[derive(Debug)]
pub(crate) enum Reply {
    /// With these bytes of a region.
    Bytes { region: Arc<Span>, at: usize, left: usize },
    /// With a refusal.
    Refused,
}

/// Such gets, in their order.
#[derive(Debug, Default)]
pub(crate) struct Replies(VecDeque<Reply>);

impl Replies {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The region goes: what was not sent of it is refused.
    pub fn release(&mut self, gone: &Arc<Span>) {
        for reply in &mut self.0 {
            if matches!(reply, Reply::Bytes { region, .. } if Arc::ptr_eq(region, gone)) {
                *reply = Reply::Refused;
            }
        }
    }
}

impl Link {
    /// Answers a get; an error if the peer has too many under way.
    #[inline]
    pub fn answer(&mut self, found: Option<(&Arc<Span>, usize)>, len: usize) -> Result<(), String> {
        if self.replies.is_empty()
            && self.output.buffered() < ROOM
            && len <= COPIED
            && let Some((region, at)) = found
        {
            self.push_reply(region, at, len);
            return Ok(());
        }
        if self.replies.0.len() >= MAX_GETS {
            return Err("it has too many gets under way".into());
        }
        self.replies.0.push_back(match found {
            Some((region, at)) => Reply::Bytes { region: region.clone(), at, left: len },
            None => Reply::Refused,
        });
        Ok(())
    }

    /// One piece of a reply.
    fn push_reply(&mut self, region: &Arc<Span>, at: usize, len: usize) {
        self.begin(Kind::Reply, len);
        if len > COPIED {
            self.output.push_long(region.address() + at, len, Hold::Region(region.clone()));
        } else {
            // The range was checked when the get came.
            let _ = self.output.push_with(len, |bytes| region.copy_out(at, bytes));
        }
    }

    /// Moves replies to the output, as far as it has room.
    pub fn push_replies(&mut self) {
        while self.output.buffered() < ROOM && self.output.of_regions() < PIECE {
            match self.replies.0.front_mut() {
                None => return,
                Some(Reply::Refused) => {
                    self.replies.0.pop_front();
                    self.begin(Kind::GetRefused, 0);
                }
                Some(Reply::Bytes { region, at, left }) => {
                    let (piece, from, source) = (PIECE.min(*left), *at, region.clone());
                    *at += piece;
                    *left -= piece;
                    if *left == 0 {
                        self.replies.0.pop_front();
                    }
                    self.push_reply(&source, from, piece);
                }
            }
        }
    }
}
