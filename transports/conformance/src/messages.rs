//! Messages arrive whole, once and in order.

use std::sync::Arc;
use std::time::Instant;

use transom_transport::Posted;

use crate::{Random, Rank, Ranks, Subject, TIMEOUT};

/// Bytes of the runtime's header, which every message of its begins with.
const HEADER: usize = 64;
const FLOOD: u64 = 20_000;

fn header(from: u64, number: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&from.to_ne_bytes());
    header[8..16].copy_from_slice(&number.to_ne_bytes());
    header
}

/// Sender and number.
fn read_header(message: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_ne_bytes(message[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

fn payload(from: u64, number: u64, len: usize) -> Vec<u8> {
    Random::new(from << 32 | number).bytes(len)
}

/// All sizes at the lower end, around powers of two, and at the upper end.
fn sizes(max: usize) -> Vec<usize> {
    let powers = (0..).map(|bit| 1 << bit).take_while(|size| *size <= max);
    let mut sizes: Vec<usize> = powers.flat_map(|size: usize| size.saturating_sub(2)..size + 3).collect();
    sizes.extend((0..200).chain((0..max).step_by(331)).chain(max.saturating_sub(3)..=max));
    sizes.retain(|size| *size <= max);
    sizes
}

/// Two ranks send messages of all sizes to a third.
pub fn every_size_arrives_in_order(_: &Subject, ranks: &Ranks) {
    let sizes = sizes(ranks[0].transport.capabilities().max_message - HEADER);
    let mut seen = [0; 2];
    let check = |seen: &mut [u64; 2]| {
        while let Some(message) = ranks[2].messages.lock().pop_front() {
            let (from, number) = read_header(&message);
            let expected = &mut seen[from as usize];
            assert_eq!(number, *expected, "out of order from {from}");
            assert!(message[HEADER..] == payload(from, number, sizes[number as usize]), "garbled: {number}");
            *expected += 1;
        }
    };
    for (number, size) in sizes.iter().enumerate() {
        for from in 0..2 {
            let (from, number) = (from as u64, number as u64);
            ranks.send(from as usize, 2, &header(from, number), &payload(from, number, *size));
        }
        check(&mut seen);
    }
    ranks.until("all messages", || {
        check(&mut seen);
        seen == [sizes.len() as u64; 2]
    });
}

/// A sender does not wait for a target that does not look; what the transport took arrives later.
pub fn a_flood_loses_nothing(_: &Subject, ranks: &Ranks) {
    ranks.send(0, 1, &header(0, 0), &[]);
    assert_eq!(read_header(&ranks.receive(1)), (0, 0));
    let mut sent = 1;
    let mut refused = 0;
    while sent < FLOOD && refused < 1000 {
        if ranks[0].try_send(1, &header(0, sent), &[7; 100]) {
            sent += 1;
        } else {
            refused += 1;
            ranks[0].poll();
        }
    }
    for expected in 1..FLOOD {
        while sent < FLOOD && ranks[0].try_send(1, &header(0, sent), &[7; 100]) {
            sent += 1;
        }
        let message = ranks.receive(1);
        assert_eq!(read_header(&message), (0, expected));
        assert_eq!(message[HEADER..], [7; 100]);
    }
}

/// The sink answers from inside progress, many times over.
pub fn the_sink_may_send(_: &Subject, ranks: &Ranks) {
    const ROUNDS: u64 = 2000;
    let mut count = 0;
    // Connections may be made by the first message of each direction.
    ranks.send(1, 0, &header(0, ROUNDS), &[1; 900]);
    ranks.receive(0);
    ranks.send(0, 1, &header(0, 0), &[1; 900]);
    let start = Instant::now();
    while count <= ROUNDS {
        for (rank, peer) in [(0, 1), (1, 0)] {
            let this: &Rank = &ranks[rank];
            this.poll_into(&mut |message| {
                let (_, number) = read_header(message);
                assert_eq!(message[HEADER..], [1; 900]);
                if number < ROUNDS {
                    let posted = this.transport.message(peer, &header(0, number + 1), &[1; 900]).unwrap();
                    assert_eq!(posted, Posted::Complete, "no room for a single message");
                }
                count += 1;
            })
            .unwrap();
        }
        assert!(start.elapsed() < TIMEOUT, "an answer is missing after {count}");
    }
}

/// Two threads of one rank send to one target: each thread's messages keep their order.
pub fn two_threads_send(_: &Subject, ranks: &Ranks) {
    const EACH: u64 = 3000;
    let mut seen = [0; 2];
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let sender: Arc<Rank> = ranks[0].clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    let payload = payload(thread, number, (number % 3000) as usize);
                    while !sender.try_send(1, &header(thread, number), &payload) {
                        sender.poll();
                        std::thread::yield_now();
                    }
                }
            });
        }
        ranks.until("all messages", || {
            while let Some(message) = ranks[1].messages.lock().pop_front() {
                let (thread, number) = read_header(&message);
                assert_eq!(number, seen[thread as usize]);
                assert!(message[HEADER..] == payload(thread, number, (number % 3000) as usize));
                seen[thread as usize] += 1;
            }
            seen == [EACH; 2]
        });
    });
}

/// Several that are handed over with one call, of all lengths or long ones alone, with single ones between, arrive in order; what is
/// not taken can be handed over later.
pub fn several_at_once(_: &Subject, ranks: &Ranks) {
    const BATCHES: u64 = 60;
    let max = ranks[0].transport.capabilities().max_message - HEADER;
    let len = |batch: u64, number: u64| match (batch % 4, number % 3) {
        (0, _) | (_, 0) => max - number as usize,
        (1, _) => 0,
        _ => max / 2 + number as usize,
    };
    let mut expected = 0;
    let check = |expected: &mut u64, batch: u64, (first, count): (u64, u64)| {
        ranks.until("a batch", || {
            while let Some(message) = ranks[1].messages.lock().pop_front() {
                assert_eq!(read_header(&message), (batch, *expected));
                let payload = &message[HEADER..];
                assert_eq!(payload.len(), len(batch, *expected));
                assert!(payload.iter().all(|byte| *byte == *expected as u8), "garbled: {expected}");
                *expected += 1;
            }
            *expected == first + count
        });
    };
    for batch in 0..BATCHES {
        let (first, count) = (expected, 1 + batch * 7 % 30);
        let own: Vec<_> = (first..first + count)
            .map(|number| (header(batch, number), vec![number as u8; len(batch, number)]))
            .collect();
        let mut left: Vec<(&[u8], &[u8])> =
            own.iter().map(|(header, data)| (&header[..], &data[..])).collect();
        if batch % 5 == 0 {
            let (header, payload) = left.remove(0);
            ranks.send(0, 1, header, payload);
        }
        ranks.until("room for all", || {
            let taken = ranks[0].transport.messages(1, &left).unwrap();
            left.drain(..taken);
            left.is_empty()
        });
        check(&mut expected, batch, (first, count));
    }
}

/// A rank is a peer of its own.
pub fn to_itself(_: &Subject, ranks: &Ranks) {
    let max = ranks[1].transport.capabilities().max_message - HEADER;
    for (number, size) in [0, 1, 100, 5000, max].into_iter().enumerate() {
        let payload = payload(1, number as u64, size.min(max));
        ranks.send(1, 1, &header(1, number as u64), &payload);
        let message = ranks.receive(1);
        assert_eq!(read_header(&message), (1, number as u64));
        assert!(message[HEADER..] == payload);
    }
}

/// A message that is too long is an error, and does no harm.
pub fn too_long_is_refused(_: &Subject, ranks: &Ranks) {
    let max = ranks[0].transport.capabilities().max_message;
    assert!(ranks[0].transport.message(1, &[0; HEADER], &vec![0; max - HEADER + 1]).is_err());
    assert!(ranks[0].transport.message(1, &vec![0; max + 1], &[]).is_err());
    ranks.send(0, 1, &header(0, 5), &vec![3; max - HEADER]);
    assert_eq!(read_header(&ranks.receive(1)), (0, 5));
}
