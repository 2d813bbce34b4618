//! Ranks on two hosts, which are network namespaces: addresses that both have, IPv6, and a host that vanishes.

use std::fs::File;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use transom_conformance::within;
use transom_tcp::{Options, Tcp};
use transom_transport::{Event, Posted, RegionKey, Span, Transport, TransportResult};

use crate::support::options;

const LIMIT: Duration = Duration::from_secs(90);

/// Two namespaces with a link between them, and an address that both have.
struct Hosts(&'static str);

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}: {status}");
}

impl Hosts {
    /// Nothing, and the test is skipped, where namespaces cannot be made.
    fn new(test: &'static str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() || Command::new("ip").arg("-V").output().is_err() {
            assert!(
                std::env::var("CI").is_err(),
                "CI must be able to make network namespaces (root, iproute2)"
            );
            println!("skipped: network namespaces need root and iproute2");
            return None;
        }
        let hosts = Self(test);
        let [one, other] = [1, 2].map(|number| hosts.name(number));
        [&one, &other].iter().for_each(|host| ip(&format!("netns add {host}")));
        ip(&format!("link add {one} netns {one} type veth peer name {other} netns {other}"));
        for (number, host) in [(1, &one), (2, &other)] {
            ip(&format!("-n {host} address add 10.98.0.{number}/24 dev {host}"));
            ip(&format!("-n {host} address add fd98::{number}/64 dev {host} nodad"));

            ip(&format!("-n {host} address add 172.17.0.1/16 dev lo"));
            ["lo", host].iter().for_each(|link| ip(&format!("-n {host} link set {link} up")));
        }
        Some(hosts)
    }

    /// Also of its link, which has at most 15 letters.
    fn name(&self, number: usize) -> String {
        format!("t{}{}{number}", std::process::id(), self.0)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for number in [1, 2] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(number)]).status();
        }
    }
}

/// What ranks tell each other: a card and a region's key.
type Introduction = (Vec<u8>, RegionKey);

/// Runs two ranks, each on its host: both get the transport, its memory, and the peer's address and region.
fn on_hosts(
    hosts: &Hosts,
    set: impl Fn(Options) -> Options + Sync,
    origin: impl FnOnce(&Tcp, &RegionKey) + Send,
    target: impl FnOnce(&Tcp, &Span) + Send,
) {
    let (to_target, from_origin) = channel::<Introduction>();
    let (to_origin, from_target) = channel::<Introduction>();
    let enter = |rank: usize, say: Sender<Introduction>, hear: Receiver<Introduction>| {
        let namespace = File::open(format!("/run/netns/{}", hosts.name(rank + 1))).unwrap();
        // This thread's sockets are that host's from now on.
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        let transport = Tcp::new(&set(Options { loopback: false, ..options(rank, 2) })).unwrap();
        let memory = Span::anonymous(4096).unwrap();
        let region = transport.register(&memory).unwrap();
        say.send((transport.address(), region.key())).unwrap();
        let (card, key) = hear.recv().unwrap();
        transport.connect(1 - rank, &card).unwrap();
        (transport, memory, region, key)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (transport, _memory, _region, key) = enter(0, to_target, from_target);
            origin(&transport, &key);
        });
        scope.spawn(|| {
            let (transport, memory, _region, _) = enter(1, to_origin, from_origin);
            target(&transport, &memory);
        });
    });
}

/// Puts, and waits for the end.
fn put(transport: &Tcp, key: &RegionKey, data: &[u8]) -> TransportResult<()> {
    let remote = transport.attach(1, key).unwrap();
    assert_eq!(transport.put_copy(&remote, 0, data, 1)?, Posted::Pending);
    let (mut result, start) = (None, Instant::now());
    while result.is_none() {
        let sink = &mut |event: Event<'_>| {
            if let Event::Complete(completion) = event {
                result = Some(completion.result);
            }
        };
        transport.progress(sink)?;
        assert!(start.elapsed() < LIMIT / 2, "no end");
        std::thread::sleep(Duration::from_millis(1));
    }
    result.unwrap()
}

fn serve(transport: &Tcp, memory: &Span, until: u8) {
    let (mut byte, start) = ([0], Instant::now());
    while byte != [until] {
        transport.progress(&mut |_| ()).unwrap();
        memory.copy_out(0, &mut byte).unwrap();
        assert!(start.elapsed() < LIMIT / 2, "nothing comes");
    }
    // The answer may still be on its way.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        transport.progress(&mut |_| ()).unwrap();
    }
}

fn reach(test: &'static str, interface: Option<&'static str>) {
    within(LIMIT, test, move || {
        let Some(hosts) = Hosts::new(test) else { return };
        let set = |options| Options { interface: interface.map(str::to_owned), ..options };
        on_hosts(
            &hosts,
            set,
            |transport, key| put(transport, key, &[9; 8]).unwrap(),
            |transport, memory| serve(transport, memory, 9),
        );
    });
}

#[test]
fn all_interfaces() {
    reach("a", None);
}

/// The first address of each is one of its peer, too, where nobody listens, or another rank.
#[test]
fn an_address_that_both_have() {
    reach("b", Some("172.17.0.1,10.98.0.0/24"));
}

#[test]
fn ipv6() {
    reach("c", Some("fd98::/16"));
}

/// The link goes down while a put is under way: an error that names the peer, after the time that was set.
#[test]
fn a_host_that_vanishes() {
    within(LIMIT, "a host", || {
        let Some(hosts) = Hosts::new("d") else { return };
        let host = hosts.name(2);
        on_hosts(
            &hosts,
            |options| Options { peer_timeout: Duration::from_secs(2), ..options },
            |transport, key| {
                put(transport, key, &[1; 8]).unwrap();
                ip(&format!("-n {host} link set {host} down"));
                let start = Instant::now();
                let error = put(transport, key, &[2; 8]).unwrap_err().to_string();
                println!("{error} after {:?}", start.elapsed());
                for part in ["peer 1", "TRANSOM_TCP_SILENCE", "; the connection was from "] {
                    assert!(error.contains(part), "{error}");
                }
                assert!(transport.message(1, &[1; 64], &[]).is_err());
            },
            |transport, memory| serve(transport, memory, 1),
        );
    });
}
