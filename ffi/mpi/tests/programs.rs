//! C programs, one for each family of calls, compiled by `mpicc` and run as jobs over shared memory and libfabric. What they
//! check is in `tests/c`; they need a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
mod places;

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{LIMIT, compile, exported, lacks_libfabric, prefix, source, succeed};

/// Warnings that mpi.h and the programs must not cause.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"];

const BOTH: [&str; 2] = ["shm", "tcp"];

fn mpicc(prefix: &Path) -> Command {
    Command::new(prefix.join("bin/mpicc"))
}

/// Runs a program as jobs, and alone.
fn run(name: &str, ranks: &[usize], transports: &[&str]) {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, name, mpicc);
    common::run(prefix, &program, ranks, transports);
    if ranks.contains(&1) {
        let alone = succeed(&mut Command::new(&program));
        assert!(String::from_utf8(alone.stdout).unwrap().contains("all well with 1"));
    }
}

/// `name: PROGRAM, ranks, transports;` makes a test of each C program.
macro_rules! programs {
    ($($name:ident: $program:literal, $ranks:expr, $transports:expr;)*) => { $(
        #[test]
        fn $name() {
            run($program, &$ranks, &$transports);
        }
    )* };
}

programs! {
    windows: "window", [1, 2, 3, 4], BOTH;
    dynamic_windows: "dynamic", [1, 2, 3], BOTH;
    memory_detached_while_peers_access_it: "left", [1, 2, 3], BOTH;
    operations_with_requests: "requests", [1, 2, 3], BOTH;
    threads_on_a_window: "threads", [2], BOTH;
    created_windows: "created", [1, 2, 3], BOTH;
    shared_windows: "shared", [1, 2, 3], BOTH;
    wrong_arguments_of_windows: "arguments", [1, 2], BOTH;
    windows_in_a_wrong_order: "wrong", [1, 2], BOTH;
    environment_and_errors: "environment", [1, 2], ["shm"];
    groups_communicators_and_attributes: "communicators", [1, 2, 3, 4], ["shm"];
    topologies: "topologies", [1, 2, 3, 4], BOTH;
    neighbours: "neighbours", [1, 2, 3, 4], BOTH;
    datatypes: "datatypes", [1, 2], ["shm"];
    external32: "external", [1], ["shm"];
    messages: "messages", [1, 2, 3], BOTH;
    receives_in_slots_and_beyond: "receives", [1, 2, 3], BOTH;
    messages_in_order: "order", [2, 3], BOTH;
    floods_of_messages: "flood", [2, 3], BOTH;
    mixtures_of_collectives_and_messages: "mixture", [1, 2, 3, 5, 7], BOTH;
    truncated_messages: "truncated", [1, 2, 3], BOTH;
    generalised_requests: "general", [1, 2, 3], BOTH;
    partitioned_messages: "partitioned", [1, 2, 3], BOTH;
    barriers: "barriers", [1, 2, 3, 6], BOTH;
    collectives: "collectives", [1, 2, 3, 4, 9], BOTH;
    long_collectives: "long", [1, 2, 3, 4], BOTH;
    collectives_of_two_groups: "two_groups", [2, 3, 4], BOTH;
    performance_variables: "tools", [1, 2, 3], BOTH;
    sessions: "session", [1, 2, 3], ["shm"];
    constants_are_those_of_the_standard: "constants", [1], ["shm"];
}

/// Each function of windows is in the table of wrong arguments.
#[test]
fn every_function_of_windows_has_wrong_arguments() {
    let program = include_str!("c/arguments.c");
    let of_table = |line: &'static str| Some(line.trim().strip_prefix("X(")?.split_once(',')?.0);
    let mut known: Vec<String> = program
        .lines()
        .filter_map(of_table)
        .filter(|name| !name.starts_with('"'))
        .map(str::to_owned)
        .collect();
    let mut expected: Vec<String> = Vec::new();
    for line in include_str!("../abi/functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some(name) = line.split_whitespace().nth(1) else { continue };
        let (plain, large) = name.strip_suffix("/c").map_or((name, false), |plain| (plain, true));
        let converts = plain.ends_with("c2f") || plain.ends_with("f2c");
        if converts || !(plain.starts_with("Win_") || line.contains(" win:win")) {
            continue;
        }
        expected.push(plain.to_owned());
        expected.extend(large.then(|| format!("{plain}_c")));
    }
    known.sort_unstable();
    expected.sort_unstable();
    assert_eq!(known, expected);
    assert_eq!(known.len(), 61);
}

/// A job of two that ends well; `tool` runs each rank.
fn run_by(prefix: &Path, tool: &[&str], program: &Path, variables: &[(&str, &str)]) {
    let mut job = Command::new(prefix.join("bin/mpiexec"));
    job.args(["-n", "2", "--timeout", "300"]).args(tool).arg(program);
    job.envs(variables.iter().copied()).env_remove("SLURM_JOB_ID");
    let output = String::from_utf8(succeed(&mut job).stdout).unwrap();
    assert!(output.lines().any(|line| line == "all well with 2"), "{output}");
}

fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").is_err(), "CI must have {tool}");
    found
}

/// Memory that becomes a window in place, as tools that watch every access see it.
#[test]
fn created_windows_under_tools() {
    let Some(prefix) = prefix() else { return };
    let few = ("TRANSOM_TEST_CREATED", "20");
    let sanitized = prefix.join("created_sanitized");
    let options = ["-std=c11", "-g", "-O1", "-fsanitize=address,undefined", "-pthread", "-o"].map(OsStr::new);
    let compiled = Command::new(prefix.join("bin/mpicc"))
        .args(options)
        .arg(&sanitized)
        .arg(source().join("tests/c/created.c"))
        .output()
        .unwrap();
    match compiled.status.success() {
        // What was freed is kept for a while otherwise.
        true => {
            run_by(prefix, &[], &sanitized, &[few, ("ASAN_OPTIONS", "detect_leaks=0,quarantine_size_mb=1")])
        }
        false => eprintln!("skipped: the C compiler has no sanitizers"),
    }
    let program = compile(prefix, "created", mpicc);
    if has("valgrind") {
        run_by(prefix, &["valgrind", "-q", "--error-exitcode=9"], &program, &[few]);
    }
}

/// Without a privilege other threads cannot be made to wait, and there must be none.
#[test]
fn created_windows_of_an_ordinary_user() {
    let Some(prefix) = prefix() else { return };
    if !nix::unistd::geteuid().is_root() || !has("setpriv") {
        return;
    }
    let program = compile(prefix, "created", mpicc);
    let nobody =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"];
    let tool: Vec<&str> = ["setpriv"].into_iter().chain(nobody).collect();
    let reaches = Command::new("setpriv").args(nobody).args(["test", "-x"]).arg(&program).status();
    if !reaches.is_ok_and(|status| status.success()) {
        eprintln!("skipped: an ordinary user cannot reach {}", program.display());
        return;
    }
    run_by(prefix, &tool, &program, &[("TRANSOM_TEST_CREATED", "20")]);
}

/// `MPI_Abort` by one rank, while the others wait for it, gives the job the program's exit code.
#[test]
fn aborts() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "abort", mpicc);
    let expected = [("0", 0), ("7", 7), ("-1", 255), ("256", 1)];
    let of = |command: &mut Command, code| {
        let output = command.arg(code).stdin(Stdio::null()).env_remove("SLURM_JOB_ID").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("MPI_Abort with code {code}")), "{said}");
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (given, code) in expected {
        let mut job = Command::new(prefix.join("bin/mpiexec"));
        job.args(["-n", "3", "--timeout", LIMIT]).arg(&program);
        assert_eq!(of(&mut job, given), (code, "about to abort\n".into()), "{given}");
        assert_eq!(
            of(&mut Command::new(&program), given),
            (code, "about to abort\n".into()),
            "{given}, alone"
        );
    }
}

/// Several programs are one job, and each process is told which it is.
#[test]
fn programs_of_one_job() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "appnum", mpicc);
    let mut job = Command::new(prefix.join("bin/mpiexec"));
    job.args(["-n", "2", "--timeout", LIMIT]).arg(&program).arg("0");
    job.args([":", "-n", "1"]).arg(&program).arg("1").env_remove("SLURM_JOB_ID");
    succeed(&mut job);
}

/// `mpiexec -initial-errhandler` (MPI-4.1 §11.5).
#[test]
fn initial_error_handlers() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "initial", mpicc);
    for handler in ["", "mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return", "mpi_errors_recover"]
    {
        let mut job = Command::new(prefix.join("bin/mpiexec"));
        job.args(["-n", "2", "--timeout", LIMIT]);
        if !handler.is_empty() {
            job.args(["-initial-errhandler", handler]);
        }
        job.arg(&program).arg(if handler.is_empty() { "mpi_errors_are_fatal" } else { handler });
        let output = job.stdin(Stdio::null()).env_remove("SLURM_JOB_ID").output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let said = format!("{handler}: {stdout}{stderr}");
        assert!(!said.contains("not so"), "{said}");
        match handler {
            "mpi_errors_return" => {
                assert!(output.status.success() && stdout.contains("are returned"), "{said}")
            }
            "mpi_errors_recover" => {
                assert!(stderr.contains("TRANSOM_INITIAL_ERRHANDLER is \"mpi_errors_recover\""), "{said}")
            }
            _ => assert!(!output.status.success() && stderr.contains("MPI_ERR_RANK"), "{said}"),
        }
    }
}

/// Memory that the program unmaps under a window: an access ends, on every transport.
#[test]
fn unmapped_memory() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "unmapped", mpicc);
    for transport in ["shm", "tcp", "ofi"] {
        let mut job = Command::new(prefix.join("bin/mpiexec"));
        job.args(["-n", "2", "--timeout", LIMIT]).arg(&program);
        job.env("TRANSOM_TRANSPORT", transport).env("TRANSOM_OFI_SILENCE", "3").env_remove("SLURM_JOB_ID");
        let output = job.stdin(Stdio::null()).output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        if lacks_libfabric(transport, &stderr) {
            continue;
        }
        assert!(stdout.contains("the get ended"), "{transport}: {stdout}{stderr}");
        assert_eq!(output.status.code(), Some(9), "{transport}: {stdout}{stderr}");
    }
}

/// The header by itself, as C and as C++, without a warning.
#[test]
fn header_is_clean() {
    let Some(prefix) = prefix() else { return };
    let languages = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17")];
    for (language, standard) in languages {
        if language == "c++" && Command::new("c++").arg("--version").output().is_err() {
            eprintln!("skipped: there is no C++ compiler (c++)");
            continue;
        }
        let wrapper = if language == "c" { "mpicc" } else { "mpicxx" };
        succeed(
            Command::new(prefix.join("bin").join(wrapper))
                .args(STRICT)
                .args([&format!("-std={standard}"), "-fsyntax-only", "-x", language])
                .arg(prefix.join("include/mpi-ext.h")),
        );
    }
}

#[test]
fn header_is_up_to_date() {
    common::is_up_to_date(include_str!(concat!(env!("OUT_DIR"), "/mpi.h")), "mpi.h");
}

/// Every function of the tables, under both names, and what libsma.so asks for.
#[test]
fn exports_are_those_of_the_table() {
    let Some(prefix) = prefix() else { return };
    let Some(mut exported) = exported(&prefix.join("lib/libmpi_abi.so.1")) else { return };
    exported.sort_unstable();
    let mut expected = vec!["transom_library_1".into()];
    for line in include_str!("../abi/functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some(name) = line.split_whitespace().nth(1) else { continue };
        let (plain, large) = name.strip_suffix("/c").map_or((name, false), |plain| (plain, true));
        let plain = if plain.starts_with("MPIX_") { plain.to_owned() } else { format!("MPI_{plain}") };
        for prefix in ["", "P"] {
            expected.push(format!("{prefix}{plain}"));
            if large {
                expected.push(format!("{prefix}{plain}_c"));
            }
        }
    }
    expected.sort_unstable();
    assert_eq!(exported, expected);
}

/// What build systems ask the wrappers.
#[test]
fn wrappers_say_what_they_do() {
    let Some(prefix) = prefix() else { return };
    let ask = |wrapper: &str, options: &[&str]| {
        let output = succeed(Command::new(prefix.join("bin").join(wrapper)).args(options));
        String::from_utf8(output.stdout).unwrap()
    };
    let include = format!("-I{}", prefix.join("include").display());
    for option in ["-show", "-compile_info", "-link_info", "-showme:compile"] {
        assert!(ask("mpicc", &[option]).contains(&include), "{option}");
    }
    assert!(ask("mpicc", &["-show"]).contains("-lmpi_abi"));
    assert!(ask("mpicxx", &["-show"]).starts_with("c++ "));
    assert!(ask("mpicc", &["-show", "-O2", "x.c"]).contains("-O2 x.c"));
    assert!(ask("mpiexec", &["--version"]).contains("transom"));
}
