//! Two ends copy one message: each part is copied, by one of them unless the sender fails, and nothing is put once the receiver has ended.

use shuttle::thread;

use super::check;
use super::claims::{Claims, Theirs};
use super::sync::{Arc, AtomicU64, Ordering};

const PARTS: usize = 4;
const USES: u32 = 2;

#[derive(Default)]
struct Shared {
    words: [AtomicU64; 2],
    /// By whom each part was copied, of each use: 1 the receiver, 10 the sender.
    copies: [[AtomicU64; PARTS]; USES as usize],
    /// The use that is announced to the sender.
    announced: AtomicU64,
}

impl Shared {
    fn claims(&self) -> Claims<'_> {
        Claims::new(&self.words[0], &self.words[1])
    }

    fn copy(&self, number: u32, part: u64, who: u64) {
        self.copies(number)[part as usize].fetch_add(who, Ordering::Relaxed);
    }

    fn copies(&self, number: u32) -> &[AtomicU64; PARTS] {
        &self.copies[number as usize - 1]
    }
}

/// The sender helps with whatever use it has heard of last, be it over or not; it may fail at its second part.
fn send(shared: &Shared, fails: bool) {
    let mut put = 0;
    for _ in 0..2 * USES {
        // The first use is 1.
        let number = shared.announced.load(Ordering::Acquire).max(1) as u32;
        thread::yield_now();
        while let Some(part) = shared.claims().last(number, PARTS as u64) {
            put += 1;
            if fails && put == 2 {
                return shared.claims().end_put(false);
            }
            shared.copy(number, part, 10);
            shared.claims().end_put(true);
        }
    }
}

fn receive(shared: &Shared, number: u32) {
    let claims = shared.claims();
    claims.open(number);
    shared.announced.store(number.into(), Ordering::Release);
    while let Some(part) = claims.first(PARTS as u64) {
        shared.copy(number, part, 1);
        thread::yield_now();
    }
    let again = loop {
        match claims.theirs() {
            Theirs::UnderWay => thread::yield_now(),
            Theirs::Put => break 0,
            Theirs::Failed(parts) => break parts,
        }
    };
    (PARTS as u64 - again..PARTS as u64).for_each(|part| shared.copy(number, part, 1));
    assert!(claims.close());
    for (part, copies) in shared.copies(number).iter().enumerate() {
        let copies = copies.load(Ordering::Relaxed);
        let twice = part as u64 >= PARTS as u64 - again;
        assert!(matches!(copies, 1 | 10) || twice && copies == 11, "part {part}: {copies}");
    }
}

fn both_ends(fails: bool) {
    let shared = Arc::new(Shared::default());
    let sender = thread::spawn({
        let shared = shared.clone();
        move || send(&shared, fails)
    });
    for number in 1..=USES {
        receive(&shared, number);
    }
    sender.join().unwrap();
}

#[test]
fn shuttle_both_ends_copy_each_part_once() {
    check(|| both_ends(false));
}

#[test]
fn shuttle_what_the_sender_cannot_put_the_receiver_gets() {
    check(|| both_ends(true));
}

/// A receive that is given up leaves nothing to be claimed, and knows of a put that is under way.
#[test]
fn shuttle_nothing_is_put_after_the_end() {
    check(|| {
        let shared = Arc::new(Shared::default());
        shared.claims().open(1);
        let sender = thread::spawn({
            let shared = shared.clone();
            move || {
                while let Some(part) = shared.claims().last(1, PARTS as u64) {
                    shared.copy(1, part, 10);
                    shared.claims().end_put(true);
                }
            }
        });
        let idle = shared.claims().close();
        let copied = || shared.copies(1).iter().map(|copies| copies.load(Ordering::Relaxed)).sum::<u64>();
        let then = copied();
        sender.join().unwrap();
        assert!(!idle || copied() == then);
    });
}
