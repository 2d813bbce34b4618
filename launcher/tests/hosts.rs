//! Several hosts, played by a command that is called like ssh.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::HashSet;

use std::time::Duration;

use common::{fake_ssh, run, start, transom};
use nix::sys::signal::Signal;

#[test]
fn ranks_are_spread_in_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "echo 'Welcome!'; HOSTNAME=$1 SSH_TTY=tty-$1 exec sh -c \"$2\"");
    let show = "echo $PMI_RANK/$PMI_SIZE $HOSTNAME $SSH_TTY $TRANSOM_HOST_COUNT $TRANSOM_LOCAL_RANK/$TRANSOM_LOCAL_SIZE $KEPT";
    let mut command = transom(&["-n", "5", "--rsh", &ssh, "--hosts", "h1,h2", "sh", "-c", show]);
    let ended = start(command.env("KEPT", "kept").env("SSH_TTY", "mine").env("HOSTNAME", "mine")).wait();
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    let expected = [
        "0/5 h1 tty-h1 2 0/3 kept",
        "1/5 h1 tty-h1 2 1/3 kept",
        "2/5 h1 tty-h1 2 2/3 kept",
        "3/5 h2 tty-h2 2 0/2 kept",
        "4/5 h2 tty-h2 2 1/2 kept",
    ];
    assert_eq!(lines, expected, "{}", ended.stderr);
}

#[test]
fn number_of_ranks_from_the_slots() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let hostfile = dir.path().join("hosts");
    std::fs::write(&hostfile, "h1 slots=2 # two\nh2:1\n").unwrap();
    for flags in [&["--hosts", "h1:2,h2:1"][..], &["--hostfile", hostfile.to_str().unwrap()]] {
        let ended = run(&[&["--rsh", &ssh], flags, &["sh", "-c", "echo $PMI_SIZE"]].concat());
        assert_eq!(ended.stdout, "3\n3\n3\n", "{}", ended.stderr);
    }
    let of_variable =
        start(transom(&["--hosts", "h1,h2", "-n", "2", "true"]).env("TRANSOM_RSH", &ssh)).wait();
    assert_eq!(of_variable.code, 0, "{}", of_variable.stderr);
}

#[test]
fn this_host_needs_no_ssh() {
    let own = nix::unistd::gethostname().unwrap().into_string().unwrap();
    for name in ["localhost", "127.0.0.1", &own] {
        let mut command = transom(&["-n", "2", "--hosts", name, "echo", "here"]);
        let path = std::env::var("PATH").unwrap();
        let ended = start(command.env("PATH", path)).wait();
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "here\nhere\n"), "{name}: {}", ended.stderr);
    }
}

#[test]
fn a_failure_names_the_host() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let script = "[ $PMI_RANK != 3 ] || exit 6; sleep 100";
    let ended = run(&["-n", "4", "--rsh", &ssh, "--hosts", "h1,h2", "sh", "-c", script]);
    assert_eq!(ended.code, 6);
    assert!(
        ended.stderr.contains(" on host h2 exited with code 6; the other 3 ranks were ended"),
        "{}",
        ended.stderr
    );
    let input = run(&["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "--tag", "cat"]);
    assert_eq!(input.code, 0);
}

/// A rank is killed, and its agent tells of it only after one of another host has failed because of that: when the others are yet
/// to be ended, and when its agent has been asked for that.
#[test]
fn a_killed_rank_is_named_though_others_tell_first() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    for pause in ["0.3", "0.55"] {
        let silent = dir.path().join(pause);
        let script = format!(
            "case $PMI_RANK in 0) sleep 100;; 1) until [ -e {silent} ]; do sleep 0.01; done; exit 3;; esac; \
             kill -STOP $PPID; setsid sh -c 'sleep {pause}; kill -CONT '$PPID >/dev/null 2>&1 & touch {silent}; kill -KILL $$",
            silent = silent.display()
        );
        let ended = run(&["-n", "3", "--rsh", &ssh, "--hosts", "h1:2,h2:1", "sh", "-c", &script]);
        let named = "on host h2 was killed by signal 9 (SIGKILL); the other rank was ended";
        assert!(
            ended.code == 137 && ended.stderr.contains(named),
            "{pause}: {} {}",
            ended.code,
            ended.stderr
        );
    }
}

#[test]
fn nothing_listens() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let job = start(&mut transom(&["-n", "4", "--rsh", &ssh, "--hosts", "h1,h2", "sleep", "1000"]));
    job.wait_for(4, "sleep 1000");
    let processes = job.processes();
    let sockets: HashSet<String> = processes.iter().flat_map(|(pid, _)| sockets_of(*pid)).collect();
    assert!(processes.len() >= 7 && !sockets.is_empty(), "the test itself sees too little: {processes:?}");
    let inodes: HashSet<&str> = sockets.iter().map(String::as_str).collect();
    for table in ["tcp", "tcp6", "udp", "udp6", "raw", "raw6"] {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let ours = text
            .lines()
            .find(|line| line.split_whitespace().nth(9).is_some_and(|inode| inodes.contains(inode)));
        assert_eq!(ours, None, "{table}");
    }
    // Nor does a socket of the local kind, which would have the flag for listening, or a name: but for the launcher's, where its own
    // user asks what the job does (`tests/hangs.rs`).
    let door = format!("@transom/{}/{}", nix::unistd::getuid(), job.child.id());
    let text = std::fs::read_to_string("/proc/net/unix").unwrap();
    for fields in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        if fields.get(6).is_some_and(|inode| inodes.contains(inode)) {
            let is_door = fields.get(7).is_some_and(|name| *name == door);
            assert!(is_door || fields[3] == "00000000" && fields.len() == 7, "{fields:?}");
        }
    }
}

fn sockets_of(pid: i32) -> Vec<String> {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()?.to_str().map(str::to_owned));
    links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// A host that answers no more, played by an agent that is stopped: the job ends in time, and says which host it was.
#[test]
fn a_silent_host_ends_the_job() {
    let dir = tempfile::tempdir().unwrap();
    // As with ssh, what is killed here is not the agent itself.
    let ssh = fake_ssh(dir.path(), "setsid -w sh -c \"$2\"");
    let script = "[ $PMI_RANK = 0 ] || kill -STOP $(ps -o ppid= $$); sleep 100";
    let begin = std::time::Instant::now();
    let mut job = start(
        transom(&["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "sh", "-c", script])
            .env("TRANSOM_HOST_TIMEOUT", "1"),
    );
    job.child.wait().unwrap();
    assert!(begin.elapsed() < std::time::Duration::from_secs(10));
    // What started the agent there notices that nobody wants it any more.
    job.assert_gone_within(std::time::Duration::from_secs(10));
    let ended = job.wait();
    let wanted = "transom: host h2 has given no sign of life for 1 s (--host-timeout): its rank is lost; \
                  the other rank was ended\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (1, wanted));
}

/// Hosts whose ranks say nothing for long are alive; without a limit nobody asks.
#[test]
fn silent_ranks_are_no_silent_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    for limit in ["1", "0"] {
        let ended =
            run(&["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "--host-timeout", limit, "sleep", "3"]);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    }
    let mut command = transom(&["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "true"]);
    let ended = start(command.env("TRANSOM_HOST_TIMEOUT", "soon")).wait();
    let wanted = "transom: TRANSOM_HOST_TIMEOUT=\"soon\": not a number of seconds\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (2, wanted));
}

/// A launcher that its user stops for long (Ctrl-Z), while ranks write, is not lost.
#[test]
fn a_launcher_that_is_stopped_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let lines = dir.path().join("lines");
    std::fs::write(&lines, "for i in $(seq 20); do echo line; sleep 0.05; done; echo end").unwrap();
    let script = lines.to_str().unwrap();
    let flags = ["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "--host-timeout", "2"];
    let jobs = [200, 50].map(|moment| {
        let job = start(&mut transom(&[&flags[..], &["sh", script]].concat()));
        job.wait_for(2, &format!("sh {script}"));
        std::thread::sleep(Duration::from_millis(moment));
        job.signal(Signal::SIGTSTP);
        job
    });
    // Twice as long as agents have patience with a launcher that is silent for no reason.
    std::thread::sleep(Duration::from_secs(13));
    jobs.iter().for_each(|job| job.signal(Signal::SIGCONT));
    for job in jobs {
        let ended = job.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert_eq!(ended.stdout.matches("end\n").count(), 2, "{}", ended.stdout);
    }
}
