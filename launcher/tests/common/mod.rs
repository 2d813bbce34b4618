//! Running the real `transom` under a watchdog, and counting what it leaves behind.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The launcher under test.
pub const TRANSOM: &str = env!("CARGO_BIN_EXE_transom");

/// What the ranks of a job of a test program are to do; without it its `rank_program` is an empty test.
pub const ROLE: &str = "TRANSOM_TEST_ROLE";

/// Nothing here takes that long, even on a busy machine.
const WATCHDOG: Duration = Duration::from_secs(90);

/// A job that was started; killed with everything it started when the test ends early.
pub struct Job {
    pub child: Child,
    mark: String,
    output: [Option<JoinHandle<Vec<u8>>>; 2],
}

/// How a job ended.
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// `transom run ARGS`, to be changed further and given to [`start`].
pub fn transom(args: &[&str]) -> Command {
    let mut command = Command::new(TRANSOM);
    command.arg("run").args(args).env_remove("TRANSOM_RSH").env_remove("SLURM_JOB_ID").stdin(Stdio::null());
    command
}

/// Starts it.
pub fn start(command: &mut Command) -> Job {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mark = format!("TRANSOM_TEST_MARK={}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let (name, value) = mark.split_once('=').unwrap();
    let mut child = command.env(name, value).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = [
        child.stdout.take().map(|pipe| std::thread::spawn(move || read_all(pipe))),
        child.stderr.take().map(|pipe| std::thread::spawn(move || read_all(pipe))),
    ];
    Job { child, mark, output }
}

/// Runs it to the end.
pub fn run(args: &[&str]) -> Ended {
    start(&mut transom(args)).wait()
}

/// Runs `sh -c SCRIPT` as that many ranks.
pub fn run_sh(ranks: u32, flags: &[&str], script: &str) -> Ended {
    let ranks = ranks.to_string();
    run(&[&["-n", &ranks], flags, &["sh", "-c", script]].concat())
}

fn read_all(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    bytes
}

impl Job {
    /// Its processes that are alive, known by their environment: also those that left their session.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| Some((pid, self.command_line(pid)?))).collect()
    }

    fn command_line(&self, pid: i32) -> Option<String> {
        let read = |name| std::fs::read(format!("/proc/{pid}/{name}")).ok();
        let environ = read("environ")?;
        let ours = environ.split(|&b| b == 0).any(|variable| variable == self.mark.as_bytes());
        let line = read("cmdline")?;
        (ours && !line.is_empty()).then(|| String::from_utf8_lossy(&line).replace('\0', " "))
    }

    /// Its processes with that command line, or that behind a directory.
    pub fn find(&self, text: &str) -> Vec<i32> {
        let is = |line: &str| line == text || line.strip_suffix(text).is_some_and(|dir| dir.ends_with('/'));
        self.processes().into_iter().filter(|(_, line)| is(line.trim_end())).map(|(pid, _)| pid).collect()
    }

    /// Waits until it has so many processes with that command line.
    pub fn wait_for(&self, count: usize, text: &str) -> Vec<i32> {
        let end = Instant::now() + WATCHDOG;
        loop {
            let found = self.find(text);
            if found.len() >= count {
                return found;
            }
            assert!(Instant::now() < end, "waiting for {count} of {text:?}: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asserts that nothing of it is left `limit` from now.
    pub fn assert_gone_within(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.processes().is_empty() {
            assert!(Instant::now() < end, "left after {limit:?}: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What its ranks wait for.
    pub fn ask_where(&self) -> String {
        let mut command = Command::new(TRANSOM);
        let out =
            command.args(["where", &self.child.id().to_string()]).env("COLUMNS", "150").output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for its end, and asserts that it leaves nothing.
    pub fn wait(mut self) -> Ended {
        let end = Instant::now() + WATCHDOG;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < end, "hangs: {:?}\n{}", self.processes(), self.ask_where());
            std::thread::sleep(Duration::from_millis(1));
        };
        let left = self.processes();
        assert!(left.is_empty(), "left behind: {left:?}");
        let [stdout, stderr] = self.output.each_mut().map(|output| {
            let bytes = output.take().map(|thread| thread.join().unwrap()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let code = status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0));
        Ended { code, stdout, stderr }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (pid, _) in self.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A command that is called like ssh and runs the line on this machine, with another host name for the ranks.
pub fn fake_ssh(dir: &std::path::Path, script: &str) -> String {
    let file = dir.join("fake-ssh");
    executable(&file, &format!("#!/bin/sh\n{script}\n"));
    file.to_str().unwrap().to_owned()
}

/// Makes a file that can be executed at once. It is written by another process: a descriptor of this one that writes to it could be inherited
/// by a process that another thread is just starting, and what is open for writing is not executed ("text file busy").
pub fn executable(file: &std::path::Path, text: &str) {
    let mut writer = Command::new("sh");
    writer.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(file).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

/// Output of a command, for short questions.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap()
}

/// Whether there is a libfabric to test with.
pub fn has_libfabric() -> bool {
    let info = Command::new(TRANSOM).arg("info").output().unwrap();
    let has = !String::from_utf8_lossy(&info.stdout).contains("no libfabric: ");
    assert!(has || std::env::var_os("TRANSOM_CI_REQUIRE_OFI").is_none(), "CI must have libfabric");
    has
}
