//! A transport in this process that can have defects.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use transom_litmus::{Memory, Pair};
use transom_transport::{
    Armed, AtomicScope, Capabilities, Completion, Event, NativeAtomic, Posted, Region, RegionKey, Remote,
    Span, Transfer, Transport, TransportError, TransportResult, WaitFd,
};

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Nothing.
    None,
    /// Completions come first, the data some time later; in order.
    EarlyCompletion,
    /// Some operations are late, and later ones done first.
    Overtaking,
    /// Atomics are a load and a store.
    TornAtomics,
    /// What was at an address when it was first used is remembered.
    StaleRegistrations,
    /// Some completions are reported twice.
    DoubleCompletion,
    /// One completion is not reported.
    LostCompletion,
    /// Nothing is done unless the target makes progress.
    NeedsTarget,
    /// After the connection was made nothing works.
    Refuses,
}

/// How late data is.
const LATE: Duration = Duration::from_micros(100);

/// How much later each late operation is than the one before it: on a busy machine the one that looks for them may have no core
/// for many milliseconds.
const LATER: Duration = Duration::from_millis(1);

/// How long is between the two halves of a torn atomic: others come to run meanwhile, however busy the machine is.
const TORN: Duration = Duration::from_micros(1);

#[derive(Debug)]
enum Action {
    Put { to: usize, from: usize, len: usize },
    Get { to: usize, from: usize, len: usize },
    Atomic { at: usize, operation: NativeAtomic },
    Message { to: usize, bytes: Vec<u8> },
}

#[derive(Debug)]
struct Work {
    action: Action,
    rank: usize,
    context: u64,
    due: Instant,
    /// The bytes of a put whose completion was reported before it is done.
    early: Option<Vec<u8>>,
}

/// What is between the ranks.
#[derive(Debug)]
struct Wire {
    defect: Defect,
    works: Mutex<VecDeque<Work>>,
    completions: [Mutex<Vec<Completion>>; 2],
    messages: [Mutex<VecDeque<Vec<u8>>>; 2],
    registered: Mutex<HashMap<(usize, bool), Vec<u8>>>,
    reported: AtomicU64,
    late: AtomicU32,
    broken: AtomicBool,
}

#[derive(Debug)]
struct Fake {
    rank: usize,
    wire: Arc<Wire>,
    capabilities: Capabilities,
}

/// Connected ranks.
pub fn pair(defect: Defect, atomics: AtomicScope) -> Pair {
    let wire = Arc::new(Wire {
        defect,
        works: Mutex::default(),
        completions: Default::default(),
        messages: Default::default(),
        registered: Mutex::default(),
        reported: AtomicU64::new(0),
        late: AtomicU32::new(0),
        broken: AtomicBool::new(false),
    });
    let capabilities = Capabilities {
        max_message: 4096,
        max_transfer: 1 << 30,
        rma: true,
        immediate: false,
        registration_is_free: true,
        moves: None,
        copied_put: 0,
        ordered: false,
        atomics,
        provider: "fake".into(),
    };
    let rank = |rank| Arc::new(Fake { rank, wire: wire.clone(), capabilities: capabilities.clone() });
    let pair = Pair::connect(rank(0), rank(1), Memory::Own).unwrap();
    wire.broken.store(defect == Defect::Refuses, Ordering::Relaxed);
    wire.registered.lock().clear();
    pair
}

impl Fake {
    fn post(&self, action: Action, context: u64) -> TransportResult<Posted> {
        if self.wire.broken.load(Ordering::Relaxed) {
            return Err(TransportError::Peer { peer: 1, reason: "the cable is out".into() });
        }
        let mut work = Work { action, rank: self.rank, context, due: Instant::now(), early: None };
        if self.wire.defect == Defect::EarlyCompletion
            && let Action::Put { from, len, .. } = work.action
        {
            work.early = Some(bytes_at(from, len));
            work.due += LATE;
            self.report(work.rank, context, 0);
        }
        if self.wire.defect == Defect::Overtaking && context.is_multiple_of(3) {
            work.due += LATE + LATER * self.wire.late.fetch_add(1, Ordering::Relaxed);
        }
        self.wire.works.lock().push_back(work);
        Ok(Posted::Pending)
    }

    fn report(&self, rank: usize, context: u64, value: u64) {
        let count = self.wire.reported.fetch_add(1, Ordering::Relaxed);
        let copies = match self.wire.defect {
            Defect::DoubleCompletion if count % 50 == 49 => 2,
            Defect::LostCompletion if count == 49 => 0,
            _ => 1,
        };
        let completion = || Completion { context, value, result: Ok(()) };
        self.wire.completions[rank].lock().extend((0..copies).map(|_| completion()));
    }

    /// Does what is due.
    fn work(&self) {
        if self.wire.defect == Defect::NeedsTarget && self.rank == 0 {
            return;
        }
        loop {
            let mut works = self.wire.works.lock();
            let candidates = if self.wire.defect == Defect::Overtaking { works.len() } else { 1 };
            let now = Instant::now();
            let due = works.iter().take(candidates).position(|work| work.due <= now);
            let Some(work) = due.and_then(|index| works.remove(index)) else { return };
            // The lock is kept: one at a time, as a device does it. Torn atomics are those of several devices.
            let torn = self.wire.defect == Defect::TornAtomics;
            let guard = (!torn).then_some(works);
            self.carry_out(work);
            drop(guard);
        }
    }

    fn carry_out(&self, work: Work) {
        let value = match work.action {
            Action::Put { to, from, len } => {
                let bytes = work.early.clone().unwrap_or_else(|| self.at(from, len, true));
                store(to, &bytes);
                0
            }
            Action::Get { to, from, len } => {
                let stale = self.wire.defect == Defect::StaleRegistrations && len >= 1 << 20;
                let known = self.wire.registered.lock().insert((to, false), Vec::new()).is_some();
                if !(stale && known) {
                    store(to, &bytes_at(from, len));
                }
                0
            }
            Action::Atomic { at, operation } => self.atomic_at(at, operation),
            Action::Message { to, bytes } => return self.wire.messages[to].lock().push_back(bytes),
        };
        if work.early.is_none() {
            self.report(work.rank, work.context, value);
        }
    }

    /// What the transport takes for the bytes at an address.
    fn at(&self, address: usize, len: usize, write: bool) -> Vec<u8> {
        if self.wire.defect != Defect::StaleRegistrations || len < 1 << 20 {
            return bytes_at(address, len);
        }
        let mut registered = self.wire.registered.lock();
        registered.entry((address, write)).or_insert_with(|| bytes_at(address, len)).clone()
    }

    fn atomic_at(&self, at: usize, operation: NativeAtomic) -> u64 {
        // SAFETY: inside the target's region, as `Transport::atomic` has checked, and aligned; the region is alive.
        let word = unsafe { AtomicU64::from_ptr(at as *mut u64) };
        let old = word.load(Ordering::Acquire);
        match operation {
            NativeAtomic::FetchAdd(add) if self.wire.defect == Defect::TornAtomics => {
                std::thread::sleep(TORN);
                word.store(old.wrapping_add(add), Ordering::Release);
                old
            }
            NativeAtomic::FetchAdd(add) => word.fetch_add(add, Ordering::AcqRel),
            NativeAtomic::CompareSwap { compare, swap } if self.wire.defect == Defect::TornAtomics => {
                std::thread::sleep(TORN);
                if old == compare {
                    word.store(swap, Ordering::Release);
                }
                old
            }
            NativeAtomic::CompareSwap { compare, swap } => word
                .compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire)
                .unwrap_or_else(|found| found),
        }
    }
}

/// Over spans of memory that the test keeps mapped: local buffers until their completion, the region for ever.
fn bytes_at(address: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: `Transport::put` and `Region` promise that the memory is valid; no reference to it exists.
    let copied = unsafe { Span::from_raw(address as *mut u8, len) }.copy_out(0, &mut bytes);
    copied.unwrap();
    bytes
}

fn store(address: usize, bytes: &[u8]) {
    // SAFETY: as in `bytes_at`, for writes.
    unsafe { Span::from_raw(address as *mut u8, bytes.len()) }.copy_in(0, bytes).unwrap();
}

#[derive(Debug)]
struct FakeRegion(RegionKey);

impl Region for FakeRegion {
    fn key(&self) -> RegionKey {
        self.0.clone()
    }
}

impl Transport for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn address(&self) -> Vec<u8> {
        vec![self.rank as u8]
    }

    fn reaches(&self, _address: &[u8]) -> bool {
        true
    }

    fn connect(&self, _peer: usize, _address: &[u8]) -> TransportResult<()> {
        Ok(())
    }

    fn allocate(&self, _bytes: usize) -> TransportResult<Option<Span>> {
        Ok(None)
    }

    fn register(&self, memory: &Span) -> TransportResult<Box<dyn Region>> {
        let key = [memory.address() as u64, memory.len() as u64].map(u64::to_ne_bytes).concat();
        Ok(Box::new(FakeRegion(RegionKey(key))))
    }

    fn attach(&self, peer: usize, key: &RegionKey) -> TransportResult<Remote> {
        let word = |at: usize| u64::from_ne_bytes(key.0[at..at + 8].try_into().unwrap());
        Ok(Remote { peer, len: word(8) as usize, direct: None, base: word(0), key: 0 })
    }

    unsafe fn put(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        let Transfer { remote, offset, local, len, context } = *transfer;
        assert!(offset + len <= remote.len);
        self.post(Action::Put { to: remote.base as usize + offset, from: local as usize, len }, context)
    }

    unsafe fn get(&self, transfer: &Transfer<'_>) -> TransportResult<Posted> {
        let Transfer { remote, offset, local, len, context } = *transfer;
        assert!(offset + len <= remote.len);
        self.post(Action::Get { to: local as usize, from: remote.base as usize + offset, len }, context)
    }

    fn atomic(
        &self,
        remote: &Remote,
        offset: usize,
        operation: NativeAtomic,
        context: u64,
    ) -> TransportResult<Posted> {
        assert!(offset + 8 <= remote.len && (remote.base as usize + offset).is_multiple_of(8));
        self.post(Action::Atomic { at: remote.base as usize + offset, operation }, context)
    }

    fn message(&self, peer: usize, header: &[u8], payload: &[u8]) -> TransportResult<Posted> {
        let bytes = [header, payload].concat();
        self.post(Action::Message { to: peer, bytes }, 1)?;
        Ok(Posted::Complete)
    }

    fn progress(&self, sink: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        if self.wire.broken.load(Ordering::Relaxed) {
            return Err(TransportError::Peer { peer: 1, reason: "the cable is out".into() });
        }
        self.work();
        let messages: Vec<_> = self.wire.messages[self.rank].lock().drain(..).collect();
        let completions = std::mem::take(&mut *self.wire.completions[self.rank].lock());
        let count = messages.len() + completions.len();
        messages.iter().for_each(|message| sink(Event::Message(message)));
        completions.into_iter().for_each(|completion| sink(Event::Complete(completion)));
        Ok(count)
    }

    fn abandon(&self) {
        self.wire.works.lock().clear();
    }

    fn wait_fd(&self) -> WaitFd {
        -1
    }

    fn arm(&self) -> TransportResult<Armed> {
        Ok(Armed::Ready)
    }

    fn disarm(&self, _readable: bool) {}
}
