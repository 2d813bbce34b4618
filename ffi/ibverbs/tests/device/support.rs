//! Two connected sides in one process.

use std::cell::UnsafeCell;
use std::env;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ibverbs::{
    Access, Batch, CompletionChannel, CompletionQueue, Context, GidKind, Local, MemoryRegion, Mtu, Operation,
    Path, ProtectionDomain, QueuePair, QueuePairOptions, Request, Route, Sending, SharedReceiveQueue,
    TransportKind, WorkCompletion,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub const PORT: u8 = 1;
pub const WORDS: usize = 4096;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The devices of this machine by name; or nothing, and the test is skipped, unless `TRANSOM_CI_REQUIRE_VERBS` is set.
pub fn names() -> Option<Vec<String>> {
    match ibverbs::device_names() {
        Ok(names) => Some(names),
        Err(error) if env::var_os("TRANSOM_CI_REQUIRE_VERBS").is_some() => panic!("{error}"),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// Devices whose queue pairs connect without rdma_cm, by name; or nothing, and the test is skipped, unless
/// `TRANSOM_CI_REQUIRE_VERBS` is set.
pub fn devices() -> Option<Vec<String>> {
    let required = env::var_os("TRANSOM_CI_REQUIRE_VERBS").is_some();
    let names = names()?;
    let usable = |name: &String| {
        let context = Context::open(name).unwrap();
        context.transport() == TransportKind::InfiniBand && context.port(PORT).unwrap().active
    };
    let usable: Vec<String> = names.into_iter().filter(usable).collect();
    if usable.is_empty() {
        assert!(!required, "no InfiniBand or RoCE device with an active port");
        println!("skipped: no InfiniBand or RoCE device with an active port");
        return None;
    }
    Some(usable)
}

/// Memory that devices write.
pub struct Memory {
    region: MemoryRegion,
    words: Box<[UnsafeCell<u64>]>,
}

impl Memory {
    pub fn new(domain: &Arc<ProtectionDomain>, access: Access) -> Memory {
        let words: Box<[UnsafeCell<u64>]> = (0..WORDS).map(|_| UnsafeCell::new(0)).collect();
        // SAFETY: the box outlives the region, which is declared first; its cells may be written from outside.
        let region = unsafe {
            MemoryRegion::register(domain, words.as_ptr().cast_mut().cast(), size_of_val(&*words), access)
        };
        Memory { region: region.unwrap(), words }
    }

    pub fn region(&self) -> &MemoryRegion {
        &self.region
    }

    pub fn address(&self, word: usize) -> u64 {
        self.words[word].get() as u64
    }

    pub fn get(&self, word: usize) -> u64 {
        // SAFETY: inside the box; the tests read what no request under way writes.
        unsafe { self.words[word].get().read_volatile() }
    }

    pub fn set(&self, word: usize, value: u64) {
        // SAFETY: as above.
        unsafe { self.words[word].get().write_volatile(value) }
    }

    /// Some bytes of it, as a part of a request.
    pub fn part(&self, word: usize, len: u32) -> Local {
        Local { address: self.address(word), len, key: self.region.local_key() }
    }
}

pub struct Side {
    pub pair: QueuePair,
    pub memory: Memory,
    pub shared: Option<Arc<SharedReceiveQueue>>,
    pub queue: Arc<CompletionQueue>,
    pub channel: Arc<CompletionChannel>,
    pub domain: Arc<ProtectionDomain>,
    pub context: Arc<Context>,
}

/// How sides are made; a test changes what it is about.
#[derive(Clone, Copy)]
pub struct Plan {
    pub sends: u32,
    pub entries: u32,
    pub inline: u32,
    pub shared: bool,
    pub datagram: bool,
    pub rnr_retries: u8,
}

pub const PLAN: Plan =
    Plan { sends: 64, entries: 256, inline: 64, shared: false, datagram: false, rnr_retries: 7 };

pub fn all_access() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC
}

impl Side {
    pub fn new(device: &str, plan: &Plan) -> Side {
        let context = Context::open(device).unwrap();
        let domain = ProtectionDomain::new(&context).unwrap();
        let channel = CompletionChannel::new(&context).unwrap();
        let queue = CompletionQueue::new(&context, plan.entries, Some(&channel)).unwrap();
        let shared = plan.shared.then(|| SharedReceiveQueue::new(&domain, 16).unwrap());
        let options = QueuePairOptions {
            send: &queue,
            receive: &queue,
            shared: shared.as_ref(),
            sends: plan.sends,
            receives: 16,
            parts: context.attributes().unwrap().max_sge.min(16),
            inline: plan.inline,
            signal_all: false,
        };
        let make = if plan.datagram { QueuePair::datagram } else { QueuePair::reliable };
        let pair = make(&domain, &options).unwrap();
        let memory = Memory::new(&domain, all_access());
        Side { pair, memory, shared, queue, channel, domain, context }
    }

    /// The way to this side from another.
    pub fn route(&self, from: &Side) -> Route {
        let (here, there) = (self.gid(), from.gid());
        let port = self.context.port(PORT).unwrap();
        Route { lid: port.lid, gid: here.1, gid_index: there.0, global: port.ethernet, port: PORT }
    }

    /// The address to use: on Ethernet one that is routed, and IPv4 if there is one.
    fn gid(&self) -> (u8, [u8; 16]) {
        let gids = self.context.gids(PORT).unwrap();
        let mapped = |bytes: &[u8; 16]| bytes[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let best = gids.iter().max_by_key(|gid| (gid.kind == GidKind::RoceV2, mapped(&gid.bytes))).unwrap();
        (best.index, best.bytes)
    }

    fn path(&self, from: &Side) -> Path {
        let route = self.route(from);
        Path {
            number: self.pair.number(),
            sequence: self.pair.number() & 0xffff,
            lid: route.lid,
            gid: route.gid,
            gid_index: route.gid_index,
            global: route.global,
            mtu: Mtu::Bytes1024,
            port: route.port,
            responder_depth: 4,
            receiver_not_ready: 1,
        }
    }

    fn connect(&self, peer: &Side, plan: &Plan) {
        self.pair.initialise(PORT, all_access()).unwrap();
        self.pair.ready_to_receive(&peer.path(self)).unwrap();
        let sending = Sending {
            sequence: self.pair.number() & 0xffff,
            timeout: 14,
            // Not 7, which soft-RoCE takes for ever.
            retries: 6,
            receiver_not_ready_retries: plan.rnr_retries,
            initiator_depth: 4,
        };
        self.pair.ready_to_send(&sending).unwrap();
    }

    /// Posts requests, which the device must take.
    pub fn post(&self, requests: &[Request<'_>]) {
        let mut batch = Batch::new();
        requests.iter().for_each(|request| batch.push(request).unwrap());
        // SAFETY: parts are of this side's memory, which stays, or inline; handles stay, too, until a test has seen the
        // completion.
        unsafe { self.pair.post(&mut batch) }.unwrap();
        assert!(batch.is_empty());
    }

    /// The next completion, which must come.
    pub fn completion(&self) -> WorkCompletion {
        let start = Instant::now();
        let mut one = [WorkCompletion::EMPTY];
        while self.queue.poll(&mut one).unwrap() == 0 {
            assert!(start.elapsed() < TIMEOUT, "no completion");
            std::thread::yield_now();
        }
        one[0]
    }

    /// Posts one request and sees it succeed.
    pub fn carry_out(&self, operation: Operation<'_>, parts: &[Local]) -> WorkCompletion {
        self.post(&[request(42, operation, parts)]);
        let completion = self.completion();
        assert!(completion.is_success(), "{}", completion.status());
        assert_eq!((completion.id(), completion.queue_pair()), (42, self.pair.number()));
        completion
    }

    pub fn assert_nothing_completes(&self) {
        assert_eq!(self.queue.poll(&mut [WorkCompletion::EMPTY]).unwrap(), 0);
    }
}

/// Two sides, on two devices if there are so many.
pub fn sides(devices: &[String], plan: &Plan) -> [Side; 2] {
    [&devices[0], devices.get(1).unwrap_or(&devices[0])].map(|device| Side::new(device, plan))
}

/// Two sides, connected.
pub fn pair(plan: &Plan) -> Option<[Side; 2]> {
    let [a, b] = sides(&devices()?, plan);
    a.connect(&b, plan);
    b.connect(&a, plan);
    Some([a, b])
}

pub fn request<'a>(id: u64, operation: Operation<'a>, parts: &'a [Local]) -> Request<'a> {
    Request { id, operation, parts, signalled: true, inline: false, fence: false, solicited: false }
}

pub fn readable(fd: &impl AsFd, timeout: Duration) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::try_from(timeout).unwrap()).unwrap() == 1
}
