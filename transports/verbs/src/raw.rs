//! One queue pair between two processes, and no transport around it: what a device does by itself, for benchmarks to
//! compare with. Both ends open, exchange [`RawAddress`]es in whatever way, and connect; then either posts.

use std::sync::Arc;

use ibverbs::{
    Access, Atomics, BATCH, Batch, CompletionQueue, Local, MemoryRegion, Mtu, Operation, Path,
    ProtectionDomain, QueuePair, QueuePairOptions, Request, Sending, VerbsError, WorkCompletion,
};
use memmap2::{MmapMut, MmapRaw};
use transom_transport::{TransportError, TransportResult};

use crate::Options;
use crate::connect::{FOR_EVER, MIN_NOT_READY, RETRIES, timer};
use crate::device::{Device, Network, PORT, unavailable};
use crate::setup::{INLINE, READS, refused};

/// Requests under way at once.
const DEPTH: usize = 256;
/// Bytes of an atomic.
const WORD: usize = 8;

/// What the peer must know of an end: queue pair, LID, MTU, address and key of its memory, and its GID in two parts.
pub type RawAddress = [u64; 7];

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawVerb {
    /// Writes to the peer.
    Write,
    /// Reads from the peer.
    Read,
    /// Adds to a word of the peer.
    FetchAdd,
    /// Compares a word of the peer, and swaps it.
    CompareSwap,
}

/// What requests do, and where: one behind the other from the start of each end's memory, then from the start again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawTransfer {
    /// What each does.
    pub verb: RawVerb,
    /// Bytes of each; those of an atomic are 8.
    pub bytes: usize,
    /// At how many places.
    pub places: usize,
}

impl RawTransfer {
    fn len(self) -> usize {
        match self.verb {
            RawVerb::Write | RawVerb::Read => self.bytes,
            RawVerb::FetchAdd | RawVerb::CompareSwap => WORD,
        }
    }
}

/// One end. The queue pair is declared before what it uses, and so goes first.
#[derive(Debug)]
pub struct Raw {
    pair: QueuePair,
    queue: Arc<CompletionQueue>,
    region: MemoryRegion,
    memory: MmapRaw,
    len: usize,
    /// Where the peer's memory is, and its key.
    remote: (u64, u32),
    batch: Batch,
    entries: [WorkCompletion; BATCH],
    device: Device,
}

impl Raw {
    /// An end with `len` bytes of memory, zeroed, that the peer may access, on the device that a rank of the transport
    /// would use ([`crate::Options::device`]).
    ///
    /// # Errors
    /// There is no device that can be used, or no room in it.
    pub fn open(device: Option<&str>, rank: usize, len: usize) -> TransportResult<Self> {
        let device = Device::choose(device, rank)?;
        if device.network == Network::Iwarp {
            let reason = "its queue pairs are not connected by their numbers (iWARP)";
            return Err(unavailable(format!("device {}: {reason}", device.context.name())));
        }
        let failed = |e: VerbsError| unavailable(format!("device {}: {e}", device.context.name()));
        let len = len.max(WORD);
        let memory: MmapRaw = MmapMut::map_anon(len)
            .map_err(|e| TransportError::NoMemory { bytes: len, reason: e.to_string() })?
            .into();
        let domain = ProtectionDomain::new(&device.context).map_err(failed)?;
        let atomic = match device.attributes.atomics {
            Atomics::None => Access::NONE,
            _ => Access::REMOTE_ATOMIC,
        };
        let remote = Access::REMOTE_READ | Access::REMOTE_WRITE | atomic;
        // SAFETY: the mapping outlives the registration, which is declared before it; only devices use it.
        let region = unsafe {
            MemoryRegion::register(&domain, memory.as_mut_ptr(), len, Access::LOCAL_WRITE | remote)
        }
        .map_err(|e| refused(len, &e))?;
        let queue = CompletionQueue::new(&device.context, DEPTH as u32, None).map_err(failed)?;
        let options = QueuePairOptions {
            send: &queue,
            receive: &queue,
            shared: None,
            sends: DEPTH as u32,
            receives: 1,
            parts: 1,
            inline: INLINE,
            signal_all: false,
        };
        let pair = QueuePair::reliable(&domain, &options).map_err(failed)?;
        pair.initialise(PORT, remote).map_err(failed)?;
        let (batch, entries) = (Batch::new(), [WorkCompletion::EMPTY; BATCH]);
        Ok(Self { pair, queue, region, memory, len, remote: (0, 0), batch, entries, device })
    }

    /// What the peer is to be given.
    pub fn address(&self) -> RawAddress {
        let gid = u128::from_be_bytes(self.device.gid.bytes);
        [
            self.pair.number().into(),
            self.device.lid.into(),
            self.device.mtu as u64,
            self.memory.as_mut_ptr() as u64,
            self.region.remote_key().into(),
            (gid >> 64) as u64,
            gid as u64,
        ]
    }

    /// Connects with the peer of this address. It may be used when the peer has connected, too.
    ///
    /// # Errors
    /// The device refuses.
    pub fn connect(&mut self, peer: &RawAddress) -> TransportResult<()> {
        let [number, lid, mtu, base, key, high, low] = *peer;
        let device = &self.device;
        let gid = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let sizes = [Mtu::Bytes256, Mtu::Bytes512, Mtu::Bytes1024, Mtu::Bytes2048, Mtu::Bytes4096];
        let theirs = sizes.into_iter().find(|size| *size as u64 == mtu).unwrap_or(Mtu::Bytes256);
        let path = Path {
            number: number as u32,
            sequence: 0,
            lid: lid as u16,
            gid,
            gid_index: device.gid.index,
            global: device.network == Network::Ethernet || gid[..8] != device.gid.bytes[..8],
            mtu: device.mtu.min(theirs),
            port: PORT,
            responder_depth: device.attributes.max_qp_rd_atom.clamp(1, READS) as u8,
            receiver_not_ready: MIN_NOT_READY,
        };
        let sending = Sending {
            sequence: 0,
            timeout: timer(Options::SILENCE),
            retries: RETRIES,
            receiver_not_ready_retries: FOR_EVER,
            initiator_depth: device.attributes.max_qp_init_rd_atom.clamp(1, READS) as u8,
        };
        let failed = |e: VerbsError| unavailable(format!("device {}: {e}", device.context.name()));
        self.pair.ready_to_receive(&path).map_err(failed)?;
        self.pair.ready_to_send(&sending).map_err(failed)?;
        self.remote = (base, key as u32);
        Ok(())
    }

    /// Does `count` requests of `bytes` each, and polls until all have completed. So many are posted `together`, at most
    /// [`BATCH`]: with one doorbell and one completion. 256 of them are under way at once.
    ///
    /// # Errors
    /// More bytes than there are; a request failed, which ends the use of this end. A peer that is gone makes one fail.
    pub fn run(&mut self, transfer: RawTransfer, count: u64, together: usize) -> TransportResult<()> {
        let bytes = transfer.len().saturating_mul(transfer.places);
        if bytes > self.len {
            return Err(TransportError::Range { offset: 0, bytes, len: self.len });
        }
        let together = together.clamp(1, BATCH) as u64;
        let (mut posted, mut done) = (0, 0);
        while done < count {
            while posted < count && posted - done + together <= DEPTH as u64 {
                let some = together.min(count - posted);
                self.post(transfer, posted, some)?;
                posted += some;
            }
            done += self.completed()?;
        }
        Ok(())
    }

    /// Posts so many requests, behind others; the number of the last says how many they are.
    fn post(&mut self, transfer: RawTransfer, behind: u64, count: u64) -> TransportResult<()> {
        let refused = |reason: String| TransportError::System { operation: "ibv_post_send", reason };
        let (RawTransfer { verb, places, .. }, len) = (transfer, transfer.len());
        let inline = verb == RawVerb::Write && len <= self.pair.inline() as usize;
        let mut place = behind % places.max(1) as u64;
        for i in 1..=count {
            let at = place * len as u64;
            place = if place + 1 < places as u64 { place + 1 } else { 0 };
            let ((base, key), own) = (self.remote, self.memory.as_mut_ptr() as u64 + at);
            let address = base + at;
            let operation = match verb {
                RawVerb::Write => Operation::Write { address, key },
                RawVerb::Read => Operation::Read { address, key },
                RawVerb::FetchAdd => Operation::FetchAdd { address, key, add: 1 },
                RawVerb::CompareSwap => Operation::CompareSwap { address, key, compare: 1, swap: 1 },
            };
            let part = Local { address: own, len: len as u32, key: self.region.local_key() };
            let request = Request {
                id: count,
                operation,
                parts: std::slice::from_ref(&part),
                signalled: i == count,
                inline,
                fence: false,
                solicited: false,
            };
            self.batch.push(&request).map_err(|e| refused(e.to_string()))?;
        }
        // SAFETY: the memory is this end's own, registered for as long as the queue pair lives, and nobody refers to it;
        // every batch ends with a request that completes visibly.
        unsafe { self.pair.post(&mut self.batch) }.map_err(|e| refused(e.to_string()))
    }

    /// How many requests the completions there are stand for.
    fn completed(&mut self) -> TransportResult<u64> {
        let failed = |reason: String| TransportError::System { operation: "ibv_poll_cq", reason };
        let count = self.queue.poll(&mut self.entries).map_err(|e| failed(e.to_string()))?;
        self.entries[..count].iter().try_fold(0, |sum, entry| match entry.is_success() {
            true => Ok(sum + entry.id()),
            false => Err(failed(entry.status().to_string())),
        })
    }
}
