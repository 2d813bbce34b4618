//! Who is not of the job and talks to its ranks changes nothing; and the launcher and its agents cannot be talked to.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
mod traffic;

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use traffic::{WHILE, is_rank, random, ranks, start_ranks};

const CONNECTIONS: usize = 1000;
const HELD: usize = 300;

#[test]
fn rank_program() {
    traffic::rank_program();
}

/// Sockets that a process takes connections or datagrams on: kind and, for TCP, the port.
fn listens(pid: i32) -> Vec<(&'static str, u16, bool)> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let own: Vec<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Vec::new();
    for (kind, inode_at) in [("tcp", 9), ("tcp6", 9), ("udp", 9), ("udp6", 9), ("unix", 6)] {
        for line in read(kind).lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // TCP_LISTEN is 0A; a Unix socket that accepts has the flag 00010000.
            let open = match kind {
                "tcp" | "tcp6" => fields[3] == "0A",
                "unix" => fields[3] == "00010000",
                _ => true,
            };
            if open && fields.get(inode_at).is_some_and(|inode| own.iter().any(|o| o == inode)) {
                let port = fields[1].rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
                let loopback = kind == "tcp" && fields[1].starts_with("0100007F:");
                found.push((kind, port.unwrap_or(0), loopback));
            }
        }
    }
    found
}

#[test]
fn a_thousand_connections_of_strangers_over_ofi() {
    a_thousand_connections_of_strangers("ofi");
}

#[test]
fn a_thousand_connections_of_strangers_over_tcp() {
    a_thousand_connections_of_strangers("tcp");
}

fn a_thousand_connections_of_strangers(transport: &str) {
    if is_rank() {
        return;
    }
    // On a busy machine strangers take their time.
    let traffic_goes_on = tempfile::NamedTempFile::new().unwrap();
    let mut job = start_ranks(transport, 1.0, |command| {
        command.env(WHILE, traffic_goes_on.path());
    });
    let begin = Instant::now();
    let mut ports: HashMap<u32, u16> = HashMap::new();
    while ports.len() < 4 {
        assert!(begin.elapsed() < Duration::from_secs(20), "only {} ranks listen", ports.len());
        assert!(job.child.try_wait().unwrap().is_none(), "the job has ended");
        for (rank, pid) in ranks(&job) {
            for (kind, port, loopback) in listens(pid) {
                assert!(loopback, "rank {rank} listens on {kind} where others can reach it");
                ports.insert(rank, port);
            }
        }
    }
    let of_ranks: Vec<i32> = ranks(&job).into_iter().map(|(_, pid)| pid).collect();
    let others: Vec<_> = job.processes().into_iter().filter(|(pid, _)| !of_ranks.contains(pid)).collect();
    assert!(others.len() >= 2, "launcher and agent: {others:?}");
    for (pid, line) in &others {
        // But for the local name where the launcher's own user asks what the job does (`hangs.rs`).
        let mut listens = listens(*pid);
        listens.retain(|(kind, ..)| *kind != "unix" || *pid != job.child.id() as i32);
        assert_eq!(listens, [], "{line}");
    }

    let ports: Vec<u16> = ports.into_values().collect();
    let mut held = Vec::new();
    let (mut refused, mut broken) = (0, 0);
    for number in 0..CONNECTIONS {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ports[number % ports.len()]);
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) else {
            refused += 1;
            continue;
        };
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let bytes: Vec<u8> = (0..random(4096)).map(|_| random(256) as u8).collect();
        // Nothing at all; a few bytes, as if more were to come; or up to 4 KiB.
        let bytes = match number % 5 {
            0 => &[],
            1 => &bytes[..bytes.len().min(7)],
            _ => &bytes[..],
        };
        broken += usize::from(stream.write_all(bytes).is_err());
        if number % 3 == 0 && held.len() < HELD {
            held.push(stream);
        } else if number % 3 == 1 {
            // Closed with a reset.
            let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            setsockopt(&stream.as_fd(), sockopt::Linger, &linger).unwrap();
        }
    }
    let running = job.child.try_wait().unwrap().is_none();
    drop(traffic_goes_on);
    eprintln!(
        "{CONNECTIONS} connections in {:?}, {} held open, {refused} refused, {broken} broken off by the rank",
        begin.elapsed(),
        held.len()
    );
    let ended = job.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("VERIFIED ").count(), 4, "{}", ended.stdout);
    assert!(running, "the traffic ended before the strangers did");
    eprintln!("{}", ended.stdout.lines().find(|line| line.contains("VERIFIED")).unwrap_or_default());
}
