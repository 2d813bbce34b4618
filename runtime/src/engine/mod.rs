//! The progress engine of one rank: polls transports, sends messages, waits. Knows messages and peers, but no window or
//! epoch: windows expose their memory and lock words to it ([`exposure`]), and its agent applies active messages to them.

mod agent;
mod awaited;
mod backoff;
mod claims;
mod dead;
mod exposure;
mod gates;
mod gathered;
mod locks;
mod mask;
#[cfg(test)]
mod models;
mod outbox;
mod pending;
mod polling;
mod progress;
mod pull;
mod quiet;
mod receive_slots;
mod regions;
#[cfg(test)]
mod regions_tests;
mod requests;
mod revoke;
mod routes;
mod runs;
mod sent;
mod signal_line;
mod signs;
mod sync;
mod target_state;
mod targets;
#[cfg(test)]
mod targets_tests;
mod tasks;
pub(crate) mod two_sided;
mod waiting;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use smallvec::SmallVec;
use transom_transport::{Posted, Transport, TransportError, TransportResult, TryLock};
use zerocopy::IntoBytes;

pub(crate) use agent::{pack_bytes, unpack_bytes};
pub(crate) use backoff::{Idle, Step};
pub(crate) use exposure::{
    CONTROL_SLOT, Exposed, Exposure, Exposures, LockWords, SharedUpdates, UPDATES_WORD,
};
pub(crate) use locks::{agent_abandon, agent_recheck};
pub(crate) use pending::{Countdown, Pending, Pendings};
pub(crate) use pull::Pull;
pub(crate) use receive_slots::{Coming, SLOTS as RECEIVE_SLOTS};
pub(crate) use regions::{Attached, CachedRegion, RegionInfo, Regions, key_for};
pub(crate) use requests::{OnReply, Request, Requests};
pub(crate) use revoke::ranges;
pub(crate) use routes::{Registered, Route, Routes};
pub(crate) use sent::SEVERAL;
pub(crate) use signal_line::{PeerSleepers, SignalLine, Sleepers};
pub(crate) use target_state::TargetState;
pub(crate) use targets::Target;
pub(crate) use tasks::Promise;
pub(crate) use waiting::{Noted, SHORT_SLEEP};

use crate::explain::Tally;
use crate::protocol::matching::Matching;
use crate::protocol::wire::{Header, Kind, Token};
use crate::settings::Settings;
use crate::waits::{Awaits, Board, Subject};
use crate::{Error, Result};
use outbox::Outbox;
use progress::Progress;
use pull::Pulls;
use signs::Signs;
use tasks::Tasks;

/// The state of a job, as the ranks of one process share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobStatus {
    /// Why no call can succeed any more, if so.
    pub failure: Arc<OnceLock<Error>>,
    /// Which ranks have left, where all ranks live in this process.
    pub left: Arc<[AtomicBool]>,
}

/// The progress engine of one rank. Shared by the job's values, its windows and its progress thread.
#[derive(Debug)]
pub(crate) struct Engine {
    pub rank: usize,
    pub size: usize,
    pub token: Token,
    pub settings: Settings,
    pub routes: Routes,
    pub requests: Requests,
    pub pendings: Pendings,
    pub exposures: Exposures,
    /// Threads that sleep until ranks of this node signal.
    pub sleepers: Sleepers,
    pub matching: Mutex<Matching>,
    /// Whether `matching` may know of ranks that wait in a collective without messages.
    pub waiting: AtomicBool,
    /// Whether `matching` may know in which collectives others are.
    pub has_collectives: AtomicBool,
    /// Contexts that this rank has made for communicators.
    pub contexts: AtomicU64,
    /// Dropped after the routes: nothing fills a task's buffers any more then.
    tasks: Tasks,
    outbox: Outbox,
    pulls: Pulls,
    /// Dropped after the routes, like the tasks.
    pub two_sided: two_sided::TwoSided,
    progress: Progress,
    signs: Signs,
    /// Only one thread polls at a time.
    polling: TryLock<()>,
    /// Shared with the other ranks of this process.
    status: JobStatus,
    /// What its windows have counted.
    pub tally: Arc<Tally>,
    /// Where this rank says what it waits for, if anybody reads that.
    pub board: Option<Board>,
    /// Whether the job goes on when a rank dies.
    pub outlives: bool,
    /// Ranks that have.
    pub dead: dead::Dead,
}

impl Engine {
    /// The engine of rank `rank`. `crowd`: how many ranks share how many processors with it.
    pub fn new(
        rank: usize,
        token: Token,
        settings: Settings,
        routes: Routes,
        (sleepers, crowd): (Sleepers, (usize, usize)),
        status: JobStatus,
    ) -> Result<Self> {
        // Several ranks of one process would share a page.
        let tally = Arc::<Tally>::default();
        let board =
            if status.left.is_empty() { Board::from_env(tally.clone(), routes.summary(rank)) } else { None };
        let (board, event) = board.unzip();
        let outlives = status.left.is_empty() && dead::outlives(board.as_ref(), routes.len())?;
        if outlives {
            routes.transports().iter().for_each(|transport| transport.outlives_peers());
        }
        Ok(Self {
            rank,
            size: routes.len(),
            token,
            progress: Progress::new(&settings, crowd, routes.transports(), event)?,
            signs: Signs::new(settings.ofi_silence),
            settings,
            routes,
            requests: Requests::default(),
            pendings: Pendings::default(),
            exposures: Exposures::default(),
            sleepers,
            matching: Mutex::default(),
            waiting: AtomicBool::new(false),
            has_collectives: AtomicBool::new(false),
            contexts: AtomicU64::new(0),
            tasks: Tasks::default(),
            outbox: Outbox::default(),
            pulls: Pulls::default(),
            two_sided: two_sided::TwoSided::default(),
            polling: TryLock::new(()),
            status,
            tally,
            board,
            outlives,
            dead: dead::Dead::default(),
        })
    }

    /// Whether all ranks of the job are threads of this process.
    pub fn in_one_process(&self) -> bool {
        !self.status.left.is_empty()
    }

    /// Starts the thread that makes progress while no other does.
    pub fn start_progress_thread(self: &Arc<Self>) -> Result<JoinHandle<()>> {
        progress::spawn(self.clone())
    }

    /// Ends the progress thread.
    pub fn stop_progress_thread(&self) {
        self.progress.stop();
    }

    /// Makes every blocked and later call fail with `error`.
    pub fn fail(&self, error: Error) {
        tracing::debug!(rank = self.rank, %error, "engine fails");
        let _ = self.status.failure.set(error);
        self.progress.interrupt();
        self.tasks.wake_all();
    }

    /// Forgets the ranks that wait in a communicator's collectives up to `sequence`.
    #[inline]
    pub fn forget_waiting(&self, context: u64, sequence: u64) {
        if self.waiting.load(Ordering::Acquire) {
            let mut matching = self.matching.lock();
            let none = matching.forget_waiting(context, sequence);
            self.waiting.store(!none, Ordering::Release);
        }
    }

    /// This rank has completed a collective.
    #[inline]
    pub fn finish_collective(&self, context: u64, sequence: u64) {
        if self.has_collectives.load(Ordering::Acquire) {
            let mut matching = self.matching.lock();
            let none = matching.finish(context, sequence);
            self.has_collectives.store(!none, Ordering::Release);
        }
    }

    /// Why no call can succeed any more, if so.
    pub fn failure(&self) -> Option<&Error> {
        self.status.failure.get()
    }

    /// Whether a rank of this process is known to have left the job.
    pub fn has_left(&self, rank: usize) -> bool {
        self.status.left.get(rank).is_some_and(|left| left.load(Ordering::Acquire))
    }

    /// This rank has left the job: it accesses nothing any more.
    pub fn leave(&self) {
        if let Some(left) = self.status.left.get(self.rank) {
            left.store(true, Ordering::Release);
        }
    }

    fn failed(&self) -> Option<Error> {
        self.status.failure.get().cloned()
    }

    /// A header of a message of ours.
    pub fn header(&self, kind: Kind) -> Header {
        Header { token: self.token, kind: kind as u8, origin: self.rank as u32, ..Header::default() }
    }

    /// Whether something is deferred until a queue has space.
    #[inline]
    fn has_waiting(&self) -> bool {
        !(self.outbox.is_empty() && self.pulls.is_empty() && self.two_sided.transfers.is_empty())
    }

    /// Whether something is deferred that no event announces.
    fn has_deferred(&self) -> bool {
        self.has_waiting() || self.tasks.has_full_queue()
    }

    /// A caller posts an operation, without being inside.
    #[inline(always)]
    pub fn count_post(&self) {
        self.progress.count_post();
    }

    /// The same, of a message.
    #[inline(always)]
    pub fn count_send(&self) {
        self.progress.count_send();
    }

    /// For a caller that asks for something and waits for the answer: that wakes no other thread, until this is dropped.
    #[inline]
    pub fn quietly(&self) -> Option<impl Sized + '_> {
        self.progress.mask()
    }

    /// Whether completions are awaited by others than callers.
    fn wants_ends(&self) -> bool {
        self.has_deferred() || !self.tasks.is_empty() || self.tasks.are_awaited()
    }

    /// Sends a message, and waits while the queue is full. Not for the agent.
    pub fn send(&self, operation: &'static str, peer: usize, header: &Header, payload: &[u8]) -> Result<()> {
        self.count_send();
        self.send_in_room(operation, peer, || self.try_send(operation, peer, header, payload))
    }

    /// Attempts to send until there was room for all.
    #[inline]
    fn send_in_room(
        &self,
        operation: &'static str,
        peer: usize,
        mut attempt: impl FnMut() -> Option<Result<()>>,
    ) -> Result<()> {
        if let Some(result) = attempt() {
            return result;
        }
        // The peer makes space, and does not signal it: try again every now and then.
        let what = || Awaits::room(format!("room in the message queue of rank {peer} of the job"), peer);
        self.wait_until(operation, &what, Some(waiting::SHORT_SLEEP), attempt)
    }

    /// As [`Engine::send`], of several messages, one behind the other: with one call where that takes less time.
    pub fn send_all(&self, operation: &'static str, peer: usize, messages: &[(Header, &[u8])]) -> Result<()> {
        let all: SmallVec<[(&[u8], &[u8]); SEVERAL]> =
            messages.iter().map(|(header, payload)| (header.as_bytes(), *payload)).collect();
        let mut taken = 0;
        self.count_send();
        self.send_in_room(operation, peer, || {
            if self.outbox.is_waiting(peer) {
                return None;
            }
            match self.routes.to(peer).messages(peer, &all[taken..]) {
                Ok(some) => taken += some,
                Err(error) => return Some(Err(self.not_sent(operation, peer, &error))),
            }
            (taken >= all.len()).then_some(Ok(()))
        })
    }

    /// As [`Engine::send`]; `others` to the same peer follow at once, if so.
    pub fn send_before(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
        others: bool,
    ) -> Result<()> {
        if others && self.has_sent_before(peer, header, payload) {
            Ok(())
        } else {
            self.send(operation, peer, header, payload)
        }
    }

    /// Whether a message was sent that others to the same peer follow at once.
    fn has_sent_before(&self, peer: usize, header: &Header, payload: &[u8]) -> bool {
        self.has_sent(peer, |to| to.message_before(peer, header.as_bytes(), payload))
    }

    /// As [`Engine::send`], for what a flush will confirm: it may wait for messages behind it, until somebody makes progress.
    pub fn send_gathered(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
    ) -> Result<()> {
        let attempt = |to: &dyn Transport| to.message_gathered(peer, header.as_bytes(), payload);
        if self.has_sent(peer, attempt) { Ok(()) } else { self.send(operation, peer, header, payload) }
    }

    /// Whether an attempt to send a message behind all others has succeeded.
    fn has_sent(&self, peer: usize, attempt: impl FnOnce(&dyn Transport) -> TransportResult<Posted>) -> bool {
        let sent =
            !self.outbox.is_waiting(peer) && matches!(attempt(self.routes.to(peer)), Ok(Posted::Complete));
        if sent {
            self.count_send();
        }
        sent
    }

    /// Sends a message unless the queue is full.
    #[inline]
    pub fn try_send(
        &self,
        operation: &'static str,
        peer: usize,
        header: &Header,
        payload: &[u8],
    ) -> Option<Result<()>> {
        if self.outbox.is_waiting(peer) {
            return None;
        }
        match self.routes.to(peer).message(peer, header.as_bytes(), payload) {
            Ok(Posted::Again) => None,
            Ok(_) => Some(Ok(())),
            Err(error) => Some(Err(self.not_sent(operation, peer, &error))),
        }
    }

    /// A message could not be sent.
    #[cold]
    fn not_sent(&self, operation: &'static str, peer: usize, error: &TransportError) -> Error {
        let error = Error::transport(operation, error).at_rank(self.rank).with_target(peer);
        // The connection may tell before the launcher does.
        let is_lost = self.outlives && error.class() == crate::Class::Peer;
        if is_lost {
            self.dead.suspect(peer, &error);
        }
        if is_lost { error.with_dead(peer) } else { error }
    }

    /// Sends a message from within progress: if the queue is full a later poll sends it.
    pub fn send_later(&self, peer: usize, header: &Header, payload: &[u8]) {
        self.outbox.send(&self.routes, peer, header.as_bytes(), payload);
    }

    /// Has something done when all has left that waits for room in the queue of `peer` now; by this thread if nothing does.
    pub fn when_left(&self, peer: usize, then: impl FnOnce(&Self) + Send + 'static) {
        self.outbox.when_left(self, peer, Box::new(then));
    }

    /// Whether messages to `peer` wait for room in its queue.
    pub fn awaits_room(&self, peer: usize) -> bool {
        self.outbox.is_waiting(peer)
    }

    /// Waits until all that was sent has left this process: connections may be yet to be made.
    pub fn send_out(&self, operation: &'static str) -> Result<()> {
        let transports = self.routes.transports();
        let what = || Awaits::new("what was sent last to leave", Subject::Room, []);
        self.wait_until(operation, &what, Some(waiting::SHORT_SLEEP), || {
            let sent = self.outbox.is_empty() && transports.iter().all(|transport| transport.is_sent());
            sent.then_some(Ok(()))
        })
    }

    /// Sends a request; the result receives the reply.
    pub fn request(
        &self,
        operation: &'static str,
        peer: usize,
        header: Header,
        payload: &[u8],
    ) -> Result<Arc<Request>> {
        self.request_then(operation, peer, header, payload, None)
    }

    /// [`Engine::request`], with a callback for the reply.
    pub fn request_then(
        &self,
        operation: &'static str,
        peer: usize,
        header: Header,
        payload: &[u8],
        then: Option<OnReply>,
    ) -> Result<Arc<Request>> {
        let (number, request) = self.requests.open(then);
        let header = Header { request: number, ..header };
        match self.send(operation, peer, &header, payload) {
            Ok(()) => Ok(request),
            Err(error) => {
                self.requests.close(number);
                Err(error)
            }
        }
    }

    /// Waits for the reply of rank `world` of the job to a request; `target` is what the caller knows it as.
    pub fn await_reply(
        &self,
        operation: &'static str,
        (target, world): (usize, usize),
        request: &Request,
    ) -> Result<()> {
        let what = || Awaits::target(format!("the reply of rank {target}"), world);
        self.await_reply_of(operation, target, request, &what)
    }

    /// The same, for what is described so.
    pub fn await_reply_of(
        &self,
        operation: &'static str,
        peer: usize,
        request: &Request,
        what: &dyn Fn() -> Awaits,
    ) -> Result<()> {
        let accepted = self.wait_until(operation, what, None, || request.outcome().map(Ok))?;
        if accepted {
            return Ok(());
        }
        let message =
            "the target refused the request: its window is gone, or its runtime is of another version";
        Err(Error::new(crate::Class::RmaRange, operation, message).at_rank(self.rank).with_target(peer))
    }
}
