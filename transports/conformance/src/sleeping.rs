//! A rank that sleeps on its descriptor wakes for whatever arrives.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::rank::Slept;
use crate::{Random, Rank, Ranks, Sleeper, Subject, TIMEOUT};

/// A sleep that takes so long, with something there, was not woken.
const LOST: Duration = Duration::from_secs(5);

/// Waits a random time: mostly none, often some microseconds, sometimes long enough for the other side to sleep.
fn pause(random: &mut Random) {
    match random.below(20) {
        0 => std::thread::sleep(Duration::from_micros(random.below(1000) as u64)),
        1..8 => {
            let start = Instant::now();
            let time = Duration::from_nanos(random.below(40_000) as u64);
            while start.elapsed() < time {
                std::hint::spin_loop();
            }
        }
        _ => {}
    }
}

/// Polls and sleeps until `count` messages have come; fails if it sleeps while there is one.
fn receive_asleep(rank: &Rank, count: u64, sent: &AtomicU64, sleep: impl Fn(&Rank) -> bool) {
    let mut received = 0;
    while received < count {
        rank.poll_into(&mut |_| received += 1).unwrap();
        if received < count && sleep(rank) {
            let sent = sent.load(Ordering::Acquire);
            assert!(sent <= received, "slept {LOST:?} with {} messages on their way", sent - received);
        }
    }
}

/// What a sender was told is sent may need its progress to get away.
fn poll_until_finished(sender: &Rank, target: &ScopedJoinHandle<'_, ()>) {
    let mut polls = 0_u64;
    while !target.is_finished() {
        sender.poll();
        polls += 1;
        if polls.is_multiple_of(64) {
            std::thread::yield_now();
        }
    }
}

/// 10,000 messages at random times, each of which may be the one that must wake the target.
pub fn wakes_for_messages(_: &Subject, ranks: &Ranks) {
    messages_wake(ranks, &|rank| rank.sleep(LOST));
}

/// The same, where nothing else wakes the target, and it puts as well.
pub fn wakes_for_messages_alone(_: &Subject, ranks: &Ranks) {
    let memory = ranks[0].allocate(4096);
    let (_region, remote) = ranks[0].expose(0, &memory, &ranks[1]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // No poll of rank 1 here.
                // SAFETY: static data.
                let _ = unsafe { ranks[1].try_put(&remote, 0, &[1; 64]) };
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        messages_wake(ranks, &|rank| rank.sleep_for_messages(LOST) == Slept::InVain);
        stop.store(true, Ordering::Relaxed);
    });
}

/// The ends of a rank's own operations do not wake who waits for messages.
pub fn own_transfers_wake_nobody_who_waits_for_messages(_: &Subject, ranks: &Ranks) {
    let memory = ranks[0].allocate(4096);
    let (_region, remote) = ranks[0].expose(0, &memory, &ranks[1]);
    let _target = Sleeper::start(&ranks[0]);
    ranks[1].wait_put(&remote, 0, &[1; 64]);
    let woken = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            (0..10).filter(|_| ranks[1].sleep_for_messages(Duration::from_millis(30)) == Slept::Woken).count()
        });
        while !sleeper.is_finished() {
            ranks[1].wait_put(&remote, 0, &[1; 64]);
            std::thread::sleep(Duration::from_millis(5));
        }
        sleeper.join().unwrap()
    });
    // Whatever was on its way before, and a request for a connection.
    assert!(woken <= 3, "woken {woken} times out of 10");
}

/// 10,000 messages, to a target that sleeps by `sleep`, which says whether nothing woke it.
fn messages_wake(ranks: &Ranks, sleep: &(dyn Fn(&Rank) -> bool + Sync)) {
    const COUNT: u64 = 10_000;
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let target = scope.spawn(|| receive_asleep(&ranks[1], COUNT, &sent, sleep));
        let mut random = Random::new(1);
        for _ in 0..COUNT {
            pause(&mut random);
            let len = random.below(300);
            while !ranks[0].try_send(1, &[1; 64], &[2; 300][..len]) {
                ranks[0].poll();
            }
            // What was accepted may need the sender's progress to get away.
            ranks[0].poll();
            sent.fetch_add(1, Ordering::Release);
        }
        poll_until_finished(&ranks[0], &target);
    });
}

/// Puts and gets complete on a target that sleeps and makes no call but to progress.
pub fn wakes_for_transfers(_: &Subject, ranks: &Ranks) {
    let memory = ranks[1].allocate(1 << 16);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let _target = Sleeper::start(&ranks[1]);
    let mut random = Random::new(3);
    let mut slowest = Duration::ZERO;
    for round in 0..1500 {
        pause(&mut random);
        let data = random.bytes(1 + random.clone().below(8000));
        let mut back = vec![0; data.len()];
        let start = Instant::now();
        ranks[0].wait_put(&remote, round, &data);
        ranks[0].wait_get(&remote, round, &mut back);
        slowest = slowest.max(start.elapsed());
        assert!(data == back);
    }
    assert!(slowest < LOST, "a put and a get took {slowest:?}");
}

impl Rank {
    /// Puts and waits, polling this rank only.
    fn wait_put(&self, remote: &transom_transport::Remote, offset: usize, data: &[u8]) {
        // SAFETY: the data outlives the operation, which ends below.
        let started = self.alone("put", || unsafe { self.try_put(remote, offset, data) }.unwrap());
        self.alone("put", || self.ended(started)).unwrap();
    }

    /// Gets and waits, polling this rank only.
    fn wait_get(&self, remote: &transom_transport::Remote, offset: usize, data: &mut [u8]) {
        // SAFETY: as in `wait_put`, and the data is not used meanwhile.
        let started = self.alone("get", || unsafe { self.try_get(remote, offset, data) }.unwrap());
        self.alone("get", || self.ended(started)).unwrap();
    }

    fn alone<R>(&self, what: &str, mut ready: impl FnMut() -> Option<R>) -> R {
        let start = Instant::now();
        loop {
            if let Some(result) = ready() {
                return result;
            }
            self.poll();
            assert!(start.elapsed() < TIMEOUT, "a {what} hangs");
        }
    }
}

/// No wake-up is lost to the calls that another thread of the sleeping rank makes meanwhile.
pub fn wakes_while_others_send(_: &Subject, ranks: &Ranks) {
    const COUNT: u64 = 5000;
    let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let memory = ranks[0].allocate(4096);
    let (_region, remote) = ranks[0].expose(0, &memory, &ranks[1]);
    let _origin = Sleeper::start(&ranks[2]);
    std::thread::scope(|scope| {
        let target = scope.spawn(|| receive_asleep(&ranks[1], COUNT, &sent, |rank| rank.sleep(LOST)));
        scope.spawn(|| {
            let mut random = Random::new(5);
            while !stop.load(Ordering::Relaxed) {
                pause(&mut random);
                // No poll of rank 1 here: what this thread stirs up, the sleeper must see.
                let _ = ranks[1].transport.message(2, &[9; 64], &[1; 200]);
                // SAFETY: static data.
                let _ = unsafe { ranks[1].try_put(&remote, 0, &[1; 64]) };
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        let mut random = Random::new(6);
        for _ in 0..COUNT {
            pause(&mut random);
            while !ranks[0].try_send(1, &[1; 64], &[]) {
                ranks[0].poll();
            }
            ranks[0].poll();
            sent.fetch_add(1, Ordering::Release);
        }
        poll_until_finished(&ranks[0], &target);
        stop.store(true, Ordering::Relaxed);
    });
}

/// A rank to which nothing is sent sleeps.
pub fn idle_is_quiet(_: &Subject, ranks: &Ranks) {
    ranks.send(0, 1, &[1; 64], &[]);
    ranks.receive(1);
    let start = Instant::now();
    let mut naps = 0;
    while start.elapsed() < Duration::from_millis(600) {
        if ranks[1].poll() == 0 {
            ranks[1].sleep(Duration::from_millis(100));
            naps += 1;
        }
    }
    assert!(naps < 150, "woke {naps} times for nothing");
}

/// The very first message, for which a connection may have to be made, wakes a target that sleeps since the start.
pub fn a_first_message_finds_a_sleeper(_: &Subject, ranks: &Ranks) {
    let _targets = [Sleeper::start(&ranks[1]), Sleeper::start(&ranks[2])];
    std::thread::sleep(Duration::from_millis(50));
    for to in [1, 2] {
        let start = Instant::now();
        while !ranks[0].try_send(to, &[1; 64], &[2; 1000]) {
            ranks[0].poll();
            assert!(start.elapsed() < TIMEOUT, "not taken");
        }
        while ranks[to].messages.lock().is_empty() {
            ranks[0].poll();
            assert!(start.elapsed() < TIMEOUT, "not woken");
        }
        assert!(start.elapsed() < LOST, "took {:?}", start.elapsed());
    }
}
