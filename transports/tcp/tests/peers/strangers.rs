//! Strangers that connect to the listening port and send whatever they like: ranks go on as if nothing were.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::peer::{connect, head, hello, proof, read_card};
use crate::support::TCP;
use transom_conformance::{Random, Ranks, Sleeper, within};

const CONNECTIONS: u64 = 1000;
/// The last connections, which are held open: more than the rank keeps at once.
const HELD: u64 = 200;

fn traffic(ranks: &Ranks, stop: &AtomicBool) -> usize {
    let memory = ranks[1].allocate(1 << 16);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let (mut rounds, mut slowest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) || rounds < 10 {
        let start = Instant::now();
        let data = Random::new(rounds as u64).bytes(1 + rounds % 5000);
        ranks.put(0, &remote, 3, &data).unwrap();
        let mut back = vec![0; data.len()];
        ranks.get(0, &remote, 3, &mut back).unwrap();
        assert!(data == back);
        ranks.send(0, 1, &[7; 64], &data);
        let message = ranks.receive(1);
        assert!(message[64..] == data, "a stranger's bytes");
        rounds += 1;
        slowest = slowest.max(start.elapsed());
    }
    println!("{rounds} rounds of put, get and message, the slowest in {slowest:?}");
    rounds
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn under_siege(seed: u64, shape: fn(&mut Random) -> Vec<u8>) {
    within(Duration::from_secs(120), "strangers", move || {
        let Some(ranks) = Ranks::open(&TCP, 3) else { panic!("no loopback") };
        let address = read_card(&ranks[1].transport.address()).addresses[0];
        let (stop, mut held) = (AtomicBool::new(false), Vec::new());
        std::thread::scope(|scope| {
            let rounds = scope.spawn(|| traffic(&ranks, &stop));
            let mut random = Random::new(seed);
            for number in 0..CONNECTIONS {
                let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
                let _ = stream.write_all(&shape(&mut random));
                if number + HELD >= CONNECTIONS {
                    held.push(stream);
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(rounds.join().unwrap() >= 10);
        });
        // Those who are silent are given up after a while, and before that there is no lack of room for others.
        ranks.send(2, 1, &[9; 64], &[]);
        assert_eq!(ranks.receive(1), [9; 64]);
        for stream in &mut held {
            stream.set_nonblocking(true).unwrap();
            let mut byte = [0; 200];
            ranks.until("the end of a stranger", || match stream.read(&mut byte) {
                Ok(0) => true,
                Ok(_) => false,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            });
        }
        held.clear();
        ranks.until("strangers to be forgotten", || open_files() < 1000);
        // A rank asleep is not kept awake.
        drop(Sleeper::start(&ranks[1]));
    });
}

#[test]
fn random_bytes() {
    under_siege(1, |random| {
        let len = 1 + random.below(2000);
        random.bytes(len)
    });
}

#[test]
fn silence() {
    under_siege(2, |_| Vec::new());
}

/// Hellos as they should be, cut somewhere or not, and wrong proofs behind them.
#[test]
fn nearly_right_bytes() {
    under_siege(3, |random| {
        let mut bytes = hello(random.below(4) as u32, random.below(3) as u32, [3; 32]);
        bytes.extend(random.bytes(40));
        bytes.truncate(1 + random.below(bytes.len()));
        bytes
    });
}

/// Whoever answers a hello with this, is cut off.
fn cut_off(address: SocketAddr, hello: &[u8], answer: impl Fn(&[u8]) -> Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(hello).unwrap();
    let mut theirs = [0; 64];
    if stream.read_exact(&mut theirs).is_err() {
        return;
    }
    let _ = stream.write_all(&answer(&theirs));
    let mut more = Vec::new();
    let ended = stream.read_to_end(&mut more);
    assert!(!matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock), "it is kept");
    assert!(more.is_empty(), "it is told {more:?}");
}

/// Proofs of another secret, of another role, of another connection, or none; hellos for other ranks, from ranks that do not exist,
/// from the rank itself, and from one that has a connection.
#[test]
fn only_proofs_count() {
    within(Duration::from_secs(120), "proofs", || {
        let Some(ranks) = Ranks::open(&TCP, 3) else { panic!("no loopback") };
        let _polled = [Sleeper::start(&ranks[1])];
        let card = read_card(&ranks[1].transport.address());
        let secret = read_card(&ranks[0].transport.address()).secret;
        let (address, hello_0) = (card.addresses[0], hello(0, 1, [1; 32]));
        let caller = |hello: &[u8], answer: &[u8], role: &[u8]| {
            let mut steps = proof(hello, &answer[..32], [&secret, &card.secret], role).to_vec();
            steps.extend(b"go!\n");
            steps
        };
        cut_off(address, &hello_0, |answer| caller(&hello_0, answer, b"called"));
        cut_off(address, &hello_0, |answer| answer[32..].to_vec());
        cut_off(address, &hello_0, |_| vec![0; 36]);
        cut_off(address, &hello_0, |_| caller(&hello_0, &[7; 32], b"caller"));
        cut_off(address, &hello_0, |answer| {
            proof(&hello_0, answer, [&[0; 32], &[0; 32]], b"caller").to_vec()
        });
        for (from, to) in [(0, 0), (0, 2), (3, 1), (u32::MAX, 1), (1, 1)] {
            let hello = hello(from, to, [2; 32]);
            cut_off(address, &hello, |answer| caller(&hello, answer, b"caller"));
        }
        // One that is right takes rank 0's place; nobody else is rank 0 then.
        let mut stream = connect(&card, &secret, 0, 1).unwrap();
        stream.write_all(&[head(4, 8, 0, 0), vec![1; 8]].concat()).unwrap();
        ranks.until("the message", || !ranks[1].messages.lock().is_empty());
        cut_off(address, &hello_0, |answer| caller(&hello_0, answer, b"caller"));
    });
}
