//! Jobs that hang, each in a way of its own: `transom where` names the culprits, also where they are stopped; and who may ask.
//!
//! This test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Job, ROLE, TRANSOM, start, transom};
use nix::sys::signal::{Signal, raise};
use transom::{Assert, LockKind, Result};

/// A rank's program, which hangs.
type Program = fn(&transom::Job) -> Result<()>;

const PROGRAMS: &[(&str, Program)] = &[
    ("locks", locks),
    ("held", held),
    ("post", post),
    ("complete", complete),
    ("fence", fence),
    ("send", send),
    ("receive", receive),
    ("stopped", stopped),
    ("stopped holder", stopped_holder),
    ("order", order),
    ("busy", busy),
    ("init", busy),
    ("left", left),
];

/// Time for a job to come to its hang, on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Outside of Transom, until the job is ended.
fn sleep() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn compute() -> ! {
    loop {
        std::hint::black_box((0..1u64 << 20).fold(0, |a, b| a ^ b.rotate_left(3)));
    }
}

/// Each of two ranks holds the lock of its own window, and wants the other's.
fn locks(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let (own, other) = (job.rank(), (job.rank() + 1) % job.size());
    let epochs = window.explicit();
    epochs.lock(LockKind::Exclusive, own, Assert::NONE)?;
    epochs.put(own, 0, &[1])?;
    epochs.flush(own)?;
    job.barrier()?;
    epochs.lock(LockKind::Exclusive, other, Assert::NONE)?;
    epochs.put(other, 0, &[1])?;
    epochs.flush(other)
}

/// A rank holds a lock that another wants, and computes.
fn held(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if job.rank() == 1 {
        epochs.lock(LockKind::Exclusive, 0, Assert::NONE)?;
        epochs.put(0, 0, &[1])?;
        epochs.flush(0)?;
    }
    job.barrier()?;
    if job.rank() == 1 {
        compute();
    }
    epochs.lock(LockKind::Shared, 0, Assert::NONE)?;
    epochs.put(0, 0, &[1])?;
    epochs.flush(0)?;
    epochs.unlock(0)?;
    sleep()
}

fn post(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    match job.rank() {
        0 => {
            epochs.start(&[1, 2], Assert::NONE)?;
            epochs.put(1, 0, &[1])?;
            epochs.put(2, 0, &[1])?;
            epochs.complete()
        }
        1 => {
            epochs.post(&[0], Assert::NONE)?;
            epochs.wait()
        }
        _ => sleep(),
    }
}

fn complete(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if job.rank() == 0 {
        epochs.post(&[1, 2], Assert::NONE)?;
        return epochs.wait();
    }
    epochs.start(&[0], Assert::NONE)?;
    epochs.put(0, 0, &[1])?;
    if job.rank() == 2 {
        compute();
    }
    epochs.complete()?;
    sleep()
}

fn fence(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    epochs.fence(Assert::NONE)?;
    if job.rank() == 2 {
        sleep();
    }
    epochs.fence(Assert::NONE)
}

fn send(job: &transom::Job) -> Result<()> {
    match job.rank() {
        0 => job.ssend(1, 5, &[1u8]),
        1 => compute(),
        _ => job.send(1, 6, &vec![1u8; 4 << 20]),
    }
}

/// In a circle, each by a request.
fn receive(job: &transom::Job) -> Result<()> {
    let left = (job.rank() + job.size() - 1) % job.size();
    job.irecv::<u8>(left, 3, 8).wait().map(drop)
}

/// The target of a flush; of a barrier on shared memory, where a put needs no target.
fn stopped(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    window.lock_all(|epoch| {
        epoch.put(1, 0, &[1])?;
        epoch.flush(1)?;
        job.barrier()?;
        if job.rank() == 1 {
            raise(Signal::SIGSTOP).unwrap();
        }
        // The signal may take a moment.
        std::thread::sleep(Duration::from_millis(300));
        epoch.accumulate(1, 0, transom::Sum, &[1])?;
        epoch.flush(1)
    })?;
    job.barrier()
}

/// It cannot say what it holds, but nobody else does.
fn stopped_holder(job: &transom::Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    let epochs = window.explicit();
    if job.rank() == 1 {
        epochs.lock(LockKind::Exclusive, 0, Assert::NONE)?;
        epochs.put(0, 0, &[1])?;
        epochs.flush(0)?;
    }
    job.barrier()?;
    if job.rank() == 1 {
        raise(Signal::SIGSTOP).unwrap();
    }
    epochs.lock(LockKind::Exclusive, 0, Assert::NONE)?;
    epochs.unlock(0)?;
    sleep()
}

fn order(job: &transom::Job) -> Result<()> {
    let other = job.dup()?;
    if job.rank() == 0 {
        job.barrier().and_then(|()| other.barrier())
    } else {
        other.barrier().and_then(|()| job.barrier())
    }
}

/// A rank leaves the job while another waits for it.
fn left(job: &transom::Job) -> Result<()> {
    if job.rank() == 0 { job.recv::<u8>(1, 0).map(drop) } else { Ok(()) }
}

fn busy(_: &transom::Job) -> Result<()> {
    compute()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "init" && std::env::var("PMI_RANK").is_ok_and(|rank| rank == "1") {
        sleep();
    }
    let (_, program) = PROGRAMS.iter().find(|(name, _)| *name == role).unwrap();
    let job = transom::init().unwrap();
    if let Err(error) = program(&job) {
        eprintln!("{error}");
        std::process::exit(3);
    }
    job.finalize().unwrap();
}

fn hang(program: &str, ranks: &str, transport: &str, flags: &[&str]) -> Job {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = transom(&[&["-n", ranks], flags, &own].concat());
    start(command.env(ROLE, program).env("TRANSOM_TRANSPORT", transport))
}

fn ask(args: &[&str]) -> String {
    let out = common::output(Command::new(TRANSOM).args(args).env("COLUMNS", "150"));
    String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap()
}

/// Asks until the answer has all of `words`.
fn find(job: &Job, words: &[&str]) -> String {
    found(job, words).unwrap_or_else(|instead| panic!("{instead}"))
}

/// The same; or what there was instead in the end.
fn found(job: &Job, words: &[&str]) -> std::result::Result<String, String> {
    let (end, number) = (Instant::now() + WATCHDOG, job.child.id().to_string());
    loop {
        let text = ask(&["where", &number]);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.iter().all(|word| line.contains(word)) {
            println!("{text}");
            return Ok(text);
        }
        if Instant::now() > end {
            let lacking = words.iter().find(|word| !line.contains(*word));
            return Err(format!("not in it: {lacking:?}\n{text}{:?}", job.processes()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Plants a hang over each of the transports, and looks for `words`.
fn plant(program: &str, ranks: &str, transports: &[&str], words: &[&str]) {
    for transport in transports {
        let job = hang(program, ranks, transport, &[]);
        if let Err(instead) = found(&job, words) {
            job.signal(Signal::SIGTERM);
            panic!("{transport}: {instead}\n{}", job.wait().stderr);
        }
    }
}

const BOTH: &[&str] = &["shm", "tcp"];

#[test]
fn a_cycle_of_locks() {
    let words = [
        "ranks 0 and 1 each hold a lock that the next wants",
        "(0 -> 1 -> 0)",
        "the exclusive lock of rank 1 of window 0, held by rank 1",
        "the exclusive lock of rank 0 of window 0, held by rank 0",
        "take locks in the same order",
    ];
    plant("locks", "2", BOTH, &words);
    plant(
        "locks",
        "4",
        &["shm"],
        &["ranks 0-3 each hold a lock that the next wants (0 -> 1 -> 2 -> 3 -> 0)"],
    );
}

#[test]
fn a_holder_that_computes() {
    let words =
        ["rank 1 holds a lock", "the shared lock of rank 0", "held by rank 1", "computes outside of Transom"];
    plant("held", "3", BOTH, &words);
}

#[test]
fn a_missing_post() {
    plant(
        "post",
        "3",
        BOTH,
        &["rank 2 has not called post for rank 0; it sleeps outside", "wait: rank 0 to call complete"],
    );
}

#[test]
fn a_missing_complete() {
    plant(
        "complete",
        "3",
        BOTH,
        &["rank 2 has not called complete for rank 0; it computes outside of Transom"],
    );
}

#[test]
fn a_rank_missing_from_a_fence() {
    let words = [
        "rank 2 is missing from fence, where ranks 0-1,3 wait",
        "0-1,3",
        "fence: rank 2 to come",
        "it has to call fence, too",
    ];
    plant("fence", "4", BOTH, &words);
}

#[test]
fn sends_without_a_receive() {
    let words = [
        "rank 1 does not receive what ranks 0 and 2 send; it computes outside of Transom",
        "ssend: rank 1 to receive a message with tag 5",
        "send: rank 1 to receive a message with tag 6",
    ];
    plant("send", "3", BOTH, &words);
}

#[test]
fn receives_without_a_send() {
    plant(
        "receive",
        "3",
        BOTH,
        &["ranks 0-2 each wait for a message of the next, and none sends (0 -> 2 -> 1 -> 0)"],
    );
}

#[test]
fn a_stopped_target() {
    plant("stopped", "3", BOTH, &["STOPPED", "rank 1 is stopped (process ", "kill -CONT "]);
    plant("stopped", "3", &["tcp"], &["flush: "]);
}

#[test]
fn a_stopped_holder_of_a_lock() {
    // "it seems", unless it was asked before it stopped.
    plant("stopped holder", "2", BOTH, &["rank 1 is stopped (process ", "rank 0 waits for it"]);
}

#[test]
fn collectives_in_different_order() {
    let words = [
        "ranks 0 and 1 are in different collectives (0 -> 1 -> 0): rank 0 in barrier of the job's communicator, rank 1 in barrier of communicator ",
    ];
    plant("order", "2", BOTH, &words);
}

#[test]
fn a_rank_that_does_not_join() {
    let words = [
        "0,2 ",
        "init: all ranks to join the job",
        "rank 1 has not called init, for which ranks 0 and 2 wait",
    ];
    plant("init", "3", &["shm"], &words);
}

/// Its end waits for the other, too.
#[test]
fn a_rank_that_is_done() {
    let words = [
        "wait for each other in a circle (0 -> 1 -> 0)",
        "recv: a message with tag 0 from rank 1",
        "the end of the job: rank 0 to come",
    ];
    plant("left", "2", BOTH, &words);
}

#[test]
fn ranks_of_several_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = common::fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let job = hang("fence", "4", "tcp", &["--rsh", &ssh, "--hosts", "h1:2,h2:2"]);
    // In rows of their own, since the hosts differ.
    let rows = ["0-1 h1 sleeps", "3 h2 sleeps"];
    find(
        &job,
        &[&["on 2 hosts", "rank 2 is missing from fence", "fence: rank 2 to come"][..], &rows].concat(),
    );
}

#[test]
fn a_job_that_takes_too_long_says_why() {
    let ended = hang("fence", "4", "shm", &["--timeout", "20"]).wait();
    assert_eq!(ended.code, 124, "{}", ended.stderr);
    let lines = ["fence: rank 2 to come", "rank 2 is missing from fence", "after 20 s (--timeout)"];
    let places: Vec<_> = lines.iter().map(|line| ended.stderr.find(line)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{places:?} {}", ended.stderr);
}

/// A call that gives up says what `transom where` says of it.
#[test]
fn a_deadline_says_the_same() {
    let exe = std::env::current_exe().unwrap();
    let own = [exe.to_str().unwrap(), "--exact", "rank_program", "--nocapture", "--test-threads=1"];
    let mut command = transom(&[&["-n", "3"][..], &own].concat());
    let ended = start(command.env(ROLE, "post").env("TRANSOM_DEADLINE", "3")).wait();
    // The rank that waits for the post, or the one that waits for that rank: their time is over at once.
    let said = |what: &str| ended.stderr.contains(&format!("(TRANSOM_DEADLINE) for {what}"));
    assert!(
        said("rank 2 to post window 0 to this rank") || said("rank 0 to call complete on window 0"),
        "{}",
        ended.stderr
    );
}

#[test]
fn jobs_are_listed_while_they_run() {
    let mut job = hang("busy", "2", "shm", &[]);
    let number = job.child.id().to_string();
    let text = find(&job, &["nothing: computes outside of Transom", "No rank waits in Transom.", "0-1"]);
    assert!(text.starts_with(&format!("job {number}: 2 ranks of ")), "{text}");
    let line = |text: &str| text.lines().find(|line| line.trim().starts_with(&number)).map(str::to_owned);
    let listed = line(&ask(&["ps"])).unwrap();
    assert!(listed.contains("hangs-") && listed.split_whitespace().nth(1) == Some("2"), "{listed}");
    let json = ask(&["ps", "--json"]);
    assert!(json.lines().any(|line| line.contains(&format!("\"job\":{number},"))), "{json}");
    job.child.kill().unwrap();
    job.child.wait().unwrap();
    assert!(line(&ask(&["ps"])).is_none(), "a killed launcher leaves nothing");
    assert!(ask(&["where", &number]).contains(&format!("no job {number} of yours runs on this host")));
}

/// Connects as the user nobody, and gets no word; and what makes no sense is answered to nobody.
#[test]
fn strangers_learn_nothing() {
    let job = hang("busy", "1", "shm", &[]);
    find(&job, &["No rank waits"]);
    let talk = |question: &str| {
        let script = format!(
            "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0transom/{}/{}')\ns.settimeout(10)\ntry:\n s.sendall({question})\n print(len(s.recv(100)))\nexcept (BrokenPipeError, ConnectionResetError):\n print(0)",
            nix::unistd::getuid(),
            job.child.id()
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).current_dir("/");
        command
    };
    let said = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    if nix::unistd::geteuid().is_root() {
        assert_eq!(said(talk("b'where\\n'").uid(65534).gid(65534)), "0\n");
    } else {
        println!("skipped: only root can be somebody else");
    }
    for nonsense in ["b'\\n'", "b'x' * 100000", "b'\\xff\\0\\n'", "b'where'[:0] + b'jobs\\n'"] {
        assert_eq!(said(&mut talk(nonsense)), "0\n", "{nonsense}");
    }
    assert_eq!(said(&mut talk("b'where\\n'")), "100\n");
    find(&job, &["No rank waits"]);
}
