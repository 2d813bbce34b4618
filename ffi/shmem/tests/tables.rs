//! Header, library and table against the specification: every function, type and constant.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "what the other tests use")]
mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;

use common::{has, prefix, source, succeed, text};

/// Warnings that shmem.h must not cause.
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"];

/// Constants, handles and types of sections 6 and 9.
const CONSTANTS: [&str; 63] = [
    "SHMEM_THREAD_SINGLE",
    "SHMEM_THREAD_FUNNELED",
    "SHMEM_THREAD_SERIALIZED",
    "SHMEM_THREAD_MULTIPLE",
    "SHMEM_TEAM_NUM_CONTEXTS",
    "SHMEM_CTX_SERIALIZED",
    "SHMEM_CTX_PRIVATE",
    "SHMEM_CTX_NOSTORE",
    "SHMEM_CTX_SESSION_BATCH",
    "SHMEM_CTX_SESSION_TOTAL_OPS",
    "SHMEM_SIGNAL_SET",
    "SHMEM_SIGNAL_ADD",
    "SHMEM_MALLOC_ATOMICS_REMOTE",
    "SHMEM_MALLOC_SIGNAL_REMOTE",
    "SHMEM_SYNC_VALUE",
    "SHMEM_SYNC_SIZE",
    "SHMEM_BCAST_SYNC_SIZE",
    "SHMEM_REDUCE_SYNC_SIZE",
    "SHMEM_BARRIER_SYNC_SIZE",
    "SHMEM_COLLECT_SYNC_SIZE",
    "SHMEM_ALLTOALL_SYNC_SIZE",
    "SHMEM_ALLTOALLS_SYNC_SIZE",
    "SHMEM_REDUCE_MIN_WRKDATA_SIZE",
    "SHMEM_MAJOR_VERSION",
    "SHMEM_MINOR_VERSION",
    "SHMEM_MAX_NAME_LEN",
    "SHMEM_VENDOR_STRING",
    "SHMEM_CMP_EQ",
    "SHMEM_CMP_NE",
    "SHMEM_CMP_GT",
    "SHMEM_CMP_GE",
    "SHMEM_CMP_LT",
    "SHMEM_CMP_LE",
    "SHMEM_CTX_INVALID",
    "SHMEM_TEAM_INVALID",
    "SHMEM_TEAM_WORLD",
    "SHMEM_TEAM_SHARED",
    "SHMEM_CTX_DEFAULT",
    "_SHMEM_SYNC_VALUE",
    "_SHMEM_SYNC_SIZE",
    "_SHMEM_BARRIER_SYNC_SIZE",
    "_SHMEM_BCAST_SYNC_SIZE",
    "_SHMEM_COLLECT_SYNC_SIZE",
    "_SHMEM_REDUCE_SYNC_SIZE",
    "_SHMEM_ALLTOALL_SYNC_SIZE",
    "_SHMEM_ALLTOALLS_SYNC_SIZE",
    "_SHMEM_REDUCE_MIN_WRKDATA_SIZE",
    "_SHMEM_MAJOR_VERSION",
    "_SHMEM_MINOR_VERSION",
    "_SHMEM_MAX_NAME_LEN",
    "_SHMEM_VENDOR_STRING",
    "_SHMEM_CMP_EQ",
    "_SHMEM_CMP_NE",
    "_SHMEM_CMP_GT",
    "_SHMEM_CMP_GE",
    "_SHMEM_CMP_LT",
    "_SHMEM_CMP_LE",
    "(shmem_team_config_t){.num_contexts = 1}.num_contexts",
    "(shmem_ctx_session_config_t){.total_ops = 1}.total_ops",
    "sizeof(shmem_ctx_session_config_t)",
    "sizeof(shmem_ctx_t)",
    "sizeof(shmem_team_t)",
    "sizeof(shmem_team_config_t)",
];

/// The sets of types.txt.
fn sets() -> BTreeMap<String, Vec<String>> {
    let mut sets: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in include_str!("../abi/types.txt").lines().filter(|line| line.starts_with("set ")) {
        let mut words = line.split(' ').skip(1);
        let name = words.next().unwrap();
        let mut types = Vec::new();
        for word in words {
            match sets.get(word) {
                Some(others) => types.extend(others.clone()),
                None => types.push(word.to_owned()),
            }
        }
        sets.insert(name.into(), types);
    }
    sets
}

/// What the specification declares: functions, and those for any type.
fn specified() -> (BTreeSet<String>, BTreeSet<String>) {
    let sets = sets();
    let (mut names, mut generic) = (BTreeSet::new(), BTreeSet::new());
    let later = include_str!("../abi/specification-1.6.txt").lines();
    let lines = include_str!("../abi/specification.txt").lines().chain(later);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (set, name) = line.split_once(' ').unwrap();
        match set {
            "-" => _ = names.insert(name.to_owned()),
            "generic" => _ = generic.insert(name.to_owned()),
            set => names.extend(sets[set].iter().map(|ty| name.replace('@', ty))),
        }
    }
    (names, generic)
}

fn made() -> BTreeSet<String> {
    include_str!(concat!(env!("OUT_DIR"), "/names.txt")).lines().map(str::to_owned).collect()
}

/// The same by their names for profilers (section 10).
fn profiled() -> impl Iterator<Item = String> {
    made().into_iter().filter(|name| name.starts_with("shmem_")).map(|name| format!("p{name}"))
}

#[test]
fn every_function_of_the_specification_is_there() {
    let (specified, generic) = specified();
    let made = made();
    let missing: Vec<_> = specified.difference(&made).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Beyond the specification: what earlier ones had.
    let more: Vec<&str> = made.difference(&specified).map(String::as_str).collect();
    let others = [
        "shmem_clear_cache_inv",
        "shmem_clear_cache_line_inv",
        "shmem_set_cache_inv",
        "shmem_set_cache_line_inv",
        "shmem_udcflush",
        "shmem_udcflush_line",
    ];
    assert_eq!(more, others);
    assert_eq!((specified.len(), generic.len()), (1919, 71));
    let header = std::fs::read_to_string(source().join("include/shmem.h")).unwrap();
    for name in generic {
        assert!(header.contains(&format!("#define {name}(...)")), "{name} for any type in C11");
        assert!(
            header
                .lines()
                .any(|line| line.starts_with("static inline") && line.contains(&format!(" {name}("))),
            "{name} in C++"
        );
    }
}

#[test]
fn headers_are_up_to_date() {
    let headers = [
        ("shmem.h", include_str!(concat!(env!("OUT_DIR"), "/shmem.h"))),
        ("pshmem.h", include_str!(concat!(env!("OUT_DIR"), "/pshmem.h"))),
    ];
    for (name, made) in headers {
        let file = source().join("include").join(name);
        if std::env::var_os("TRANSOM_BLESS").is_some() {
            std::fs::write(&file, made).unwrap();
        }
        let is_same = std::fs::read_to_string(&file).unwrap() == made;
        assert!(is_same, "include/{name} is old: TRANSOM_BLESS=1 cargo test");
    }
}

#[test]
fn exports_are_those_of_the_table() {
    let Some(prefix) = prefix() else { return };
    if !has("nm") {
        return;
    }
    let output =
        succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(prefix.join("lib/libsma.so.1")));
    let symbols = text(&output.stdout);
    let exported: BTreeSet<String> =
        symbols.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect();
    let for_our_libraries = ["transom_library_1".into()];
    assert_eq!(exported, made().into_iter().chain(profiled()).chain(for_our_libraries).collect());
}

/// A program that names everything compiles by the header, and is linked to the library.
#[test]
fn header_declares_everything() {
    let Some(prefix) = prefix() else { return };
    let mut program = String::from(
        "#include <shmem.h>\n#include <pshmem.h>\n#include <shmemx.h>\n#include <mpp/shmem.h>\n",
    );
    program.push_str("typedef void (*any)(void);\nany all[] = {\n");
    for name in made().into_iter().chain(profiled()) {
        let _ = writeln!(program, "(any) {name},");
    }
    program.push_str("};\nint main(void) {\n");
    for constant in CONSTANTS {
        let _ = writeln!(program, "(void) ({constant});");
    }
    program.push_str("return all[0] == 0;\n}\n");
    let file = prefix.join("everything.c");
    std::fs::write(&file, program).unwrap();
    for standard in ["-std=c99", "-std=c11"] {
        let options = [standard, "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type", "-o"];
        succeed(
            Command::new(prefix.join("bin/oshcc")).args(options).arg(prefix.join("everything")).arg(&file),
        );
    }
    let output = Command::new(prefix.join("everything")).output().unwrap();
    assert!(output.status.success());
}

/// The header by itself, as C and as C++, without a warning.
#[test]
fn header_is_clean() {
    let Some(prefix) = prefix() else { return };
    for (language, standard) in [("c", "c99"), ("c", "c11"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++17")]
    {
        if language == "c++" && !has("c++") {
            continue;
        }
        let wrapper = if language == "c" { "oshcc" } else { "oshcxx" };
        succeed(
            Command::new(prefix.join("bin").join(wrapper))
                .args(STRICT)
                .args([&format!("-std={standard}"), "-fsyntax-only", "-x", language])
                .arg(prefix.join("include/shmem.h")),
        );
    }
}

/// What build systems ask the wrappers and pkg-config.
#[test]
fn wrappers_say_what_they_do() {
    let Some(prefix) = prefix() else { return };
    let ask = |wrapper: &str, options: &[&str]| {
        text(&succeed(Command::new(prefix.join("bin").join(wrapper)).args(options)).stdout)
    };
    let include = format!("-I{}", prefix.join("include").display());
    assert!(ask("oshcc", &["-show", "-O2", "x.c"]).contains(&format!("{include} -O2 x.c")));
    assert!(
        ask("oshcc", &["-showme:link"]).contains("-lsma")
            && ask("oshcc", &["-showme:compile"]).contains(&include)
    );
    assert!(ask("oshc++", &["-show"]).starts_with("c++ ") && ask("oshcxx", &["-show"]).starts_with("c++ "));
    assert!(ask("oshrun", &["--version"]).contains("transom"));
    for name in ["libsma.so", "libshmem.so", "liboshmem.so"] {
        assert!(prefix.join("lib").join(name).exists(), "{name}");
    }
    if Command::new("pkg-config").arg("--version").output().is_ok() {
        let options = Command::new("pkg-config")
            .args(["--cflags", "--libs", "shmem"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()
            .unwrap();
        assert!(text(&options.stdout).contains("-lsma"), "{options:?}");
    }
}
