//! C programs, one for each family of calls, compiled by `mpicc` and run as jobs over shared memory and libfabric. What they
//! check is in `tests/c`; they need a C compiler.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Seconds that a job may take on a busy machine.
const LIMIT: &str = "120";

/// Warnings that mpi.h and the programs must not cause.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// The wrappers, the library and `transom`, built and laid out by `install.sh`.
fn prefix() -> Option<&'static Path> {
    static PREFIX: OnceLock<Option<PathBuf>> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            if Command::new("cc").arg("--version").output().is_err() {
                assert!(std::env::var("CI").is_err(), "CI must have a C compiler (cc)");
                eprintln!("skipped: there is no C compiler (cc)");
                return None;
            }
            // target/PROFILE/deps/programs-…
            let test = std::env::current_exe().unwrap();
            let built = test.ancestors().nth(2).unwrap();
            let profile = built.file_name().unwrap().to_str().unwrap();
            let cargo_profile = if profile == "debug" { "dev" } else { profile };
            let packages = ["-p", "transom-mpi", "-p", "transom-launcher"];
            succeed(
                Command::new(env!("CARGO"))
                    .args(["build", "-q", "--profile", cargo_profile])
                    .args(packages)
                    .current_dir(source()),
            );
            let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mpi");
            succeed(
                Command::new(source().join("install.sh"))
                    .arg(profile)
                    .arg(&prefix)
                    .env("CARGO_TARGET_DIR", built.parent().unwrap()),
            );
            Some(prefix)
        })
        .as_deref()
}

fn compile(prefix: &Path, name: &str) -> PathBuf {
    let program = prefix.join(name);
    let file = source().join("tests/c").join(name).with_extension("c");
    let options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"].map(OsStr::new);
    succeed(Command::new(prefix.join("bin/mpicc")).args(options).arg(&program).arg(file));
    program
}

/// Runs a program with some numbers of ranks over some transports, and alone.
fn run(name: &str, ranks: &[usize], transports: &[&str]) {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, name);
    for transport in transports {
        for ranks in ranks {
            let mut job = Command::new(prefix.join("bin/mpiexec"));
            job.args(["-n", &ranks.to_string(), "--timeout", LIMIT])
                .arg(&program)
                .env("TRANSOM_TRANSPORT", transport)
                .env("TRANSOM_DEADLINE", "60")
                .env_remove("SLURM_JOB_ID");
            let output = String::from_utf8(succeed(&mut job).stdout).unwrap();
            let expected = format!("all well with {ranks}");
            assert!(output.lines().any(|line| line == expected), "{name}: no {expected:?} in\n{output}");
        }
    }
    if ranks.contains(&1) {
        let alone = succeed(&mut Command::new(&program));
        assert!(String::from_utf8(alone.stdout).unwrap().contains("all well with 1"));
    }
}

const BOTH: [&str; 2] = ["shm", "ofi"];

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
    operations_with_requests: "requests", [1, 2, 3], BOTH;
    threads_on_a_window: "threads", [2], BOTH;
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
    truncated_messages: "truncated", [1, 2, 3], BOTH;
    generalised_requests: "general", [1, 2, 3], BOTH;
    partitioned_messages: "partitioned", [1, 2, 3], BOTH;
    collectives: "collectives", [1, 2, 3, 4], BOTH;
    collectives_of_two_groups: "two_groups", [2, 3, 4], BOTH;
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
    let mut expected = Vec::new();
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

/// `MPI_Abort` by one rank, while the others wait for it, gives the job the program's exit code.
#[test]
fn aborts() {
    let Some(prefix) = prefix() else { return };
    let program = compile(prefix, "abort");
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
                .arg(prefix.join("include/mpi.h")),
        );
    }
}

/// The header in the repository is what the tables make. If a table has changed: TRANSOM_BLESS=1 writes it anew.
#[test]
fn header_is_up_to_date() {
    let made = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));
    let file = source().join("include/mpi.h");
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        std::fs::write(&file, made).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap() == made,
        "include/mpi.h is old: TRANSOM_BLESS=1 cargo test"
    );
}

/// Every function of the tables, under both names, and nothing else.
#[test]
fn exports_are_those_of_the_table() {
    let Some(prefix) = prefix() else { return };
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(prefix.join("lib/libmpi_abi.so.1")).output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no nm");
        return;
    };
    let symbols = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let mut expected = Vec::new();
    for line in include_str!("../abi/functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some(name) = line.split_whitespace().nth(1) else { continue };
        let (plain, large) = name.strip_suffix("/c").map_or((name, false), |plain| (plain, true));
        for prefix in ["MPI_", "PMPI_"] {
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
