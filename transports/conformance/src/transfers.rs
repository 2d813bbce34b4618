//! Puts and gets, and what their completions mean.

use transom_transport::{Remote, Span};

use crate::{Random, Ranks, Sleeper, Subject, TIMEOUT};

const SIZES: [usize; 7] = [0, 1, 7, 8, 9, 4096, (1 << 20) + 3];
const OFFSETS: [usize; 4] = [0, 1, 8, 4095];

/// Whether puts and gets exist; otherwise a test of them has nothing to do.
fn accessible(ranks: &Ranks, remote: &Remote) -> bool {
    remote.direct.is_some() || ranks[0].transport.capabilities().rma
}

fn bytes(memory: &Span, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    memory.copy_out(offset, &mut bytes).unwrap();
    bytes
}

fn round_trips(ranks: &Ranks, memory: &Span, remote: &Remote, from: usize) {
    let mut random = Random::new(from as u64);
    for (size, offset) in SIZES.into_iter().flat_map(|size| OFFSETS.map(|offset| (size, offset))) {
        let before = bytes(memory, 0, offset);
        let after = bytes(memory, offset + size, 16);
        // From and to any address.
        let data = random.bytes(size + 1);
        ranks.put(from, remote, offset, &data[1..]).unwrap();
        assert!(bytes(memory, offset, size) == data[1..], "{size} bytes to {offset}");
        assert!(
            bytes(memory, 0, offset) == before && bytes(memory, offset + size, 16) == after,
            "stray bytes"
        );
        let mut back = vec![0; size + 1];
        ranks.get(from, remote, offset, &mut back[1..]).unwrap();
        assert!(back[1..] == data[1..], "{size} bytes from {offset}");
        assert_eq!(back[0], 0);
    }
}

/// Round trips to memory that the transport allocated, of a peer and of itself.
pub fn round_trips_to_allocated_memory(_: &Subject, ranks: &Ranks) {
    for from in [0, 1] {
        let memory = ranks[1].allocate(2 << 20);
        assert!(bytes(&memory, 0, 2 << 20).iter().all(|byte| *byte == 0), "allocated memory is not zeroed");
        let (_region, remote) = ranks[1].expose(1, &memory, &ranks[from]);
        round_trips(ranks, &memory, &remote, from);
    }
}

/// Round trips to memory of the user's, which starts anywhere.
pub fn round_trips_to_user_memory(_: &Subject, ranks: &Ranks) {
    let mut storage = vec![0_u8; (2 << 20) + 1];
    // SAFETY: the storage outlives the span and its regions, and is not used otherwise.
    let memory = unsafe { Span::from_raw(storage.as_mut_ptr().add(1), 2 << 20) };
    for from in [0, 1] {
        let (_region, remote) = ranks[1].expose(1, &memory, &ranks[from]);
        if accessible(ranks, &remote) {
            round_trips(ranks, &memory, &remote, from);
        }
    }
}

/// Once a put has completed its bytes are in the target's memory, though the target makes no call but to progress.
pub fn complete_means_visible(_: &Subject, ranks: &Ranks) {
    let memory = ranks[1].allocate(1 << 20);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let _target = Sleeper::start(&ranks[1]);
    for (size, rounds) in [(8, 2000), (5000, 500), (1 << 20, 60)] {
        for round in 0..rounds {
            let data = vec![round as u8; size];
            ranks.put(0, &remote, 0, &data).unwrap();
            for at in [0, size / 2, size - 1] {
                assert_eq!(bytes(&memory, at, 1), [round as u8], "put {round} of {size} bytes was not there");
            }
        }
    }
}

/// Many operations at once, of many sizes; each completes once.
pub fn many_outstanding(_: &Subject, ranks: &Ranks) {
    const COUNT: usize = 5000;
    const SLOT: usize = 2048;
    let memory = ranks[1].allocate(COUNT * SLOT);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let mut random = Random::new(1);
    let data: Vec<Vec<u8>> =
        (0..COUNT).map(|_| random.below(SLOT)).map(|len| Random::new(2).bytes(len)).collect();
    let mut back: Vec<Vec<u8>> = data.iter().map(|data| vec![0; data.len()]).collect();
    // SAFETY: data and back live until all have ended, below.
    let puts: Vec<_> =
        (0..COUNT).map(|i| unsafe { ranks.start_put(0, &remote, i * SLOT, &data[i]).unwrap() }).collect();
    let mut left = puts;
    ranks.until("all puts", || {
        left.retain(|put| ranks[0].ended(*put).map(Result::unwrap).is_none());
        left.is_empty()
    });
    // SAFETY: as above.
    let mut left: Vec<_> =
        (0..COUNT).map(|i| unsafe { ranks.start_get(0, &remote, i * SLOT, &mut back[i]).unwrap() }).collect();
    ranks.until("all gets", || {
        left.retain(|get| ranks[0].ended(*get).map(Result::unwrap).is_none());
        left.is_empty()
    });
    assert!(data == back);
}

/// Two threads of a rank put and get at once.
pub fn two_threads_put(_: &Subject, ranks: &Ranks) {
    let memory = ranks[1].allocate(1 << 20);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let _target = Sleeper::start(&ranks[1]);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let remote = &remote;
            scope.spawn(move || {
                let mut random = Random::new(thread as u64);
                for _ in 0..500 {
                    let data = random.bytes(1 + thread);
                    let offset = (1 << 19) * thread + random.below((1 << 19) - 5000);
                    let data = [&data[..], &random.bytes(4000)].concat();
                    ranks.put(0, remote, offset, &data).unwrap();
                    let mut back = vec![0; data.len()];
                    ranks.get(0, remote, offset, &mut back).unwrap();
                    assert!(data == back);
                }
            });
        }
    });
}

/// One transfer of 64 MiB each way, on a target that sleeps.
pub fn sixty_four_mebibytes(_: &Subject, ranks: &Ranks) {
    const SIZE: usize = 64 << 20;
    assert!(ranks[0].transport.capabilities().max_transfer >= SIZE);
    let memory = ranks[1].allocate(SIZE);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let _target = Sleeper::start(&ranks[1]);
    let data = Random::new(64).bytes(SIZE);
    let start = std::time::Instant::now();
    ranks.put(0, &remote, 0, &data).unwrap();
    assert!(bytes(&memory, 0, SIZE) == data);
    let mut back = vec![0; SIZE];
    ranks.get(0, &remote, 0, &mut back).unwrap();
    assert!(back == data);
    assert!(start.elapsed() < TIMEOUT);
}

/// A region without bytes is exposed, attached and accessed like any other.
pub fn nothing_to_transfer(_: &Subject, ranks: &Ranks) {
    for memory in [Span::empty(), ranks[1].allocate(0)] {
        let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
        ranks.put(0, &remote, 0, &[]).unwrap();
        ranks.get(0, &remote, 0, &mut []).unwrap();
        assert!(ranks.put(0, &remote, 0, &[1]).is_err());
        assert!(ranks.get(0, &remote, 0, &mut [1]).is_err());
    }
}
