//! Much in both directions at once, and memory that goes while it is under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use transom_conformance::within;
use transom_tcp::Tcp;
use transom_transport::{Event, Posted, Remote, Span, Transfer, Transport, TransportResult};

use crate::{introduce, rank};

const LIMIT: Duration = Duration::from_secs(120);
const BYTES: usize = 64 << 20;

fn pair() -> [Arc<Tcp>; 2] {
    let ranks = [rank(0, 2), rank(1, 2)];
    introduce(&ranks);
    ranks
}

/// Each posts puts and gets of all sizes as fast as they are taken, and polls for nobody else.
#[test]
fn both_stream_at_each_other() {
    const COUNT: usize = 400;
    const MOST: usize = 1 << 20;
    within(LIMIT, "streams", || {
        let ranks = pair();
        let windows = [(); 2].map(|()| Span::anonymous(2 * MOST).unwrap());
        let regions: Vec<_> =
            ranks.iter().zip(&windows).map(|(rank, window)| rank.register(window).unwrap()).collect();
        std::thread::scope(|scope| {
            for own in 0..2 {
                let (transport, key) = (&ranks[own], regions[1 - own].key());
                scope.spawn(move || {
                    let remote = transport.attach(1 - own, &key).unwrap();
                    let (data, mut back) = (vec![own as u8; MOST], vec![0_u8; MOST]);
                    let (mut ended, start) = (0, Instant::now());
                    let poll = |ended: &mut usize| {
                        let sink = &mut |event: Event<'_>| {
                            let Event::Complete(completion) = event else { panic!("{event:?}") };
                            completion.result.unwrap();
                            *ended += 1;
                        };
                        transport.progress(sink).unwrap();
                        assert!(start.elapsed() < LIMIT / 2, "only {ended} have ended");
                    };
                    for number in 0..COUNT {
                        let len = [1, 100, 8 << 10, (8 << 10) + 1, 100_000, MOST][number % 6];
                        let local =
                            if number % 2 == 0 { data.as_ptr().cast_mut() } else { back.as_mut_ptr() };
                        let transfer = Transfer { remote: &remote, offset: 7, local, len, context: 1 };
                        // SAFETY: both outlive the wait for all ends below, and are not used in it.
                        while unsafe {
                            if number % 2 == 0 { transport.put(&transfer) } else { transport.get(&transfer) }
                        }
                        .unwrap()
                            == Posted::Again
                        {
                            poll(&mut ended);
                        }
                    }
                    // The other may still want to be served.
                    while ended < COUNT || start.elapsed() < Duration::from_secs(3) {
                        poll(&mut ended);
                    }
                });
            }
        });
        for (own, window) in windows.iter().enumerate() {
            let mut bytes = vec![9; 1000];
            window.copy_out(7, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| usize::from(*byte) == 1 - own), "rank {own}");
        }
    });
}

fn ended(event: &Event<'_>) -> Option<TransportResult<()>> {
    let Event::Complete(completion) = event else { panic!("{event:?}") };
    Some(completion.result.clone())
}

/// Begins a transfer of all of a region, which ends when some of it has moved; then the region's memory is overwritten. The end of
/// the transfer.
fn interrupted(write: bool, data: &mut [u8], memory: &mut [u8], polls: usize) -> TransportResult<()> {
    let [origin, target] = pair();
    // SAFETY: the memory is used otherwise only when the region has ended.
    let span = unsafe { Span::from_raw(memory.as_mut_ptr(), memory.len()) };
    let region = target.register(&span).unwrap();
    let remote: Remote = origin.attach(1, &region.key()).unwrap();
    let transfer =
        Transfer { remote: &remote, offset: 0, local: data.as_mut_ptr(), len: data.len(), context: 1 };
    // SAFETY: the data outlives the end, which is waited for.
    let posted = unsafe { if write { origin.put(&transfer) } else { origin.get(&transfer) } };
    assert_eq!(posted.unwrap(), Posted::Pending);
    let mut result = None;
    let mut found = 0;
    while found < polls && result.is_none() {
        origin.progress(&mut |event| result = ended(&event)).unwrap();
        found += target.progress(&mut |_| ()).unwrap().max(usize::from(write));
    }
    drop(region);
    memory.fill(0xee);
    let start = Instant::now();
    while result.is_none() {
        target.progress(&mut |_| ()).unwrap();
        origin.progress(&mut |event| result = ended(&event)).unwrap();
        assert!(start.elapsed() < LIMIT / 4, "no end");
    }
    result.unwrap()
}

/// A get of a region that ends brings what was there before, or nothing, and an error.
#[test]
fn a_region_that_is_read_ends() {
    within(LIMIT, "a region", || {
        let (mut data, mut memory) = (vec![0; BYTES], vec![7; BYTES]);
        let result = interrupted(false, &mut data, &mut memory, 1);
        assert!(result.unwrap_err().to_string().contains("peer 1"));
        assert_eq!(data[0], 7);
        assert!(data.iter().all(|byte| [0, 7].contains(byte)), "memory was read that is another's");
    });
}

/// A put to a region that ends stores nothing from then on.
#[test]
fn a_region_that_is_written_ends() {
    within(LIMIT, "a region", || {
        let mut refused = 0;
        for polls in [8, 12, 16, 20] {
            let (mut data, mut memory) = (vec![7; BYTES], vec![0; BYTES]);
            let result = interrupted(true, &mut data, &mut memory, polls);
            refused += usize::from(result.is_err_and(|error| error.to_string().contains("peer 1")));
            assert!(memory.iter().all(|byte| *byte == 0xee), "memory was written that is another's");
        }
        assert!(refused > 0, "all were done too early");
    });
}

/// What a peer has sent before it ended arrives, though nothing can be sent to it any more.
#[test]
fn what_was_sent_before_the_end_arrives() {
    within(LIMIT, "last messages", || {
        for _ in 0..20 {
            let [sender, receiver] = pair();
            let mut received = 0;
            let mut take = |event: Event<'_>| received += usize::from(matches!(event, Event::Message(_)));
            assert_eq!(sender.message(1, &[1; 64], &[]).unwrap(), Posted::Complete);
            let start = Instant::now();
            // Until they are connected.
            while receiver.progress(&mut take).unwrap() == 0 {
                sender.progress(&mut |_| ()).unwrap();
                assert!(start.elapsed() < LIMIT / 4);
            }
            for _ in 0..10 {
                assert_eq!(sender.message(1, &[2; 64], &[3; 1000]).unwrap(), Posted::Complete);
            }
            drop(sender);
            // The first of these makes the other host refuse the rest.
            for _ in 0..3 {
                let _ = receiver.message(0, &[4; 64], &[]);
                let _ = receiver.arm();
                receiver.disarm(true);
                std::thread::sleep(Duration::from_millis(2));
            }
            while receiver.message(0, &[4; 64], &[]).is_ok() {
                receiver.progress(&mut take).unwrap();
                assert!(start.elapsed() < LIMIT / 4);
            }
            assert_eq!(received, 11);
        }
    });
}
