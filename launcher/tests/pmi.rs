//! PMI over `transom run`: this test program is also the program of the ranks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use common::{Ended, ROLE, fake_ssh, start, transom};
use transom_pmi::Client;

fn run_role(role: &str, flags: &[&str]) -> Ended {
    let own = std::env::current_exe().unwrap();
    let mut command = transom(flags);
    command.arg(own).args(["--exact", "rank_program", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    start(&mut command).wait()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut pmi = Client::from_environment().unwrap().unwrap();
    let (rank, size) = (pmi.rank(), pmi.size());
    match role.as_str() {
        "exchange" => exchange(&mut pmi),
        "mapping" => println!("MAPPING {}", pmi.get("PMI_process_mapping").unwrap().unwrap()),
        "no-finalize" if rank == 1 => std::process::exit(0),
        "abort" | "abort-well" if rank == 1 => {
            pmi.abort(if role == "abort" { 42 } else { 0 }).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(100));
        }
        "die" if rank == size - 1 => std::process::abort(),
        "early" if rank == size - 1 => return pmi.finalize().unwrap(),
        "no-finalize" | "abort" | "abort-well" | "die" | "early" => pmi.fence().unwrap(),
        _ => panic!("no role {role}"),
    }
    pmi.finalize().unwrap();
}

fn exchange(pmi: &mut Client) {
    let (rank, size) = (pmi.rank(), pmi.size());
    for round in 0..20 {
        let value = |rank| format!("{rank}-{round}-{}", "x".repeat(400));
        pmi.put(&format!("card-{rank}-{round}"), &value(rank)).unwrap();
        pmi.fence().unwrap();
        for other in 0..size {
            assert_eq!(pmi.get(&format!("card-{other}-{round}")).unwrap(), Some(value(other)));
        }
    }
    assert_eq!(pmi.get("nothing").unwrap(), None);
    println!("RANK {rank} OF {size}");
}

#[test]
fn exchange_on_one_host_and_on_two() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    for flags in [&["-n", "4"][..], &["-n", "5", "--rsh", &ssh, "--hosts", "h1,h2"]] {
        let ended = run_role("exchange", flags);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let size = flags[1];
        assert_eq!(ended.stdout.matches(&format!("OF {size}")).count().to_string(), size);
    }
    let mapping = run_role("mapping", &["-n", "5", "--rsh", &ssh, "--hosts", "h1,h2"]);
    assert_eq!(mapping.stdout.matches("MAPPING (vector,(0,1,3),(1,1,2))").count(), 5, "{}", mapping.stdout);
}

#[test]
fn ends_that_are_not_good() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    let table = [
        ("no-finalize", 1, "rank 1 ", "exited with code 0 without finalizing; the other 3 ranks were ended"),
        ("abort", 42, "rank 1 ", "aborted the job with code 42; the other 3 ranks were ended"),
        ("abort-well", 0, "rank 1 ", "aborted the job with code 0; the other 3 ranks were ended"),
        ("die", 134, "rank 3 ", "was killed by signal 6 (SIGABRT)"),
        ("early", 1, "rank 3 ", "ended before a PMI fence"),
    ];
    for (role, code, rank, words) in table {
        for flags in [&["-n", "4"][..], &["-n", "4", "--rsh", &ssh, "--hosts", "h1,h2"]] {
            let ended = run_role(role, flags);
            assert_eq!(ended.code, code, "{role}: {}", ended.stderr);
            let line = ended.stderr.lines().find(|line| line.starts_with("transom: ")).unwrap_or_default();
            assert!(line.contains(rank) && line.contains(words), "{role}: {}", ended.stderr);
        }
    }
}

/// What a rank may send to the agent's socket, as a shell sees it.
#[test]
fn hostile_ranks_do_no_harm() {
    let script = r#"
        eval "exec 9<>/dev/null"
        case $PMI_RANK in
        0) head -c 300000 /dev/urandom >&$PMI_FD & sleep 0.2 ;;
        1) head -c 300000 /dev/zero >&$PMI_FD & sleep 0.2 ;;
        2) yes 'cmd=get key=PMI_process_mapping' | head -n 100000 >&$PMI_FD & sleep 0.3 ;;
        3) yes 'cmd=' | head -n 20000 >&$PMI_FD & sleep 0.2 ;;
        esac
        echo alive"#;
    let ended = start(&mut transom(&["-n", "5", "bash", "-c", script])).wait();
    assert_eq!((ended.code, ended.stdout.matches("alive").count()), (0, 5), "{}", ended.stderr);
}

/// Not a rank, but whoever finds the agent command: bytes that are no frames end it, and nothing else happens.
#[test]
fn an_agent_that_is_sent_nonsense_ends() {
    for bytes in
        [&b"\xff\xff\xff\xff\xff\xff\xff\xff"[..], b"GET / HTTP/1.1\r\n\r\n", b"", b"\0\0\0\x06\x01nul\n"]
    {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = std::process::Command::new(common::TRANSOM);
        let mut agent = command
            .arg("agent")
            .stdin(OwnedFd::from(theirs))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        (&ours).write_all(bytes).unwrap();
        drop(ours);
        drop(command);
        let mut said = Vec::new();
        agent.stdout.take().unwrap().read_to_end(&mut said).unwrap();
        agent.wait().unwrap();
        assert!(said.starts_with(b"\0transom-agent"));
    }
}
