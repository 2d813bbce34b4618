//! Requests that await a peer's reply.

use slab::Slab;

use super::Engine;
use super::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering};

const WAITING: u8 = 0;
const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;
/// The caller does not wait any more.
const GIVEN_UP: u8 = 3;

/// The callback of a reply: with the request, accepted or not.
pub(crate) type OnReply = Box<dyn FnOnce(&Engine, &Request) + Send>;

/// A request, and its reply when it is there.
#[derive(Default)]
pub(crate) struct Request {
    number: u32,
    state: AtomicU8,
    value: AtomicU64,
    data: Mutex<Vec<u8>>,
    then: Mutex<Option<OnReply>>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("outcome", &self.outcome()).finish_non_exhaustive()
    }
}

impl Request {
    /// `None` while no reply is there, then whether the target carried the request out.
    pub fn outcome(&self) -> Option<bool> {
        match self.state.load(Ordering::Acquire) {
            WAITING => None,
            state => Some(state == ACCEPTED),
        }
    }

    /// Its number in messages.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The caller gives up waiting. False if the reply is there already.
    pub fn give_up(&self) -> bool {
        self.state.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The reply's number.
    pub fn value(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// The reply's bytes.
    pub fn take_data(&self) -> Vec<u8> {
        std::mem::take(&mut self.data.lock())
    }
}

/// The open requests, by number.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<Slab<Arc<Request>>>);

impl Requests {
    /// A new request.
    pub fn open(&self, then: Option<OnReply>) -> (u32, Arc<Request>) {
        let mut requests = self.0.lock();
        let entry = requests.vacant_entry();
        let number = entry.key() as u32;
        let request = Arc::new(Request { number, then: Mutex::new(then), ..Request::default() });
        entry.insert(request.clone());
        (number, request)
    }

    /// The request will get no reply.
    pub fn close(&self, number: u32) {
        self.0.lock().try_remove(number as usize);
    }

    /// A reply arrived.
    #[must_use]
    pub fn reply(&self, number: u32, accepted: bool, value: u64, data: &[u8]) -> Replied {
        let Some(request) = self.0.lock().try_remove(number as usize) else {
            tracing::warn!(number, "a reply to no request");
            return Replied { wanted: true, then: None };
        };
        request.value.store(value, Ordering::Relaxed);
        if !data.is_empty() {
            *request.data.lock() = data.to_vec();
        }
        let before = request.state.swap(if accepted { ACCEPTED } else { REFUSED }, Ordering::AcqRel);
        let then = request.then.lock().take();
        Replied { wanted: before != GIVEN_UP, then: then.map(|then| (then, request)) }
    }
}

/// What a reply brings.
pub(crate) struct Replied {
    /// The caller still waits for it.
    pub wanted: bool,
    /// What is to be done now.
    pub then: Option<(OnReply, Arc<Request>)>,
}
