//! Compiling C programs and running them as jobs: what the tests of all ABIs have in common.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// Seconds that a job may take on a busy machine.
pub const LIMIT: &str = "120";

/// The folder of transom-mpi.
pub fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mpi")
}

/// Runs a command, which must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// The wrappers, the libraries and `transom`, built and laid out by `install.sh`.
pub fn prefix() -> Option<&'static Path> {
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
            // As `cargo test --workspace` has compiled it: of fewer packages dependencies have other features, and all is compiled again.
            let all = ["--workspace", "--lib", "--bins", "--examples"];
            succeed(
                Command::new(env!("CARGO"))
                    .args(["build", "-q", "--profile", cargo_profile])
                    .args(all)
                    .current_dir(source()),
            );
            let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_PKG_NAME"));
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

/// What compiles programs of C for an ABI: a command, up to its options.
pub type Compiler = fn(&Path) -> Command;

/// Compiles a program unless that was done: a linker that writes it anew takes it from a test that runs it.
pub fn compile(prefix: &Path, name: &str, compiler: Compiler) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let program = prefix.join(name);
    let mut compiled = COMPILED.lock().unwrap();
    if !compiled.insert(name.into()) {
        return program;
    }
    let file = source().join("tests/c").join(name).with_extension("c");
    let options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"].map(OsStr::new);
    succeed(compiler(prefix).args(options).arg(&program).arg(file));
    program
}

/// Runs a program with some numbers of ranks over some transports.
pub fn run(prefix: &Path, program: &Path, ranks: &[usize], transports: &[&str]) {
    for transport in transports {
        for ranks in ranks {
            let mut job = Command::new(prefix.join("bin/mpiexec"));
            job.args(["-n", &ranks.to_string(), "--timeout", LIMIT])
                .arg(program)
                .env("TRANSOM_TRANSPORT", transport)
                .env("TRANSOM_DEADLINE", "60")
                .env_remove("SLURM_JOB_ID");
            let output = String::from_utf8(succeed(&mut job).stdout).unwrap();
            let expected = format!("all well with {ranks}");
            let name = program.display();
            assert!(output.lines().any(|line| line == expected), "{name}: no {expected:?} in\n{output}");
        }
    }
}

/// Whether a job over this transport said that there is no libfabric here: then its test is skipped.
pub fn lacks_libfabric(transport: &str, said: &str) -> bool {
    let lacks = transport == "ofi" && said.contains("no libfabric");
    if lacks {
        eprintln!("skipped over ofi: there is no libfabric");
    }
    lacks
}

/// A header in the repository is what the tables make. If a table has changed: TRANSOM_BLESS=1 writes it anew.
pub fn is_up_to_date(made: &str, header: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("include").join(header);
    if std::env::var_os("TRANSOM_BLESS").is_some() {
        std::fs::write(&file, made).unwrap();
    }
    let is_same = std::fs::read_to_string(&file).unwrap() == made;
    assert!(is_same, "include/{header} is old: TRANSOM_BLESS=1 cargo test");
}

/// What a library exports, by nm; nothing if there is none.
pub fn exported(library: &Path) -> Option<Vec<String>> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output();
    let Ok(output) = output else {
        eprintln!("skipped: there is no nm");
        return None;
    };
    assert!(output.status.success(), "nm {}", library.display());
    let symbols = String::from_utf8(output.stdout).unwrap();
    let names = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    Some(names.map(str::to_owned).collect())
}
