//! Programs that are built for MPICH: the C programs of transom-mpi's tests, compiled with MPICH's header; each constant of that header,
//! and each function of MPICH's library, against ours.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../mpi/tests/common/mod.rs"]
mod common;
mod fortran;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use common::{compile, exported, prefix, source, succeed};

const CONSTANTS: &str = include_str!("../abi/constants.txt");

/// Where MPICH is, for its header and its library.
fn mpich() -> Option<&'static Path> {
    static MPICH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let output = Command::new(source().join("../../ci/mpich.sh")).output().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(std::env::var("CI").is_err(), "CI must have MPICH: {said}");
            eprintln!("skipped: there is no MPICH, and it cannot be installed: {said}");
            return None;
        }
        Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end()))
    };
    MPICH.get_or_init(find).as_deref()
}

/// The system's compiler with MPICH's header and our library.
fn compiler(prefix: &Path) -> Command {
    let mut command = Command::new("cc");
    command.arg("-I").arg(mpich().unwrap().join("include")).arg("-Wl,--no-as-needed");
    command.arg(prefix.join("lib/mpich-abi/libmpi.so.12"));
    command
}

/// Runs a C program as jobs, started as programs are that know nothing of Transom.
fn run(name: &str, ranks: &[usize], transports: &[&str]) {
    let (Some(prefix), Some(_)) = (prefix(), mpich()) else { return };
    let program = compile(prefix, name, compiler);
    common::run(prefix, &program, ranks, transports);
}

const BOTH: [&str; 2] = ["shm", "tcp"];

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
    windows: "window", [1, 3], BOTH;
    dynamic_windows: "dynamic", [3], BOTH;
    operations_with_requests: "requests", [3], BOTH;
    threads_on_a_window: "threads", [2], ["shm"];
    shared_windows: "shared", [3], ["shm"];
    wrong_arguments_of_windows: "arguments", [1, 2], ["shm"];
    windows_in_a_wrong_order: "wrong", [2], ["shm"];
    environment_and_errors: "environment", [1, 2], ["shm"];
    groups_communicators_and_attributes: "communicators", [1, 3, 4], ["shm"];
    topologies: "topologies", [4], ["shm"];
    neighbours: "neighbours", [4], ["shm"];
    datatypes: "datatypes", [1, 2], ["shm"];
    external32: "external", [1], ["shm"];
    messages: "messages", [3], BOTH;
    truncated_messages: "truncated", [3], ["shm"];
    generalised_requests: "general", [3], ["shm"];
    partitioned_messages: "partitioned", [3], ["shm"];
    collectives: "collectives", [4], BOTH;
    long_collectives: "long", [3], BOTH;
    collectives_of_two_groups: "two_groups", [4], ["shm"];
    sessions: "session", [3], ["shm"];
    what_the_standard_has_no_more: "removed", [1, 2], ["shm"];
}

/// Constants of the table with their values: handles as they are, pointers as numbers.
fn constants() -> Vec<(String, i64)> {
    let lines = CONSTANTS.lines().filter(|line| !line.starts_with('#'));
    let constant = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, value) = match words[..] {
            ["handle", _, name, value] => (name, i64::from_str_radix(&value[2..], 16).unwrap()),
            ["int", name, value] | ["pointer", _, name, value] => (name, value.parse().unwrap()),
            _ => return None,
        };
        Some((if name.starts_with("MPIX_") { name.to_owned() } else { format!("MPI_{name}") }, value))
    };
    lines.filter_map(constant).collect()
}

/// Each constant of the table has the value that MPICH's header has, and each type its size and layout.
#[test]
fn constants_are_those_of_mpichs_header() {
    let (Some(prefix), Some(_)) = (prefix(), mpich()) else { return };
    let mut text = String::from("#include <stddef.h>\n#include <stdint.h>\n#include \"check.h\"\n");
    text.push_str("static void constants(void) {\n");
    // One that MPICH does not have, as it has no such attribute.
    for (name, value) in constants().into_iter().filter(|(name, _)| name != "MPIX_FT") {
        // Handles are of type int, in which the highest bit is a sign.
        let _ = writeln!(
            text,
            "CHECK((intptr_t)({name}) == {value} || (int)(intptr_t)({name}) == (int){value}u);"
        );
    }
    text.push_str(LAYOUTS);
    let file = prefix.join("table.c");
    std::fs::write(&file, text).unwrap();
    let program = prefix.join("table");
    let include = source().join("tests/c");
    // Functions as macros, and enumerations as integers.
    let lax = ["-std=c11", "-w"];
    succeed(compiler(prefix).args(lax).arg("-I").arg(include).arg("-o").arg(&program).arg(&file));
    common::run(prefix, &program, &[1], &["shm"]);
}

const LAYOUTS: &str = "}
static void layouts(void) {
    CHECK(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8 && sizeof(MPI_Offset) == 8 && sizeof(MPI_Fint) == 4);
    CHECK((MPI_Aint)-1 < 0 && (MPI_Count)-1 < 0 && (MPI_Offset)-1 < 0);
    CHECK(sizeof(MPI_Status) == 20 && offsetof(MPI_Status, count_lo) == 0);
    CHECK(offsetof(MPI_Status, count_hi_and_cancelled) == 4 && offsetof(MPI_Status, MPI_SOURCE) == 8);
    CHECK(offsetof(MPI_Status, MPI_TAG) == 12 && offsetof(MPI_Status, MPI_ERROR) == 16);
    CHECK(sizeof(MPI_F08_status) == 20 && offsetof(MPI_F08_status, MPI_SOURCE) == 8);
    CHECK(sizeof(MPI_Comm) == 4 && sizeof(MPI_Group) == 4 && sizeof(MPI_Win) == 4 && sizeof(MPI_Request) == 4);
    CHECK(sizeof(MPI_Message) == 4 && sizeof(MPI_Info) == 4 && sizeof(MPI_Errhandler) == 4);
    CHECK(sizeof(MPI_Op) == 4 && sizeof(MPI_Datatype) == 4 && sizeof(MPI_Session) == 4);
    CHECK(sizeof(MPI_File) == sizeof(void *));
}
PROGRAM(constants, layouts)
";

/// Each constant of MPICH's header that is MPI's is in the table: macros, and what enumerations have.
#[test]
fn no_constant_of_mpichs_header_is_missing() {
    let (Some(_), Some(mpich)) = (prefix(), mpich()) else { return };
    let mut command = Command::new("cc");
    let header = mpich.join("include/mpi.h");
    let text =
        succeed(command.args(["-E", "-dD", "-P", "-I"]).arg(mpich.join("include")).arg(&header)).stdout;
    let text = String::from_utf8(text).unwrap();
    let is_constant = |name: &&str| {
        name.starts_with("MPI_") && name.len() > 4 && !name.chars().any(|c| c.is_ascii_lowercase())
    };
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let in_header: BTreeSet<&str> = words.filter(is_constant).collect();
    assert!(in_header.len() > 300, "{in_header:?}");
    let mut known: BTreeSet<String> = constants().into_iter().map(|(name, _)| name).collect();
    known.extend(
        CONSTANTS
            .lines()
            .filter_map(|line| Some(format!("MPI_{}", line.strip_prefix("alias ")?.split(' ').next()?))),
    );
    // What is not for programs, is the library's own variable, or tells the compiler something.
    let others = [
        "MPI_INCLUDED",
        "MPI_FILE_DEFINED",
        "MPI_AINT_FMT_DEC_SPEC",
        "MPI_AINT_FMT_HEX_SPEC",
        "MPI_PROTO_H_INCLUDED",
        "MPI_F_STATUS_IGNORE",
        "MPI_F_STATUSES_IGNORE",
        "MPI_F08_STATUS_IGNORE",
        "MPI_F08_STATUSES_IGNORE",
        "MPI_DUP_FN",
        "MPI_COMM_DUP_FN",
        "MPI_WIN_DUP_FN",
        "MPI_TYPE_DUP_FN",
        "MPI_T_VERBOSITY_INVALID",
        "MPI_T_BIND_INVALID",
        "MPI_T_SCOPE_INVALID",
        "MPI_T_PVAR_CLASS_INVALID",
        "MPI_COMBINER_HVECTOR_INTEGER",
        "MPI_COMBINER_HINDEXED_INTEGER",
        "MPI_COMBINER_STRUCT_INTEGER",
        "MPI_T_CB_REQUIRE_NONE",
        "MPI_T_CB_REQUIRE_MPI_RESTRICTED",
        "MPI_T_CB_REQUIRE_THREAD_SAFE",
        "MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE",
        "MPI_T_SOURCE_ORDERED",
        "MPI_T_SOURCE_UNORDERED",
        "MPI_ABI",
        "MPI_SOURCE",
        "MPI_TAG",
        "MPI_ERROR",
    ];
    let missing = in_header.iter().filter(|name| !known.contains(**name) && !others.contains(name));
    // Numbers of functions, for MPICH's tools.
    let missing: Vec<&&str> = missing.filter(|name| !name.ends_with("_T")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What MPICH's library exports for programs, ours exports too.
#[test]
fn no_function_of_mpichs_library_is_missing() {
    let (Some(prefix), Some(mpich)) = (prefix(), mpich()) else { return };
    let libraries = [mpich.join("lib/libmpi.so.12"), prefix.join("lib/mpich-abi/libmpi.so.12")];
    let [Some(theirs), Some(ours)] = libraries.map(|library| exported(&library)) else { return };
    let ours: BTreeSet<String> = ours.into_iter().collect();
    let for_programs = ["MPI_", "PMPI_", "MPIX_", "PMPIX_", "MPIR_Dup_fn"];
    let wanted: Vec<String> =
        theirs.into_iter().filter(|name| for_programs.iter().any(|begin| name.starts_with(begin))).collect();
    assert!(wanted.len() > 1400, "{}", wanted.len());
    let missing: Vec<&String> = wanted.iter().filter(|name| !ours.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A program that is linked to another library of MPI is refused by name, before it begins.
#[test]
fn a_program_of_another_library_is_refused() {
    let Some(prefix) = prefix() else { return };
    let folder = prefix.join("other");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("empty.c"), "int main(void) { return 0; }\n").unwrap();
    let library = folder.join("libmpi.so.40");
    let cc = |options: &[&str], out: &Path| {
        let mut command = Command::new("cc");
        command.arg(folder.join("empty.c")).args(options).arg("-o").arg(out);
        succeed(&mut command)
    };
    cc(&["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"], &library);
    let (ours, standard) = (prefix.join("lib/mpich-abi/libmpi.so.12"), prefix.join("lib/libmpi_abi.so.1"));
    for (name, libraries, says) in [
        ("open", vec![&library], "libmpi.so.40, which is Open MPI's"),
        ("both", vec![&ours, &standard], "two libraries of MPI"),
    ] {
        let program = folder.join(name);
        let libraries: Vec<&str> = libraries.iter().map(|library| library.to_str().unwrap()).collect();
        cc(&[&["-Wl,--no-as-needed"], &libraries[..]].concat(), &program);
        let output =
            Command::new(prefix.join("bin/mpiexec")).args(["-n", "2"]).arg(&program).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(says) && said.contains("libmpi_abi.so.1"), "{said}");
    }
}
