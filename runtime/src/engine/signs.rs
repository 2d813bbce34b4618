//! Signs of life from peers whose silence their transport does not notice: libfabric's providers say nothing of a link that is
//! down, nor of an operation that a peer's provider has dropped. Who waits for long asks them, and their agents answer. RDMA
//! devices notice it when something is sent: they are asked to try.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_transport::Unwatched;

use super::Engine;
use crate::protocol::wire::Kind;
use crate::{Class, Error};

/// How often a peer is asked within the time that it may be silent.
const QUESTIONS: u32 = 4;

/// What is known of peers' lives.
#[derive(Debug)]
pub(super) struct Signs {
    /// How long a peer may owe an answer; none: nobody is asked.
    limit: Option<Duration>,
    begin: Instant,
    /// Nanoseconds since the beginning after which somebody asks next.
    next: AtomicU64,
    debts: Mutex<Debts>,
    /// Questions or answers were sent, for which nobody waits: one may be on its way yet.
    asked: AtomicBool,
}

/// What peers owe.
#[derive(Debug, Default)]
struct Debts {
    answers: BTreeMap<usize, Debt>,
    /// The ends of puts and gets.
    ends: BTreeMap<usize, Debt>,
}

#[derive(Debug, Clone, Copy)]
struct Debt {
    since: Instant,
    /// What had ended there by then, as its transport counts: traffic may keep an answer from coming for long.
    ended: u64,
}

impl Debt {
    /// Begins anew if something has ended since. How long it has lasted.
    fn look(&mut self, now: Instant, ended: u64) -> Duration {
        if self.ended != ended {
            *self = Self { since: now, ended };
        }
        now.saturating_duration_since(self.since)
    }
}

/// What is wrong with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    NoAnswer,
    NoEnd,
}

impl Signs {
    pub fn new(limit: Option<Duration>) -> Self {
        Self {
            limit,
            begin: Instant::now(),
            next: AtomicU64::new(0),
            debts: Mutex::default(),
            asked: AtomicBool::new(false),
        }
    }

    /// Whether to ask now. Of several threads one is told so.
    fn is_due(&self, now: Instant) -> bool {
        let Some(limit) = self.limit else { return false };
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (interval, at) = (nanoseconds(limit / QUESTIONS), nanoseconds(now - self.begin));
        let next = self.next.load(Ordering::Relaxed);
        let after = at.saturating_add(interval);
        if at < next || self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return false;
        }
        if at - next > interval {
            // Nobody waited for a while, or this process was stopped: what came meanwhile is yet to be read.
            *self.debts.lock() = Debts::default();
        }
        true
    }

    /// A peer is about to be asked: what it has owed for too long, if so.
    fn ask(&self, about: &Unwatched, now: Instant) -> Option<Wrong> {
        let limit = self.limit?;
        let mut debts = self.debts.lock();
        let new = Debt { since: now, ended: about.ended };
        if debts.answers.entry(about.peer).or_insert(new).look(now, about.ended) > limit {
            return Some(Wrong::NoAnswer);
        }
        if !about.busy {
            debts.ends.remove(&about.peer);
            return None;
        }
        let lasts = debts.ends.entry(about.peer).or_insert(new).look(now, about.ended);
        (lasts > limit).then_some(Wrong::NoEnd)
    }

    /// A peer has answered.
    pub fn seen(&self, peer: usize) {
        self.debts.lock().answers.remove(&peer);
    }
}

impl Engine {
    /// Asks for signs of life, if a wait has lasted long enough for that. The error of a peer that has given none in time.
    pub(super) fn look_for_life(&self, waited: Duration) -> Option<Error> {
        if self.signs.limit.is_none_or(|limit| waited < limit / QUESTIONS) {
            return None;
        }
        let now = Instant::now();
        if !self.signs.is_due(now) {
            return None;
        }
        self.signs.asked.store(true, Ordering::Relaxed);
        let mut peers = Vec::new();
        self.routes.transports().iter().for_each(|transport| transport.unwatched(&mut peers));
        // Who is gone answers nothing, and that is known.
        for about in peers.into_iter().filter(|about| !self.dead.has(about.peer)) {
            if let Some(wrong) = self.signs.ask(&about, now) {
                return Some(self.silent(about.peer, wrong));
            }
            // Where there is no room for this, nothing ends for so long if the peer is lost.
            let _ = self.try_send("progress", about.peer, &self.header(Kind::Ask), &[]);
        }
        let mut lost = Vec::new();
        self.routes.transports().iter().for_each(|transport| transport.try_idle(&mut lost));
        let (peer, reason) = lost.into_iter().find(|(peer, _)| !self.dead.has(*peer))?;
        Some(self.lost(peer, &format!("is lost: {reason}")))
    }

    /// Answers a peer that has asked.
    pub fn give_sign_of_life(&self, peer: usize) {
        self.signs.asked.store(true, Ordering::Relaxed);
        self.send_later(peer, &self.header(Kind::Here), &[]);
    }

    /// Before the end: tells the transports if something that was sent may not arrive.
    pub fn tell_of_doubts(&self) {
        if self.failure().is_some() || self.signs.asked.load(Ordering::Relaxed) {
            self.routes.transports().iter().for_each(|transport| transport.distrust());
        }
    }

    #[cold]
    fn silent(&self, peer: usize, wrong: Wrong) -> Error {
        let (name, limit) = (self.routes.to(peer).name(), self.signs.limit.unwrap_or_default());
        let why = match wrong {
            Wrong::NoAnswer => {
                "has given no sign of life: its host or the network between is lost, or it was stopped"
            }
            Wrong::NoEnd => {
                "answers, but puts or gets there do not end: its provider has dropped them, as if memory of a window was \
                 unmapped or a limit was reached"
            }
        };
        self.lost(peer, &format!("{why}; {name} was given {limit:?} (TRANSOM_OFI_SILENCE, 0 for ever)"))
    }

    #[cold]
    fn lost(&self, peer: usize, why: &str) -> Error {
        let message = format!("peer {peer} {why}");
        let error = Error::new(Class::Peer, "progress", message).at_rank(self.rank).with_target(peer);
        tracing::error!(%error, "a peer is lost");
        self.fail(error.clone());
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(8);

    fn at(signs: &Signs, seconds: u64) -> Instant {
        signs.begin + Duration::from_secs(100 + seconds)
    }

    fn ask(signs: &Signs, seconds: u64, ended: u64, busy: bool) -> Option<Wrong> {
        assert!(signs.is_due(at(signs, seconds)), "{seconds}");
        signs.ask(&Unwatched { peer: 3, ended, busy }, at(signs, seconds))
    }

    #[test]
    fn answers_and_traffic_end_debts() {
        let signs = Signs::new(Some(LIMIT));
        assert_eq!(ask(&signs, 0, 5, false), None);
        assert!(!signs.is_due(at(&signs, 1)));
        assert!([2, 4, 6, 8].into_iter().all(|seconds| ask(&signs, seconds, 5, false).is_none()));
        assert_eq!(ask(&signs, 10, 5, false), Some(Wrong::NoAnswer));
        assert!([12, 14, 16, 18, 20].into_iter().all(|seconds| ask(&signs, seconds, 6, false).is_none()));
        assert_eq!(ask(&signs, 22, 6, false), Some(Wrong::NoAnswer));
        signs.seen(3);
        assert_eq!(ask(&signs, 24, 6, false), None);
    }

    #[test]
    fn who_answers_must_let_operations_end() {
        let signs = Signs::new(Some(LIMIT));
        let answered = |seconds, ended, busy| {
            let wrong = ask(&signs, seconds, ended, busy);
            signs.seen(3);
            wrong
        };
        assert!([0, 2, 4, 6, 8].into_iter().all(|seconds| answered(seconds, 5, true).is_none()));
        assert_eq!(answered(10, 5, true), Some(Wrong::NoEnd));
        assert_eq!(answered(12, 5, false), None);
        assert!([14, 16, 18, 20, 22].into_iter().all(|seconds| answered(seconds, 5, true).is_none()));
        assert_eq!(answered(24, 6, true), None);
        assert_eq!(answered(26, 6, true), None);
    }

    #[test]
    fn who_did_not_look_for_long_blames_nobody() {
        let signs = Signs::new(Some(LIMIT));
        assert_eq!(ask(&signs, 0, 0, true), None);
        assert_eq!(ask(&signs, 100, 0, true), None);
    }

    #[test]
    fn without_a_limit_nobody_is_asked() {
        assert!(!Signs::new(None).is_due(Instant::now()));
    }
}
