//! Wrong offsets, keys and addresses, and peers that go: an error for the one concerned, and nothing for the others.

use std::time::{Duration, Instant};

use transom_transport::{Region, RegionKey, Remote, Span, TransportResult};

use crate::{Random, Rank, Ranks, Subject};

/// Accesses outside a region, as the origin knows it, are refused before anything is sent.
pub fn outside_is_refused_here(_: &Subject, ranks: &Ranks) {
    let memory = ranks[1].allocate(4096);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    for (offset, len) in [(4096, 1), (4095, 2), (0, 4097), (usize::MAX, 8), (usize::MAX - 7, 8), (5000, 0)] {
        let mut data = vec![1; len];
        assert!(ranks.put(0, &remote, offset, &data).is_err(), "put of {len} bytes at {offset}");
        assert!(ranks.get(0, &remote, offset, &mut data).is_err(), "get of {len} bytes at {offset}");
    }
    assert_zero(&memory);
}

fn assert_zero(memory: &Span) {
    let mut bytes = vec![1; memory.len()];
    memory.copy_out(0, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0), "a stray write");
}

/// Tries a put and a get that the target must refuse, then makes sure that a third rank and the target go on.
fn refused(ranks: &Ranks, forged: &Remote, offset: usize) {
    let put = ranks.put(0, forged, offset, &[0xaa; 64]);
    let mut back = [0x55; 64];
    let get = ranks.get(0, forged, offset, &mut back);
    assert!(put.is_err() && get.is_err(), "put: {put:?}, get: {get:?}");
    assert_eq!(back, [0x55; 64], "a refused get brought something");

    let memory = ranks[1].allocate(4096);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[2]);
    ranks.put(2, &remote, 8, &[3; 100]).unwrap();
    ranks.get(2, &remote, 44, &mut back).unwrap();
    assert_eq!(back, [3; 64]);
    ranks.send(2, 1, &[1; 64], &[]);
    ranks.receive(1);
}

/// Exposes a region to a peer that does wrong with it; zeros in it and on both sides of it must stay.
fn guarded(subject: &Subject, ranks: &Ranks, wrong: impl FnOnce(Box<dyn Region>, Remote)) {
    if !subject.checks_keys {
        return;
    }
    let whole = ranks[1].allocate(3 * 4096);
    let middle = whole.part(4096, 4096).unwrap();
    let (region, remote) = ranks[1].expose(1, &middle, &ranks[0]);
    wrong(region, remote);
    assert_zero(&whole);
}

/// A peer that knows the key, but not the bounds.
pub fn outside_is_refused_there(subject: &Subject, ranks: &Ranks) {
    guarded(subject, ranks, |_region, remote| {
        let forged = Remote { len: usize::MAX, ..remote };
        for offset in [4096, 4090, usize::MAX / 2] {
            refused(ranks, &forged, offset);
        }
        refused(ranks, &Remote { base: forged.base.wrapping_sub(64), ..forged }, 0);
    });
}

/// A peer that guesses.
pub fn wrong_keys_are_refused(subject: &Subject, ranks: &Ranks) {
    guarded(subject, ranks, |_region, remote| {
        for key in [0, 1, remote.key ^ 1, remote.key.rotate_left(8), u64::MAX] {
            refused(ranks, &Remote { key, ..remote.clone() }, 0);
        }
    });
}

/// A peer that comes too late.
pub fn freed_regions_are_refused(subject: &Subject, ranks: &Ranks) {
    guarded(subject, ranks, |region, remote| {
        ranks.put(0, &remote, 0, &[0; 64]).unwrap();
        drop(region);
        refused(ranks, &remote, 0);
    });
}

/// Addresses that are none.
pub fn malformed_addresses(_: &Subject, ranks: &Ranks) {
    let mut random = Random::new(7);
    let address = ranks[1].transport.address();
    for len in 0..=300 {
        let bytes = random.bytes(len);
        assert!(!ranks[0].transport.reaches(&bytes));
        assert!(ranks[0].transport.connect(2, &bytes).is_err(), "{bytes:?}");
    }
    for len in 0..address.len() {
        assert!(ranks[0].transport.connect(2, &address[..len]).is_err(), "the first {len} bytes");
    }
    assert!(ranks[0].transport.connect(2, &[&address[..], &[0]].concat()).is_err());
    // All that was there before goes on.
    ranks.send(0, 1, &[1; 64], &[]);
    ranks.receive(1);
    ranks.send(0, 2, &[1; 64], &[]);
    ranks.receive(2);
}

/// Keys that are none: an error if they can be told from keys, and never a panic.
pub fn malformed_keys(_: &Subject, ranks: &Ranks) {
    let memory = ranks[1].allocate(4096);
    let (region, _) = ranks[1].expose(1, &memory, &ranks[0]);
    let key = region.key().0;
    let mut random = Random::new(8);
    for len in (0..100).filter(|len| *len != key.len()) {
        assert!(ranks[0].transport.attach(1, &RegionKey(random.bytes(len))).is_err(), "{len} bytes");
    }
    for _ in 0..100 {
        let _ = ranks[0].transport.attach(1, &RegionKey(random.bytes(key.len())));
    }
    let _ = ranks[0].transport.attach(1, &RegionKey(vec![0xff; key.len()]));
}

/// Ranks that do not exist.
pub fn strange_ranks(_: &Subject, ranks: &Ranks) {
    let transport = &ranks[0].transport;
    assert!(transport.connect(3, &ranks[1].transport.address()).is_err());
    assert!(transport.message(3, &[1; 64], &[]).is_err());
    assert!(transport.message(usize::MAX, &[1; 64], &[]).is_err());
}

/// After `abandon` nothing is written to local buffers; the other ranks go on.
pub fn abandoned_buffers_stay_untouched(subject: &Subject, ranks: &Ranks) {
    abandon_get(subject, ranks, false);
}

/// The same where a part has come.
pub fn gets_are_abandoned_in_their_midst(subject: &Subject, ranks: &Ranks) {
    abandon_get(subject, ranks, true);
}

fn abandon_get(subject: &Subject, ranks: &Ranks, has_begun: bool) {
    const SIZE: usize = 8 << 20;
    let memory = ranks[1].allocate(SIZE);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    ranks.put(0, &remote, 0, &[0; 8]).unwrap();
    let mut data = vec![1; SIZE];
    // SAFETY: the data outlives the operation, which ends with `abandon`.
    let started = unsafe { ranks.start_get(0, &remote, 0, &mut data).unwrap() };
    ranks[1].poll();
    let first = data.as_ptr();
    // SAFETY: inside the data, which the transport may be writing to: only looked at.
    while has_begun && ranks[0].ended(started).is_none() && unsafe { first.read_volatile() } == 1 {
        ranks[0].poll();
        ranks[1].poll();
    }
    ranks[0].transport.abandon();
    data.fill(0xaa);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(200) {
        ranks[1].poll();
    }
    assert!(data.iter().all(|byte| *byte == 0xaa), "written to after it was abandoned");
    if subject.abandons {
        assert!(fails(ranks[0].transport.message(1, &[1; 64], &[])));
        assert!(fails(ranks[0].transport.register(&memory)));
        assert!(fails(ranks[0].transport.arm()));
        assert!(fails(ranks[0].poll_into(&mut |_| ())));
        // SAFETY: static data.
        assert!(fails(unsafe { ranks[0].try_put(&remote, 0, &[1; 8]) }));
    }
    others_go_on(ranks);
}

fn fails<T>(result: TransportResult<T>) -> bool {
    result.is_err()
}

/// Ranks 1 and 2, without rank 0.
fn others_go_on(ranks: &Ranks) {
    for (from, to) in [(1, 2), (2, 1)] {
        let start = Instant::now();
        while !ranks[from].try_send(to, &[1; 64], &[2; 100]) {
            ranks[from].poll();
            ranks[to].poll();
            assert!(start.elapsed() < crate::TIMEOUT, "ranks {from} and {to} cannot talk any more");
        }
        while ranks[to].messages.lock().pop_front().is_none() {
            ranks[from].poll();
            ranks[to].poll();
            assert!(start.elapsed() < crate::TIMEOUT, "ranks {from} and {to} cannot talk any more");
        }
    }
}

/// The end of an operation of `rank`, polled alone.
fn end_of(rank: &Rank, started: TransportResult<Option<u64>>) -> TransportResult<()> {
    let started = started?;
    let start = Instant::now();
    loop {
        rank.poll();
        if let Some(result) = rank.ended(started) {
            return result;
        }
        assert!(start.elapsed() < crate::TIMEOUT, "no end of an operation to a peer that is gone");
    }
}

/// A peer that ends with operations to it under way: they end in errors, and the other peers go on.
pub fn a_peer_that_vanishes(subject: &Subject, ranks: &Ranks) {
    let memory = ranks[0].allocate(1 << 20);
    let (_region, remote) = ranks[0].expose(0, &memory, &ranks[1]);
    if remote.direct.is_some() || !subject.abandons {
        return;
    }
    ranks.put(1, &remote, 0, &[0; 8]).unwrap();
    let mut data = vec![1; 1 << 20];
    // SAFETY: the data outlives the operation, which ends below.
    let started = unsafe { ranks.start_get(1, &remote, 0, &mut data) };
    ranks[0].transport.abandon();
    let mut result = end_of(&ranks[1], started);
    if result.is_ok() {
        // Where the target's device answers for it, that may have been quick enough. Now it cannot be.
        // SAFETY: as above.
        let started = unsafe { ranks[1].try_get(&remote, 0, &mut data) };
        result = end_of(&ranks[1], started.map(Option::flatten));
    }
    let error = result.unwrap_err().to_string();
    assert!(error.contains("peer 0"), "{error}");
    others_go_on(ranks);
}
