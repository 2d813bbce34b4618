//! Which processors ranks may run on: what is reported is what the kernel says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::{Ended, TRANSOM, fake_ssh, run, run_sh, start};

/// Prints a rank and its processors.
const SHOW: &str = "echo $PMI_RANK $(grep Cpus_allowed_list: /proc/self/status)";

/// The processors of each rank, as the kernel has them.
fn kernels(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut lines: Vec<(u32, String)> = Vec::new();
    for line in ended.stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        lines.push((words[0].parse().unwrap(), words[2].to_owned()));
    }
    lines.sort();
    lines.into_iter().map(|(_, cpus)| cpus).collect()
}

/// The rows of the table behind its heading: rank, host, what it is bound to, processors, core, socket, node.
fn reported(ended: &Ended) -> Vec<Vec<String>> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> =
        ended.stderr.lines().skip_while(|line| !line.contains("processors  core")).map(words).collect();
    assert!(!rows.is_empty(), "{}", ended.stderr);
    assert!(
        rows[1..].iter().enumerate().all(|(rank, row)| row.len() == 7 && row[0] == rank.to_string()),
        "{rows:?}"
    );
    rows[1..].to_vec()
}

fn free() -> String {
    kernels(&run_sh(1, &[], SHOW)).remove(0)
}

fn processors() -> u32 {
    std::thread::available_parallelism().unwrap().get() as u32
}

#[test]
fn what_is_reported_is_so() {
    let flags: [&[&str]; 6] = [
        &["--bind", "core"],
        &["--bind", "socket"],
        &["--bind", "numa"],
        &["--map-by", "numa"],
        &["--map-by", "numa", "--bind", "core"],
        &[],
    ];
    let count = processors().min(4);
    for flags in flags {
        let ended = run_sh(count, &[flags, &["--report-bindings"]].concat(), SHOW);
        let (kernels, rows) = (kernels(&ended), reported(&ended));
        assert_eq!(kernels.len(), count as usize, "{flags:?}");
        assert_eq!(rows.iter().map(|row| row[3].clone()).collect::<Vec<_>>(), kernels, "{flags:?}");
        if flags.is_empty() {
            assert!(rows.iter().all(|row| row[2] == "nothing") && kernels.iter().all(|cpus| *cpus == free()));
        }
        if flags.contains(&"core") {
            assert!(rows.iter().all(|row| row[2] == "core" || row[2] == "thread"), "{rows:?}");
            assert_eq!(kernels.into_iter().collect::<BTreeSet<_>>().len(), count as usize);
        }
    }
}

#[test]
fn without_room_for_all_none_is_bound_and_that_is_said() {
    let crowded = run_sh(processors() + 1, &["--bind", "core", "--report-bindings"], SHOW);
    let free = free();
    assert!(kernels(&crowded).iter().all(|cpus| *cpus == free), "{}", crowded.stdout);
    assert!(reported(&crowded).iter().all(|row| row[2] == "nothing" && row[3] == free), "{}", crowded.stderr);
    let says = format!(": no rank is bound: there are {}, and", processors() + 1);
    assert!(crowded.stderr.contains(&says), "{}", crowded.stderr);
    let silent = run_sh(processors() + 1, &["--bind", "none"], SHOW);
    assert_eq!(silent.stderr, "");
}

/// Of a set that this command has been given, a rank gets nothing else.
#[test]
fn a_set_of_processors_is_obeyed() {
    let last = free().rsplit([',', '-']).next().unwrap().to_owned();
    for (ranks, bind, unit) in
        [("1", "core", "core"), ("3", "numa", "numa"), ("2", "socket", "socket"), ("2", "core", "nothing")]
    {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            &last,
            TRANSOM,
            "run",
            "-n",
            ranks,
            "--bind",
            bind,
            "--report-bindings",
            "sh",
            "-c",
            SHOW,
        ]);
        let ended = start(&mut command).wait();
        assert!(kernels(&ended).iter().all(|cpus| *cpus == last), "{}", ended.stdout);
        assert!(
            reported(&ended).iter().all(|row| row[2] == unit && row[3] == last),
            "{bind}: {}",
            ended.stderr
        );
    }
}

/// Each host binds its own ranks, also below another's agent; the table has all of them in their order, before any rank prints.
#[test]
fn several_hosts() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "exec sh -c \"$2\"");
    for fan_out in ["0", "1"] {
        let flags =
            ["--rsh", &ssh, "--hosts", "h1,h2,h3", "-N", "1", "--fan-out", fan_out, "--report-bindings"];
        let ended =
            run(&[&flags[..], &["--bind", "core", "sh", "-c", &format!("{SHOW}; echo late >&2")]].concat());
        assert!(ended.stderr.starts_with("  rank  host"), "{}", ended.stderr);
        let table = Ended { stderr: ended.stderr.replace("late\n", ""), ..ended };
        let rows = reported(&table);
        assert_eq!(rows.iter().map(|row| &*row[1]).collect::<Vec<_>>(), ["h1", "h2", "h3"]);
        let first = &rows[0][3];
        assert!(kernels(&table).iter().all(|cpus| cpus == first), "{}", table.stdout);
    }
}
