//! Requests that await a peer's reply.

use slab::Slab;

use super::sync::{Arc, AtomicU8, AtomicU64, Mutex, Ordering};

const WAITING: u8 = 0;
const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;
/// Whoever asked does not wait any more.
const GIVEN_UP: u8 = 3;

/// A request, and its reply when it is there.
#[derive(Debug, Default)]
pub(crate) struct Request {
    state: AtomicU8,
    value: AtomicU64,
    data: Mutex<Vec<u8>>,
}

impl Request {
    /// `None` while no reply is there, then whether the target carried the request out.
    pub fn outcome(&self) -> Option<bool> {
        match self.state.load(Ordering::Acquire) {
            WAITING => None,
            state => Some(state == ACCEPTED),
        }
    }

    /// Nobody waits for the reply any more. False if it is there already.
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
    pub fn open(&self) -> (u32, Arc<Request>) {
        let request = Arc::new(Request::default());
        (self.0.lock().insert(request.clone()) as u32, request)
    }

    /// The request will get no reply.
    pub fn close(&self, number: u32) {
        self.0.lock().try_remove(number as usize);
    }

    /// A reply arrived. False if whoever asked has given up.
    pub fn reply(&self, number: u32, accepted: bool, value: u64, data: &[u8]) -> bool {
        let Some(request) = self.0.lock().try_remove(number as usize) else {
            tracing::warn!(number, "a reply to no request");
            return true;
        };
        request.value.store(value, Ordering::Relaxed);
        if !data.is_empty() {
            *request.data.lock() = data.to_vec();
        }
        request.state.swap(if accepted { ACCEPTED } else { REFUSED }, Ordering::AcqRel) != GIVEN_UP
    }
}
