//! A peer that belongs to the job and sends what it likes: its own connection ends, and nothing else is harmed.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::peer::{connect, head, place, read_card, write_card};
use crate::rank;
use nix::sys::socket::{setsockopt, sockopt};
use transom_conformance::{Random, within};
use transom_tcp::Tcp;
use transom_transport::{Event, Posted, Region, Span, Transfer, Transport};

const RECORDS: usize = 100_000;
/// Peers that may lose their connection.
const PEERS: usize = 40_000;
const SECRET: [u8; 32] = [5; 32];
const REGION: usize = 4096;

/// A rank, its memory with a region in the middle, and a thread that polls it.
struct Target {
    transport: Arc<Tcp>,
    memory: Span,
    key: u64,
    _region: Box<dyn Region>,
    messages: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Target {
    /// The last of `ranks`; all others have [`SECRET`], but for rank 0 with this card.
    fn start(ranks: usize, first: &Tcp) -> Self {
        let transport = rank(ranks - 1, ranks);
        let nowhere = write_card(SECRET, &["127.0.0.1:1".parse().unwrap()]);
        transport.connect(0, &first.address()).unwrap();
        (1..ranks).for_each(|peer| transport.connect(peer, &nowhere).unwrap());
        first.connect(ranks - 1, &transport.address()).unwrap();
        let memory = Span::anonymous(3 * REGION).unwrap();
        let region = transport.register(&memory.part(REGION, REGION).unwrap()).unwrap();
        let key = u64::from_le_bytes(region.key().0[..8].try_into().unwrap());
        let (messages, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (transport, messages, stop) = (transport.clone(), messages.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    let found = transport
                        .progress(&mut |event| match event {
                            Event::Message(_) | Event::Long(..) => {
                                messages.fetch_add(1, Ordering::Relaxed);
                            }
                            Event::Complete(completion) => panic!("{completion:?} of nothing"),
                        })
                        .unwrap();
                    if found == 0 {
                        std::thread::yield_now();
                    }
                }
            }
        });
        Self { transport, memory, key, _region: region, messages, stop, thread: Some(thread) }
    }

    fn connect(&self, from: usize, ranks: usize) -> TcpStream {
        let card = read_card(&self.transport.address());
        let stream = connect(&card, &SECRET, from as u32, ranks as u32 - 1).unwrap();
        // So that no port has to wait.
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream.as_fd(), sockopt::Linger, &linger).unwrap();
        stream
    }

    /// What is beside the region is untouched.
    fn check(&self) {
        let mut bytes = vec![1; REGION];
        for offset in [0, 2 * REGION] {
            self.memory.copy_out(offset, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "written beside the region");
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(|thread| thread.join());
        assert!(std::thread::panicking() || matches!(result, Some(Ok(()))), "the target failed");
    }
}

/// Puts, and gets back, from a rank that does nothing wrong.
fn honest(first: &Tcp, target: &Target, peer: usize) {
    let remote = first.attach(peer, &target._region.key()).unwrap();
    let (data, mut back) = ([9_u8; 100], [0_u8; 100]);
    for (write, local) in [(true, data.as_ptr().cast_mut()), (false, back.as_mut_ptr())] {
        let transfer = Transfer { remote: &remote, offset: 8, local, len: 100, context: 3 };
        // SAFETY: the buffers outlive the wait below, and are not used in it.
        let posted = unsafe { if write { first.put(&transfer) } else { first.get(&transfer) } };
        assert_eq!(posted.unwrap(), Posted::Pending);
        let (mut ended, start) = (false, Instant::now());
        while !ended {
            let sink = &mut |event: Event<'_>| {
                if let Event::Complete(completion) = event {
                    completion.result.unwrap();
                    ended = true;
                }
            };
            first.progress(sink).unwrap();
            assert!(start.elapsed() < Duration::from_secs(20), "an honest peer is not served");
        }
    }
    assert_eq!(back, data);
}

/// One record, right or wrong, that begins as record `number` should.
fn record(random: &mut Random, key: u64, number: u32) -> Vec<u8> {
    let len = random.below(200) as u32;
    let offset = random.below(REGION + 100) as u64;
    let key = if random.below(3) == 0 { key ^ (1 << random.below(64)) } else { key };
    let data = random.bytes(len as usize);
    let kind = 1 + random.below(7) as u8;
    let mut record = match kind {
        1 => [head(1, len, 0, number), place(key, offset), data].concat(),
        2 => [head(2, len, 0, number), place(key, offset)].concat(),
        _ if random.below(4) > 0 => [head(4, len, 0, number), data].concat(),
        _ => [head(kind, len, random.below(3) as u32, number), data].concat(),
    };
    // Some bits of half of them.
    if random.below(2) == 0 {
        for _ in 0..1 + random.below(3) {
            let at = random.below(record.len().min(40));
            record[at] ^= 1 << random.below(8);
        }
    }
    record
}

/// Whether the connection still stands; reads what has come.
fn stands(stream: &mut TcpStream) -> bool {
    let mut answers = [0; 1 << 16];
    match stream.read(&mut answers) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn mutated_records() {
    within(Duration::from_secs(300), "mutated records", || {
        let first = rank(0, PEERS);
        let target = Target::start(PEERS, &first);
        honest(&first, &target, PEERS - 1);
        let (mut random, mut sent, mut peer, files) = (Random::new(11), 0, 0, open_files());
        while sent < RECORDS {
            peer += 1;
            assert!(peer < PEERS - 1, "only {sent} records");
            let mut stream = target.connect(peer, PEERS);
            stream.set_nonblocking(true).unwrap();
            for number in 0..1000 {
                let record = record(&mut random, target.key, number);
                sent += 1;
                if stream.write_all(&record).is_err() || !stands(&mut stream) {
                    break;
                }
            }
            if peer % 100 == 0 {
                target.check();
                // Other tests have some, too.
                assert!(open_files() < files + 1000, "descriptors leak");
            }
        }
        println!("{sent} records, {peer} connections, {:?} messages", target.messages);
        assert!(target.messages.load(Ordering::Relaxed) > 0);
        target.check();
        honest(&first, &target, PEERS - 1);
    });
}

/// Asks without end and never reads an answer: the connection ends, before much is kept for it.
#[test]
fn answers_that_nobody_reads() {
    within(Duration::from_secs(120), "answers", || {
        let first = rank(0, 4);
        let target = Target::start(4, &first);
        for (peer, request) in [
            (1, |key, number| [head(2, REGION as u32, 0, number), place(key, 0)].concat()),
            (2, |key: u64, number| [head(1, 1, 0, number), place(key ^ 1, 0), vec![1]].concat()),
        ] as [(usize, fn(u64, u32) -> Vec<u8>); 2]
        {
            let mut stream = target.connect(peer, 4);
            stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
            let ended = (0..u32::MAX).find(|number| stream.write_all(&request(target.key, *number)).is_err());
            println!("ended after {ended:?} requests");
        }
        target.check();
        honest(&first, &target, 3);
    });
}

/// What is against the rules ends the connection at once.
#[test]
fn wrong_records_end_the_connection() {
    within(Duration::from_secs(60), "wrong records", || {
        let first = rank(0, 100);
        let target = Target::start(100, &first);
        let key = target.key;
        let most = first.capabilities().max_message as u32;
        let wrong = [
            head(0, 0, 0, 0),
            head(8, 0, 0, 0),
            [head(1, 8, 0, 1), place(key, 0)].concat(),
            head(5, 0, 1, 0),
            head(5, 0, u32::MAX, 0),
            head(5, 1, 0, 0),
            head(3, 8, 0, 0),
            head(6, 0, 0, 0),
            head(7, 0, 0, 0),
            head(4, most + 1, 0, 0),
            [head(1, u32::MAX, 0, 0), place(key, 0)].concat(),
            [head(2, 0, 0, 0), place(key, 0)].concat(),
            [head(4, 3, 0, 0), vec![1; 3], head(4, 3, 0, 0)].concat(),
        ];
        for (i, record) in wrong.iter().enumerate() {
            let mut stream = target.connect(i + 1, 100);
            stream.write_all(record).unwrap();
            let mut rest = Vec::new();
            let read = stream.read_to_end(&mut rest);
            assert!(
                read.is_ok() || !matches!(read, Err(e) if e.kind() == ErrorKind::WouldBlock),
                "record {i}"
            );
            assert!(rest.is_empty(), "record {i} was answered");
        }
        target.check();
        honest(&first, &target, 99);
    });
}

/// Puts that were served are told of with the end of the record behind them, if that is near.
#[test]
fn served_puts_are_told_of_together() {
    const PROMPT: Duration = Duration::from_secs(20);
    within(Duration::from_secs(60), "served puts", || {
        let first = rank(0, 3);
        let target = Target::start(3, &first);
        let mut stream = target.connect(1, 3);
        let mut said = |what: &[&[u8]], within: Duration| {
            stream.write_all(&what.concat()).unwrap();
            stream.set_read_timeout(Some(within)).unwrap();
            let mut record = [0; 16];
            stream.read_exact(&mut record).map(|()| record.to_vec()).map_err(|error| error.kind())
        };
        let put = |number| [head(1, 8, 0, number), place(target.key, 0), vec![7; 8]].concat();
        let half = said(&[&put(0), &head(4, 100, 0, 1), &[1; 50]], Duration::from_millis(200));
        assert_eq!(half, Err(ErrorKind::WouldBlock));
        assert_eq!(said(&[&[1; 50]], PROMPT), Ok(head(5, 0, 1, 0)));
        // Far from its end.
        let refused = [head(1, 1 << 20, 0, 3), place(target.key ^ 1, 0)].concat();
        assert_eq!(said(&[&put(2), &refused, &[1; 10]], PROMPT), Ok(head(5, 0, 2, 1)));
    });
}
