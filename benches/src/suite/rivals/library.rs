//! Installations of MPI: where they are, and the program built for each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use super::process::{End, run};

/// What Transom is called in tables.
pub const TRANSOM: &str = "transom";
/// What Transom is called where it is called from Rust, by the suite.
pub const RUST: &str = "rust";
/// The library of the standard's binary interface: what is built for one runs with another.
const ABI: &str = "lib/libmpi_abi.so.1";
/// A compiler that has not ended by then never will.
const COMPILING: Duration = Duration::from_secs(300);

/// The program, file by file.
const SOURCES: [(&str, &str); 12] = [
    ("rma.h", include_str!("../../../rivals/rma.h")),
    ("main.c", include_str!("../../../rivals/main.c")),
    ("harness.c", include_str!("../../../rivals/harness.c")),
    ("memory.c", include_str!("../../../rivals/memory.c")),
    ("latency.c", include_str!("../../../rivals/latency.c")),
    ("types.c", include_str!("../../../rivals/types.c")),
    ("sync.c", include_str!("../../../rivals/sync.c")),
    ("passive.c", include_str!("../../../rivals/passive.c")),
    ("contention.c", include_str!("../../../rivals/contention.c")),
    ("messages.c", include_str!("../../../rivals/messages.c")),
    ("threads.c", include_str!("../../../rivals/threads.c")),
    ("visible.c", include_str!("../../../rivals/visible.c")),
];

/// An MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// What it is called in tables: its folder.
    pub name: String,
    /// Where it is installed: `bin` and `lib` are there.
    pub prefix: PathBuf,
    /// The program that was built for it.
    pub program: PathBuf,
}

/// The MPIs in these folders: each is one, or has some.
///
/// # Errors
/// A folder cannot be read, or no MPI is there, or two have one name; in words.
pub fn find(folders: &[PathBuf]) -> Result<Vec<Library>, String> {
    let mut found: Vec<Library> = Vec::new();
    for folder in folders {
        let refused = |error: std::io::Error| {
            let reason = error.to_string();
            let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
            format!("--rivals: cannot read {}: {reason}", folder.display())
        };
        let folder = folder.canonicalize().map_err(refused)?;
        let mut prefixes = vec![folder.clone()];
        if !is_installation(&folder) {
            let entries = fs::read_dir(&folder).map_err(refused)?;
            prefixes =
                entries.flatten().map(|entry| entry.path()).filter(|path| is_installation(path)).collect();
            prefixes.sort();
        }
        if prefixes.is_empty() {
            return Err(format!(
                "--rivals: no MPI in {}: there is neither bin/mpiexec nor NAME/bin/mpiexec",
                folder.display()
            ));
        }
        for prefix in prefixes {
            let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if [TRANSOM, RUST].contains(&&*name) || found.iter().any(|other| other.name == name) {
                return Err(format!("--rivals: two libraries would be called {name}: {}", prefix.display()));
            }
            found.push(Library { name, prefix, program: PathBuf::new() });
        }
    }
    Ok(found)
}

fn is_installation(folder: &Path) -> bool {
    ["bin/mpiexec", "bin/prterun"].iter().any(|file| folder.join(file).is_file())
}

/// Transom's own C door: where the user says, else that of this program.
///
/// # Errors
/// There is none, in words.
pub fn transom(given: Option<&Path>) -> Result<Library, String> {
    let has = |folder: &Path| folder.join("bin/mpicc").is_file();
    let exe = env::current_exe().unwrap_or_default();
    // Beside this program, as after ffi/mpi/install.sh; or above lib/transom/libexec, as in packages.
    let near = [exe.parent(), exe.ancestors().nth(4)];
    let place = match given {
        Some(folder) => folder.canonicalize().ok().filter(|folder| has(folder)),
        None => near.into_iter().flatten().find(|folder| has(folder)).map(Path::to_owned),
    };
    match (place, given) {
        (Some(prefix), _) => Ok(Library { name: TRANSOM.into(), prefix, program: PathBuf::new() }),
        (None, Some(folder)) => Err(format!("--transom: there is no bin/mpicc in {}", folder.display())),
        (None, None) => Err(format!(
            "there is no bin/mpicc beside {}: ffi/mpi/install.sh lays it out, or --transom says where it is",
            exe.display()
        )),
    }
}

/// Writes the program's files into a folder.
///
/// # Errors
/// They cannot be written.
pub fn write_sources(folder: &Path) -> Result<(), String> {
    let write = |(name, text): (&str, &str)| {
        fs::write(folder.join(name), text)
            .map_err(|error| format!("writing {}: {error}", folder.join(name).display()))
    };
    SOURCES.into_iter().try_for_each(write)
}

impl Library {
    /// Builds the program with this library's compiler; one without a compiler takes what was built for `other`, if it has the standard's
    /// binary interface.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn build(&mut self, sources: &Path, other: Option<&Path>) -> Result<(), End> {
        let mpicc = self.prefix.join("bin/mpicc");
        let folder = sources.join(&self.name);
        let failed = |error: std::io::Error| End::Badly(format!("writing {}: {error}", folder.display()));
        fs::create_dir_all(&folder).map_err(failed)?;
        let program = folder.join("rma");
        let mut command = Command::new(&mpicc);
        self.environment(&mut command);
        command.args(["-O2", "-pthread", "-o"]).arg(&program);
        command.args(
            SOURCES.iter().filter(|(name, _)| name.ends_with(".c")).map(|(name, _)| sources.join(name)),
        );
        command.args(["-lm", "-lrt"]);
        let why = match run(command, &folder, COMPILING) {
            Ok((_, End::Well)) if program.is_file() => {
                self.program = program;
                return Ok(());
            }
            Ok((_, End::Well)) => format!("{} made no program", mpicc.display()),
            Ok((_, End::Interrupted)) => return Err(End::Interrupted),
            Ok((_, End::Badly(why))) => format!("{} {why}", mpicc.display()),
            Err(why) => why,
        };
        match other.filter(|_| self.prefix.join(ABI).is_file()) {
            Some(other) => {
                self.program = other.to_owned();
                Ok(())
            }
            None => Err(End::Badly(why)),
        }
    }

    /// What its programs find their libraries by.
    pub fn environment(&self, command: &mut Command) {
        let before = |name: &str, folder: &str| {
            let old = env::var_os(name).unwrap_or_default();
            let own = self.prefix.join(folder);
            let all = std::iter::once(own)
                .chain(env::split_paths(&old).filter(|path| !path.as_os_str().is_empty()));
            env::join_paths(all).unwrap_or(old)
        };
        command.env("PATH", before("PATH", "bin"));
        // Intel's wrappers ask for it.
        command.env("I_MPI_ROOT", &self.prefix);
        if self.name != TRANSOM {
            command.env("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", "lib"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(folder: &Path, file: &str) {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("bin").join(file), "").unwrap();
    }

    #[test]
    fn folders_are_libraries_or_have_some() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        install(&at("peers/b"), "mpiexec");
        install(&at("peers/a"), "prterun");
        install(&at("peers/none"), "python");
        let names = |folders: &[PathBuf]| -> Result<Vec<String>, String> {
            Ok(find(folders)?.into_iter().map(|library| library.name).collect())
        };
        assert_eq!(names(&[at("peers")]).unwrap(), ["a", "b"]);
        assert_eq!(names(&[at("peers/b"), at("peers/a")]).unwrap(), ["b", "a"]);
        assert!(names(&[at("peers"), at("peers/a")]).unwrap_err().contains("would be called a"));
        assert!(names(&[at("missing")]).unwrap_err().contains("no such file or directory"));
        assert!(names(&[at("peers/none")]).unwrap_err().contains("no MPI in"));
    }

    #[test]
    fn its_own_files_are_all_there() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals");
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_source = name.ends_with(".c") || name.ends_with(".h");
            assert!(!is_source || SOURCES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
