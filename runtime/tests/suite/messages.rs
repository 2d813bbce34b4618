//! Two-sided messages: all lengths, all orders, all ways to complete.

use std::time::{Duration, Instant};

use transom::{
    ANY_SOURCE, ANY_TAG, Class, Communicator, Job, NULL_RANK, Request, Result, Source, Status, Tag, raw,
    wait_all,
};

use super::requests::block_on;
use super::{Random, neighbours};

/// Around the longest that travels whole, and around pieces.
const LENGTHS: [usize; 12] =
    [0, 1, 8, 1000, 8127, 8128, 16_320, 16_321, 100_003, 1 << 20, (1 << 20) + 1, 8 << 20];

fn pattern(from: usize, len: usize) -> Vec<u8> {
    // Repeats at no length that pieces have.
    let period: Vec<u8> = (0..len.min(65_521)).map(|i| (i * 7 + i / 251 + from * 13) as u8).collect();
    let mut bytes = period.repeat(len / 65_521 + 1);
    bytes.truncate(len);
    bytes
}

fn class<T>(result: Result<T>) -> Class {
    result.map(drop).unwrap_err().class()
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

pub fn probes(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    for len in [0, 5, 50_000] {
        job.barrier()?;
        assert!(job.improbe(left, 1)?.is_none());
        job.barrier()?;
        let sent: Vec<_> = (1..4).map(|tag| job.isend(right, tag, vec![tag as u64; len])).collect();
        let status = job.probe(ANY_SOURCE, 2)?;
        assert_eq!((status.source, status.tag, status.count::<u64>()), (left, 2, Some(len)));
        assert_eq!(job.iprobe(left, ANY_TAG)?.map(|status| status.tag), Some(1));
        // Taken, so that nobody else receives it.
        let first = job.mprobe(left, ANY_TAG)?;
        assert_eq!((first.status().tag, job.iprobe(left, 1)?), (1, None));
        assert_eq!(job.recv::<u64>(left, 2)?.0, vec![2; len]);
        let third = loop {
            if let Some(message) = job.improbe(ANY_SOURCE, 3)? {
                break message;
            }
        };
        assert_eq!(third.irecv::<u64>(len).wait()?.0, vec![3; len]);
        let mut room = vec![0u64; len];
        assert_eq!(first.recv_into(&mut room)?.tag, 1);
        assert_eq!(room, vec![1; len]);
        wait_all(sent)?;
        // One that is dropped is lost, and its sender goes on.
        let lost = job.issend(right, 9, vec![0u8; len * 8]);
        drop(job.mprobe(left, 9)?);
        lost.wait()?;
    }
    Ok(())
}

pub fn synchronous_sends(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    for len in [0, 10, 100_000] {
        let mut sent = job.issend(right, 4, vec![1u8; len]);
        job.barrier()?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            assert!(sent.test().is_none(), "complete before it was received");
        }
        job.barrier()?;
        job.recv::<u8>(left, 4)?;
        sent.wait()?;
        let received = job.irecv::<u8>(left, 4, len);
        job.ssend(right, 4, &vec![2u8; len])?;
        assert_eq!(received.wait()?.0, vec![2; len]);
    }
    Ok(())
}

pub fn cancelled_and_truncated(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    let cancelled = job.irecv::<u8>(left, 1, 10);
    drop(job.irecv::<u8>(ANY_SOURCE, ANY_TAG, 10));
    assert!(cancelled.cancel() && !cancelled.cancel());
    assert_eq!(class(cancelled.wait()), Class::Cancelled);
    for len in [11usize, 90_001] {
        job.barrier()?;
        let sent = (0..4).map(|_| job.issend(right, 1, vec![5u8; len])).collect::<Vec<_>>();
        assert_eq!(class(job.recv_into(left, 1, &mut [0u8; 10])), Class::Truncate);
        assert_eq!(class(job.irecv::<u8>(left, 1, 10).wait()), Class::Truncate);
        assert_eq!(class(job.irecv::<u32>(left, 1, usize::MAX).wait()), Class::Type);
        let received = job.irecv::<u8>(left, 1, len);
        assert_eq!(wait_all(sent)?.len(), 4);
        assert!(!received.cancel(), "too late");
        assert_eq!(received.wait()?.0, vec![5; len]);
    }
    Ok(())
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

pub fn awaited_messages(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    block_on(async {
        for len in [0, 3, 40_000] {
            let received = job.irecv::<u16>(left, 2, len);
            let sent = job.isend(right, 2, vec![job.rank() as u16; len]);
            assert_eq!(received.await?.0, vec![left as u16; len]);
            assert_eq!(sent.await?.len(), len);
            let sent = job.issend(right, 2, vec![1u16; len]);
            job.irecv::<u16>(ANY_SOURCE, ANY_TAG, len).await?;
            sent.await?;
        }
        Ok(())
    })
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

pub fn wrong_and_null_arguments(job: &Job) -> Result<()> {
    let (null, size) = (Status { source: NULL_RANK, tag: -1, bytes: 0 }, job.size());
    job.send(NULL_RANK, 1, &[1u8])?;
    job.ssend(NULL_RANK, 1, &[1u8])?;
    assert_eq!(job.isend(NULL_RANK, 1, vec![1u8]).wait()?, [1]);
    assert_eq!(job.recv::<u8>(NULL_RANK, ANY_TAG)?, (vec![], null));
    assert_eq!(job.recv_into(NULL_RANK, 3, &mut [0u8])?, null);
    assert_eq!(job.irecv::<u8>(NULL_RANK, 3, 5).wait()?.1, null);
    assert_eq!((job.probe(NULL_RANK, 0)?, job.iprobe(NULL_RANK, 0)?), (null, Some(null)));
    assert_eq!(job.mprobe(NULL_RANK, 0)?.recv::<u8>()?.1, null);
    assert_eq!(job.sendrecv::<u8, u8>(NULL_RANK, 0, &[1], NULL_RANK, 0)?.1, null);
    assert_eq!(class(job.send(size, 1, &[1u8])), Class::Rank);
    assert_eq!(class(job.isend(size, 1, vec![1u8]).wait()), Class::Rank);
    assert_eq!(class(job.recv::<u8>(size, 1)), Class::Rank);
    assert_eq!(class(job.irecv::<u8>(size + 1, 1, 1).wait()), Class::Rank);
    assert_eq!(class(job.sendrecv::<u8, u8>(0, 1, &[1], size, 0)), Class::Rank);
    assert_eq!(class(job.ssend(0, -1, &[1u8])), Class::Tag);
    assert_eq!(class(job.recv::<u8>(0, -1)), Class::Tag);
    assert_eq!(class(job.probe(ANY_SOURCE, i32::MIN)), Class::Tag);
    raw::isend(job, job.rank(), i32::MAX, vec![1, 2, 3], false).wait()?;
    assert_eq!(raw::irecv(job, Source::Rank(job.rank()), Tag::Is(i32::MAX), 3).wait()?.0, [1, 2, 3]);
    Ok(())
}
