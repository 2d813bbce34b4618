//! Programs of MPI: which library one was linked to, and where Transom's are.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadCache};

/// The library of the standard's ABI.
const STANDARD: &str = "libmpi_abi.so.1";
/// Names of the library of MPICH's ABI.
const MPICH: [&str; 4] = ["libmpi.so.12", "libmpich.so.12", "libmpifort.so.12", "libmpichfort.so.12"];
/// Names of libraries of MPI, whatever their version, and whose they are if that is known by the name.
const KNOWN: [(&str, &str); 12] = [
    ("libmpi_abi", "the standard's ABI in another version"),
    ("libmpich", "MPICH's of another version"),
    ("libmpichfort", "MPICH's of another version"),
    ("libmpifort", "MPICH's of another version"),
    ("libmpi_cray", "Cray's"),
    ("libmpi_ilp64", "Intel's with integers of 8 bytes"),
    ("libmpi_cxx", "Open MPI's"),
    ("libmpi_mpifh", "Open MPI's"),
    ("libmpi_usempif08", "Open MPI's"),
    ("libmpi_usempi", "Open MPI's"),
    ("libmpi_usempi_ignore_tkr", "Open MPI's"),
    ("libmpi", "another implementation's"),
];

/// Whose library a name is, if it is one of MPI that Transom has not.
fn foreign(name: &str) -> Option<&'static str> {
    if name == STANDARD || MPICH.contains(&name) {
        return None;
    }
    let (stem, version) = name.split_once(".so")?;
    let (_, whose) = KNOWN.iter().find(|(known, _)| *known == stem)?;
    // Open MPI's libmpi.so.1, .12 of before 2015 and .20 were followed by .40; no other counts that far.
    let is_open = stem == "libmpi" && matches!(version, ".20" | ".40" | ".80");
    Some(if is_open { "Open MPI's" } else { whose })
}

/// Says why a program cannot run on Transom: it was linked to another library of MPI, or to two.
pub fn check(file: &Path) -> Result<(), String> {
    verdict(file, &needed(file).unwrap_or_default())
}

fn verdict(file: &Path, needed: &[String]) -> Result<(), String> {
    let has =
        "Transom has libmpi_abi.so.1 (MPI-5's ABI) and libmpi.so.12 (that of MPICH, Intel MPI and others)";
    let file = file.display();
    if let Some((name, whose)) = needed.iter().find_map(|name| Some((name, foreign(name)?))) {
        return Err(format!(
            "{file} is linked to {name}, which is {whose}; {has}: compile the program with Transom's or MPICH's mpicc"
        ));
    }
    let mpich = needed.iter().find(|name| MPICH.contains(&&***name));
    match mpich.filter(|_| needed.iter().any(|name| name == STANDARD)) {
        Some(mpich) => Err(format!(
            "{file} is linked to two libraries of MPI, {STANDARD} and {mpich}; {has}: link it to one of them"
        )),
        None => Ok(()),
    }
}

/// The libraries that a program names itself; nothing of scripts and static programs.
fn needed(file: &Path) -> Option<Vec<String>> {
    let data = ReadCache::new(File::open(file).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let (entries, strings) = sections.dynamic(endian, &data).ok()??;
    let strings = sections.strings(endian, &data, strings).ok()?;
    let names = entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let text = names.filter_map(|entry| strings.get(entry.val32(endian)?).ok());
    Some(text.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Folders of Transom's libraries, as `install.sh` lays them out beside the launcher or its folder, and packages apart from what others
/// have in lib.
fn folders(exe: &Path) -> Vec<PathBuf> {
    let places = ["lib", "../lib/transom/lib", "../lib"];
    let beside = exe.parent().into_iter().flat_map(|bin| places.map(|place| bin.join(place)));
    let library = beside.filter(|lib| lib.join(STANDARD).exists()).take(1);
    library.flat_map(|lib| [lib.join("mpich-abi"), lib]).filter_map(|lib| lib.canonicalize().ok()).collect()
}

/// Puts Transom's libraries of MPI in front of a rank's LD_LIBRARY_PATH: whatever its process becomes, and loads, finds them. Does
/// nothing if there are none beside the launcher.
pub fn show_libraries(exe: &Path, env: &mut Vec<(OsString, OsString)>) {
    let mut folders = folders(exe);
    let Some(first) = folders.first() else { return };
    let mpich = first.join(MPICH[0]);
    // mpi4py as PyPI has it prefers what another package of MPI has put into Python's own lib.
    if first.ends_with("mpich-abi") && mpich.exists() && !env.iter().any(|(name, _)| name == "MPI4PY_LIBMPI")
    {
        env.push(("MPI4PY_LIBMPI".into(), mpich.into()));
    }
    let given = env.iter_mut().find(|(name, _)| name == "LD_LIBRARY_PATH").map(|(_, path)| path);
    let after = given.as_deref().filter(|path| !path.is_empty()).map(std::env::split_paths);
    folders.extend(after.into_iter().flatten());
    let Ok(path) = std::env::join_paths(folders) else { return };
    match given {
        Some(given) => *given = path,
        None => env.push(("LD_LIBRARY_PATH".into(), path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(needed: &[&str]) -> Option<String> {
        let needed: Vec<String> = needed.iter().map(|name| (*name).to_owned()).collect();
        verdict(Path::new("program"), &needed).err()
    }

    #[test]
    fn libraries_that_transom_has_are_no_reason() {
        for name in MPICH.into_iter().chain([STANDARD, "libc.so.6", "libmpi4all.so.3", "libmpicxx.so.12"]) {
            assert_eq!(said(&[name, "libm.so.6"]), None, "{name}");
        }
        assert_eq!(said(&["libmpich.so.12", "libmpichfort.so.12"]), None);
    }

    #[test]
    fn others_are_named() {
        let open = said(&["libc.so.6", "libmpi.so.40"]).unwrap();
        assert!(open.contains("libmpi.so.40") && open.contains("Open MPI's"), "{open}");
        assert!(said(&["libmpi_mpifh.so.40"]).unwrap().contains("Open MPI's"));
        assert!(said(&["libmpi_abi.so.2"]).unwrap().contains("another version"));
        assert!(said(&["libmpi.so.13"]).unwrap().contains("another implementation's"));
        assert!(said(&["libmpi_abi.so.1", "libmpi.so.12"]).unwrap().contains("two libraries"));
    }

    #[test]
    fn what_this_program_needs_is_read_from_its_file() {
        let own = needed(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.iter().any(|name| name.starts_with("libc.so")), "{own:?}");
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert_eq!(needed(script.path()), None);
    }

    /// LD_LIBRARY_PATH's folders and mpi4py's library.
    fn shown(exe: &Path, given: &[(&str, &str)]) -> (Vec<PathBuf>, Option<PathBuf>) {
        let mut env: Vec<_> = given.iter().map(|(name, value)| (name.into(), value.into())).collect();
        show_libraries(exe, &mut env);
        let value = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let path = value("LD_LIBRARY_PATH").map(std::env::split_paths);
        (path.into_iter().flatten().collect(), value("MPI4PY_LIBMPI").map(PathBuf::from))
    }

    #[test]
    fn the_libraries_come_first_if_they_are_there() {
        for (place, other) in [("lib", "none"), ("bin/lib", "lib"), ("lib/transom/lib", "lib")] {
            let prefix = tempfile::tempdir().unwrap();
            let exe = prefix.path().join("bin/transom");
            std::fs::create_dir_all(prefix.path().join("bin")).unwrap();
            assert_eq!(shown(&exe, &[]), (vec![], None));
            for lib in [place, other].map(|lib| prefix.path().join(lib)) {
                std::fs::create_dir_all(lib.join("mpich-abi")).unwrap();
                std::fs::write(lib.join(STANDARD), "").unwrap();
                std::fs::write(lib.join("mpich-abi/libmpi.so.12"), "").unwrap();
            }
            let lib = prefix.path().join(place).canonicalize().unwrap();
            let mpich = lib.join("mpich-abi");
            let ours = Some(mpich.join("libmpi.so.12"));
            assert_eq!(shown(&exe, &[]), (vec![mpich.clone(), lib.clone()], ours.clone()), "{place}");
            let given =
                shown(&exe, &[("LD_LIBRARY_PATH", "/opt/a:/opt/b"), ("MPI4PY_LIBMPI", "/opt/mpi.so")]);
            assert_eq!(given.0, [mpich, lib, "/opt/a".into(), "/opt/b".into()], "{place}");
            assert_eq!(given.1, Some("/opt/mpi.so".into()));
            assert_eq!(shown(&exe, &[("LD_LIBRARY_PATH", "")]).0.len(), 2);
        }
    }
}
