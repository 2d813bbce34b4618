//! Fortran: programs by mpif.h, mpi and mpi_f08, compiled by `mpifort`; and the tables against what the library and its modules have.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, exported, prefix, source, succeed};

const STANDARD: &str = include_str!("../../../mpi/abi/functions.txt");
const MORE: &str = include_str!("../../abi/functions.txt");
const CONSTANTS: &str = include_str!("../../abi/constants.txt");

/// Functions that are for C only: conversions between the languages, the tools' interface, MPICH's threads.
const OF_C: [&str; 7] = ["_c2f", "_f2c", "_f082c", "_toint", "_fromint", "t_", "mpix_async_"];

/// Functions that mpi_f08 never had: those of MPI-1 that have others since MPI-2.
const OLD: [&str; 5] = ["Attr_delete", "Attr_get", "Attr_put", "Keyval_create", "Keyval_free"];

/// Names of their own for large counts, since functions as arguments tell no forms apart.
const LARGE_BY_NAME: [&str; 2] = ["Op_create_c", "Register_datarep_c"];

/// Forms for large counts that mpi_f08 cannot tell from the other, where addresses and counts are of one kind: there is one form.
const OF_ONE_KIND: [&str; 4] =
    ["File_get_type_extent", "Type_create_resized", "Type_get_extent", "Type_get_true_extent"];

/// Whether it is one for C only.
fn is_for_c_only(name: &str) -> bool {
    let lower = name.to_lowercase();
    OF_C.iter().any(|part| match part.strip_prefix('_') {
        Some(_) => lower.contains(part),
        None => lower.starts_with(part),
    })
}

/// Names of functions, with whether they have a form for large counts.
fn functions(table: &str) -> impl Iterator<Item = (&str, bool)> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.skip_while(|line| !line.is_empty()).filter(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().nth(1));
    names.map(|name| name.strip_suffix("/c").map_or((name, false), |name| (name, true)))
}

/// `mpifort`, if there is a compiler.
fn mpifort() -> Option<(&'static Path, Command)> {
    let prefix = prefix()?;
    if Command::new("gfortran").arg("--version").output().is_err() {
        assert!(std::env::var("CI").is_err(), "CI must have gfortran");
        eprintln!("skipped: there is no gfortran");
        return None;
    }
    let mut command = Command::new(prefix.join("bin/mpifort"));
    // The compiler leaves the description of a module where it runs.
    command.current_dir(prefix);
    Some((prefix, command))
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fortran").join(name)
}

/// Every function of C has its one of Fortran's, under both names, but those that Fortran has not.
#[test]
fn every_function_has_its_one_of_fortrans() {
    let Some(prefix) = prefix() else { return };
    let Some(ours) = exported(&prefix.join("lib/mpich-abi/libmpifort.so.12")) else { return };
    let ours: BTreeSet<String> = ours.into_iter().collect();
    let mut number = 0;
    for (name, _) in functions(STANDARD).chain(functions(MORE)) {
        // Forms for large counts are mpi_f08's.
        if is_for_c_only(name) || name.ends_with("_c") {
            continue;
        }
        let lower = name.to_lowercase();
        let full = if lower.starts_with("mpix_") { lower } else { format!("mpi_{lower}") };
        for name in [format!("{full}_"), format!("p{full}_")] {
            assert!(ours.contains(&name), "{name}");
        }
        number += 1;
    }
    assert!(number > 400, "{number}");
}

/// Names that a module must have for a table's functions: generic ones, and those of forms for large counts; not for extensions, which are
/// called without an interface.
fn names(module: &str) -> Vec<String> {
    let is_f08 = module == "mpi_f08";
    let mut names = Vec::new();
    let standard = functions(STANDARD).filter(|(name, _)| !is_for_c_only(name) && !name.starts_with("MPIX_"));
    for (name, large) in standard {
        if is_f08 && OLD.contains(&name) || !is_f08 && name.ends_with("_c") {
            continue;
        }
        let generic = if LARGE_BY_NAME.contains(&name) { name } else { name.trim_end_matches("_c") };
        let mut all = vec![generic.to_owned()];
        if is_f08 && large && !OF_ONE_KIND.contains(&name) {
            all.push(format!("{name}_c_f08"));
        } else if is_f08 && generic != name {
            all.push(format!("{name}_f08"));
        }
        names.extend(all.iter().flat_map(|name| [format!("MPI_{name}"), format!("PMPI_{name}")]));
    }
    names.extend(["MPI_F_sync_reg", "MPI_Sizeof", "MPI_Status_f2f08", "MPI_Status_f082f"].map(str::to_owned));
    names
}

/// Constants that a module must have: not those of the tools and of C's statuses, and in mpi_f08 none for functions that it has not.
fn constants(module: &str) -> Vec<String> {
    let lines = CONSTANTS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let names = lines.filter_map(|words| match words[..] {
        ["handle", _, name, _] | ["alias", name, _] | ["int", name, _] | ["pointer", _, name, _] => {
            Some(name)
        }
        _ => None,
    });
    let others: &[&str] =
        if module == "mpi" { &["CONVERSION_FN_NULL_C"] } else { &["NULL_COPY_FN", "NULL_DELETE_FN"] };
    let names =
        names.filter(|name| !name.starts_with("F_") && !name.starts_with("T_") && !others.contains(name));
    names.map(|name| if name.starts_with("MPIX_") { name.into() } else { format!("MPI_{name}") }).collect()
}

/// Both modules have a name for each function of C and each constant.
#[test]
fn every_function_and_constant_is_in_both_modules() {
    for module in ["mpi", "mpi_f08"] {
        let Some((prefix, mut compiler)) = mpifort() else { return };
        let (functions, constants) = (names(module), constants(module));
        assert!(functions.len() > 700 && constants.len() > 250, "{} {}", functions.len(), constants.len());
        let mut text = String::new();
        for (i, some) in [functions, constants].concat().chunks(200).enumerate() {
            let _ = writeln!(
                text,
                "subroutine names{i}\n  use {module}, only: {}\nend subroutine",
                some.join(", ")
            );
        }
        let source = prefix.join(format!("names_{module}.f90"));
        std::fs::write(&source, text).unwrap();
        succeed(compiler.args(["-c", "-ffree-line-length-none"]).arg(&source));
    }
}

/// What the modules describe is in the library.
#[test]
fn every_interface_has_its_function() {
    let Some(prefix) = prefix() else { return };
    let Some(ours) = exported(&prefix.join("lib/mpich-abi/libmpifort.so.12")) else { return };
    let ours: BTreeSet<String> = ours.into_iter().collect();
    for (module, least) in [("mpi", 800), ("mpi_f08", 1000)] {
        let text =
            std::fs::read_to_string(prefix.join("lib/fortran").join(module).with_extension("f90")).unwrap();
        let (mut is_abstract, mut number) = (false, 0);
        for line in text.lines() {
            let words: Vec<&str> = line.split([' ', '(']).filter(|word| !word.is_empty()).collect();
            match words[..] {
                ["abstract", "interface"] => is_abstract = true,
                ["end", "interface"] => is_abstract = false,
                ["subroutine" | "function", name, ..] | ["elemental", "function", name, ..]
                    if !is_abstract =>
                {
                    assert!(ours.contains(&format!("{}_", name.to_lowercase())), "{module}: {name}");
                    number += 1;
                }
                _ => {}
            }
        }
        assert!(number > least, "{module}: {number}");
    }
}

#[test]
fn header_of_fortran_is_up_to_date() {
    common::is_up_to_date(include_str!(concat!(env!("OUT_DIR"), "/mpif.h")), "mpif.h");
}

/// Compiles a program, and runs it over two transports.
fn runs(name: &str, sources: &[&str], options: &[&str]) {
    let Some((prefix, mut compiler)) = mpifort() else { return };
    let program = prefix.join(name);
    // A folder for each, where the compiler leaves the descriptions of its modules and finds no others.
    let folder = prefix.join("modules").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    compiler.args(["-Wall", "-Wno-unused", "-Wno-unused-dummy-argument"]).current_dir(folder);
    succeed(compiler.args(options).arg("-o").arg(&program).args(sources.iter().map(|name| file(name))));
    common::run(prefix, &program, &[1, 3], &["shm", "tcp"]);
}

/// Choice buffers have no interface in mpif.h.
const LAX: [&str; 2] = ["-fallow-argument-mismatch", "-Wno-argument-mismatch"];

#[test]
fn mpif_in_fixed_form() {
    runs("fixed", &["fixed.f"], &LAX);
}

#[test]
fn mpif_in_free_form() {
    runs("windows", &["windows.f90"], &LAX);
}

#[test]
fn the_module_mpi() {
    runs("module", &["module.f90"], &[]);
}

#[test]
fn windows_of_mpi_f08() {
    runs("f08_windows", &["checks.f90", "f08_windows.f90"], &[]);
}

/// As compilers optimise, which are told by interfaces what calls do to their arguments.
#[test]
fn windows_of_mpi_f08_optimised() {
    runs("f08_windows_optimised", &["checks.f90", "f08_windows.f90"], &["-O3"]);
}

#[test]
fn objects_of_mpi_f08() {
    runs("f08_objects", &["checks.f90", "f08_functions.f90", "f08_objects.f90"], &[]);
}

#[test]
fn objects_of_mpi_f08_optimised() {
    runs("f08_objects_optimised", &["checks.f90", "f08_functions.f90", "f08_objects.f90"], &["-O3"]);
}

/// Where there is no compiler, the rest is installed, and `mpifort` says what to do; with one it compiles the modules later.
#[test]
fn a_compiler_may_come_later() {
    let Some((prefix, _)) = mpifort() else { return };
    let later = prefix.join("later");
    let test = std::env::current_exe().unwrap();
    let built = test.ancestors().nth(2).unwrap();
    let mut install = Command::new(source().join("install.sh"));
    install.arg(built.file_name().unwrap()).arg(&later);
    install.env("CARGO_TARGET_DIR", built.parent().unwrap()).env("MPI_FC", "no-compiler");
    let said = String::from_utf8(succeed(&mut install).stdout).unwrap();
    assert!(said.contains("no modules mpi and mpi_f08"), "{said}");
    let mpifort = later.join("bin/mpifort");
    let output =
        Command::new(&mpifort).args(["-c", "none.f90"]).env("MPI_FC", "no-compiler").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(127) && said.contains("apt install gfortran"), "{said}");
    let program = later.join("program");
    succeed(Command::new(&mpifort).arg("-o").arg(&program).arg(file("module.f90")).current_dir(&later));
    common::run(&later, &program, &[2], &["shm"]);
    let shown = String::from_utf8(succeed(Command::new(&mpifort).args(["-show", "x.f90"])).stdout).unwrap();
    assert!(shown.contains("-I") && shown.contains("libmpi.so") && shown.contains("x.f90"), "{shown}");
}
