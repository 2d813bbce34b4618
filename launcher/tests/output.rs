//! What ranks print and read.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{run_sh, start, transom};

#[test]
fn tags() {
    let ended = run_sh(3, &["--tag"], "echo out; echo err >&2; printf 'no end'");
    assert_eq!(ended.code, 0);
    for rank in 0..3 {
        assert!(ended.stdout.lines().any(|line| line == format!("[{rank}] out")), "{}", ended.stdout);
        assert!(ended.stdout.lines().any(|line| line == format!("[{rank}] no end")), "{}", ended.stdout);
        assert!(ended.stderr.lines().any(|line| line == format!("[{rank}] err")), "{}", ended.stderr);
    }
}

#[test]
fn bytes_pass_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let file = dir.path().join("bytes");
    std::fs::write(&file, &bytes).unwrap();
    let mut child = transom(&["cat"]).arg(&file).stdout(Stdio::piped()).spawn().unwrap();
    let mut got = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut got).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(got == bytes, "{} bytes of {}", got.len(), bytes.len());
}

#[test]
fn much_output_of_many_ranks_stays_whole() {
    let script = "i=0; while [ $i -lt 4000 ]; do echo \"$PMI_RANK:$i:abcdefghijklmnopqrstuvwxyz:$PMI_RANK:$i\"; i=$((i+1)); done";
    let ended = run_sh(4, &[], script);
    assert_eq!(ended.code, 0);
    let mut next = [0; 4];
    for line in ended.stdout.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let rank: usize = fields[0].parse().unwrap();
        assert_eq!(line, format!("{rank}:{i}:abcdefghijklmnopqrstuvwxyz:{rank}:{i}", i = next[rank]));
        next[rank] += 1;
    }
    assert_eq!(next, [4000; 4]);
}

#[test]
fn the_last_words_of_a_killed_rank_are_heard() {
    for _ in 0..10 {
        let ended =
            run_sh(2, &[], "[ $PMI_RANK = 1 ] && { seq 5000; echo last words; kill -9 $$; }; sleep 100");
        assert!(ended.stdout.ends_with("4999\n5000\nlast words\n"), "{}", ended.stdout.len());
    }
}

#[test]
fn descendants_may_finish_a_sentence_but_not_hold_up_the_end() {
    let begin = Instant::now();
    let ended = run_sh(2, &[], "(sleep 0.03; echo late) & setsid sleep 100 & echo early");
    assert_eq!((ended.stdout.matches("late").count(), ended.stdout.matches("early").count()), (2, 2));
    assert!(ended.code == 0 && begin.elapsed() < Duration::from_secs(25));
}

#[test]
fn a_prompt_is_seen_before_its_line_ends() {
    let mut job =
        transom(&["-n", "2", "sh", "-c", "[ $PMI_RANK = 1 ] || { printf 'name? '; read x; echo hello $x; }"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let (mut stdin, mut stdout) = (job.stdin.take().unwrap(), job.stdout.take().unwrap());
    let mut prompt = [0; 6];
    stdout.read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"name? ");
    stdin.write_all(b"you\n").unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest == "hello you\n" && job.wait().unwrap().success());
}

#[test]
fn input_goes_to_rank_0_only() {
    let text: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
    let mut child = transom(&["-n", "3", "--tag", "wc", "-c"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let mut lines: Vec<_> = String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, [format!("[0] {}", text.len()), "[1] 0".into(), "[2] 0".into()]);
}

#[test]
fn input_that_nobody_reads_holds_nothing_up() {
    let mut command = transom(&["-n", "2", "sleep", "0.2"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || while stdin.write_all(&[b'x'; 65536]).is_ok() {});
    let begin = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(begin.elapsed() < Duration::from_secs(25));
    writer.join().unwrap();
    // Nor does an input that never comes.
    let mut child = transom(&["true"]).stdin(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    assert!(child.wait().unwrap().success());
    drop(held);
}

#[test]
fn a_reader_who_leaves_ends_the_job_quietly() {
    let mut job = transom(&["-n", "2", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(job.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    drop(lines);
    let out = job.wait_with_output().unwrap();
    assert_eq!((line.as_str(), out.status.code(), out.stderr.len()), ("y\n", Some(141), 0));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let out =
        transom(&["yes"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(1) && stderr.contains("standard output: No space"), "{stderr}");
}

#[test]
fn a_reader_who_pauses_does_not_delay_the_end_of_the_ranks() {
    let job = {
        let mut command =
            transom(&["-n", "2", "sh", "-c", "[ $PMI_RANK = 0 ] && exec yes; sleep 0.5; exit 4"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let (launcher, begin) = (job.id().to_string(), Instant::now());
    let ranks = || children(children(&launcher).trim());
    // Agent and ranks are there, and then, of a sleep of half a second, the ranks no longer.
    while begin.elapsed() < Duration::from_secs(1) || children(&launcher).is_empty() || !ranks().is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(25), "{}", ranks());
        std::thread::sleep(Duration::from_millis(10));
    }
    // Nobody has read a byte; the ranks are gone all the same, and launcher and agent wait for the reader.
    assert_ne!(children(&launcher), "");
    assert_eq!(job.wait_with_output().unwrap().status.code(), Some(4));
}

#[test]
fn environment_of_a_rank() {
    let script = "echo $PMI_RANK/$PMI_SIZE $PMI_SPAWNED $TRANSOM_HOST_COUNT $TRANSOM_LOCAL_RANK/$TRANSOM_LOCAL_SIZE $KEPT ${PMIX_RANK:-none} ${PMI_PORT:-none} $(pwd)";
    let mut command = transom(&["-n", "2", "sh", "-c", script]);
    command
        .env("KEPT", "kept")
        .env("PMIX_RANK", "7")
        .env("PMI_PORT", "h:1")
        .env("PMI_RANK", "9")
        .current_dir("/");
    let ended = start(&mut command).wait();
    let mut lines: Vec<_> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/2 0 1 0/2 kept none none /", "1/2 0 1 1/2 kept none none /"]);
}

#[test]
fn a_rank_has_six_descriptors_and_no_more() {
    let script = "exec 3</dev/null 4</dev/null; exec \"$0\" run -n 2 sh -c 'for f in /proc/$$/fd/*; do [ -e $f ] || continue; f=${f##*/}; [ $f -le 2 ] && continue; case ,$PMI_FD,$TRANSOM_WAITS_FD, in *,$f,*) ;; *) echo extra $f; esac; done; [ -n \"$TRANSOM_WAITS_FD\" ] || echo none; [ $PMI_FD,$TRANSOM_WAITS_FD = 3,4,5 ] || echo $PMI_FD,$TRANSOM_WAITS_FD'";
    let out = common::output(std::process::Command::new("sh").args(["-c", script, common::TRANSOM]));
    assert_eq!(
        (out.status.code(), out.stdout.len()),
        (Some(0), 0),
        "{}",
        String::from_utf8_lossy(&out.stdout)
    );
}
