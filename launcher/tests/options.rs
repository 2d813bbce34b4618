//! Options of `transom run` that say where ranks are, what they get, and where their output goes: on one host, and over agents.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use common::{Ended, fake_ssh, run, run_sh, start, transom};

/// A command like ssh that gives each host a name of its own.
fn ssh(dir: &Path) -> String {
    fake_ssh(dir, "export HOSTNAME=\"$1\"; exec sh -c \"$2\"")
}

fn sorted(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut lines: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn ranks_on_each_host() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let where_each = "echo $PMI_RANK/$PMI_SIZE $HOSTNAME $TRANSOM_LOCAL_RANK";
    let args = |more: &[&'static str]| {
        let flags =
            [&["--rsh", &ssh, "--hosts", "h1,h2", "-N", "2"], more, &["sh", "-c", where_each]].concat();
        run(&flags)
    };
    assert_eq!(sorted(&args(&[])), ["0/4 h1 0", "1/4 h1 1", "2/4 h2 0", "3/4 h2 1"]);
    assert_eq!(sorted(&args(&["-n", "3"])), ["0/3 h1 0", "1/3 h1 1", "2/3 h2 0"]);
    assert_eq!(run(&["--per-node", "3", "sh", "-c", "echo x"]).stdout.lines().count(), 3);
    let more = args(&["-n", "5"]);
    assert!(more.code == 2 && more.stderr.contains("5 ranks do not fit into the 4 slots"), "{}", more.stderr);
}

#[test]
fn hosts_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let script = "echo $PMI_RANK $HOSTNAME $TRANSOM_LOCAL_RANK/$TRANSOM_LOCAL_SIZE";
    for fan_out in ["0", "1"] {
        let spread = |hosts: &'static str, more: &[&str]| {
            let flags =
                ["-n", "5", "--rsh", &ssh, "--hosts", hosts, "--map-by", "node", "--fan-out", fan_out];
            run(&[&flags[..], more].concat())
        };
        let shown = sorted(&spread("h1,h2", &["sh", "-c", script]));
        assert_eq!(shown, ["0 h1 0/3", "1 h2 0/2", "2 h1 1/3", "3 h2 1/2", "4 h1 2/3"]);
        let shown = sorted(&spread("h1:1,h2:2,h3:8", &["sh", "-c", script]));
        assert_eq!(shown, ["0 h1 0/1", "1 h2 0/2", "2 h3 0/2", "3 h2 1/2", "4 h3 1/2"]);
        // What is said of a rank, or to it, finds its host.
        let died = spread("h1,h2", &["sh", "-c", "[ $PMI_RANK = 3 ] && kill -9 $$; sleep 100"]);
        let said = ended_words(&died);
        assert!(died.code == 137 && said.contains("rank 3") && said.contains("h2"), "{said}");
        let text =
            fed(&["-n", "5", "--rsh", &ssh, "--hosts", "h1,h2", "--map-by", "node", "--stdin", "3"], "abc");
        assert_eq!(text, ["[0] 0", "[1] 0", "[2] 0", "[3] 3", "[4] 0"]);
    }
}

fn ended_words(ended: &Ended) -> String {
    ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn variables_for_the_ranks() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let script = "echo $A-$B-$HOSTNAME";
    let hosts = ["--rsh", &ssh, "--hosts", "h1,h2"];
    for over in [&[][..], &hosts] {
        let flags = [&["-n", "2", "-x", "A=1 = 2", "-x", "B", "-x", "HOSTNAME"], over].concat();
        let mut command = transom(&[&flags[..], &["sh", "-c", script]].concat());
        let ended = start(command.env("A", "old").env("B", "b").env("HOSTNAME", "mine")).wait();
        assert_eq!(sorted(&ended), ["1 = 2-b-mine"; 2]);
    }
    // Without it each host keeps its own.
    let mut command = transom(&[&["-n", "2"][..], &hosts, &["sh", "-c", "echo $HOSTNAME"]].concat());
    assert_eq!(sorted(&start(command.env("HOSTNAME", "mine")).wait()), ["h1", "h2"]);
}

#[test]
fn a_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let folder = dir.path().canonicalize().unwrap().join("there");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("program");
    common::executable(&program, "#!/bin/sh\necho $(pwd) $PWD\n");
    let shown = folder.to_str().unwrap();
    let expected = vec![format!("{shown} {shown}"); 2];
    let hosts = ["--rsh", &ssh, "--hosts", "h1,h2"];
    for over in [&[][..], &hosts] {
        let flags = [&["-n", "2", "--wdir", shown], over, &["./program"]].concat();
        assert_eq!(sorted(&run(&flags)), expected);
    }
    let mut relative = transom(&["-n", "2", "--wdir", "there", "./program"]);
    assert_eq!(sorted(&start(relative.current_dir(dir.path())).wait()), expected);
    let ended = run(&["--wdir", "/no/such/folder", "true"]);
    assert!(
        ended.code == 2 && ended.stderr.contains("working directory /no/such/folder"),
        "{}",
        ended.stderr
    );
}

fn fed(flags: &[&str], text: &str) -> Vec<String> {
    let command = [flags, &["--tag", "sh", "-c", "wc -c"]].concat();
    let mut command = transom(&command);
    let mut job = start(command.stdin(Stdio::piped()));
    let mut stdin = job.child.stdin.take().unwrap();
    let text = text.to_owned();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
    let ended = job.wait();
    feeder.join().unwrap();
    sorted(&ended)
}

#[test]
fn who_reads_standard_input() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let text: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
    let hosts = ["--rsh", &ssh, "--hosts", "h1,h2"];
    let all = text.len();
    for over in [&[][..], &hosts] {
        for (who, lengths) in [("0", [all, 0, 0]), ("2", [0, 0, all]), ("all", [all; 3]), ("none", [0; 3])] {
            let got = fed(&[&["-n", "3", "--stdin", who], over].concat(), &text);
            let expected: Vec<_> =
                lengths.iter().enumerate().map(|(rank, n)| format!("[{rank}] {n}")).collect();
            assert_eq!(got, expected, "{who} {over:?}");
        }
    }
}

/// Ranks of one host, or all of one host, that do not read any more take nothing from the others.
#[test]
fn a_rank_that_does_not_read_holds_no_other_up() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let text = "x".repeat(2 << 20);
    for over in [&[][..], &["--rsh", &ssh, "--hosts", "h1,h2"]] {
        let script = "[ $PMI_RANK = 1 ] || exit 0; exec wc -c";
        let flags = [&["-n", "2", "--stdin", "all"], over, &["sh", "-c", script]].concat();
        let mut job = start(transom(&flags).stdin(Stdio::piped()));
        let mut stdin = job.child.stdin.take().unwrap();
        let text = text.clone();
        let feeder = std::thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
        assert_eq!(sorted(&job.wait()), [(2 << 20).to_string()]);
        feeder.join().unwrap();
    }
}

#[test]
fn a_file_for_each_rank() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let script = "echo out $PMI_RANK; echo err $PMI_RANK >&2; printf tail";
    for (name, over) in [("a/b", &[][..]), ("c", &["--rsh", &ssh, "--hosts", "h1,h2"])] {
        let folder = dir.path().join(name);
        // What an earlier job left is not kept.
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("rank-00.out"), "old").unwrap();
        let flags = [&["--output-dir", folder.to_str().unwrap()], over].concat();
        let ended = run_sh(11, &flags, script);
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
        for rank in 0..11 {
            let read = |end| std::fs::read_to_string(folder.join(format!("rank-{rank:02}.{end}"))).unwrap();
            assert_eq!((read("out"), read("err")), (format!("out {rank}\ntail"), format!("err {rank}\n")));
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 22);
    }
    // The launcher's own words stay where they were.
    let folder = dir.path().join("d");
    let ended = run_sh(1, &["--output-dir", folder.to_str().unwrap()], "echo x >&2; exit 3");
    assert!(ended.code == 3 && ended.stderr.starts_with("transom: rank 0"), "{}", ended.stderr);
    // A file that cannot be written ends the job, with its name.
    std::fs::remove_dir_all(&folder).unwrap();
    let flags = ["--output-dir", folder.to_str().unwrap()];
    let ended = run_sh(1, &flags, &format!("rm -r {}; echo x; exec sleep 100", folder.display()));
    assert!(
        ended.code == 1 && ended.stderr.contains("/d/rank-0.out (--output-dir): No such"),
        "{}",
        ended.stderr
    );
}

#[test]
fn several_programs_in_one_job() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = ssh(dir.path());
    let (a, b) = ("echo a$1 $PMI_RANK/$PMI_SIZE $HOSTNAME", "echo b $PMI_RANK/$PMI_SIZE $HOSTNAME");
    for over in [&[][..], &["--rsh", &ssh, "--hosts", "h1,h2"]] {
        let programs = [
            "-n", "2", "sh", "-c", a, "sh", ":", ":", "-n", "1", "env", "sh", "-c", b, ":", "-np", "1",
            "printf", "c\n",
        ];
        let mut command = transom(&[over, &programs].concat());
        let hosts = if over.is_empty() { ["me"; 3] } else { ["h1", "h1", "h2"] };
        let ended = start(command.env("HOSTNAME", "me")).wait();
        // A colon without a number behind it is an argument.
        let [x, y, z] = hosts;
        assert_eq!(
            sorted(&ended),
            [format!("a: 0/4 {x}"), format!("a: 1/4 {y}"), format!("b 2/4 {z}"), "c".into()]
        );
    }
    let ended = run(&["-n", "1", "true", ":", "-n", "1", "no-such-program"]);
    assert!(ended.code == 127 && ended.stderr.contains("no-such-program"), "{}", ended.stderr);
    let ended = run(&["-n", "1", "sleep", "100", ":", "-n", "1", "sh", "-c", "exit 5"]);
    assert!(ended.code == 5 && ended.stderr.contains("rank 1"), "{}", ended.stderr);
}
