//! Queues that run full.

use std::time::{Duration, Instant};

use ibverbs::{AsyncKind, BATCH, Batch, Operation, WorkCompletion};

use crate::support::{PLAN, Plan, pair, readable, request};

#[test]
fn a_full_send_queue_takes_the_rest_later() {
    let Some([a, b]) = pair(&Plan { sends: 4, inline: 0, ..PLAN }) else { return };
    let mut batch = Batch::new();
    for n in 0..BATCH {
        a.memory.set(n, 40 + n as u64);
        let key = b.memory.region().remote_key();
        let operation = Operation::Write { address: b.memory.address(n), key };
        batch.push(&request(n as u64, operation, &[a.memory.part(n, 8)])).unwrap();
    }
    let (mut completed, mut refusals) = (0, 0);
    let start = Instant::now();
    while completed < BATCH as u64 {
        let before = batch.len();
        // SAFETY: the parts are of this side's memory, which stays.
        if let Err(error) = unsafe { a.pair.post(&mut batch) } {
            assert!(error.error.is_exhausted(), "{error}");
            assert_eq!(before - batch.len(), error.taken);
            refusals += 1;
        }
        let mut done = [WorkCompletion::EMPTY; 8];
        let count = a.queue.poll(&mut done).unwrap();
        for completion in &done[..count] {
            assert!(completion.is_success(), "{}", completion.status());
            assert_eq!(completion.id(), completed);
            completed += 1;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{completed} completed");
    }
    assert!(refusals > 0, "a queue of 4 took {BATCH} at once");
    assert!(batch.is_empty());
    assert!((0..BATCH).all(|n| b.memory.get(n) == 40 + n as u64));
}

#[test]
fn a_completion_queue_that_runs_over_is_reported() {
    let Some([a, b]) = pair(&Plan { entries: 4, ..PLAN }) else { return };
    let capacity = a.queue.capacity() as usize;
    println!("{capacity} entries for 4");
    assert!((4..=BATCH).contains(&capacity));
    let operation = Operation::Write { address: b.memory.address(0), key: b.memory.region().remote_key() };
    let part = [a.memory.part(0, 8)];
    let requests: Vec<_> = (0..BATCH as u64).map(|id| request(id, operation, &part)).collect();
    a.post(&requests);
    a.post(&requests);
    assert!(readable(&a.context.async_fd(), Duration::from_secs(20)));
    let event = a.context.async_event().unwrap().unwrap();
    println!("{}", event.text());
    assert_eq!((event.kind, event.queue_pair), (AsyncKind::CqError, None));
}
