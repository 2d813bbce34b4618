//! Compiling OpenSHMEM programs and running them as jobs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

/// Seconds that a job may take on a busy machine.
pub const LIMIT: &str = "120";

/// The folder of this package.
pub fn source() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command, which must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Whether there is a program; CI must have it.
pub fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").is_err(), "CI must have {tool}");
    if !found {
        eprintln!("skipped: there is no {tool}");
    }
    found
}

/// The wrappers, the library and `transom`, built and laid out by `install.sh`.
pub fn prefix() -> Option<&'static Path> {
    static PREFIX: OnceLock<Option<PathBuf>> = OnceLock::new();
    PREFIX
        .get_or_init(|| {
            if !has("cc") {
                return None;
            }
            let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_PKG_NAME"));
            install(&prefix, "install.sh");
            Some(prefix)
        })
        .as_deref()
}

/// Builds all that is laid out by a script of this package's folder, and lays it out.
pub fn install(prefix: &Path, script: &str) {
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
    succeed(
        Command::new(source().join(script))
            .arg(profile)
            .arg(prefix)
            .env("CARGO_TARGET_DIR", built.parent().unwrap()),
    );
}

/// Compiles a program unless that was done: a linker that writes it anew takes it from a test that runs it.
pub fn compile(prefix: &Path, name: &str) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let (file, program) = (source().join("tests/c").join(name), prefix.join(name).with_extension("program"));
    let mut compiled = COMPILED.lock().unwrap();
    if !compiled.insert(name.into()) {
        return program;
    }
    let (wrapper, standard) =
        if name.ends_with(".cpp") { ("oshcxx", "-std=c++17") } else { ("oshcc", "-std=gnu11") };
    let options = [standard, "-Wall", "-Wextra", "-Werror", "-pthread", "-o"].map(OsStr::new);
    succeed(Command::new(prefix.join("bin").join(wrapper)).args(options).arg(&program).arg(file));
    program
}

/// A job of so many PEs over a transport, which ends in good time.
pub fn job(prefix: &Path, program: &Path, pes: usize, transport: &str) -> Command {
    let mut job = Command::new(prefix.join("bin/oshrun"));
    job.args(["-np", &pes.to_string(), "--timeout", LIMIT])
        .arg(program)
        .env("TRANSOM_TRANSPORT", transport)
        .env("TRANSOM_DEADLINE", "60")
        .env_remove("SLURM_JOB_ID");
    job
}

/// Runs a program with some numbers of PEs over some transports.
pub fn run(prefix: &Path, program: &Path, pes: &[usize], transports: &[&str]) {
    for transport in transports {
        for pes in pes {
            let mut job = job(prefix, program, *pes, transport);
            let output = job.stdin(Stdio::null()).output().unwrap();
            let [said, wrong] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
            if *transport == "ofi" && wrong.contains("no libfabric") {
                assert!(std::env::var("CI").is_err(), "CI must have libfabric");
                eprintln!("skipped over ofi: there is no libfabric");
                continue;
            }
            let expected = format!("all well with {pes}");
            let well = output.status.success() && said.lines().any(|line| line == expected);
            assert!(well, "{} with {pes} over {transport}:\n{said}{wrong}", program.display());
        }
    }
}
