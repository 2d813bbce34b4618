//! What becomes of messages when ranks end.

mod support;

use std::time::{Duration, Instant};

use support::OFI;
use transom_conformance::{Ranks, TIMEOUT, within};
use transom_transport::{Event, Posted};

/// What a rank has sent before its transport is dropped arrives, though it makes no call any more.
#[test]
fn last_messages_arrive() {
    within(TIMEOUT, "last messages", || {
        let Some(mut ranks) = (OFI.open)(2) else { return };
        let (Some(receiver), Some(sender)) = (ranks.pop(), ranks.pop()) else { return };
        for transport in [&sender, &receiver] {
            transport.connect(0, &sender.address()).unwrap();
            transport.connect(1, &receiver.address()).unwrap();
        }
        let thread = std::thread::spawn(move || {
            let mut received = Vec::new();
            let start = Instant::now();
            while received.len() < 400 && start.elapsed() < TIMEOUT / 2 {
                receiver
                    .progress(&mut |event| {
                        if let Event::Message(message) = event {
                            received.push(message.len());
                        }
                    })
                    .unwrap();
            }
            received
        });
        let mut sent = Vec::new();
        for number in 0..400 {
            let payload = vec![1; if number % 4 == 3 { 0 } else { 10_000 + number }];
            while sender.message(1, &[1; 60], &payload).unwrap() == Posted::Again {
                sender.progress(&mut |_| ()).unwrap();
            }
            sent.push(60 + payload.len());
        }
        drop(sender);
        assert_eq!(thread.join().unwrap(), sent);
    });
}

/// Messages to a peer that has ended: refused or not taken, and soon an error; other peers go on.
#[test]
fn messages_to_the_dead() {
    within(2 * TIMEOUT, "messages to the dead", || {
        let Some(ranks) = Ranks::open(&OFI, 3) else { return };
        ranks.send(0, 1, &[1; 64], &[]);
        ranks.receive(1);
        ranks[1].transport.abandon();
        let start = Instant::now();
        let (mut taken, mut refused, mut error) = (0, 0, None);
        while error.is_none() && start.elapsed() < Duration::from_secs(3) {
            match ranks[0].transport.message(1, &[1; 64], &[2; 500]) {
                Ok(Posted::Again) => refused += 1,
                Ok(_) => taken += 1,
                Err(e) => error = Some(e.to_string()),
            }
            ranks[0].poll();
        }
        println!("{taken} taken, {refused} not, after {:?} {error:?}", start.elapsed());
        let start = Instant::now();
        while !ranks[0].try_send(2, &[1; 64], &[]) || ranks[2].messages.lock().is_empty() {
            ranks[0].poll();
            ranks[2].poll();
            assert!(start.elapsed() < TIMEOUT, "peers that live cannot talk any more");
        }
    });
}
