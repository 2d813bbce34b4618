//! Latency of 8-byte operations between two processes of this machine, next to a raw TCP socket in the same run.
//!
//! ```text
//! cargo run --release --example latency -- [name=value]...
//!   provider=tcp;ofi_rxm   as in the hints
//!   wait=none | fd         wait object of the completion queues
//!   progress=any | auto | manual
//!   threading=safe | domain
//!   caps=rma | atomic      FI_MSG | FI_RMA, or with FI_ATOMIC
//!   target=spin            the target reads its queue without pause
//!         | poll           it sleeps in poll(2) on the wait descriptor whenever fi_trywait allows (needs wait=fd)
//!         | absent         it makes no call while reads and writes are measured
//!   pin=yes | no           origin on core 0, target on core 1
//!   pause=0                milliseconds between operations, so that the target is asleep when the next arrives
//!   rounds=20000
//! ```
//!
//! The program starts itself a second time as the target; the two exchange addresses over the target's standard input
//! and output. `TRANSOM_LIBFABRIC` chooses the library.

mod peer;

use std::env;
use std::error::Error;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use libfabric::{
    Address, AddressVector, Completion, CompletionQueue, Domain, Endpoint, EndpointOptions, Fabric,
    FabricError, Hints, Info, Library, Local, MemoryRegion, Posted, Progress, QueueOptions, Remote,
    Threading, Wait, flags,
};
use peer::{Peer, from_hex, tcp, to_hex};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Tells the target to end.
const QUIT: u64 = u64::MAX;
/// Tells the target to make no call for [`ABSENCE`].
const LEAVE: u64 = u64::MAX - 1;
const ABSENCE: Duration = Duration::from_secs(8);
/// An operation that takes longer than this is reported as stalled.
const TIMEOUT: Duration = Duration::from_secs(3);

fn main() -> Outcome<()> {
    let settings = Settings::parse(env::args().skip(1))?;
    if settings.is_target { target(&settings) } else { origin(&settings) }
}

// The origin.

fn origin(settings: &Settings) -> Outcome<()> {
    settings.pin(0)?;
    let mut peer = Peer::start()?;
    let mut stream = tcp::connect(peer.line()?.parse()?)?;
    let tcp = settings.measure(|_| tcp::round_trip(&mut stream))?;
    drop(stream);

    let mut side = Side::open(settings)?;
    describe(&side.info);
    peer.tell(&to_hex(&side.endpoint.name()?))?;
    let name = from_hex(&peer.line()?)?;
    let remote = Remote { key: peer.line()?.parse()?, address: peer.line()?.parse()? };
    side.peer = side.addresses.insert(&name)?;

    println!("{:34}{:>9}{:>9}{:>9}{:>8}", "", "p50 µs", "p10", "p99", "/ TCP");
    print(&tcp, &tcp, "TCP round trip");
    let round_trip = settings.measure(|round| side.round_trip(round))?;
    print(&round_trip, &tcp, "send/recv round trip");
    let away = settings.target == Target::Absent;
    if away {
        side.message(LEAVE)?;
    }
    let measured = [
        ("fi_read", settings.measure(|_| side.read(remote))),
        ("fi_write, delivery complete", settings.measure(|_| side.write(remote, flags::DELIVERY_COMPLETE))),
        ("fi_write, completion by default", settings.measure(|_| side.write(remote, 0))),
    ];
    for (name, times) in &measured {
        match times {
            Ok(times) => print(times, &tcp, name),
            Err(error) => println!("{name:34} {error}"),
        }
    }
    if away {
        thread::sleep(ABSENCE);
    }
    side.message(QUIT)?;
    while let Ok(line) = peer.line() {
        println!("target: {line}");
    }
    peer.process.wait()?;
    Ok(())
}

fn describe(info: &Info) {
    println!(
        "{} (library {:#x}): caps {:#x} mode {:#x} mr_mode {:#x} {:?} progress, {:?} threading",
        info.provider(),
        info.library().version(),
        info.caps(),
        info.mode(),
        info.mr_mode(),
        info.data_progress(),
        info.threading(),
    );
    println!(
        "max_msg {} inject {} tx {} rx {} parts {}/{} key bytes {} cq data {} order {:#x} raw/war/waw {}/{}/{}",
        info.max_message_size(),
        info.inject_size(),
        info.transmit_size(),
        info.receive_size(),
        info.transmit_parts(),
        info.remote_parts(),
        info.mr_key_size(),
        info.cq_data_size(),
        info.message_order(),
        info.max_order_read_after_write(),
        info.max_order_write_after_read(),
        info.max_order_write_after_write(),
    );
}

fn print(times: &[f64], tcp: &[f64], name: &str) {
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let ratio = at(50) / tcp[(tcp.len() - 1) / 2];
    println!("{name:34}{:9.2}{:9.2}{:9.2}{ratio:8.2}", at(50), at(10), at(99));
}

// The target.

fn target(settings: &Settings) -> Outcome<()> {
    // SAFETY: prctl(2): this option takes a signal number. A target without an origin would spin for ever.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    settings.pin(1)?;
    tcp::echo()?;

    let mut side = Side::open(settings)?;
    let mut name = String::new();
    io::stdin().read_line(&mut name)?;
    side.peer = side.addresses.insert(&from_hex(name.trim())?)?;
    let mut window = vec![0_u64; 512];
    let access = flags::REMOTE_READ | flags::REMOTE_WRITE;
    // SAFETY: the window lives until this function ends, longer than the region, and nothing here reads it.
    let region =
        unsafe { MemoryRegion::register(&side.domain, window.as_mut_ptr().cast(), 4096, access, 1) }?;
    let virtual_addresses = side.info.mr_mode() & flags::mr::VIRT_ADDR != 0;
    let base = if virtual_addresses { window.as_ptr() as u64 } else { 0 };
    println!("{}\n{}\n{base}", to_hex(&side.endpoint.name()?), region.key());

    let mut sleeper = Sleeper::default();
    side.receive()?;
    loop {
        let Some(message) = side.take_message()? else {
            if settings.target == Target::Poll {
                sleeper.sleep(&side)?;
            }
            continue;
        };
        side.receive()?;
        match message {
            QUIT => break,
            LEAVE => thread::sleep(ABSENCE),
            echo => side.message(echo)?,
        }
    }
    println!("{sleeper:?}");
    Ok(())
}

/// Sleeps on the wait descriptor and keeps count of how that went.
#[derive(Debug, Default)]
struct Sleeper {
    woken: u64,
    timed_out: u64,
    not_allowed: u64,
}

impl Sleeper {
    fn sleep(&mut self, side: &Side) -> Outcome<()> {
        if !side.fabric.try_wait(&[&side.queue])? {
            self.not_allowed += 1;
            return Ok(());
        }
        let fd = side.queue.wait_fd().ok_or("target=poll needs wait=fd")?.as_raw_fd();
        let mut descriptor = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid structure.
        match unsafe { libc::poll(&mut descriptor, 1, 1000) } {
            0 => self.timed_out += 1,
            _ => self.woken += 1,
        }
        Ok(())
    }
}

// What both have.

struct Side {
    endpoint: Endpoint,
    addresses: Arc<AddressVector>,
    queue: Arc<CompletionQueue>,
    domain: Arc<Domain>,
    fabric: Arc<Fabric>,
    info: Info,
    peer: Address,
    /// What is sent from, written from and read into; registered where the provider asks for it.
    word: Local,
    inbox: Local,
    _local: Option<MemoryRegion>,
}

impl Side {
    fn open(settings: &Settings) -> Outcome<Side> {
        let library = Library::open()?;
        let offers = settings.hints().query(library)?;
        let info = offers.into_iter().next().ok_or("no provider offers that")?;
        let fabric = Fabric::open(&info)?;
        // SAFETY: this program has one thread, and providers serialise with threads of their own.
        let domain = unsafe { Domain::open_serialised(&fabric, &info) }?;
        let queue = CompletionQueue::open(&domain, &QueueOptions { size: 1024, wait: settings.wait })?;
        let addresses = AddressVector::open(&domain, &info, 2)?;
        let endpoint =
            Endpoint::open(&domain, &info, &addresses, &queue, &queue, &EndpointOptions::default())?;

        let words: &'static mut [u64; 2] = Box::leak(Box::new([0; 2]));
        let memory = words.as_mut_ptr().cast::<u8>();
        let access = flags::SEND | flags::RECV | flags::READ | flags::WRITE;
        let local = if info.mr_mode() & flags::mr::LOCAL != 0 {
            // SAFETY: leaked, and from here on used through pointers only.
            Some(unsafe { MemoryRegion::register(&domain, memory, 16, access, 2) }?)
        } else {
            None
        };
        let mut word = Local::new(memory, 8);
        if let Some(region) = &local {
            word.descriptor = region.descriptor();
        }
        let inbox = Local { address: memory.wrapping_add(8), ..word };
        let peer = Address::ANY;
        Ok(Side { endpoint, addresses, queue, domain, fabric, info, peer, word, inbox, _local: local })
    }

    fn receive(&self) -> Outcome<()> {
        // SAFETY: the inbox is leaked, and read only after the receive has completed.
        self.post(|| unsafe { self.endpoint.recv(self.inbox, 1) })
    }

    /// What arrived in the inbox, if something did.
    fn take_message(&self) -> Outcome<Option<u64>> {
        let received = self.completion()?.is_some();
        // SAFETY: the receive has completed, so the provider is done with the inbox.
        Ok(received.then(|| unsafe { self.inbox.address.cast::<u64>().read() }))
    }

    fn message(&self, word: u64) -> Outcome<()> {
        // SAFETY: injected bytes are copied.
        self.post(|| unsafe { self.endpoint.inject(&word.to_ne_bytes(), self.peer) })
    }

    fn round_trip(&self, round: u64) -> Outcome<()> {
        self.receive()?;
        self.message(round)?;
        self.wait()
    }

    fn read(&self, from: Remote) -> Outcome<()> {
        // SAFETY: the word is leaked, and not used before the read has completed.
        self.post(|| unsafe { self.endpoint.read(self.word, self.peer, from, 2) })?;
        self.wait()
    }

    fn write(&self, to: Remote, how: u64) -> Outcome<()> {
        let word = [self.word];
        // SAFETY: the word is leaked, and not used before the write has completed.
        self.post(|| unsafe { self.endpoint.write_parts(&word, self.peer, to, 3, how | flags::COMPLETION) })?;
        self.wait()
    }

    /// Posts until it is taken. Nothing else is under way, so reading no completions loses none.
    fn post(&self, mut operation: impl FnMut() -> Result<Posted, FabricError>) -> Outcome<()> {
        let start = Instant::now();
        while operation()? == Posted::Again {
            self.queue.read(&mut [])?;
            if start.elapsed() > TIMEOUT {
                return Err("not taken".into());
            }
        }
        Ok(())
    }

    fn wait(&self) -> Outcome<()> {
        let start = Instant::now();
        while self.completion()?.is_none() {
            if start.elapsed() > TIMEOUT {
                return Err("stalled".into());
            }
        }
        Ok(())
    }

    fn completion(&self) -> Outcome<Option<Completion>> {
        let mut one = [Completion::EMPTY];
        match self.queue.read(&mut one) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(one[0])),
            Err(error) if error.is_error_available() => match self.queue.read_error()? {
                Some(failure) => Err(failure.into()),
                None => Ok(None),
            },
            Err(error) => Err(error.into()),
        }
    }
}

// Settings.

#[derive(PartialEq, Eq)]
enum Target {
    Spin,
    Poll,
    Absent,
}

struct Settings {
    provider: String,
    wait: Wait,
    progress: Option<Progress>,
    threading: Threading,
    caps: u64,
    target: Target,
    pinned: bool,
    pause: Duration,
    rounds: u64,
    is_target: bool,
}

impl Settings {
    fn parse(arguments: impl Iterator<Item = String>) -> Outcome<Settings> {
        let mut settings = Settings {
            provider: "tcp;ofi_rxm".into(),
            wait: Wait::None,
            progress: None,
            threading: Threading::Safe,
            caps: flags::MSG | flags::RMA,
            target: Target::Spin,
            pinned: true,
            pause: Duration::ZERO,
            rounds: 20_000,
            is_target: false,
        };
        for argument in arguments {
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("provider", name) => settings.provider = name.into(),
                ("wait", "none") => settings.wait = Wait::None,
                ("wait", "fd") => settings.wait = Wait::Fd,
                ("progress", "any") => settings.progress = None,
                ("progress", "auto") => settings.progress = Some(Progress::Auto),
                ("progress", "manual") => settings.progress = Some(Progress::Manual),
                ("threading", "safe") => settings.threading = Threading::Safe,
                ("threading", "domain") => settings.threading = Threading::Domain,
                ("caps", "rma") => {}
                ("caps", "atomic") => settings.caps |= flags::ATOMIC,
                ("target", "spin") => settings.target = Target::Spin,
                ("target", "poll") => settings.target = Target::Poll,
                ("target", "absent") => settings.target = Target::Absent,
                ("pin", yes) => settings.pinned = yes == "yes",
                ("pause", milliseconds) => settings.pause = Duration::from_millis(milliseconds.parse()?),
                ("rounds", number) => settings.rounds = number.parse::<u64>()?.max(1),
                ("target", "") => settings.is_target = true,
                _ => return Err(format!("not a setting: {argument}").into()),
            }
        }
        Ok(settings)
    }

    fn hints(&self) -> Hints {
        Hints {
            provider: Some(self.provider.clone()),
            caps: self.caps,
            mr_mode: flags::mr::LOCAL | flags::mr::VIRT_ADDR | flags::mr::ALLOCATED | flags::mr::PROV_KEY,
            source_node: Some("127.0.0.1".into()),
            data_progress: self.progress,
            threading: Some(self.threading),
            ..Hints::default()
        }
    }

    /// Binds this process, and the threads that a provider will start, to a core.
    fn pin(&self, core: usize) -> Outcome<()> {
        if !self.pinned {
            return Ok(());
        }
        // SAFETY: an empty set is all zeros; the core is within it; the call reads it.
        let returned = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(core, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
        };
        if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error().into()) }
    }

    /// Times of an operation in microseconds, sorted; the first tenth of the rounds is not counted.
    fn measure(&self, mut operation: impl FnMut(u64) -> Outcome<()>) -> Outcome<Vec<f64>> {
        let mut times = Vec::new();
        for round in 0..self.rounds {
            let start = Instant::now();
            operation(round)?;
            if round >= self.rounds / 10 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            if !self.pause.is_zero() {
                thread::sleep(self.pause);
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}
