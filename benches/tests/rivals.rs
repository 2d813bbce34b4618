//! `bench --rivals` with shell scripts in place of compilers and launchers: what is printed, kept, left out and refused. The real libraries
//! are measured by hand.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use transom_benches::suite::files;

const BENCH: &str = env!("CARGO_BIN_EXE_bench");

/// Folders of libraries that are scripts.
struct Fakes(TempDir);

impl Fakes {
    fn new() -> Self {
        let fakes = Self(tempfile::tempdir().unwrap());
        fs::create_dir(fakes.0.path().join("peers")).unwrap();
        fakes
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn script(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    /// A library whose program does this, and then says that it has ended well.
    fn library(&self, name: &str, program: &str) {
        let bin = self.path(name).join("bin");
        let program = format!("#!/bin/sh\necho bench library Fake\n{program}\necho bench end\n");
        let mpicc = format!(
            "while [ \"$1\" != -o ]; do shift; done\ncat >\"$2\" <<'END'\n{program}END\nchmod +x \"$2\""
        );
        Self::script(&bin.join("mpicc"), &mpicc);
        Self::script(&bin.join("mpiexec"), "shift 2\nexec \"$@\"");
    }

    /// One that measures puts, in so many nanoseconds.
    fn measuring(&self, name: &str, time: f64) {
        self.library(name, &put(8, time));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        command.arg("--rivals").arg(self.path("peers")).arg("--transom").arg(self.path("transom"));
        command.args(arguments).env_remove("TRANSOM_TRANSPORT").env_remove("TRANSOM_LOCAL_SIZE");
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        texts(&self.command(arguments).output().unwrap())
    }
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn put(bytes: usize, time: f64) -> String {
    format!("echo noise; echo bench put-latency {bytes} time 1 10 right - {time} {time} {time}")
}

#[test]
fn libraries_side_by_side() {
    let fakes = Fakes::new();
    for (name, time) in [("transom", 10.0), ("peers/slow", 40.0), ("peers/quick", 20.0)] {
        fakes.measuring(name, time);
    }
    let [json, html] = ["a.json", "a.html"].map(|name| fakes.path(name));
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap(), "--rounds", "4"];
    let (code, table, err) = fakes.run(&[&["put-latency"], &files[..]].concat());
    assert_eq!(code, 0, "{err}");
    let words: Vec<&str> =
        table.lines().find(|line| line.contains("put-latency")).unwrap().split_whitespace().collect();
    assert_eq!(words[..7], ["put-latency", "8", "B", "ns", "10.0", "20.0", "40.0"], "{table}");
    assert!(words[7..] == ["0.50", "0.50–0.50", "quick"], "{table}");
    assert!(table.contains("of 1 lines Transom is ahead of the best of the others in 1,"), "{table}");
    // What scripts start is no job, and has no limits.
    assert!(err.contains("limits"), "{err}");
    let report = files::read(&json).unwrap();
    let rows: Vec<(&str, usize)> =
        report.rows.iter().map(|row| (row.library.as_str(), row.rounds.len())).collect();
    assert_eq!(rows, [("transom", 4), ("quick", 4), ("slow", 4)]);
    assert!(report.complete && report.settings["quick"] == "Fake");
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("Beside other MPIs") && page.contains("0.50–0.50"), "{page}");
    let again = Command::new(BENCH).args(["--csv", "--from"]).arg(&json).output().unwrap();
    let (code, csv, err) = texts(&again);
    assert!(
        code == 0 && csv.contains("put-latency,latency,allocated,8,ns,1,10.000,20.000,40.000,,,quick,0.500"),
        "{csv}{err}"
    );
}

#[test]
fn means_of_all_samples_if_asked_for() {
    let fakes = Fakes::new();
    let samples = |slow: &str| format!("echo bench put-latency 8 time 1 10 right - 10 10 10 10 {slow}*");
    fakes.library("transom", &samples("60"));
    fakes.library("peers/other", &samples("110"));
    let figures = |mean: &[&str]| {
        let (code, csv, err) = fakes.run(&[&["put-latency", "--csv", "--rounds", "4"], mean].concat());
        assert_eq!(code, 0, "{err}");
        csv.lines().nth(1).unwrap().split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(figures(&[])[6..8], ["10.000", "10.000"]);
    assert_eq!(figures(&["--mean"])[6..8], ["20.000", "30.000"]);
    let alone = Command::new(BENCH).args(["--mean", "put-latency"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2));
}

#[test]
fn what_is_left_out_is_named() {
    let fakes = Fakes::new();
    for name in ["transom", "peers/good", "peers/without", "peers/refuses"] {
        fakes.measuring(name, 10.0);
    }
    Fakes::script(&fakes.path("peers/without/bin/mpicc"), "echo 'no compiler here' >&2; exit 1");
    Fakes::script(&fakes.path("peers/refuses/bin/mpiexec"), "echo 'an error of its own' >&2; exit 7");
    fakes.library("peers/hangs", &format!("{}; exec sleep 1000", put(8, 20.0)));
    fakes.library("peers/babbles", "echo bench put-latency 8 B");
    fakes.library("peers/stops", &format!("{}; exit 0", put(8, 30.0)));
    let (code, csv, err) = fakes.run(&["put-latency", "--csv", "--rival-timeout", "0.5", "--rounds", "2"]);
    assert_eq!(code, 2, "{csv}{err}");
    for says in [
        "without is left out: ",
        "no compiler here",
        "refuses: latency is left out from round 1 on: ended with exit status: 7: an error of its own",
        "hangs: latency is left out from round 1 on: had not ended after 0.5 s",
        "babbles: latency is left out from round 1 on: not understood",
        "stops: latency is left out from round 1 on: its output has no end",
    ] {
        assert_eq!(err.matches(says).count(), 1, "{says}: {err}");
    }
    // What they had said before is kept.
    assert!(
        csv.starts_with("measurement,group,window,bytes,unit,work,transom,good,hangs,stops,limit"),
        "{csv}"
    );
    assert!(csv.contains(",10.000,10.000,20.000,30.000,"), "{csv}");
}

#[test]
fn wrong_data_is_told() {
    let fakes = Fakes::new();
    let wrong = |data: &str| format!("echo bench put-visible 8 percent 1 1 {data} - 100 0 0 100");
    fakes.library("transom", &wrong("right"));
    fakes.library("peers/early", &wrong("wrong"));
    let (code, table, err) = fakes.run(&["correctness", "--rounds", "2"]);
    assert!(code == 0 && table.contains("4/8!"), "{table}{err}");
    assert!(table.contains("! early: puts of 8 B were not yet at the target"), "{table}");
    fakes.library("transom", &wrong("wrong"));
    assert_eq!(fakes.run(&["correctness", "--rounds", "2"]).0, 1);
}

#[test]
fn what_was_measured_is_kept_at_the_end_asked_for() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let fakes = Fakes::new();
        let [json, mark] = ["a.json", "mark"].map(|name| fakes.path(name));
        fakes.measuring("transom", 10.0);
        // In the second round it says that it is there, and stays.
        let marked = mark.display();
        fakes.library(
            "peers/slow",
            &format!(
                "{}; [ -e {marked}.1 ] && echo $$ >{marked} && exec sleep 1000; : >{marked}.1",
                put(8, 20.0)
            ),
        );
        let mut command = fakes.command(&["put-latency", "--json", json.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while fs::read_to_string(&mark).unwrap_or_default().is_empty()
            && started.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let report = files::read(&json).unwrap();
        assert!(!report.complete && report.rows.len() == 2, "{report:?}");
        let ranks = fs::read_to_string(&mark).unwrap();
        let left = fs::read_to_string(format!("/proc/{}/stat", ranks.trim())).unwrap_or_default();
        assert!(left.is_empty() || left.contains(") Z "), "{left}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let fakes = Fakes::new();
    fakes.measuring("transom", 10.0);
    fakes.measuring("peers/good", 10.0);
    fs::create_dir(fakes.path("empty")).unwrap();
    let at = |name: &str| fakes.path(name).to_str().unwrap().to_owned();
    let (empty, missing) = (at("empty"), at("missing"));
    for (arguments, says) in [
        (&["put-latncy"][..], "put-latency"),
        (&["put-notify"], "MPI has no such call"),
        (&["--sync", "fence"], "by flushes"),
        (&["--window", "dynamic"], "created"),
        (&["--rivals", &missing], "no such file or directory"),
        (&["--rivals", &empty], "no MPI in"),
        (&["--hosts", "a,b,c"], "two hosts"),
        (&["--hosts", "a,b", "--network", "shm"], "share no memory"),
        (&["--json", "/nonexistent/a.json"], "cannot write"),
        (&["--network", "pigeons"], "pigeons"),
        (&["--pairs", "2"], "--pairs"),
    ] {
        let (code, out, err) = fakes.run(arguments);
        assert!(code == 2 && out.is_empty() && err.contains(says), "{arguments:?}: {code} {out} {err}");
    }
    let variable = texts(&fakes.command(&[]).env("TRANSOM_TRANSPORT", "ofi").output().unwrap());
    assert!(variable.0 == 2 && variable.2.contains("shm, tcp or verbs"), "{variable:?}");
    let rank = texts(&fakes.command(&[]).env("TRANSOM_LOCAL_SIZE", "2").output().unwrap());
    assert!(rank.0 == 2 && rank.2.contains("starts jobs itself"), "{rank:?}");
    fs::remove_file(fakes.path("transom/bin/mpicc")).unwrap();
    let (code, _, err) = fakes.run(&[]);
    assert!(code == 2 && err.contains("no bin/mpicc"), "{err}");
    assert!(fakes.run(&["--list"]).1.contains("put-visible"));
}
