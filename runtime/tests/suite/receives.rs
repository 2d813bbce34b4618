//! Receives and sends in all ways: probed, synchronous, cancelled, truncated, awaited, wrong.

use std::time::{Duration, Instant};

use transom::{ANY_SOURCE, ANY_TAG, Class, Job, NULL_RANK, Result, Source, Status, Tag, raw, wait_all};

use super::neighbours;
use super::requests::block_on;

fn class<T>(result: Result<T>) -> Class {
    result.map(drop).unwrap_err().class()
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
        let sent = job.issend(right, 4, vec![1u8; len]);
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
    for len in [11usize, 290_001] {
        job.barrier()?;
        let sent = (0..5).map(|_| job.issend(right, 1, vec![5u8; len])).collect::<Vec<_>>();
        assert_eq!(class(job.recv_into(left, 1, &mut [0u8; 10])), Class::Truncate);
        assert_eq!(class(job.irecv::<u8>(left, 1, 10).wait()), Class::Truncate);
        assert_eq!(class(job.irecv::<u32>(left, 1, usize::MAX).wait()), Class::Type);
        // Which message it was is known all the same.
        let (data, status) = raw::irecv(job, ANY_SOURCE, ANY_TAG, 10).wait()?;
        assert_eq!((class(data), status), (Class::Truncate, Status { source: left, tag: 1, bytes: len }));
        let received = job.irecv::<u8>(left, 1, len);
        assert_eq!(wait_all(sent)?.len(), 5);
        // The left neighbour's are through, too.
        job.barrier()?;
        assert!(!received.cancel(), "too late");
        assert_eq!(received.wait()?.0, vec![5; len]);
    }
    Ok(())
}

/// Sends that no receive has met are taken back; others are not, however late it is asked.
pub fn sends_that_are_taken_back(job: &Job) -> Result<()> {
    let (left, right) = neighbours(job);
    for (len, synchronous) in [(11usize, true), (290_001, false), (290_001, true)] {
        // A rank's messages to itself are copies, and complete at once.
        let synchronous = synchronous || right == job.rank();
        let start = |value| match synchronous {
            true => job.issend(right, 6, vec![value; len]),
            false => job.isend(right, 6, vec![value; len]),
        };
        let (first, second, third) = (start(1u8), start(2), start(3));
        second.cancel();
        assert_eq!(class(second.wait()), Class::Cancelled);
        job.barrier()?;
        let received = job.irecv::<u8>(left, 6, len);
        assert_eq!(job.recv::<u8>(left, 6)?.0, vec![3; len]);
        assert_eq!(received.wait()?.0, vec![1; len]);
        job.barrier()?;
        third.cancel();
        assert_eq!((first.wait()?, third.wait()?), (vec![1; len], vec![3; len]));
        assert!(job.iprobe(ANY_SOURCE, ANY_TAG)?.is_none());
        job.barrier()?;
    }
    Ok(())
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
    assert_eq!(raw::irecv(job, Source::Rank(job.rank()), Tag::Is(i32::MAX), 3).wait()?.0?, [1, 2, 3]);
    Ok(())
}

/// What nobody receives is dropped at the end of the job.
pub fn unfinished_messages(job: &Job) -> Result<()> {
    let (_, right) = neighbours(job);
    drop(job.isend(right, 1, vec![1u8; 1 << 20]));
    drop(job.issend(right, 2, vec![1u8]));
    job.send(right, 3, &[1u8])?;
    drop(job.irecv::<u8>(ANY_SOURCE, 4, 1));
    Ok(())
}
