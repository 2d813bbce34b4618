//! Strangers that connect to the listening port and send whatever they like: ranks go on as if nothing were.

// The helpers below are part of tests as well.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use support::OFI;
use transom_conformance::{Random, Ranks, Sleeper, Subject, within};
use transom_transport::Transport;

const CONNECTIONS: u64 = 1000;

/// The address that a rank listens on: behind the provider's name there is a `sockaddr_in` (ip(7)).
fn listening(transport: &dyn Transport) -> SocketAddr {
    let address = transport.address();
    let (_, name) = address[1..].split_at(usize::from(address[0]));
    assert_eq!((name.len(), name[0]), (16, 2), "not a sockaddr_in");
    SocketAddr::from(([name[4], name[5], name[6], name[7]], u16::from_be_bytes([name[2], name[3]])))
}

/// Connects, sends, and reads whatever is answered.
fn molest(address: SocketAddr, bytes: &[u8], linger: Duration) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_write_timeout(Some(Duration::from_millis(200)))?;
    stream.write_all(bytes)?;
    std::thread::sleep(linger);
    stream.set_nonblocking(true)?;
    let mut answer = [0; 256];
    match stream.read(&mut answer) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

fn traffic(ranks: &Ranks, stop: &AtomicBool) -> usize {
    let memory = ranks[1].allocate(1 << 16);
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let mut rounds = 0;
    let mut slowest = Duration::ZERO;
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

/// Descriptors of this process, of the other tests as well.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn under_siege(seed: u64, shape: fn(&mut Random) -> Vec<u8>) {
    within(Duration::from_secs(120), "strangers", move || {
        let patient = Subject { open: |ranks| support::open(ranks, None), ..OFI };
        let Some(ranks) = Ranks::open(&patient, 3) else { return };
        let address = listening(&*ranks[1].transport);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let rounds = scope.spawn(|| traffic(&ranks, &stop));
            let mut random = Random::new(seed);
            let mut refused = 0;
            for count in 0..CONNECTIONS {
                let linger = Duration::from_millis(if count % 50 == 0 { 20 } else { 0 });
                refused += u64::from(molest(address, &shape(&mut random), linger).is_err());
            }
            println!("{CONNECTIONS} strangers, {refused} cut off");
            stop.store(true, Ordering::Relaxed);
            assert!(rounds.join().unwrap() >= 10);
        });
        // Connections that are over are given up.
        ranks.until("strangers to be forgotten", || open_files() < 200);
        // Nobody who came later is kept out. The provider takes up one every 10 ms (FI_OFI_RXM_CM_PROGRESS_INTERVAL of fi_rxm(7)), more
        // seldom beside other programs: the watchdog bounds it.
        while !ranks[2].try_send(1, &[9; 64], &[]) {
            for rank in 0..3 {
                ranks[rank].poll();
            }
        }
        assert_eq!(ranks.receive(1), [9; 64]);
        // And a rank asleep is not kept awake.
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

/// What looks like the provider's own greeting at its start: small numbers, and lengths that are too long.
#[test]
fn nearly_right_bytes() {
    under_siege(3, |random| {
        let len = 4 + random.below(400);
        let mut bytes = vec![0; len];
        for byte in &mut bytes {
            *byte = if random.below(4) == 0 { random.below(256) as u8 } else { random.below(6) as u8 };
        }
        bytes
    });
}
