//! Records of a peer, as they come: each is checked, and carried out at once, but for messages, which are handed out later.

use std::ops::Range;

use transom_transport::{Completion, TransportError};
use zerocopy::FromBytes;

use crate::input::{Found, Incoming, Message};
use crate::link::Link;
use crate::region::Regions;
use crate::wire::{Header, Kind, LONGEST_HEAD, Place};

/// Longer data should come straight to its place: up to there one call and a copy take less time than two calls.
const LONG: usize = 64 << 10;

/// What a peer did that is against the rules: the end of its connection.
type Wrong = String;

/// Records of one peer that are being read.
pub(crate) struct Reader<'a> {
    pub peer: usize,
    pub link: &'a mut Link,
    pub regions: &'a Regions,
    pub found: &'a mut Found,
}

impl Reader<'_> {
    /// Carries out what has come in `range` of a buffer.
    pub fn parse(&mut self, buffer: &[u8], range: Range<usize>) -> Result<(), Wrong> {
        let Range { mut start, end } = range;
        while let Some(rest) = buffer.get(start..end).filter(|rest| !rest.is_empty()) {
            start += match self.link.input.incoming {
                Incoming::Head => match self.record(rest, start)? {
                    0 => {
                        // Shorter than a head.
                        self.link.input.stash.extend(rest.iter().copied().take(LONGEST_HEAD));
                        return Ok(());
                    }
                    taken => taken,
                },
                _ => self.data(rest)?,
            };
        }
        Ok(())
    }

    /// The next record, which begins at `rest`, `start` bytes behind the buffer's beginning: how many bytes of it were
    /// taken, 0 if its head is not complete.
    fn record(&mut self, rest: &[u8], start: usize) -> Result<usize, Wrong> {
        let Ok((header, after)) = Header::read_from_prefix(rest) else { return Ok(0) };
        let Some(kind) = header.kind() else { return Err("it sent a record that makes no sense".into()) };
        let mut place = None;
        let mut data = after;
        if kind.has_place() {
            let Ok((read, after)) = Place::read_from_prefix(after) else { return Ok(0) };
            place = Some(read);
            data = after;
        }
        let input = &mut self.link.input;
        if header.number.get() != input.number {
            return Err("it sent records out of order".into());
        }
        input.number = input.number.wrapping_add(1);
        self.count(kind, header.served.get())?;
        let (len, head) = (header.len.get() as usize, rest.len() - data.len());
        self.link.input.is_long = len > LONG && kind != Kind::Get;
        match (kind, place) {
            (Kind::Put, Some(place)) => Ok(head + self.put(place, len, data)),
            (Kind::Get, Some(place)) => {
                self.found.served += 1;
                let found = self.regions.find(place.key.get(), place.offset.get(), len);
                self.link.answer(found, len)?;
                self.check_room()?;
                Ok(head)
            }
            (Kind::Reply, _) => {
                let expected = self.link.gets.front().is_some_and(|get| len <= get.left);
                if !expected {
                    return Err("it sent a reply that nobody has asked for".into());
                }
                self.expect(Incoming::Reply { left: len });
                Ok(head)
            }
            (Kind::Message, _) => {
                let here = start + head;
                if data.len() >= len {
                    self.found.messages.push(Message::Here(here..here + len));
                    return Ok(head + len);
                }
                let bytes = self.found.memory(len);
                self.expect(Incoming::Message { bytes, left: len });
                Ok(head)
            }
            (Kind::GetRefused, _) => {
                let get = self.link.gets.pop_front().ok_or("it refused a get that does not exist")?;
                let error = refused(self.peer, "a get");
                self.found.completions.push(Completion {
                    context: get.context,
                    value: 0,
                    result: Err(error),
                });
                Ok(head)
            }
            _ => Ok(head),
        }
    }

    /// The peer has so many puts of this rank's in memory, or has refused the last of them.
    #[inline]
    fn count(&mut self, kind: Kind, served: u32) -> Result<(), Wrong> {
        let puts = &mut self.link.puts;
        let Some(new) = puts.newly_served(served) else {
            return Err("it has served puts that do not exist".into());
        };
        if kind == Kind::PutRefused && new == 0 {
            return Err("it has refused a put that does not exist".into());
        }
        for number in 1..=new {
            let Some(context) = puts.pop() else { break };
            let refused_it = kind == Kind::PutRefused && number == new;
            let result = if refused_it { Err(refused(self.peer, "a put")) } else { Ok(()) };
            self.found.completions.push(Completion { context, value: 0, result });
        }
        Ok(())
    }

    /// A put of which `data` has come, and perhaps other records behind it. How much of that was taken.
    #[inline]
    fn put(&mut self, place: Place, len: usize, data: &[u8]) -> usize {
        match self.regions.find(place.key.get(), place.offset.get(), len) {
            Some((region, at)) if data.len() >= len => {
                // The range was checked.
                let _ = region.copy_in(at, &data[..len]);
                self.served();
                len
            }
            Some((region, at)) => {
                let region = region.clone();
                self.expect(Incoming::Put { region, at, left: len });
                0
            }
            None => {
                self.expect(Incoming::Refused { left: len });
                0
            }
        }
    }

    fn expect(&mut self, incoming: Incoming) {
        self.link.input.incoming = incoming;
    }

    /// One more put is in memory.
    #[inline]
    fn served(&mut self) {
        self.link.served = self.link.served.wrapping_add(1);
        self.found.served += 1;
    }

    /// Data of the record that is being received is at the beginning of `rest`: how much was taken.
    fn data(&mut self, rest: &[u8]) -> Result<usize, Wrong> {
        let some = &rest[..rest.len().min(self.link.input.incoming.left())];
        match &mut self.link.input.incoming {
            Incoming::Head | Incoming::Refused { .. } => {}
            Incoming::Put { region, at, .. } => {
                // The range was checked when the put began.
                let _ = region.copy_in(*at, some);
            }
            Incoming::Reply { .. } => {
                if let Some(get) = self.link.gets.front_mut() {
                    // SAFETY: the destination is valid until the completion (`Transport::get`), which has not been reported,
                    // and the record's bytes were checked to be no more than it lacks.
                    unsafe { get.to.fill(some) };
                }
            }
            Incoming::Message { bytes, left } => {
                let at = bytes.len() - *left;
                bytes[at..at + some.len()].copy_from_slice(some);
            }
        }
        self.arrived(some.len())?;
        Ok(some.len())
    }

    /// So many more bytes of the record's data are where they belong.
    pub fn arrived(&mut self, bytes: usize) -> Result<(), Wrong> {
        match &mut self.link.input.incoming {
            Incoming::Head => {}
            Incoming::Put { at, left, .. } => {
                *at += bytes;
                *left -= bytes;
            }
            Incoming::Refused { left } | Incoming::Message { left, .. } => *left -= bytes,
            Incoming::Reply { left } => {
                *left -= bytes;
                if let Some(get) = self.link.gets.front_mut() {
                    get.left -= bytes;
                }
            }
        }
        if self.link.input.incoming.left() > 0 { Ok(()) } else { self.complete() }
    }

    /// All data of a record has come.
    fn complete(&mut self) -> Result<(), Wrong> {
        match std::mem::take(&mut self.link.input.incoming) {
            Incoming::Head => {}
            Incoming::Put { .. } => self.served(),
            Incoming::Refused { .. } => {
                self.served();
                self.link.begin(Kind::PutRefused, 0);
                self.check_room()?;
            }
            Incoming::Reply { .. } => {
                if self.link.gets.front().is_some_and(|get| get.left == 0)
                    && let Some(get) = self.link.gets.pop_front()
                {
                    self.found.completions.push(Completion {
                        context: get.context,
                        value: 0,
                        result: Ok(()),
                    });
                }
            }
            Incoming::Message { bytes, .. } => self.found.messages.push(Message::Whole(bytes)),
        }
        Ok(())
    }

    fn check_room(&self) -> Result<(), Wrong> {
        match self.link.is_overrun() {
            true => Err("it sends requests and does not read the answers".into()),
            false => Ok(()),
        }
    }
}

fn refused(peer: usize, what: &str) -> TransportError {
    let reason = format!("it refused {what}: the region is gone, or its key or the range is wrong");
    TransportError::Peer { peer, reason }
}
