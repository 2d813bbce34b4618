//! What the ranks of a job prove themselves by stays with them: no command line, environment, name of a file or socket, nor a log shows it.
//!
//! The secrets are in the ranks' business cards. This test program is also the program of the ranks: rank 0 asks the agent for all cards
//! a second time, and keeps them for the test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{ROLE, fake_ssh, start, transom};
use nix::sys::socket::{MsgFlags, recv, send};

const RANKS: usize = 3;
const CARDS: &str = "TRANSOM_TEST_CARDS";
/// Bytes that no chance brings together: a part of a secret.
const PART: usize = 8;

/// Asks the agent for the value of a key.
fn get(fd: RawFd, key: &str) -> String {
    let kvs = ask(fd, "cmd=get_my_kvsname", "kvsname=");
    ask(fd, &format!("cmd=get kvsname={kvs} key={key}"), "value=")
}

fn ask(fd: RawFd, line: &str, name: &str) -> String {
    send(fd, format!("{line}\n").as_bytes(), MsgFlags::empty()).unwrap();
    let (mut answer, mut part) = (String::new(), [0; 4096]);
    while !answer.ends_with('\n') {
        let count = recv(fd, &mut part, MsgFlags::empty()).unwrap();
        answer.push_str(std::str::from_utf8(&part[..count]).unwrap());
    }
    answer.split_whitespace().find_map(|word| word.strip_prefix(name)).unwrap_or(&answer).to_owned()
}

#[test]
fn rank_program() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let all = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE);
    all.with_ansi(false).with_writer(std::io::stderr).init();
    let job = transom::init().unwrap();
    let window = job.allocate::<u64>(1).unwrap();
    window.lock_all(|epoch| epoch.fetch_add(0, 0, 1).map(drop)).unwrap();
    if job.rank() == 0 {
        let fd = std::env::var("PMI_FD").unwrap().parse().unwrap();
        let mut cards = String::new();
        for rank in 0..RANKS {
            let first = get(fd, &format!("transom-0-{rank}-0"));
            let (parts, text) = first.split_once(':').unwrap();
            cards.push_str(text);
            for part in 1..parts.parse().unwrap() {
                cards.push_str(get(fd, &format!("transom-0-{rank}-{part}")).split_once(':').unwrap().1);
            }
        }
        let file = std::env::var(CARDS).unwrap();
        std::fs::write(format!("{file}.new"), cards).unwrap();
        std::fs::rename(format!("{file}.new"), &file).unwrap();
        while Path::new(&file).exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    job.barrier().unwrap();
}

/// A job that is looked at while it runs: its cards, and all that others may see of it.
fn look(transport: &str) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let directory = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(directory.path(), "exec sh -c \"$2\"");
    let ranks = RANKS.to_string();
    let args = ["-n", &ranks, "--rsh", &ssh, "--hosts", "h1:2,h2"];
    let cards = directory.path().join("cards");
    let mut command = transom(&[&args[..], &own].concat());
    command.env(ROLE, "secrets").env(CARDS, &cards);
    let job = start(command.env("TRANSOM_TRANSPORT", transport));
    let end = Instant::now() + Duration::from_secs(20);
    while !cards.exists() {
        assert!(Instant::now() < end, "no cards: {:?}", job.processes());
        std::thread::sleep(Duration::from_millis(2));
    }
    let secret = hex::decode(std::fs::read(&cards).unwrap()).unwrap();
    let mut seen = Vec::new();
    for (pid, _) in job.processes() {
        for name in ["cmdline", "environ", "maps", "comm"] {
            let file = format!("/proc/{pid}/{name}");
            seen.push((file.clone(), std::fs::read(file).unwrap_or_default()));
        }
    }
    let mut names = std::fs::read_to_string("/proc/net/unix").unwrap();
    for directory in ["/dev/shm", "/tmp"] {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            writeln!(names, "{}", entry.file_name().display()).unwrap();
        }
    }
    seen.push(("names of files and sockets".into(), names.into_bytes()));
    std::fs::remove_file(&cards).unwrap();
    let ended = job.wait();
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("INFO"), "no log: {}", ended.stderr);
    seen.push(("the log".into(), ended.stderr.into_bytes()));
    seen.push(("the output".into(), ended.stdout.into_bytes()));
    (secret, seen)
}

/// The part of a card that is in `text`, as it is or as hexadecimal digits.
fn found<'a>(mut parts: impl Iterator<Item = &'a [u8]>, text: &[u8]) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let bytes: HashSet<&[u8]> = text.windows(PART).collect();
    let digits: HashSet<&[u8]> = lower.windows(2 * PART).collect();
    let shown = |part: &&[u8]| bytes.contains(part) || digits.contains(hex::encode(part).as_bytes());
    parts.find(shown).map(hex::encode)
}

fn nothing_is_shown(transport: &str) {
    if std::env::var_os(ROLE).is_some() {
        return;
    }
    let (first, _) = look(transport);
    let (second, seen) = look(transport);
    // What two jobs have in common is no secret, and with a byte or two behind it may be anywhere; numbers have zeros.
    let common: HashSet<&[u8]> = first.windows(PART).collect();
    let mut known = vec![false; second.len()];
    for (at, part) in second.windows(PART).enumerate() {
        if common.contains(part) {
            known[at..at + PART].fill(true);
        }
    }
    let is_secret = |(part, known): &(&[u8], &[bool])| {
        let (known, zeros) = (known.iter().filter(|known| **known), part.iter().filter(|byte| **byte == 0));
        known.count() <= PART / 2 && zeros.count() < 2
    };
    let all = || second.windows(PART).zip(known.windows(PART));
    let parts = || all().filter(is_secret).map(|(part, _)| part);
    assert!(parts().count() > PART * RANKS, "cards without secrets");
    for (what, text) in &seen {
        assert_eq!(found(parts(), text), None, "{what} of a job over {transport} shows a part of a card");
    }
    let planted = [b"token ", hex::encode_upper(parts().next_back().unwrap()).as_bytes()].concat();
    assert!(found(parts(), &planted).is_some());
}

#[test]
fn of_shared_memory() {
    nothing_is_shown("shm,tcp");
}

#[test]
fn of_tcp() {
    nothing_is_shown("tcp");
}
