//! Blocking transfers: straight to and from the caller's memory, without a future between.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use transom_transport::Payload;

use super::exchange::{Exchange, Taken};
use crate::Result;
use crate::protocol::wire::Header;

/// What a peer has sent, if it was not there when it was asked for first.
pub(super) enum Arrived {
    /// So many bytes, which are in their place.
    InPlace(usize),
    Elsewhere(Taken),
}

impl Exchange<'_> {
    /// Sends `bytes` to a peer, which receives them in the same round; waits until they are under way.
    pub fn send_now(&self, peer: usize, round: usize, bytes: &[u8]) -> Result<()> {
        self.in_vain().map_or(Ok(()), Err)?;
        let to = self.channel().job_rank(peer);
        let engine = &*self.channel().engine;
        if bytes.len() <= self.room(to) {
            let (header, payload) = self.part((round, bytes.len()), 0, bytes);
            if let Some(sent) = engine.try_send(self.operation(), to, &header, payload) {
                return sent;
            }
        }
        self.block(self.send(peer, round, bytes))
    }

    /// Waits for what a peer sends in this round, or in the `other`. What fits is copied to `place` when it comes, part by part.
    pub(super) fn receive_now(
        &self,
        (peer, round): (usize, usize),
        other: Option<usize>,
        place: &mut [u8],
    ) -> Result<Arrived> {
        if let Some(revoked) = self.revoked() {
            return Err(revoked);
        }
        self.awaits(peer, round);
        let (place, parts) = (Cell::new(place), Cell::new(Parts::default()));
        let takes = |header: &Header, kind, payload: Payload<'_>| {
            if parts.get().is_all() || !self.is_of(peer, round, header, kind) {
                return false;
            }
            let bytes = place.take();
            let more = parts.get().and(header, payload, bytes);
            place.set(bytes);
            if let Some(more) = more {
                parts.set(more);
            }
            more.is_some()
        };
        let engine = &*self.channel().engine;
        let result = engine.wait_taking(self.operation(), &|| self.awaits_for(), takes, || {
            let Parts { taken, total } = parts.get();
            let matched = match total {
                Some(total) if taken == total => return Some(Ok(Arrived::InPlace(total))),
                _ if !self.may_be_matched() => None,
                None => self.take_either(peer, round, other).map(|matched| matched.map(Arrived::Elsewhere)),
                Some(total) => {
                    // Another thread has found a part, and all behind it.
                    let behind = self.take_behind(peer, round, (taken, total)).transpose();
                    behind.map(|behind| {
                        let bytes = place.take();
                        bytes[taken..total].copy_from_slice(&behind?[taken..]);
                        place.set(bytes);
                        Ok(Arrived::InPlace(total))
                    })
                }
            };
            matched.or_else(|| self.in_vain().map(Err))
        });
        self.awaited.store(self.channel().rank, Ordering::Relaxed);
        result
    }
}

/// What is in its place of a message of parts, which come in order.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Parts {
    taken: usize,
    /// Of the whole message, as its first part says; none before.
    total: Option<usize>,
}

impl Parts {
    fn is_all(self) -> bool {
        self.total == Some(self.taken)
    }

    /// With the next part, which is copied to `place`. None if this is not it, or the message has no room.
    fn and(self, header: &Header, payload: Payload<'_>, place: &mut [u8]) -> Option<Self> {
        header.with_part(payload, |total, start, part| {
            let (total, start) = (usize::try_from(total).ok()?, usize::try_from(start).ok()?);
            let end = start.checked_add(part.len()).filter(|end| *end <= total)?;
            if start != self.taken || total > place.len() || self.total.is_some_and(|known| known != total) {
                return None;
            }
            part.copy_to(&mut place[start..end]);
            Some(Self { taken: end, total: Some(total) })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    fn header(total: usize, start: usize) -> Header {
        Header { value: total as u64, compare: start as u64, ..Header::default() }
    }

    #[test]
    fn parts_come_in_order_and_nothing_else_is_taken() {
        let mut place = [0; 8];
        let mut next =
            |parts: Parts, header: &Header, bytes: &[u8]| parts.and(header, bytes.into(), &mut place);
        let none = Parts::default();
        assert_eq!(next(none, &header(9, 0), b"abc"), None, "no room");
        assert_eq!(next(none, &header(6, 3), b"def"), None, "not the first");
        assert_eq!(next(none, &header(2, 0), b"abc"), None, "more than all");
        assert_eq!(next(none, &header(6, usize::MAX), b"abc"), None);
        let first = next(none, &header(6, 0), b"abc").unwrap();
        assert!(!first.is_all() && !none.is_all());
        assert_eq!(next(first, &header(7, 3), b"defg"), None, "of another message");
        assert_eq!(next(first, &header(6, 0), b"abc"), None, "again");
        assert!(next(first, &header(6, 3), b"def").unwrap().is_all());
        assert!(next(none, &header(0, 0), b"").unwrap().is_all());
        assert_eq!(&place, b"abcdef\0\0");
    }

    /// The progress thread finds parts, too, when it wants: all come to where they belong.
    #[test]
    fn whoever_finds_a_part() {
        let ended = crate::local(2, |job| {
            let (rank, size) = (job.rank(), 100_000);
            for round in 0..200 {
                let own: Vec<u8> = (0..size).map(|i| (i * 7 + rank + round) as u8).collect();
                let mut all = vec![0; 2 * size];
                all[rank * size..][..size].copy_from_slice(&own);
                let done = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let (engine, done) = (&job.member().engine, &done);
                    scope.spawn(move || {
                        while !done.load(Ordering::Relaxed) {
                            engine.poll().unwrap();
                        }
                    });
                    let mut parts: Vec<&mut [u8]> = all.chunks_mut(size).collect();
                    let gathered = super::super::raw::allgather_into(&job, None, &mut parts);
                    done.store(true, Ordering::Relaxed);
                    gathered
                })?;
                assert!((0..2 * size).all(|i| all[i] == (i % size * 7 + i / size + round) as u8), "{round}");
            }
            job.barrier()
        });
        ended.unwrap();
    }

    /// What comes while a message waits for room belongs to who sent it.
    #[test]
    fn messages_that_come_while_others_wait_for_room() {
        let ended = crate::local(3, |job| {
            let (channel, large) = (job.channel(), vec![7; 8 << 20]);
            let others = || (0..3).filter(|peer| *peer != job.rank());
            for collective in 0..20 {
                let exchange = Exchange::new(channel, super::super::Kind::Alltoall);
                // The short messages come while rank 0 waits to send long ones.
                std::thread::sleep(Duration::from_millis(2 * u64::from(job.rank() != 0)));
                for peer in others() {
                    exchange.send_now(peer, 0, &[job.rank() as u8, collective])?;
                }
                for peer in others() {
                    exchange.send_now(peer, 1, &large)?;
                }
                for peer in others() {
                    let small = exchange.block(exchange.receive(peer, 0))?;
                    assert_eq!(small, [peer as u8, collective]);
                    assert_eq!(exchange.block(exchange.receive(peer, 1))?, large);
                }
            }
            Ok(())
        });
        ended.unwrap();
    }
}
