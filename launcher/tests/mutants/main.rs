//! The job's channels are sent what is almost right: frames to an agent and to the launcher, questions at the door and answers from it,
//! lines of PMI. Nobody panics, takes memory without end, hangs or leaves anything; who is not at fault goes on.
//!
//! `TRANSOM_TEST_MUTANTS` is the number that each test makes, `TRANSOM_TEST_SEED` repeats them. (What ranks send each other has its own
//! such tests with the transports.) This test program is also the program of the ranks, and the way to their hosts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;
mod mutate;

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{ROLE, TRANSOM, fake_ssh, output, start, transom};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv, send};
use transom_conformance::Random;
use transom_launcher::agree::{Agreed, Contribution};
use transom_launcher::cli::Bind;
use transom_launcher::frames::{
    Binding, Bound, Input, JobSpec, MAGIC, Program, Started, Status, ToAgent, ToLauncher, Tree, Unit,
};
use transom_launcher::ranks::Ranks;

const WATCHDOG: Duration = Duration::from_secs(30);
/// Seeds and numbers for a process of this program that stands between launcher and agent.
const BETWEEN: &str = "TRANSOM_TEST_BETWEEN";

/// Memory in KiB that an agent or a launcher may have addresses for.
const ROOM: &str = "2097152";

fn own() -> [String; 5] {
    let exe = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&*exe, "--exact", "rank_program", "--nocapture", "--test-threads=1"].map(str::to_owned)
}

#[test]
fn rank_program() {
    match std::env::var(ROLE).as_deref() {
        Ok("pmi") => send_lines(),
        _ if std::env::var_os(BETWEEN).is_some() => stand_between(),
        _ => {}
    }
}

fn spec() -> JobSpec {
    let variable = |name: &str, value: &str| (name.into(), value.into());
    JobSpec {
        size: 2,
        ranks: Ranks::from_iter([0, 1]),
        hosts: 1,
        kvs: "transom_1".into(),
        mapping: "(vector,(0,1,2))".into(),
        cwd: "/".into(),
        programs: vec![Program { count: 2, argv: vec!["/bin/true".into()] }],
        env: vec![variable("PATH", "/usr/bin:/bin"), variable("A", "b")],
        exported: vec!["A".into()],
        stdin: Input::None,
        remote: true,
        binding: Binding { to: Bind::None, by_numa: false, report: true },
        notify: true,
        silence_ms: 10_000,
        tree: Tree {
            index: 1,
            by_agent: true,
            below: Vec::new(),
            fan_out: 4,
            exe: "/bin/true".into(),
            connect_ms: 1000,
        },
    }
}

fn to_agent() -> Vec<ToAgent> {
    let pairs = || vec![("key-0".to_owned(), "value 0".to_owned()), ("key-1".to_owned(), String::new())];
    let agreed =
        Agreed { key: "a".into(), told: vec![0, 1], flags: 3, number: 7, gone: vec![1], acknowledged: true };
    vec![
        ToAgent::Prepare(Box::new(spec())),
        ToAgent::Go,
        ToAgent::Alive,
        ToAgent::StdinEof,
        ToAgent::OutputCredit(1000),
        ToAgent::Signal(10),
        ToAgent::Fence(pairs()),
        ToAgent::Died { rank: 1 },
        ToAgent::Agreed(agreed),
        ToAgent::Look { number: 4, places: true },
        ToAgent::For { host: 1, message: Box::new(ToAgent::Fence(pairs())) },
        ToAgent::For { host: 7, message: Box::new(ToAgent::Alive) },
        ToAgent::End { grace_ms: 20 },
    ]
}

fn to_launcher() -> Vec<ToLauncher> {
    let status = Status::Signal { number: 9, core: false };
    let started = Started { hosts: 1, depth: 1, memory_kib: 4000, children: 0 };
    let bound =
        Bound { rank: 1, unit: Unit::Core, cpus: "0-1".into(), names: ["0".into(), "0".into(), "0".into()] };
    let contribution =
        Contribution { key: "a".into(), members: vec![(0, 1)], flags: 3, acknowledged: vec![(1, 1)] };
    vec![
        ToLauncher::Alive,
        ToLauncher::Hello { version: env!("CARGO_PKG_VERSION").into() },
        ToLauncher::Ready(started),
        ToLauncher::Starting { ready: 1 },
        ToLauncher::Bindings { ranks: vec![bound], complaint: None },
        ToLauncher::CannotStart { message: "no".into(), code: 2 },
        ToLauncher::InputCredit(1000),
        ToLauncher::FenceEnter(vec![("key-0".into(), "value".into())]),
        ToLauncher::RankExit { rank: 1, pid: 4_000_000, status, cause: None, unfinished: true, asked: false },
        ToLauncher::FenceBroken { rank: 1 },
        ToLauncher::Abort { rank: 0, pid: 4_000_000, code: 7 },
        ToLauncher::Agree { rank: 1, contribution },
        ToLauncher::Looking { number: 1 },
        ToLauncher::Looked { number: 1, ranks: Vec::new() },
        ToLauncher::Of { host: 1, message: Box::new(ToLauncher::FenceEnter(Vec::new())) },
        ToLauncher::Gone { status: Some(Status::Code(1)), error: None },
        ToLauncher::Unanswered,
        ToLauncher::Silent,
        ToLauncher::Done,
    ]
}

/// Some frames of which most are mutants: their bytes, and how many.
fn stream(random: &mut Random, genuine: &[Vec<u8>], begin: &[usize]) -> (Vec<u8>, usize) {
    let (mut bytes, mut mutants) = (Vec::new(), 0);
    let count = begin.len() + 1 + random.below(12);
    for at in 0..count {
        let frame = &genuine[begin.get(at).copied().unwrap_or_else(|| random.below(genuine.len()))];
        // Where a job begins with what is not understood, the rest is not seen.
        let as_is = at < begin.len() && random.below(8) != 0;
        mutants += usize::from(!as_is);
        bytes.extend(if as_is { frame.clone() } else { mutate::frame(random, frame) });
    }
    (bytes, mutants)
}

/// Says what is wrong with how a process ended.
fn complaint(status: std::process::ExitStatus, stderr: &str) -> Option<String> {
    let bad = status.code() == Some(101) || status.signal().is_some() || stderr.contains("panicked");
    bad.then(|| format!("{status}: {stderr}"))
}

#[test]
fn frames_to_an_agent() {
    let (count, mut random) = mutate::asked(1000);
    let genuine: Vec<Vec<u8>> = to_agent().into_iter().map(mutate::bytes_of).collect();
    let (mut made, mut agents) = (0, 0);
    while made < count {
        let begin: &[usize] = [&[0, 1][..], &[0], &[]][random.below(3)];
        let (bytes, mutants) = stream(&mut random, &genuine, begin);
        (made, agents) = (made + mutants, agents + 1);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {ROOM}; exec \"$0\" agent"), TRANSOM]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = command.spawn().unwrap();
        let (mut stdin, mut stdout, mut stderr) =
            (agent.stdin.take().unwrap(), agent.stdout.take().unwrap(), agent.stderr.take().unwrap());
        let sent = bytes.clone();
        let writer = std::thread::spawn(move || {
            // It may have had enough before.
            let _ = stdin.write_all(&sent);
        });
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            bytes
        });
        let begin = Instant::now();
        let status = loop {
            match agent.try_wait().unwrap() {
                Some(status) => break status,
                None if begin.elapsed() > WATCHDOG => {
                    let _ = agent.kill();
                    panic!("an agent hangs: {}", String::from_utf8_lossy(&bytes));
                }
                None => std::thread::sleep(Duration::from_micros(300)),
            }
        };
        writer.join().unwrap();
        assert!(reader.join().unwrap().starts_with(MAGIC));
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        if let Some(complaint) = complaint(status, &said) {
            panic!("{complaint}\n{}", String::from_utf8_lossy(&bytes));
        }
    }
    println!("{made} mutants at {agents} agents");
}

/// Between launcher and agent, as the command that starts one on a host: what the agent says is passed on, and mutants with it.
fn stand_between() {
    let mut random = Random::new(std::env::var(BETWEEN).unwrap().parse().unwrap());
    for _ in 0..std::process::id() % 64 {
        random.number();
    }
    let mut agent = Command::new("sh")
        .args(["-c", &format!("exec {TRANSOM} agent keep")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut from = agent.stdout.take().unwrap();
    let genuine: Vec<Vec<u8>> = to_launcher().into_iter().map(mutate::bytes_of).collect();
    let mut magic = vec![0; MAGIC.len()];
    let mut out = std::io::stdout();
    from.read_exact(&mut magic).unwrap();
    let _ = out.write_all(&magic);
    // Few of these agents lie from the first word on: the job is to get further.
    let mut honest = [0, 1, 2, 3, 6][random.below(5)];
    let (mut made, mut head) = (0, [0; 4]);
    while from.read_exact(&mut head).is_ok() {
        let mut body = vec![0; u32::from_be_bytes(head) as usize];
        from.read_exact(&mut body).unwrap();
        let frame = [&head[..], &body].concat();
        let mut bytes = frame.clone();
        if honest == 0 {
            let (lies, mutants) = stream(&mut random, &genuine, &[]);
            bytes.extend(lies);
            made += mutants;
            if random.below(2) == 0 {
                bytes = mutate::frame(&mut random, &bytes);
                made += 1;
            }
        } else {
            honest -= 1;
        }
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    eprintln!("MUTANTS {made}");
    drop(from);
    let _ = agent.wait();
    std::process::exit(0);
}

#[test]
fn frames_to_the_launcher() {
    let (count, mut random) = mutate::asked(300);
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), &format!("exec {}", own().map(|word| format!("'{word}'")).join(" ")));
    let (mut made, mut jobs) = (0, 0);
    while made < count {
        let seed = random.number() >> 32;
        let mode: &[&str] = [&[][..], &["--on-failure", "notify"], &["--report-bindings"]][random.below(3)];
        // An agent that is silent of what happened is no reason to wait for ever.
        let args = ["--rsh", &ssh, "--hosts", "h1:1,h2:1", "--timeout", "2", "--connect-timeout", "2"];
        let program = ["sh", "-c", "echo out; echo err >&2"];
        let mut command = transom(&[&args[..], mode, &program].concat());
        let mut job = start(command.env(BETWEEN, seed.to_string()));
        let end = Instant::now() + WATCHDOG;
        while job.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "{BETWEEN}={seed}: the launcher hangs: {:?}", job.processes());
            std::thread::sleep(Duration::from_millis(1));
        }
        // An agent that a launcher has given up notices that by itself.
        job.assert_gone_within(Duration::from_secs(10));
        let ended = job.wait();
        let lies =
            ended.stderr.lines().filter_map(|line| line.split("MUTANTS ").nth(1)?.parse::<usize>().ok());
        (made, jobs) = (made + lies.sum::<usize>(), jobs + 1);
        let harmed = ended.code == 101 || ended.code >= 1000 || ended.stderr.contains("panicked");
        assert!(!harmed, "{BETWEEN}={seed}: {}: {}", ended.code, ended.stderr);
        assert!(jobs < 10_000 + count, "nobody lies: {}", ended.stderr);
    }
    println!("{made} mutants in {jobs} jobs");
}

fn door(job: u32) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("transom/{}/{job}", nix::unistd::getuid())).unwrap()
}

#[test]
fn questions_at_the_door() {
    let (count, mut random) = mutate::asked(3000);
    let job = start(&mut transom(&["-n", "2", "sleep", "1000"]));
    job.wait_for(2, "sleep 1000");
    let address = door(job.child.id());
    let open = || std::fs::read_dir(format!("/proc/{}/fd", job.child.id())).unwrap().count();
    let before = open();
    let (mut held, mut answered) = (Vec::new(), 0);
    for _ in 0..count {
        let mut stream = loop {
            match UnixStream::connect_addr(&address) {
                Ok(stream) => break stream,
                // Its queue is full.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        };
        let genuine = [&b"where\n"[..], b"job\n", b"top 1\n"][random.below(3)];
        let question = mutate::text(&mut random, genuine);
        let _ = stream.write_all(&question);
        match random.below(20) {
            0 => held.push(stream),
            1 => {
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let mut answer = Vec::new();
                let genuine = question == b"where\n" || question == b"job\n";
                let _ = stream.read_to_end(&mut answer);
                assert!(genuine || answer.is_empty(), "{question:?}: {}", String::from_utf8_lossy(&answer));
                answered += usize::from(!answer.is_empty());
            }
            _ => {}
        }
        if held.len() > 100 {
            held.clear();
        }
    }
    drop(held);
    let asked = |args: &[&str]| output(Command::new(TRANSOM).args(args).arg(job.child.id().to_string()));
    let end = Instant::now() + WATCHDOG;
    loop {
        let said = asked(&["where"]);
        if said.status.success() {
            break;
        }
        // Who comes while many ask may be turned away.
        assert!(Instant::now() < end, "{}", String::from_utf8_lossy(&said.stderr));
    }
    while open() > before {
        assert!(Instant::now() < end, "{} files open, {before} before", open());
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("{count} questions, {answered} of those that waited for it answered");
    job.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(job.wait().code, 143);
}

/// A door that lies: to whoever asks, of this user.
#[test]
fn answers_from_a_door() {
    let (count, mut random) = mutate::asked(200);
    let job = start(&mut transom(&["-n", "2", "sleep", "1000"]));
    job.wait_for(2, "sleep 1000");
    let said = output(Command::new(TRANSOM).args(["where", "--json", &job.child.id().to_string()]));
    let genuine = said.stdout;
    assert!(genuine.len() > 100 && genuine.ends_with(b"\n"), "{}", String::from_utf8_lossy(&genuine));
    // A number that no process has.
    let number = 4_200_000 + std::process::id();
    let listener = UnixListener::bind_addr(&door(number)).unwrap();
    for _ in 0..count {
        let mut answer = mutate::text(&mut random, &genuine);
        for _ in 0..random.below(4) {
            answer = mutate::text(&mut random, &answer);
        }
        let mut command = Command::new(TRANSOM);
        match random.below(2) {
            0 => command.arg("where").arg(number.to_string()),
            _ => command.args(["top", "--metrics"]).arg(number.to_string()),
        };
        let asker = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut question = [0; 16];
        let _ = stream.read(&mut question);
        let _ = stream.write_all(&answer);
        drop(stream);
        let ended = asker.wait_with_output().unwrap();
        if let Some(complaint) = complaint(ended.status, &String::from_utf8_lossy(&ended.stderr)) {
            panic!("{complaint}\n{}", String::from_utf8_lossy(&answer));
        }
    }
    println!("{count} answers");
    job.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(job.wait().code, 143);
}

/// Rank 0 sends mutants of lines, and reads what comes; then each rank does what ranks do.
fn send_lines() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let fd = number("PMI_FD") as i32;
    if number("PMI_RANK") == 0 {
        let (count, mut random) = (number("TRANSOM_TEST_MUTANTS"), Random::new(number("TRANSOM_TEST_SEED")));
        // No agreements: they are answered when their members have come, behind anything.
        let lines = [
            &b"cmd=init pmi_version=1 pmi_subversion=1"[..],
            b"cmd=get_maxes",
            b"cmd=get_my_kvsname",
            b"cmd=get_appnum",
            b"cmd=put kvsname=transom_1 key=card-0 value=0123456789abcdef",
            b"cmd=get kvsname=transom_1 key=PMI_process_mapping",
            b"cmd=transom_each kvsname=transom_1 prefix=card- suffix= from=0 to=4",
            b"mcmd=spawn\nnprocs=1\nexecname=x\nendcmd",
            b"cmd=get_universe_size",
        ];
        let mut answer = [0; 1 << 16];
        for _ in 0..count {
            let genuine = lines[random.below(lines.len())];
            let line = [&mutate::text(&mut random, genuine)[..], b"\n"].concat();
            let mut rest = &line[..];
            while !rest.is_empty() {
                match send(fd, rest, MsgFlags::MSG_DONTWAIT) {
                    Ok(count) => rest = &rest[count..],
                    // The agent reads no more from who does not read its answers.
                    Err(error) => assert_eq!(error, Errno::EAGAIN),
                }
                while recv(fd, &mut answer, MsgFlags::MSG_DONTWAIT).is_ok_and(|count| count > 0) {}
            }
        }
        // The end of what several lines may have begun; then a barrier, whose answer no mutant has, and which comes behind all others.
        send(fd, b"endcmd\ncmd=barrier_in\n", MsgFlags::empty()).unwrap();
        let mut seen = Vec::new();
        while !seen.windows(11).any(|part| part == b"barrier_out") {
            let count = recv(fd, &mut answer, MsgFlags::empty()).unwrap();
            assert!(count > 0, "the agent has closed the channel");
            seen.extend_from_slice(&answer[..count]);
        }
        println!("{count} LINES");
    }
    let mut pmi = transom_pmi::Client::from_environment().unwrap().unwrap();
    if pmi.rank() != 0 {
        pmi.fence().unwrap();
    }
    pmi.put(&format!("rank-{}", pmi.rank()), "here").unwrap();
    pmi.fence().unwrap();
    assert_eq!(pmi.get("rank-0").unwrap().as_deref(), Some("here"));
    assert_eq!(pmi.get("rank-2").unwrap().as_deref(), Some("here"));
    pmi.finalize().unwrap();
    println!("FENCED");
}

#[test]
fn lines_of_pmi() {
    let (count, mut random) = mutate::asked(3000);
    let seed = (random.number() >> 32).to_string();
    let mut command = transom(&["-n", "3"]);
    command
        .args(own())
        .env(ROLE, "pmi")
        .env("TRANSOM_TEST_SEED", seed)
        .env("TRANSOM_TEST_MUTANTS", count.to_string());
    let ended = start(&mut command).wait();
    let all = (ended.code, ended.stdout.matches("FENCED").count(), ended.stdout.matches("LINES").count());
    assert_eq!(all, (0, 3, 1), "{}{}", ended.stdout, ended.stderr);
    println!("{count} lines");
}
