//! Parts come one behind the other, before their receive and behind it; what is no next part is refused.

use super::*;
use crate::engine::two_sided::handle;
use crate::protocol::wire::{Header, Kind};
use crate::{ANY_TAG, Class, Job, Result};

/// Runs as rank 0 of two; the other does nothing.
fn alone(program: impl Fn(&Job) -> Result<()> + Send + Sync) {
    let both = |job: Job| {
        if job.rank() == 0 {
            program(&job)?;
        }
        job.barrier()
    };
    crate::local(2, both).unwrap();
}

/// What rank `origin` sends; the tag is the first part's.
fn part(job: &Job, (origin, number): (u32, u64), kind: Kind, place: u64, bytes: &[u8]) -> Option<()> {
    let engine = &job.member().engine;
    let mut header =
        Header { origin, value: number, ..engine.header(kind).in_context(job.channel().context) };
    match kind {
        Kind::Parts => (header.count, header.offset) = (place, 7),
        _ => header.offset = place,
    }
    handle(engine, &header, kind, bytes.into())
}

#[test]
fn before_and_behind_the_receive() {
    alone(|job| {
        let send = |kind, place, bytes: &[u8]| part(job, (1, 5), kind, place, bytes).unwrap();
        for parts_before in 0..=3 {
            let mut receive = None;
            for i in 0..=3 {
                if i == parts_before {
                    receive = Some(job.irecv::<u8>(1, 7, 6));
                }
                match i {
                    0 => send(Kind::Parts, 6, b"ab"),
                    1 => send(Kind::Part, 2, b"cde"),
                    2 => send(Kind::Part, 5, b"f"),
                    _ => {}
                }
            }
            let (data, status) = receive.unwrap().wait()?;
            assert_eq!((data.as_slice(), status.tag, status.bytes), (&b"abcdef"[..], 7, 6));
        }
        assert!(job.member().engine.two_sided.parts.lock().is_empty());
        Ok(())
    });
}

#[test]
fn what_blocks_waits_for_the_last() {
    alone(|job| {
        part(job, (1, 5), Kind::Parts, 4, b"ab").unwrap();
        let status = job.probe(1, ANY_TAG)?;
        assert_eq!((status.tag, status.bytes), (7, 4));
        std::thread::scope(|scope| {
            let receive = scope.spawn(|| job.recv_into(1, 7, &mut [0u8; 4]));
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(!receive.is_finished());
            part(job, (1, 5), Kind::Part, 2, b"cd").unwrap();
            job.member().engine.wake_sleepers();
            receive.join().unwrap().map(drop)
        })
    });
}

#[test]
fn what_blocks_asks_for_what_cannot_be_fetched() {
    alone(|job| {
        let engine = &job.member().engine;
        let header = engine.header(Kind::RequestToSend).in_context(job.channel().context);
        let announced = Header { origin: 1, count: 4, value: 5, offset: 7, ..header };
        handle(engine, &announced, Kind::RequestToSend, b"".into()).unwrap();
        std::thread::scope(|scope| {
            let receive = scope.spawn(|| {
                let mut buffer = [0u8; 4];
                job.recv_into(1, 7, &mut buffer).map(|status| (buffer, status.bytes, status.tag))
            });
            let asked = || engine.two_sided.parts.lock().keys().find(|key| key.asked).copied();
            let waits = std::time::Instant::now();
            while asked().is_none() && waits.elapsed().as_secs() < 30 {
                std::thread::yield_now();
            }
            let (key, segment) = (asked().unwrap(), Kind::Segment);
            let send = |place, bytes: &[u8]| part(job, (1, key.number), segment, place, bytes);
            assert!(
                send(2, b"cd").is_none() && send(0, b"abcde").is_none() && send(u64::MAX, b"a").is_none()
            );
            assert!(part(job, (0, key.number), segment, 0, b"ab").is_none(), "another rank's");
            assert!(part(job, (1, key.number), Kind::Part, 0, b"ab").is_none(), "nobody has asked for it");
            assert!(send(0, b"ab").is_some() && send(2, b"cd").is_some() && send(4, b"").is_none());
            engine.wake_sleepers();
            assert_eq!(receive.join().unwrap()?, (*b"abcd", 4, 7));
            assert!(engine.two_sided.parts.lock().is_empty());
            Ok(())
        })
    });
}

#[test]
fn nonsense_is_refused() {
    alone(|job| {
        let refused =
            |from, kind, place, bytes: &[u8]| assert!(part(job, from, kind, place, bytes).is_none());
        refused((1, 1), Kind::Parts, u64::MAX, b"ab");
        refused((1, 1), Kind::Parts, MOST as u64 + 1, b"ab");
        refused((1, 1), Kind::Parts, 2, b"ab");
        refused((1, 1), Kind::Parts, 2, b"");
        refused((1, 1), Kind::Part, 0, b"ab");
        part(job, (1, 1), Kind::Parts, 5, b"ab").unwrap();
        refused((1, 1), Kind::Parts, 5, b"ab");
        refused((0, 1), Kind::Part, 2, b"c");
        for (place, bytes) in [(0, &b"ab"[..]), (3, b"d"), (2, b"cdef"), (u64::MAX, b"c")] {
            refused((1, 1), Kind::Part, place, bytes);
        }
        // Too long for its receive: lost, and the next is not.
        let short = job.irecv::<u8>(1, 7, 4);
        assert_eq!(short.wait().unwrap_err().class(), Class::Truncate);
        part(job, (1, 2), Kind::Parts, 3, b"xy").unwrap();
        part(job, (1, 1), Kind::Part, 2, b"cde").unwrap();
        part(job, (1, 2), Kind::Part, 2, b"z").unwrap();
        assert_eq!(job.recv::<u8>(1, 7)?.0, b"xyz");
        refused((1, 2), Kind::Part, 3, b"");
        Ok(())
    });
}
