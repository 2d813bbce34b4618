//! Connections that come and go: ranks that have one queue pair each and talk to another peer every time, each in a thread of
//! its own. So who asks, who answers and who sends first meet in every order.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::open_with;
use transom_conformance::{Open, Rank, Ranks, Subject, TIMEOUT, within};
use transom_transport::Transport;
use transom_verbs::{Connect, Limits};

const RANKS: usize = 3;
const LIMITS: Limits = Limits { queue_pairs: 1, depth: 16, completions: 256, receives: 32 };

fn open(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    open_with(ranks, &LIMITS, Connect::Auto)
}

fn open_managed(ranks: usize) -> Option<Vec<Arc<dyn Transport>>> {
    open_with(ranks, &LIMITS, Connect::Manager)
}

/// Messages of each rank, every one by a new connection.
fn rounds() -> usize {
    std::env::var("TRANSOM_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(200)
}

/// In each round every rank sends one message and gets one.
fn take_turns(me: usize, rank: &Rank, ended: &AtomicUsize) -> Duration {
    let mut longest = Duration::ZERO;
    for round in 0..rounds() {
        let to = (me + 1 + round % 2) % RANKS;
        let start = Instant::now();
        let until = |what: &str, ready: &mut dyn FnMut() -> bool| {
            while !ready() {
                if rank.poll() == 0 {
                    std::thread::yield_now();
                }
                assert!(start.elapsed() < TIMEOUT, "rank {me} in round {round} waits in vain: {what}");
            }
        };
        until("room", &mut || rank.try_send(to, &round.to_ne_bytes(), &[]));
        // Others may be a round ahead.
        let mut mine = None;
        until("a message", &mut || {
            let mut messages = rank.messages.lock();
            mine = messages.iter().position(|message| message[..] == round.to_ne_bytes());
            mine.map(|index| messages.remove(index)).is_some()
        });
        longest = longest.max(start.elapsed());
    }
    // What it has sent may not have left it.
    ended.fetch_add(1, Ordering::Relaxed);
    let start = Instant::now();
    while ended.load(Ordering::Relaxed) < RANKS && start.elapsed() < TIMEOUT {
        rank.poll();
    }
    longest
}

fn come_and_go(open: Open) {
    within(10 * TIMEOUT, "connections", move || {
        let subject = Subject { open, checks_keys: true, abandons: true };
        let Some(ranks) = Ranks::open(&subject, RANKS) else { return };
        let start = Instant::now();
        let (ranks, ended) = (&ranks, &AtomicUsize::new(0));
        let longest = std::thread::scope(|scope| {
            let run = |me| scope.spawn(move || take_turns(me, &ranks[me], ended));
            let threads: Vec<_> = (0..RANKS).map(run).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).max()
        });
        println!("{} rounds in {:?}, the longest {longest:?}", rounds(), start.elapsed());
    });
}

#[test]
fn connections_come_and_go() {
    come_and_go(open);
}

#[test]
fn connections_by_rdma_cm_come_and_go() {
    come_and_go(open_managed);
}
