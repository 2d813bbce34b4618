//! Two-sided messages: all lengths, all orders, many at once.

use std::time::{Duration, Instant};

use transom::{ANY_SOURCE, ANY_TAG, Communicator, Job, Request, Result, Status, wait_all};

use super::{Random, neighbours};

/// Around the longest that travels whole, and around pieces.
const LENGTHS: [usize; 15] = [
    0,
    1,
    8,
    1000,
    8127,
    8128,
    16_320,
    16_321,
    40_000,
    65_536,
    65_537,
    100_003,
    1 << 20,
    (1 << 20) + 1,
    8 << 20,
];

fn pattern(from: usize, len: usize) -> Vec<u8> {
    // Repeats at no length that pieces have.
    let period: Vec<u8> = (0..len.min(65_521)).map(|i| (i * 7 + i / 251 + from * 13) as u8).collect();
    let mut bytes = period.repeat(len / 65_521 + 1);
    bytes.truncate(len);
    bytes
}

/// Every length in both directions around a ring, by every kind of send and receive.
pub fn lengths_in_both_directions(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    for (tag, len) in (0..).zip(LENGTHS) {
        let data = pattern(job.rank(), len);
        for (to, from) in [(right, left), (left, right)] {
            let expected = pattern(from, len);
            let status = Status { source: from, tag, bytes: len };
            assert_eq!(job.sendrecv::<u8, u8>(to, tag, &data, from, tag)?, (expected.clone(), status));
            let sent = job.isend(to, tag, data.clone());
            assert_eq!(job.recv::<u8>(from, ANY_TAG)?, (expected.clone(), status));
            assert_eq!(sent.wait()?, data);
            let (first, second) = (job.irecv::<u8>(from, tag, len), job.irecv::<u8>(from, tag, len));
            job.send(to, tag, &data)?;
            let sent = job.issend(to, tag, data.clone());
            assert_eq!(first.wait()?.0, expected);
            assert_eq!(second.wait()?.0, expected);
            assert_eq!(sent.wait()?, data);
            let sent = job.issend(to, tag, data.clone());
            let mut room = vec![9; len + 3];
            assert_eq!(job.recv_into(ANY_SOURCE, tag, &mut room)?.bytes, len);
            assert!(room[..len] == expected && room[len..] == [9; 3]);
            sent.wait()?;
            job.barrier()?;
        }
    }
    Ok(())
}

/// Long messages one way, to a receiver that blocks or does not, of a sender that waits or computes: either end may copy them, or both.
pub fn one_way(job: &Job) -> Result<()> {
    let other = job.rank() ^ 1;
    if other >= job.size() {
        return job.barrier();
    }
    for (tag, len) in (0..).zip([131_071, 131_072, 300_001, (1 << 20) + 1, (8 << 20) + 5]) {
        for kind in 0..12 {
            let pair = job.rank() / 2 * 2;
            if job.rank() == pair {
                let data = pattern(pair + kind, len);
                match kind % 4 {
                    0 => job.send(other, tag, &data)?,
                    1 => job.ssend(other, tag, &data)?,
                    2 => assert_eq!(job.isend(other, tag, data.clone()).wait()?, data),
                    _ => {
                        let sent = job.isend(other, tag, data.clone());
                        let start = Instant::now();
                        while start.elapsed() < Duration::from_micros(300) {}
                        assert_eq!(sent.wait()?, data);
                    }
                }
                continue;
            }
            let received = match kind / 4 {
                0 => job.recv::<u8>(pair, tag)?.0,
                1 => job.irecv::<u8>(pair, tag, len).wait()?.0,
                _ => {
                    let mut room = vec![9; len + 3];
                    assert_eq!(job.recv_into(pair, tag, &mut room)?.bytes, len);
                    assert_eq!(room[len..], [9; 3]);
                    room.truncate(len);
                    room
                }
            };
            assert!(received == pattern(pair + kind, len), "{len} bytes, kind {kind}");
        }
    }
    job.barrier()
}

/// Everybody sends to everybody in one order and receives in another; of each pair the order stays.
pub fn order_is_kept(job: &Job) -> Result<()> {
    const COUNT: u32 = 60;
    let long = |i: u32| if i.is_multiple_of(7) { 5000 } else { 3 };
    let mut sent = Vec::new();
    for i in 0..COUNT {
        for to in 0..job.size() {
            sent.push(job.isend(to, (i % 3) as i32, vec![i; long(i)]));
        }
    }
    // Tag 1 last first, by rank; the others as they come.
    for from in (0..job.size()).rev() {
        for i in (1..COUNT).step_by(3) {
            assert_eq!(job.recv::<u32>(from, 1)?.0, vec![i; long(i)]);
        }
    }
    let mut next = vec![[0, 0, 2]; job.size()];
    for _ in 0..job.size() as u32 * (COUNT - COUNT / 3) {
        let (data, status) = job.recv::<u32>(ANY_SOURCE, ANY_TAG)?;
        let expected = &mut next[status.source][status.tag as usize];
        assert_eq!(data, vec![*expected; long(*expected)]);
        *expected += 3;
    }
    assert!(job.iprobe(ANY_SOURCE, ANY_TAG)?.is_none());
    wait_all(sent).map(drop)
}

pub fn thousands_outstanding(job: &Job) -> Result<()> {
    const COUNT: usize = 4000;
    let (left, right) = neighbours(job);
    let mut order: Vec<usize> = (0..COUNT).collect();
    let mut random = Random(5);
    for i in (1..COUNT).rev() {
        order.swap(i, random.below(i + 1));
    }
    // Half of the receives before the sends, half after them.
    let receive = |i: &usize| job.irecv::<u32>(left, *i as i32, 100);
    let early: Vec<_> = order[..COUNT / 2].iter().map(receive).collect();
    let data = |i: usize| vec![i as u32; i % 100];
    let sent: Vec<Request<Vec<u32>>> = (0..COUNT).map(|i| job.isend(right, i as i32, data(i))).collect();
    let late: Vec<_> = order[COUNT / 2..].iter().map(receive).collect();
    for (received, i) in early.into_iter().chain(late).zip(order) {
        assert_eq!(received.wait()?.0, data(i));
    }
    wait_all(sent)?;
    let long = || vec![1u64; 3000];
    let sent: Vec<_> = (0..200).map(|_| job.isend(right, 0, long())).collect();
    let received = wait_all((0..200).map(|_| job.irecv::<u64>(left, 0, 3000)))?;
    assert!(received.iter().all(|(data, _)| *data == long()));
    wait_all(sent).map(drop)
}

/// Messages of several communicators, with other ranks and the same tags, and collectives between them.
pub fn communicators_apart(job: &Job) -> Result<()> {
    let reversed = job.split(Some(0), -(job.rank() as i64))?.unwrap();
    let comms: [&Communicator; 3] = [job, &reversed, &job.dup()?];
    let mut sent = Vec::new();
    for (i, comm) in comms.iter().enumerate() {
        let right = (comm.rank() + 1) % comm.size();
        sent.push(comm.isend(right, 3, vec![i, comm.rank()]));
    }
    job.barrier()?;
    for (i, comm) in comms.iter().enumerate().rev() {
        let left = (comm.rank() + comm.size() - 1) % comm.size();
        let (data, status) = comm.recv::<usize>(ANY_SOURCE, ANY_TAG)?;
        assert_eq!((data, status.source), (vec![i, left], left));
        reversed.barrier()?;
    }
    wait_all(sent).map(drop)
}

/// A receive that another thread of the same rank serves.
pub fn messages_to_oneself(job: &Job) -> Result<()> {
    let own = job.rank();
    for len in [0, 5, 3 << 20] {
        let data = pattern(1, len);
        job.send(own, 1, &data)?;
        let sent = job.issend(own, 2, data.clone());
        assert_eq!(job.recv::<u8>(own, 2)?.0, data);
        assert_eq!((job.recv::<u8>(own, 1)?.0, sent.wait()?), (data.clone(), data.clone()));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| job.recv::<u8>(own, 3));
            std::thread::sleep(Duration::from_millis(2));
            job.ssend(own, 3, &data)?;
            assert_eq!(other.join().unwrap()?.0, data);
            Ok(())
        })?;
        assert_eq!(job.sendrecv::<u8, u8>(own, 0, &data, own, 0)?.0, data);
    }
    Ok(())
}

/// Long messages go on while both sides compute.
pub fn receivers_that_compute(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    let received = job.irecv::<u8>(left, 1, 1 << 20);
    let sent = job.isend(right, 1, pattern(job.rank(), 1 << 20));
    let start = Instant::now();
    while !(received.is_done() && sent.is_done()) {
        assert!(start.elapsed() < Duration::from_secs(40), "nothing goes on by itself");
        std::hint::black_box((0..1000u64).sum::<u64>());
        // Other ranks may share this core.
        std::thread::yield_now();
    }
    assert_eq!(received.wait()?.0, pattern(left, 1 << 20));
    sent.wait().map(drop)
}

/// What travels which way is decided by what senders have done: some wait, some compute, some look again and again, as chance has it.
pub fn senders_of_changing_habits(job: &Job) -> Result<()> {
    const LENGTHS: [usize; 5] = [66_000, 100_003, 131_072, 300_001, 1 << 20];
    const TAG: i32 = 3;
    let (left, right) = neighbours(job);
    let mut own = Random(17 * job.rank() as u64 + 5);
    for round in 0..60 {
        let len = LENGTHS[round % LENGTHS.len()];
        let received = job.irecv::<u8>(left, TAG, len);
        let sent = job.isend(right, TAG, pattern(job.rank() + round, len));
        // Long enough in either state for habits to come and go.
        match if round % 20 < 8 { 0 } else { own.below(4) } {
            1 => {
                let start = Instant::now();
                while start.elapsed() < Duration::from_micros(300) {
                    std::hint::spin_loop();
                }
            }
            2 => {
                while !sent.is_done() {
                    job.iprobe(ANY_SOURCE, TAG + 1)?;
                }
            }
            _ => {}
        }
        assert!(received.wait()?.0 == pattern(left + round, len), "round {round}");
        sent.wait().map(drop)?;
    }
    Ok(())
}
