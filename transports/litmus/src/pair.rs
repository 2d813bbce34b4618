//! Two connected ranks, and the memory of one that the other accesses.

use std::sync::Arc;

use transom_transport::{Region, Remote, Span, Transport, TransportError, TransportResult};

use crate::side::{Side, Trouble};
use crate::target::Attended;

/// Bytes of the target's memory.
pub(crate) const REGION: usize = 2 << 20;
/// The ranks.
pub(crate) const ORIGIN: usize = 0;
pub(crate) const TARGET: usize = 1;

/// What memory the target exposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// As the transport allocates it, if it does: what windows that Transom allocates lie in.
    Allocated,
    /// Of the process: what windows of user memory lie in.
    Own,
}

/// Two ranks of one job in this process: rank 0 is the origin, rank 1 the target.
#[derive(Debug)]
pub struct Pair {
    pub(crate) origin: Side,
    pub(crate) target: Side,
    /// The target's memory.
    pub(crate) memory: Span,
    /// The same, as the origin and as the target itself reach it.
    pub(crate) remote: Remote,
    pub(crate) own: Option<Remote>,
    region: Option<Box<dyn Region>>,
}

impl Pair {
    /// Connects the ranks, which were opened for a job of two, and exposes memory of the target's.
    ///
    /// # Errors
    /// They cannot reach each other, or there is no memory.
    pub fn connect(
        origin: Arc<dyn Transport>,
        target: Arc<dyn Transport>,
        memory: Memory,
    ) -> TransportResult<Self> {
        let addresses = [origin.address(), target.address()];
        for (side, peer) in [(&origin, TARGET), (&target, ORIGIN), (&target, TARGET)] {
            if !side.reaches(&addresses[peer]) {
                let reason = "the two are not on one network".into();
                return Err(TransportError::Peer { peer, reason });
            }
            side.connect(peer, &addresses[peer])?;
        }
        let allocated = match memory {
            Memory::Allocated => target.allocate(REGION)?,
            Memory::Own => None,
        };
        let memory = allocated.map_or_else(|| Span::anonymous(REGION), Ok)?;
        let region = target.register(&memory)?;
        let remote = origin.attach(TARGET, &region.key())?;
        let own = target.attach(TARGET, &region.key()).ok();
        let (origin, target) = (Side::new(origin), Side::new(target));
        let pair = Self { origin, target, memory, remote, own, region: Some(region) };
        pair.warm_up()
            .map_err(|trouble| TransportError::Peer { peer: TARGET, reason: trouble.to_string() })?;
        Ok(pair)
    }

    /// Makes the connections, for which the target must be there: what is measured later needs none.
    fn warm_up(&self) -> Result<(), Trouble> {
        let arrived = std::sync::atomic::AtomicBool::new(false);
        let sink = |_: &[u8]| arrived.store(true, std::sync::atomic::Ordering::Release);
        Attended::run(self, &sink, || {
            self.origin.send(TARGET, &[0; 64])?;
            self.origin.until("the first message", || arrived.load(std::sync::atomic::Ordering::Acquire))?;
            if self.has_access() {
                let buffer = Self::buffer(64)?;
                self.origin.wait(self.origin.start_put(&self.remote, 0, &buffer, 64)?)?;
                self.origin.wait(self.origin.start_get(&self.remote, 0, &buffer, 64)?)?;
            }
            Ok(())
        })
    }

    /// Whether there are puts and gets at all.
    pub(crate) fn has_access(&self) -> bool {
        self.remote.direct.is_some() || self.origin.transport.capabilities().rma
    }

    /// Local memory of an operation: a mapping of its own.
    pub(crate) fn buffer(bytes: usize) -> TransportResult<Span> {
        Span::anonymous(bytes)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // Before the memory, and before the transports.
        self.region = None;
    }
}
