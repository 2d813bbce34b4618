#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use transom_transport::{Armed, Event, Posted, Span, Transport};

use super::*;
use crate::doorbell::Doorbell;
use crate::queue::{Inbox, QUEUE_BYTES};
use crate::shm::Shm;

fn peer() -> Peer {
    Peer::own(&Span::anonymous(QUEUE_BYTES).unwrap(), &Doorbell::new().unwrap()).unwrap()
}

#[test]
fn a_claim_is_of_the_dead_when_all_others_have_done_nothing() {
    let (own, dead, living) = (peer(), peer(), peer());
    let deaths = Deaths::default();
    let is_stuck = || deaths.is_stuck(&own.queue, 0, [&dead, &living].into_iter()).unwrap();
    assert!(!is_stuck(), "nothing is claimed");
    assert!(own.queue.claim());
    assert!(own.queue.push(None, b"", b"").unwrap());
    // It died in the midst of it.
    std::mem::forget(dead.queue.append().unwrap());
    let appending = living.queue.append().unwrap();
    assert!(!is_stuck(), "one that is not known to be dead may be about to write");
    dead.gone.store(true, Ordering::Release);
    assert!(!is_stuck(), "another that lives may be about to write");
    drop(appending);
    assert!(is_stuck());
    own.queue.release(0).unwrap();
    let mut buffer = Inbox::default();
    assert_eq!(own.queue.pop(None, 1, &mut buffer).unwrap(), Some(0));
}

/// Claims of the dead between messages of two that live: none of these is lost, none comes twice.
#[test]
fn what_the_living_send_comes() {
    const EACH: u64 = 20_000;
    let own = peer();
    let living = [peer(), peer()];
    let deaths = Deaths::default();
    std::thread::scope(|scope| {
        for (number, sender) in (0u64..).zip(&living) {
            let queue = &own.queue;
            scope.spawn(move || {
                for message in 0..EACH {
                    while message % 1000 == 0 && number == 0 && !queue.claim() {
                        std::thread::yield_now();
                    }
                    loop {
                        let appending = sender.queue.append().unwrap();
                        if queue.push(None, &number.to_le_bytes(), &message.to_le_bytes()).unwrap() {
                            break;
                        }
                        drop(appending);
                        std::thread::yield_now();
                    }
                }
            });
        }
        let (mut head, mut next, mut buffer) = (0, [0u64; 2], Inbox::default());
        while next != [EACH; 2] {
            if let Some(bytes) = own.queue.pop(None, head, &mut buffer).unwrap() {
                assert_eq!(bytes, 16);
                let word = |at| u64::from_le_bytes(buffer.0[at..at + 8].try_into().unwrap());
                assert_eq!(word(8), next[word(0) as usize]);
                next[word(0) as usize] += 1;
                head += 1;
            } else if deaths.is_stuck(&own.queue, head, living.iter()).unwrap() {
                own.queue.release(head).unwrap();
                head += 1;
            } else {
                std::thread::yield_now();
            }
        }
        assert_eq!(head, 2 * EACH + EACH / 1000, "claims are left out, and nothing else");
    });
}

/// A rank finds the message behind a claim of a dead one although nobody rings for it a second time.
#[test]
fn what_is_behind_a_claim_of_the_dead_is_no_idleness() {
    let ranks: [Shm; 3] = std::array::from_fn(|_| Shm::new(3).unwrap());
    for rank in &ranks {
        ranks.iter().enumerate().for_each(|(peer, other)| rank.connect(peer, &other.address()).unwrap());
        rank.outlives_peers();
    }
    let [own, living, dead] = &ranks;
    assert!(own.peer(0).unwrap().queue.claim());
    std::mem::forget(dead.peer(2).unwrap().queue.append().unwrap());
    assert_eq!(living.message(0, b"behind", b"").unwrap(), Posted::Complete);
    assert!(own.is_idle() && own.arm().unwrap() == Armed::Sleep, "of nobody is known that it is dead");
    own.forget(&[2]);
    assert!(!own.is_idle());
    assert_eq!(own.arm().unwrap(), Armed::Briefly);
    let mut came = 0;
    own.progress(&mut |event| came += u32::from(matches!(event, Event::Message(b"behind")))).unwrap();
    assert_eq!(came, 1);
    assert!(own.is_idle() && own.arm().unwrap() == Armed::Sleep);
}
