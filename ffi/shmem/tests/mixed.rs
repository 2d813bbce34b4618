//! OpenSHMEM and MPI in one program, which are one job then: linked in either order, with either MPI library, started and ended in any
//! order.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "what the other tests use")]
mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::{LIMIT, has, job, prefix, source, succeed, text};

/// The same folder, with the MPI libraries, too.
fn with_mpi() -> Option<&'static Path> {
    static LAID_OUT: OnceLock<()> = OnceLock::new();
    let prefix = prefix()?;
    LAID_OUT.get_or_init(|| common::install(prefix, "../mpi/install.sh"));
    Some(prefix)
}

/// Compiles a program of both, by a command up to its options, with others behind the file.
fn compile(prefix: &Path, mut compiler: Command, name: &str, behind: &[&str]) -> PathBuf {
    let program = prefix.join(name);
    let options = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"];
    compiler.args(options).arg(&program).arg(source().join("tests/c/mixed.c")).args(behind);
    succeed(&mut compiler);
    program
}

/// Whether a job with these arguments ends well, and what it says.
fn ends_well(job: &mut Command) -> (bool, String) {
    let output = job.stdin(Stdio::null()).output().unwrap();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

const ORDERS: [[&str; 2]; 8] = [
    ["mpi", "mpi"],
    ["mpi", "shmem"],
    ["shmem", "mpi"],
    ["shmem", "shmem"],
    ["mpi", "return"],
    ["shmem", "return"],
    ["shmem", "exit"],
    ["shmem", "apart"],
];

/// All orders, over these transports.
fn run(prefix: &Path, program: &Path, transports: &[&str]) {
    for transport in transports {
        for order in ORDERS {
            for pes in [1, 3] {
                let (well, said) = ends_well(job(prefix, program, pes, transport).args(order));
                if *transport == "ofi" && said.contains("no libfabric") {
                    assert!(std::env::var("CI").is_err(), "CI must have libfabric");
                    continue;
                }
                // Nothing else: no complaint of who has left how.
                assert!(
                    well && said == format!("all well with {pes}\n"),
                    "{order:?}, {pes} over {transport}: {said}"
                );
            }
        }
    }
}

#[test]
fn linked_by_the_wrapper_of_openshmem() {
    let Some(prefix) = with_mpi() else { return };
    // -lmpi_abi -lsma
    let program = compile(prefix, Command::new(prefix.join("bin/oshcc")), "mixed-oshcc", &["-lmpi_abi"]);
    run(prefix, &program, &["shm", "tcp", "ofi"]);
}

#[test]
fn linked_by_the_wrapper_of_mpi() {
    let Some(prefix) = with_mpi() else { return };
    // -lsma -lmpi_abi
    let library = format!("-L{}", prefix.join("lib").display());
    let program =
        compile(prefix, Command::new(prefix.join("bin/mpicc")), "mixed-mpicc", &[&library, "-lsma"]);
    run(prefix, &program, &["shm", "tcp"]);
}

/// With MPICH's header, and the library that has its ABI.
#[test]
fn linked_to_the_library_with_the_abi_of_mpich() {
    let Some(prefix) = with_mpi() else { return };
    let output = Command::new(source().join("../../ci/mpich.sh")).output().unwrap();
    if !output.status.success() {
        assert!(std::env::var("CI").is_err(), "CI must have MPICH");
        eprintln!("skipped: there is no MPICH, and it cannot be installed: {}", text(&output.stderr));
        return;
    }
    let include = format!("-I{}/include", text(&output.stdout).trim_end());
    let library = prefix.join("lib/mpich-abi/libmpi.so.12");
    let sma = prefix.join("lib/libsma.so");
    let rpath = format!("-Wl,-rpath,{}", prefix.join("lib").display());
    for (name, libraries) in [("mixed-mpich-1", [&library, &sma]), ("mixed-mpich-2", [&sma, &library])] {
        let mut compiler = Command::new("cc");
        // MPICH's mpi.h, and shmem.h by itself: mpi.h of the standard's ABI is in the same folder.
        let shmem = prefix.join("shmem-alone");
        std::fs::create_dir_all(&shmem).unwrap();
        for header in ["shmem.h", "shmemx.h"] {
            std::fs::copy(prefix.join("include").join(header), shmem.join(header)).unwrap();
        }
        compiler.arg(&include).arg("-I").arg(shmem);
        let libraries = libraries.map(|library| library.to_str().unwrap());
        let program =
            compile(prefix, compiler, name, &["-Wl,--no-as-needed", libraries[0], libraries[1], &rpath]);
        run(prefix, &program, &["shm", "tcp"]);
    }
}

/// A process joins one job, once.
#[test]
fn openshmem_after_the_end_of_mpi() {
    let Some(prefix) = with_mpi() else { return };
    let program = compile(prefix, Command::new(prefix.join("bin/oshcc")), "mixed-late", &["-lmpi_abi"]);
    let (well, said) = ends_well(job(prefix, &program, 2, "shm").args(["mpi", "apart"]));
    assert!(!well && said.contains("shmem_init: the job has ended by MPI_Finalize"), "{said}");
}

#[test]
fn an_mpi_library_that_the_program_loads() {
    let Some(prefix) = with_mpi() else { return };
    let program = common::compile(prefix, "loaded.c");
    for library in ["libmpi_abi.so.1", "mpich-abi/libmpi.so.12"] {
        let library = prefix.join("lib").join(library);
        let library = library.to_str().unwrap();
        for transport in ["shm", "tcp"] {
            let (well, said) = ends_well(job(prefix, &program, 3, transport).arg(library));
            assert!(well && said == "all well with 3\n", "{library} over {transport}: {said}");
        }
        let (well, said) = ends_well(job(prefix, &program, 2, "shm").args([library, "late"]));
        assert!(!well && said.contains("has joined its job by"), "{library}: {said}");
        assert!(said.contains("libsma.so.1 already") && said.contains("before shmem_init"), "{said}");
    }
}

/// In memory that a language's runtime has loaded by dlopen, as Python does, the order is the program's.
#[test]
fn loaded_by_python() {
    let Some(prefix) = with_mpi() else { return };
    if !has("python3") {
        return;
    }
    let script = "import ctypes, sys\n\
        mpi, sma = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])\n\
        sma.shmem_init()\n\
        mpi.MPI_Init(None, None)\n\
        sma.shmem_barrier_all()\n\
        print(sma.shmem_n_pes())\n\
        mpi.MPI_Finalize()\n\
        sma.shmem_finalize()\n";
    let mut job = Command::new(prefix.join("bin/oshrun"));
    job.args(["-np", "2", "--timeout", LIMIT, "python3", "-c", script]);
    job.arg(prefix.join("lib/libmpi_abi.so.1")).arg(prefix.join("lib/libsma.so.1"));
    let (well, said) = ends_well(job.env("TRANSOM_TRANSPORT", "shm").env_remove("SLURM_JOB_ID"));
    assert!(well && said == "2\n2\n", "{said}");
}
