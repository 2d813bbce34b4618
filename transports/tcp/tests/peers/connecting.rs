//! How ranks find each other, and what is said when they do not.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::peer::{read_card, write_card};
use crate::support::options;
use crate::{introduce, rank};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use transom_conformance::within;
use transom_tcp::{Options, Tcp};
use transom_transport::{Armed, Event, Posted, Remote, Transport};

const LIMIT: Duration = Duration::from_secs(60);

/// Sends one number to each peer before anything is polled, then polls until all have come.
fn all_to_all(ranks: &[Arc<Tcp>]) {
    std::thread::scope(|scope| {
        for (own, transport) in ranks.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..10_u8 {
                    for peer in 0..ranks.len() {
                        let posted = transport.message(peer, &[own as u8, number], &[]).unwrap();
                        assert_eq!(posted, Posted::Complete);
                    }
                }
                let (mut next, start) = (vec![0; ranks.len()], Instant::now());
                // All go on until all have everything.
                while next.iter().any(|count| *count < 10) || start.elapsed() < Duration::from_millis(500) {
                    let sink = &mut |event: Event<'_>| {
                        let Event::Message(message) = event else { panic!("{event:?}") };
                        assert_eq!(message[1], next[usize::from(message[0])], "out of order");
                        next[usize::from(message[0])] += 1;
                    };
                    if transport.progress(sink).unwrap() == 0 {
                        std::thread::yield_now();
                    }
                    assert!(start.elapsed() < LIMIT, "{next:?}");
                }
            });
        }
    });
}

/// How many ends of connections this host has to what listens at `ports` (proc_pid_net(5)): what other tests have is not among them.
fn connections(ports: &[u16]) -> usize {
    const ESTABLISHED: &str = "01";
    let port = |end: &str| u16::from_str_radix(end.split_once(':')?.1, 16).ok();
    let of_those = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (ours, theirs, state) = (words.next()?, words.next()?, words.next()?);
        let any = [port(ours)?, port(theirs)?].iter().any(|port| ports.contains(port));
        Some(state == ESTABLISHED && any)
    };
    let tables = ["tcp", "tcp6"].map(|table| format!("/proc/self/net/{table}"));
    let lines: String = tables.iter().flat_map(std::fs::read_to_string).collect();
    lines.lines().filter(|line| of_those(line) == Some(true)).count()
}

/// All begin at once: nothing is lost, and one connection is left for each pair.
#[test]
fn both_begin_at_once() {
    within(LIMIT, "connecting", || {
        for ranks in [2, 3, 8] {
            let all: Vec<_> = (0..ranks).map(|own| rank(own, ranks)).collect();
            introduce(&all);
            let addresses = all.iter().flat_map(|rank| read_card(&rank.address()).addresses);
            let ports: Vec<u16> = addresses.map(|address| address.port()).collect();
            assert_eq!(connections(&ports), 0);
            all_to_all(&all);
            let (ends, start) = (ranks * (ranks - 1), Instant::now());
            while connections(&ports) != ends {
                assert!(start.elapsed() < LIMIT / 4, "{} ends, not {ends}", connections(&ports));
                for rank in &all {
                    rank.progress(&mut |event: Event<'_>| panic!("{event:?}")).unwrap();
                }
            }
            drop(all);
            assert_eq!(connections(&ports), 0);
        }
    });
}

/// The first address leads to another rank of the job, the second to somebody else, the third nowhere, the last to the peer.
#[test]
fn wrong_addresses_are_passed_over() {
    within(LIMIT, "wrong addresses", || {
        let all: Vec<_> = (0..3).map(|own| rank(own, 3)).collect();
        let (closed, other) = (closed_port(), TcpListener::bind("127.0.0.1:0").unwrap());
        let stranger = other.local_addr().unwrap();
        std::thread::spawn(move || other.incoming().flatten().for_each(drop));
        introduce(&all);
        for (own, peer) in [(0, 1), (1, 0)] {
            let (card, wrong) = (read_card(&all[peer].address()), read_card(&all[2].address()));
            let addresses = [wrong.addresses[0], stranger, closed, card.addresses[0]];
            all[own].connect(peer, &write_card(card.secret, &addresses)).unwrap();
        }
        all_to_all(&all);
    });
}

fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The error of a message to rank 1 at this address.
fn unreachable(address: SocketAddr, timeout: Duration) -> (String, Duration) {
    let transport = Tcp::new(&Options { connect_timeout: timeout, ..options(0, 2) }).unwrap();
    transport.connect(1, &write_card([1; 32], &[address])).unwrap();
    let start = Instant::now();
    loop {
        if let Err(error) = transport.message(1, &[1; 64], &[]) {
            return (error.to_string(), start.elapsed());
        }
        transport.progress(&mut |_| ()).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nobody_listens() {
    within(LIMIT, "nobody", || {
        let address = closed_port();
        let (error, time) = unreachable(address, Duration::from_secs(10));
        for words in ["rank 0", "rank 1", &address.to_string(), "refused"] {
            assert!(error.contains(words), "{words:?} is not in {error:?}");
        }
        assert!(time < Duration::from_secs(5), "took {time:?}");
    });
}

#[test]
fn somebody_listens_and_says_nothing() {
    within(LIMIT, "silence", || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (error, time) = unreachable(address, Duration::from_secs(1));
        for words in ["rank 0", "rank 1", &address.to_string(), "did not prove"] {
            assert!(error.contains(words), "{words:?} is not in {error:?}");
        }
        assert!(time > Duration::from_millis(900) && time < Duration::from_secs(15), "took {time:?}");
    });
}

/// A rank that sleeps wakes for the end of the time, and its operation fails.
#[test]
fn an_attempt_that_fails_wakes_a_sleeper() {
    within(LIMIT, "a sleeper", || {
        let transport =
            Tcp::new(&Options { connect_timeout: Duration::from_secs(1), ..options(0, 2) }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        transport.connect(1, &write_card([1; 32], &[listener.local_addr().unwrap()])).unwrap();
        let remote = Remote { peer: 1, len: 8, direct: None, base: 0, key: 7 };
        assert_eq!(transport.put_copy(&remote, 0, &[1; 8], 5).unwrap(), Posted::Pending);
        let (mut ended, start) = (None, Instant::now());
        loop {
            let sink = &mut |event: Event<'_>| {
                if let Event::Complete(completion) = event {
                    ended = Some(completion);
                }
            };
            transport.progress(sink).unwrap();
            if let Some(completion) = ended {
                assert_eq!(completion.context, 5);
                assert!(completion.result.unwrap_err().to_string().contains("did not prove"));
                break;
            }
            if transport.arm().unwrap() == Armed::Sleep {
                // SAFETY: the transport keeps its descriptor open while it lives.
                let fd = unsafe { BorrowedFd::borrow_raw(transport.wait_fd()) };
                let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
                let ready = poll(&mut fds, PollTimeout::from(20_000_u16)).unwrap();
                assert!(ready > 0, "not woken in {:?}", start.elapsed());
            }
            transport.disarm(true);
        }
        assert!(start.elapsed() < Duration::from_secs(15));
    });
}

/// Who leaves stays until its last words are sent, although one peer has left before, and another takes long to listen.
#[test]
fn last_words_reach_who_listens_late() {
    within(LIMIT, "last words", || {
        let mut all: Vec<_> = (0..3).map(|own| rank(own, 3)).collect();
        introduce(&all);
        drop(all.pop());
        let (late, leaves) = (all.pop().unwrap(), all.pop().unwrap());
        for peer in [2, 1] {
            assert_eq!(leaves.message(peer, &[7], &[]).unwrap(), Posted::Complete);
        }
        let left = std::thread::spawn(|| drop(leaves));
        std::thread::sleep(Duration::from_secs(1));
        let mut heard = 0;
        while heard == 0 {
            late.progress(&mut |event| heard += usize::from(matches!(event, Event::Message([7])))).unwrap();
        }
        left.join().unwrap();
    });
}
