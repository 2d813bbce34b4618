//! Jobs that PRRTE's `prterun` and Open MPI's `mpirun` start, by PMIx: this test program is also the program of the ranks.
//!
//! Launchers are those that `TRANSOM_TEST_PMIX_LAUNCHERS` names (paths, with colons), else `prterun` and `mpirun.openmpi` on the
//! PATH. Where there is none the tests are skipped, with a line that says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;
#[path = "../../runtime/tests/suite/mod.rs"]
mod suite;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use common::{Ended, ROLE, start};
use transom_pmix::Client;

fn launchers() -> Vec<PathBuf> {
    let found: Vec<PathBuf> = match std::env::var_os("TRANSOM_TEST_PMIX_LAUNCHERS") {
        Some(named) => std::env::split_paths(&named).collect(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let on_path =
                |name| std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.exists());
            ["prterun", "mpirun.openmpi"].into_iter().filter_map(on_path).collect()
        }
    };
    if found.is_empty() {
        println!(
            "skipped: no prterun or mpirun.openmpi (apt install openmpi-bin, or TRANSOM_TEST_PMIX_LAUNCHERS=PATH)"
        );
    }
    found
}

fn command(launcher: &PathBuf, ranks: u32, role: &str) -> Command {
    let mut command = Command::new(launcher);
    // A wrapper of mpirun's must find what is installed beside it.
    if let Some(folder) = launcher.parent() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).unwrap());
    }
    command.args([
        "--allow-run-as-root",
        "--map-by",
        ":OVERSUBSCRIBE",
        "--bind-to",
        "none",
        "-n",
        &ranks.to_string(),
    ]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "rank_program", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command.env("TRANSOM_DEADLINE", "25").stdin(std::process::Stdio::null());
    for name in ["PMI_FD", "PMI_PORT", "SLURM_JOB_ID", "TRANSOM_PMIX"] {
        command.env_remove(name);
    }
    command
}

fn run(launcher: &PathBuf, ranks: u32, role: &str) -> Ended {
    start(&mut command(launcher, ranks, role)).wait()
}

#[test]
fn rank_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "exchange" {
        return exchange();
    }
    let job = transom::init().unwrap_or_else(|error| {
        println!("NO JOB: {error}");
        std::process::exit(3);
    });
    let last = job.rank() + 1 == job.size();
    match role.as_str() {
        "suite" => {
            for (name, program) in suite::PROGRAMS {
                program(&job).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            println!("RANK {} of {}: {}", job.rank(), job.size(), job.transport(0).unwrap().0);
        }
        "abort" if last => {
            job.abort(42).unwrap();
            std::thread::sleep(Duration::from_secs(100));
        }
        "die" if last => std::process::abort(),
        "leave" if last => std::process::exit(0),
        "abort" | "die" | "leave" => drop(job.barrier()),
        _ => panic!("no role {role}"),
    }
    job.finalize().unwrap();
}

/// The client itself: values of many sizes, one that nobody put, keys that are none, a second client.
fn exchange() {
    let mut pmix = Client::from_environment().unwrap().unwrap();
    let (rank, size) = (pmix.rank(), pmix.size());
    let value =
        |rank: u32, bytes: usize| -> Vec<u8> { (0..bytes).map(|at| (at as u32 * 7 + rank) as u8).collect() };
    let lengths = [0, 1, 511, 512, 4096, 100_000];
    for (round, bytes) in lengths.into_iter().enumerate() {
        pmix.put(&format!("card-{round}"), &value(rank, bytes)).unwrap();
        pmix.fence(true).unwrap();
        for other in (0..size).filter(|other| *other != rank) {
            let got = pmix.get(other, &format!("card-{round}")).unwrap();
            assert_eq!(got, Some(value(other, bytes)), "{bytes} bytes of rank {other}");
        }
    }
    pmix.fence(false).unwrap();
    assert_eq!(pmix.get((rank + 1) % size, "nothing").unwrap(), None);
    for bad in ["", "a b", &"x".repeat(512)] {
        assert!(pmix.put(bad, b"x").is_err(), "{bad:?}");
    }
    assert!(Client::from_environment().unwrap_err().to_string().contains("another client"));
    println!("RANK {rank} OF {size}");
    pmix.finalize().unwrap();
}

#[test]
fn values_of_all_sizes() {
    for launcher in launchers() {
        let ended = run(&launcher, 3, "exchange");
        assert_eq!(ended.code, 0, "{launcher:?}: {}\n{}", ended.stdout, ended.stderr);
        assert_eq!(ended.stdout.matches(" OF 3").count(), 3, "{}", ended.stdout);
        // A library of another release than the server's has it complain.
        assert!(!ended.stderr.contains("PMIX ERROR"), "{launcher:?}: {}", ended.stderr);
    }
}

#[test]
fn the_runtimes_suite() {
    for launcher in launchers() {
        for transport in ["shm", "tcp"] {
            let ended = start(command(&launcher, 3, "suite").env("TRANSOM_TRANSPORT", transport)).wait();
            assert_eq!(ended.code, 0, "{launcher:?}, {transport}: {}\n{}", ended.stdout, ended.stderr);
            let count = ended.stdout.matches(&format!(" of 3: {transport}")).count();
            assert_eq!(count, 3, "{launcher:?}: {}", ended.stdout);
        }
    }
}

#[test]
fn several_programs_are_one_job() {
    for launcher in launchers() {
        let mut command = command(&launcher, 2, "exchange");
        let exe = std::env::current_exe().unwrap();
        command.args([":", "-n", "1"]).arg(exe).args([
            "--exact",
            "rank_program",
            "--nocapture",
            "--test-threads=1",
        ]);
        let ended = start(&mut command).wait();
        assert_eq!(
            (ended.code, ended.stdout.matches(" OF 3").count()),
            (0, 3),
            "{launcher:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn ends_that_are_not_good() {
    for launcher in launchers() {
        let ended = run(&launcher, 3, "abort");
        assert_eq!(ended.code, 42, "{launcher:?}: {}", ended.stderr);
        let ended = run(&launcher, 3, "die");
        assert_eq!(ended.code, 134, "{launcher:?}: {}", ended.stderr);
        let ended = run(&launcher, 3, "leave");
        assert_ne!(ended.code, 0, "{launcher:?}: {}", ended.stderr);
    }
}

#[test]
fn without_a_library_it_says_what_to_do() {
    for launcher in launchers() {
        let ended = start(command(&launcher, 2, "suite").env("TRANSOM_PMIX", "/absent/libpmix.so.2")).wait();
        assert_eq!(ended.code, 3, "{launcher:?}: {}", ended.stderr);
        assert!(
            ended.stdout.contains("apt install libpmix2") && ended.stdout.contains("/absent"),
            "{}",
            ended.stdout
        );
    }
}

/// What is like a rank's environment, without a launcher.
#[test]
fn environments_that_lead_nowhere() {
    let rank = |variables: &[(&str, &str)]| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "rank_program", "--nocapture", "--test-threads=1"]).env(ROLE, "die");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PMI")) {
            command.env_remove(name);
        }
        start(command.envs(variables.iter().copied())).wait()
    };
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "0")], "PMIX_SERVER_URI"),
        (&[("PMIX_NAMESPACE", "job"), ("PMIX_RANK", "x"), ("PMIX_SERVER_URI2", "u")], "is not a rank"),
        (&[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "2")], "srun --mpi=pmi2"),
        (&[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "2")], "transom run -n N"),
    ];
    for (variables, words) in table {
        let ended = rank(variables);
        assert_eq!(ended.code, 3, "{variables:?}: {}", ended.stderr);
        assert!(ended.stdout.contains(words), "{variables:?}: {}", ended.stdout);
    }
}
