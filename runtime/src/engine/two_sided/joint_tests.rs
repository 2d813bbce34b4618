//! Messages that both ends copy: all of it by either end, some by each, and what the sender cannot put.

use std::sync::mpsc;

use super::*;
use crate::engine::two_sided::{handle, register};
use crate::memory::{ExposedVec, expose};
use crate::protocol::wire::Kind;
use crate::{Job, Result};

const BYTES: usize = (1 << 20) + 5;
const LIMIT: Duration = Duration::from_secs(20);

fn data() -> Vec<u8> {
    (0..BYTES).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Rank 0 has a message under way, of which it says where it is, and makes progress until `receive` is done at rank 1.
fn one_way(receive: impl Fn(&Engine, u64, &Remote) -> Result<()> + Send + Sync) {
    let (announce, announced) = mpsc::channel();
    let announced = Mutex::new(announced);
    let program = |job: Job| {
        let engine = &job.member().engine;
        if job.rank() == 1 {
            let (number, key) = announced.lock().recv_timeout(LIMIT).unwrap();
            let remote = engine.routes.to(0).attach(0, &key).unwrap();
            receive(engine, number, &remote)?;
            return job.barrier();
        }
        let (exposed, span) = ExposedVec::new(data());
        let region = register(engine, 1, &span).unwrap();
        let number = engine.two_sided.await_answer(1, Some(span), Box::new(|_, _| ()));
        announce.send((number, region.key())).unwrap();
        job.barrier()?;
        drop(engine.two_sided.end_send(1, number));
        drop(region);
        assert!(exposed.take() == data());
        Ok(())
    };
    crate::local(2, program).unwrap();
}

/// Until it is so, or nobody will make it so.
fn wait(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "nothing comes of it");
        std::thread::yield_now();
    }
}

/// What the sender of a message is asked to help with; none where ranks share cores.
fn offered(engine: &Engine, number: u64, buffer: &mut [u8]) -> Option<Joint> {
    let joint = Joint::offer(engine, 0, Some(number), &expose(buffer));
    assert_eq!(joint.is_some(), engine.progress.backoff().has_cores(), "whether it is asked");
    joint
}

fn get_all(joint: &Joint, engine: &Engine, remote: &Remote, result: &ResultBuffer<'_>) -> Copied {
    let start = Instant::now();
    loop {
        match joint.get(engine.routes.to(0), remote, result).unwrap() {
            Copied::Some | Copied::Own => assert!(start.elapsed() < LIMIT, "it does not end"),
            end => return end,
        }
    }
}

#[test]
fn a_sender_that_waits_puts_all_that_nobody_gets() {
    one_way(|engine, number, remote| {
        let mut buffer = vec![0; BYTES];
        let Some(joint) = offered(engine, number, &mut buffer) else { return Ok(()) };
        let claims = joint.line.claims().unwrap();
        wait(|| joint.parts.count() == claims.of_sender() && claims.theirs() == Theirs::Put);
        assert_eq!(get_all(&joint, engine, remote, &ResultBuffer::borrowed(&mut buffer)), Copied::All);
        drop(joint);
        assert!(buffer == data());
        Ok(())
    });
}

#[test]
fn a_receiver_gets_all_that_nobody_puts_and_both_do_some() {
    one_way(|engine, number, remote| {
        for turn in 0..2 * LINES as u64 {
            let mut buffer = vec![0; BYTES];
            // No such message: its sender does nothing.
            let number = if turn % 2 == 0 { number + 1 } else { number };
            let Some(joint) = offered(engine, number, &mut buffer) else { continue };
            assert_eq!(get_all(&joint, engine, remote, &ResultBuffer::borrowed(&mut buffer)), Copied::All);
            assert!(turn % 2 == 1 || joint.line.claims().unwrap().of_sender() == 0);
            drop(joint);
            assert!(buffer == data(), "turn {turn}");
        }
        let lines = engine.two_sided.joints.own.get().and_then(Option::as_ref);
        assert!(lines.is_none_or(|lines| lines.free.lock().len() == LINES), "a line is lost");
        Ok(())
    });
}

#[test]
fn what_the_sender_cannot_put_is_told() {
    one_way(|engine, number, remote| {
        let mut buffer = vec![0; BYTES];
        let Some(joint) = offered(engine, number + 1, &mut buffer) else { return Ok(()) };
        // As the sender would.
        let claims = joint.line.claims().unwrap();
        let last = claims.last(joint.line.number, joint.parts.count()).unwrap();
        claims.end_put(false);
        let (end, _) = joint.parts.place(last);
        assert_eq!(get_all(&joint, engine, remote, &ResultBuffer::borrowed(&mut buffer)), Copied::UpTo(end));
        drop(joint);
        let whole = data();
        assert!(buffer[..end] == whole[..end] && buffer[end..].iter().all(|byte| *byte == 0));
        Ok(())
    });
}

#[test]
fn a_receive_that_is_given_up_waits_for_the_part_that_is_put() {
    one_way(|engine, number, _| {
        let mut buffer = vec![0; BYTES];
        let Some(joint) = offered(engine, number + 1, &mut buffer) else { return Ok(()) };
        // A sender that takes a while for a part.
        let (lines, line, number) = (joint.line.lines.clone(), joint.line.line, joint.line.number);
        let claimed = claims(&lines.memory, line.into()).unwrap();
        claimed.last(number, joint.parts.count()).unwrap();
        std::thread::scope(|scope| {
            let start = Instant::now();
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                claimed.end_put(true);
            });
            drop(joint);
            assert!(start.elapsed() >= Duration::from_millis(5));
        });
        assert_eq!(claimed.last(number, 8), None, "nothing is put any more");
        assert_eq!(lines.free.lock().len(), LINES);
        Ok(())
    });
}

#[test]
fn what_cannot_be_is_refused() {
    one_way(|engine, number, _| {
        let good = Header {
            origin: 0,
            value: number,
            count: BYTES as u64,
            offset: 1 << 17,
            compare: 1,
            ty: 4,
            ..engine.header(Kind::Join)
        };
        // Of no send of this rank's.
        assert!(handle(engine, &good, Kind::Join, b"keys".into()).is_some());
        let span = ExposedVec::new(data()).1;
        let own = engine.two_sided.await_answer(0, Some(span), Box::new(|_, _| ()));
        let good = Header { value: own, ..good };
        for (header, keys) in [
            (Header { count: 5, ..good }, &b"keys!"[..]),
            (Header { offset: 0, ..good }, b"keys!"),
            (Header { offset: 1, ..good }, b"keys!"),
            (Header { window: LINES as u32, ..good }, b"keys!"),
            (Header { compare: 1 << 32, ..good }, b"keys!"),
            (good, &[0; 2 * MAX_KEY + 1]),
            (good, b"key"),
        ] {
            assert!(handle(engine, &header, Kind::Join, keys.into()).is_none(), "{header:?}");
        }
        // Lines that cannot be had: no help.
        assert!(handle(engine, &good, Kind::Join, b"keys!".into()).is_some());
        drop(engine.two_sided.end_send(0, own));
        Ok(())
    });
}

#[test]
fn parts_cover_messages_of_all_lengths() {
    for bytes in [1, LEAST, LEAST + 1, 1_000_003, 1 << 20, (1 << 20) + 5, 5 << 30, 100 << 30] {
        let parts = Layout::new(bytes);
        assert!(parts.count() <= Claims::MOST as u64, "{bytes}");
        let mut end = 0;
        for part in 0..parts.count() {
            let (at, len) = parts.place(part);
            assert!(at == end && len > 0, "{bytes}: part {part}");
            end = at + len;
        }
        assert_eq!(end, bytes);
    }
}
