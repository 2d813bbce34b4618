//! The ranks of a test, connected, and polled together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use transom_transport::{Part, Remote, TransportResult};

use crate::rank::Begun;
use crate::{Rank, Subject};

/// How long anything may take that is expected to happen at once, on a machine that is busy with others.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Connected ranks.
#[derive(Debug)]
pub struct Ranks(Vec<Arc<Rank>>);

impl std::ops::Index<usize> for Ranks {
    type Output = Arc<Rank>;

    fn index(&self, rank: usize) -> &Arc<Rank> {
        &self.0[rank]
    }
}

impl Ranks {
    /// Opens so many and connects all to all, themselves included. Nothing if the transport cannot be had here.
    pub fn open(subject: &Subject, count: usize) -> Option<Self> {
        let ranks: Vec<_> = (subject.open)(count)?.into_iter().map(|t| Arc::new(Rank::new(t))).collect();
        assert_eq!(ranks.len(), count);
        for rank in &ranks {
            for (peer, other) in ranks.iter().enumerate() {
                let address = other.transport.address();
                assert!(address.len() <= 200, "an address of {} bytes", address.len());
                assert!(rank.transport.reaches(&address));
                rank.transport.connect(peer, &address).unwrap();
            }
        }
        Some(Self(ranks))
    }

    /// Polls all until `ready`.
    pub fn until(&self, what: &str, mut ready: impl FnMut() -> bool) {
        let start = Instant::now();
        while !ready() {
            if self.0.iter().map(|rank| rank.poll()).sum::<usize>() == 0 {
                std::thread::yield_now();
            }
            assert!(start.elapsed() < TIMEOUT, "waited in vain: {what}");
        }
    }

    /// Sends, and polls all while there is no room.
    pub fn send(&self, from: usize, to: usize, header: &[u8], payload: &[u8]) {
        self.until("room for a message", || self[from].try_send(to, header, payload));
    }

    /// The next message of a rank; polls all.
    pub fn receive(&self, rank: usize) -> Vec<u8> {
        let mut message = None;
        self.until("a message", || {
            message = self[rank].messages.lock().pop_front();
            message.is_some()
        });
        message.unwrap()
    }

    /// Puts and waits; polls all.
    pub fn put(&self, from: usize, remote: &Remote, offset: usize, data: &[u8]) -> TransportResult<()> {
        // SAFETY: `data` outlives the wait, which ends with the operation.
        self.finish(from, "put", || unsafe { self[from].try_put(remote, offset, data) })
    }

    /// Gets and waits; polls all.
    pub fn get(&self, from: usize, remote: &Remote, offset: usize, data: &mut [u8]) -> TransportResult<()> {
        // SAFETY: as above; it is not used in the wait.
        self.finish(from, "get", || unsafe { self[from].try_get(remote, offset, data) })
    }

    /// Puts parts of `data` and waits; polls all.
    pub fn put_list(
        &self,
        from: usize,
        place: (&Remote, usize),
        data: &[u8],
        parts: &[Part],
    ) -> TransportResult<()> {
        assert!(Part::measure(parts).1 <= data.len());
        // SAFETY: `data` outlives the wait, which ends with the operation.
        self.finish(from, "put of a list", || unsafe { self[from].try_put_list(place, data, parts) })
    }

    /// Gets to parts of `data` and waits; polls all.
    pub fn get_list(
        &self,
        from: usize,
        place: (&Remote, usize),
        data: &mut [u8],
        parts: &[Part],
    ) -> TransportResult<()> {
        assert!(Part::measure(parts).1 <= data.len());
        // SAFETY: as above; it is not used in the wait.
        self.finish(from, "get of a list", || unsafe { self[from].try_get_list(place, data, parts) })
    }

    /// Begins an operation when there is room, and waits for its end; polls all.
    fn finish(
        &self,
        from: usize,
        what: &str,
        begin: impl FnMut() -> TransportResult<Begun>,
    ) -> TransportResult<()> {
        let (begun, mut result) = (self.begin(what, begin)?, None);
        self.until(&format!("the end of a {what}"), || {
            result = self[from].ended(begun);
            result.is_some()
        });
        result.unwrap()
    }

    /// Begins an operation when there is room; polls all.
    fn begin(
        &self,
        what: &str,
        mut begin: impl FnMut() -> TransportResult<Begun>,
    ) -> TransportResult<Option<u64>> {
        let mut begun = Ok(None);
        self.until(&format!("room for a {what}"), || {
            begun = begin();
            !matches!(begun, Ok(None))
        });
        begun.map(Option::flatten)
    }

    /// Begins a put; polls all while it is not taken.
    ///
    /// # Safety
    /// `data` stays until the end.
    pub unsafe fn start_put(
        &self,
        from: usize,
        remote: &Remote,
        offset: usize,
        data: &[u8],
    ) -> TransportResult<Option<u64>> {
        // SAFETY: the caller's promise.
        self.begin("put", || unsafe { self[from].try_put(remote, offset, data) })
    }

    /// Begins a get; polls all while it is not taken.
    ///
    /// # Safety
    /// `data` stays until the end, and is not used before.
    pub unsafe fn start_get(
        &self,
        from: usize,
        remote: &Remote,
        offset: usize,
        data: &mut [u8],
    ) -> TransportResult<Option<u64>> {
        // SAFETY: the caller's promise.
        self.begin("get", || unsafe { self[from].try_get(remote, offset, data) })
    }
}
