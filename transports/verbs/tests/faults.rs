//! Devices that go while operations are under way: every one of these ends, in an error that names the peer or in order. To be
//! run in a VM of its own (root, one test at a time): devices are taken away.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use support::VERBS;
use transom_conformance::Ranks;
use transom_transport::{Remote, Span};

/// A device's retries last eight seconds; an emulated machine may take its time.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The tests take devices away, so they want to be asked to.
fn wanted() -> bool {
    let wanted = std::env::var("TRANSOM_TEST_DEVICES_GO").is_ok_and(|value| value == "1");
    if !wanted {
        println!("skipped: TRANSOM_TEST_DEVICES_GO=1 lets this test take RDMA devices away");
    }
    wanted
}

fn run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap();
    Command::new(program).args(words).status().unwrap().success()
}

/// The network interface below a device.
fn interface(device: &str) -> String {
    let file = format!("/sys/class/infiniband/{device}/ports/1/gid_attrs/ndevs/0");
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

fn wait_for_port(device: &str) {
    let state = format!("/sys/class/infiniband/{device}/ports/1/state");
    let start = Instant::now();
    while !std::fs::read_to_string(&state).unwrap().contains("ACTIVE") {
        assert!(start.elapsed() < TIMEOUT, "the port of {device} stays down");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn exposed(ranks: &Ranks) -> (Span, Box<dyn transom_transport::Region>, Remote) {
    let memory = ranks[1].allocate(1 << 20);
    let (region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    (memory, region, remote)
}

/// Puts from rank 0 to rank 1 until one fails, or all have gone well for `time`. What failed, and when.
fn load(ranks: &Ranks, remote: &Remote, time: Duration) -> Option<(String, Duration)> {
    let data = vec![7; 1 << 20];
    let start = Instant::now();
    while start.elapsed() < time {
        // SAFETY: the data outlives the operation, which ends below, or this process.
        let started = match unsafe { ranks[0].try_put(remote, 0, &data) } {
            Ok(Some(started)) => started,
            Ok(None) => {
                ranks[0].poll();
                continue;
            }
            Err(error) => return Some((error.to_string(), start.elapsed())),
        };
        let ended = loop {
            ranks[0].poll();
            ranks[1].poll();
            if let Some(ended) = ranks[0].ended(started) {
                break ended;
            }
            assert!(start.elapsed() < TIMEOUT, "a put neither ends nor fails");
        };
        if let Err(error) = ended {
            return Some((error.to_string(), start.elapsed()));
        }
    }
    None
}

fn goes(what: &str, there: bool) -> std::thread::JoinHandle<()> {
    let what = what.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        assert!(run(&what) || !there, "{what}");
    })
}

/// What is sent to the peer of the link of `rxe0` goes to no device, as where a switch has failed, from half a second on for so
/// long: the thread ends then.
fn unanswered(time: Duration) -> std::thread::JoinHandle<()> {
    let link = interface("rxe0");
    let listed = Command::new("ip").args(["neighbour", "show", "dev", &link]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let peer = listed
        .lines()
        .find(|line| line.starts_with("10.") && line.contains("lladdr"))
        .unwrap_or_else(|| panic!("{listed}"));
    let words: Vec<&str> = peer.split_whitespace().collect();
    let [address, "lladdr", right, ..] = words[..] else { panic!("{peer}") };
    let goes_to = |to: &str| format!("ip neighbour replace {address} lladdr {to} dev {link} nud permanent");
    let (away, back) = (goes_to("02:00:00:00:99:99"), goes_to(right));
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        assert!(run(&away));
        std::thread::sleep(time);
        assert!(run(&back));
    })
}

/// A network that comes back within `TRANSOM_VERBS_SILENCE` has lost nothing.
#[test]
fn a_silence_of_three_seconds() {
    let Some(ranks) = wanted().then(|| Ranks::open(&VERBS, 2)).flatten() else { return };
    let (_memory, _region, remote) = exposed(&ranks);
    ranks.put(0, &remote, 0, &[1; 100]).unwrap();
    let silence = unanswered(Duration::from_secs(3));
    let failed = load(&ranks, &remote, Duration::from_secs(8));
    silence.join().unwrap();
    assert!(failed.is_none(), "{failed:?}");
    let mut found = vec![0; 1 << 20];
    ranks.get(0, &remote, 0, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 7));
}

/// One that does not is an error that says so, in that time.
#[test]
fn a_silence_for_ever() {
    let Some(ranks) = wanted().then(|| Ranks::open(&VERBS, 2)).flatten() else { return };
    let (_memory, _region, remote) = exposed(&ranks);
    ranks.put(0, &remote, 0, &[1; 100]).unwrap();
    let silence = unanswered(Duration::from_secs(20));
    let (error, after) = load(&ranks, &remote, TIMEOUT).expect("puts succeed that go nowhere");
    println!("after {after:?}: {error}");
    assert!(error.contains("peer 1") && error.contains("TRANSOM_VERBS_SILENCE"), "{error}");
    silence.join().unwrap();
}

/// The link goes down under load: an error that names the peer, in bounded time. When it is up again, new ranks can talk.
#[test]
fn a_link_that_goes_down() {
    let Some(ranks) = wanted().then(|| Ranks::open(&VERBS, 2)).flatten() else { return };
    let (_memory, _region, remote) = exposed(&ranks);
    ranks.put(0, &remote, 0, &[1; 100]).unwrap();
    let link = interface("rxe0");
    let down = goes(&format!("ip link set {link} down"), true);
    let (error, after) = load(&ranks, &remote, TIMEOUT).expect("puts succeed over a link that is down");
    down.join().unwrap();
    println!("after {after:?}: {error}");
    assert!(error.contains("peer 1"), "{error}");
    assert!(run(&format!("ip link set {link} up")));
    // Where the device says that it was its own fault the next put asks for a new connection; else the peer stays lost.
    match load(&ranks, &remote, Duration::from_secs(3)) {
        Some((error, _)) => println!("then: {error}"),
        None => println!("then all is well again"),
    }
    wait_for_port("rxe0");
    drop((_region, ranks));
    let fresh = Ranks::open(&VERBS, 2).unwrap();
    let (_memory, _region, remote) = exposed(&fresh);
    fresh.put(0, &remote, 0, &[1; 100]).unwrap();
}

/// The device is deleted under load: all ends in an error or in order, and nothing hangs.
#[test]
fn z_a_device_that_is_deleted() {
    let Some(ranks) = wanted().then(|| Ranks::open(&VERBS, 2)).flatten() else { return };
    let (_memory, _region, remote) = exposed(&ranks);
    ranks.put(0, &remote, 0, &[1; 100]).unwrap();
    let delete = goes("rdma link delete rxe0", false);
    match load(&ranks, &remote, Duration::from_secs(8)) {
        Some((error, after)) => println!("after {after:?}: {error}"),
        None => println!("the device stays until it is closed: all went well"),
    }
    drop((_region, ranks));
    delete.join().unwrap();
}
