//! `transom where` says where in a program of C its ranks wait, and are stopped: by function and line, or by function alone where the compiler
//! has left no lines.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::common::{LIMIT, prefix, source, succeed};
use super::mpicc;

/// Time for a job to come to where it is to be found, on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(30);

/// A job that never ends by itself.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        // Its agent ends what it has started.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(prefix: &Path, program: &Path, transport: &str) -> Job {
    let mut job = Command::new(prefix.join("bin/transom"));
    job.args(["run", "-n", "3", "--timeout", LIMIT])
        .arg(program)
        .env("TRANSOM_TRANSPORT", transport)
        .env_remove("SLURM_JOB_ID")
        .stdin(Stdio::null());
    Job(job.spawn().unwrap())
}

/// Asks until the answer has all of `words`.
fn find(prefix: &Path, job: &Job, words: &[String]) -> String {
    let end = Instant::now() + WATCHDOG;
    loop {
        let mut ask = Command::new(prefix.join("bin/transom"));
        let answer = ask.args(["where", &job.0.id().to_string()]).env("COLUMNS", "160").output().unwrap();
        let text = String::from_utf8_lossy(&answer.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(missing) = words.iter().find(|word| !text.contains(*word)) else { return text };
        assert!(Instant::now() < end, "not in it: {missing:?}\n{text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn file() -> std::path::PathBuf {
    source().join("tests/c/places.c")
}

/// `in FUNCTION at places.c:LINE`, by a comment in that file.
fn at(function: &str) -> String {
    let (text, mark) = (std::fs::read_to_string(file()).unwrap(), format!("/* at: {function} */"));
    let line = text.lines().position(|line| line.ends_with(&mark)).unwrap() + 1;
    format!("in {function} at places.c:{line}")
}

/// Also where one function was put into another, and where the frame pointer is kept.
#[test]
fn lines() {
    let Some(prefix) = prefix() else { return };
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-fno-omit-frame-pointer"]] {
        let program = prefix.join(format!("places{}", options.concat()));
        succeed(mpicc(prefix).arg("-g").args(options).arg("-o").arg(&program).arg(file()));
        for transport in ["shm", "tcp"] {
            let job = start(prefix, &program, transport);
            let words = [
                format!("from rank 1, {}", at("exchange")),
                "rank 1 does not send what rank 0 waits for; it computes outside of Transom -> it has to send".into(),
                at("idle"),
            ];
            let text = find(prefix, &job, &words);
            assert!(!text.contains("solve"), "whose registers are in use has none to read: {text}");
            // By what it is advised to look with.
            let process = text.split_once("gdb -p ").unwrap().1.split(' ').next().unwrap();
            succeed(Command::new("kill").args(["-STOP", process]));
            find(prefix, &job, &[format!("rank 1 is stopped (process {process}, {})", at("solve"))]);
        }
    }
}

#[test]
fn functions_without_lines() {
    let Some(prefix) = prefix() else { return };
    let program = prefix.join("places-without-lines");
    succeed(mpicc(prefix).args(["-O0", "-o"]).arg(&program).arg(file()));
    let job = start(prefix, &program, "shm");
    let of = |function| format!("in {function} of places-without-lines");
    let words = [
        format!("from rank 1, {}", of("exchange")),
        of("idle"),
        "it computes outside of Transom -> it has to send (tag and communicator as above); look at its stack: gdb -p".into(),
    ];
    find(prefix, &job, &words);
}

#[test]
fn a_program_without_names() {
    let Some(prefix) = prefix() else { return };
    let program = prefix.join("places-without-names");
    succeed(mpicc(prefix).args(["-O0", "-s", "-o"]).arg(&program).arg(file()));
    let job = start(prefix, &program, "shm");
    let text =
        find(prefix, &job, &["it computes outside of Transom -> it has to send".into(), "gdb -p".into()]);
    assert!(!text.contains(" of places-without-names"), "no name is made up: {text}");
}
