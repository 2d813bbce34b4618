//! Whose a function is, by the names of its file and its own.

use std::borrow::Cow;

/// Crates of this repository whose functions are programs' own.
const PROGRAMS: [&str; 4] = ["transom_programs", "transom_conformance", "transom_litmus", "transom_launcher"];
/// Beginnings of the names of libraries by which programs call Transom.
const DOORS: [&str; 5] = ["libmpi", "libtransom", "libsma", "libshmem", "liboshmem"];
/// The same of functions, for programs that have those libraries inside.
const CALLS: [&str; 3] = ["MPI_", "PMPI_", "shmem_"];
/// The same of what a compiler puts into each program.
const STARTS: [&str; 3] = ["__rust", "_start", "__libc_start"];
/// What each program has; the beginnings of files' names.
const SYSTEM: [&str; 12] = [
    "libc.so",
    "libc-",
    "ld-",
    "libpthread",
    "libm.so",
    "libm-",
    "libdl",
    "librt",
    "libgcc_s",
    "libstdc++",
    "[vdso]",
    "libpython",
];
/// The same of crates, and of C++'s name spaces.
const RUNTIMES: [&str; 7] = ["core", "std", "alloc", "compiler_builtins", "test", "__gnu_cxx", "__cxxabiv1"];

/// Whose a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Transom's.
    Transom,
    /// The system's or the language's.
    System,
    /// That of a library which the program was built with, in source.
    Library,
    /// The user's, or a library's of which that cannot be told.
    User,
}

/// Of the functions of a program or library, if all have the same.
pub fn owner_of_file(path: &str) -> Option<Owner> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_of = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    // The lines of an interpreter are not its user's.
    let version = name.strip_prefix("python").map(|rest| rest.trim_end_matches(" (deleted)"));
    if version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        return Some(Owner::System);
    }
    // A program may have such a name, too.
    match name.contains(".so") || name.starts_with('[') {
        true if is_of(&DOORS) => Some(Owner::Transom),
        true if is_of(&SYSTEM) => Some(Owner::System),
        _ => None,
    }
}

/// Of a function, by its readable name and its source.
pub fn owner(function: &str, source: Option<&str>) -> Owner {
    let first = crate_of(function);
    let source = source.unwrap_or_default();
    if CALLS.iter().any(|start| function.starts_with(start))
        || first == Some("transom")
        || first.is_some_and(|name| name.starts_with("transom_") && !PROGRAMS.contains(&name))
    {
        return Owner::Transom;
    }
    if STARTS.iter().any(|start| function.starts_with(start)) {
        return Owner::System;
    }
    if first.is_some_and(|name| RUNTIMES.contains(&name)) || source.starts_with("/rustc/") {
        return Owner::System;
    }
    if source.contains("/registry/src/") { Owner::Library } else { Owner::User }
}

/// Whether a source is Transom's, which was in that folder when the program was compiled, or where Cargo keeps what it has fetched.
pub fn is_transom_source(file: &str, folder: Option<&str>) -> bool {
    let of_cargo = ["/registry/src/", "/git/checkouts/"];
    let fetched = of_cargo.iter().any(|at| {
        file.split_once(at).is_some_and(|(_, rest)| rest.split('/').any(|part| part.starts_with("transom-")))
    });
    let parts = ["runtime/", "transports/", "ffi/"];
    let within = folder.and_then(|folder| file.strip_prefix(folder));
    fetched || within.is_some_and(|rest| parts.iter().any(|part| rest.starts_with(part)))
}

/// The crate, or name space, that a name begins with: of the type where it is a method of one.
pub fn crate_of(function: &str) -> Option<&str> {
    let mut rest = function;
    loop {
        let before = rest;
        for start in ["<", "&", "*", "(", "[", "mut ", "const ", "dyn ", "impl "] {
            rest = rest.strip_prefix(start).unwrap_or(rest);
        }
        if rest == before {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    match rest[end..].starts_with("::") {
        true => Some(&rest[..end]),
        // A primitive type's method is its trait's.
        false => crate_of(rest[end..].strip_prefix(" as ")?),
    }
}

/// A name as it stands in the source.
pub fn readable(symbol: &str) -> String {
    // Of a module, as gfortran names it. With the module it would look like one of a crate, which may have any name.
    if let Some((_, name)) = symbol.strip_prefix("__").and_then(|rest| rest.split_once("_MOD_")) {
        return name.to_owned();
    }
    match rustc_demangle::try_demangle(symbol) {
        Ok(name) => format!("{name:#}"),
        Err(_) => addr2line::demangle_auto(Cow::Borrowed(symbol), None).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_in_the_source() {
        assert_eq!(readable("_ZN5hangs7receive17h0123456789abcdefE"), "hangs::receive");
        assert_eq!(readable("_RNvCs15kBYyAo9fc_7mycrate7example"), "mycrate::example");
        assert_eq!(readable("_ZN6solver4stepEPdi"), "solver::step(double*, int)");
        assert_eq!(readable("__core_MOD_step"), "step");
        assert_eq!(readable("exchange"), "exchange");
    }

    #[test]
    fn whose_a_function_is() {
        let registry = Some("/root/.cargo/registry/src/index/nix-0.31.3/src/poll.rs");
        for (name, source, expected) in [
            ("transom::job::Job::barrier", None, Owner::Transom),
            ("<transom_tcp::Tcp as transom_transport::Transport>::poll", None, Owner::Transom),
            ("<&mut transom::window::Window<u64> as hangs::Own>::call", None, Owner::Transom),
            ("MPI_Barrier", None, Owner::Transom),
            ("transom_programs::progress::show", None, Owner::User),
            ("transomatic::run", None, Owner::User),
            ("core::ptr::drop_in_place<hangs::Guard>", None, Owner::System),
            ("<alloc::boxed::Box<F> as core::ops::FnOnce<A>>::call_once", None, Owner::System),
            ("std::this_thread::sleep_for<long>(long)", None, Owner::System),
            ("hangs::compute", None, Owner::User),
            ("<hangs::Guard as core::ops::Drop>::drop", Some("tests/hangs.rs"), Owner::User),
            ("nix::poll::ppoll", registry, Owner::Library),
            ("<u64 as core::iter::range::Step>::forward_unchecked", None, Owner::System),
            ("core", None, Owner::User),
            ("__rust_try", None, Owner::System),
            ("solve", Some("/home/u/solve.c"), Owner::User),
        ] {
            assert_eq!(owner(name, source), expected, "{name}");
        }
    }

    #[test]
    fn sources_of_transom() {
        let folder = Some("/home/u/transom/");
        for file in [
            "/home/u/transom/runtime/src/engine/progress.rs",
            "/home/u/transom/transports/core/src/backoff.rs",
            "/home/u/.cargo/registry/src/index.crates.io-1/transom-tcp-0.1.0/src/lib.rs",
            "/home/u/.cargo/git/checkouts/transom-1234/5678/runtime/src/lib.rs",
        ] {
            assert!(is_transom_source(file, folder), "{file}");
        }
        for file in [
            "/home/u/transom/launcher/programs/src/bin/heat.rs",
            "/home/u/solver/runtime/src/lib.rs",
            "/home/u/transom-solver/src/main.rs",
            "/home/u/.cargo/registry/src/index.crates.io-1/nix-0.31.3/src/poll.rs",
        ] {
            assert!(!is_transom_source(file, folder), "{file}");
        }
        assert!(!is_transom_source("/home/u/transom/runtime/src/lib.rs", None));
    }

    #[test]
    fn whose_a_file_is() {
        assert_eq!(owner_of_file("/opt/transom/lib/libmpi_abi.so.1"), Some(Owner::Transom));
        assert_eq!(owner_of_file("/usr/lib/x86_64-linux-gnu/libc.so.6"), Some(Owner::System));
        assert_eq!(owner_of_file("/lib/libc-2.31.so"), Some(Owner::System));
        assert_eq!(owner_of_file("[vdso]"), Some(Owner::System));
        assert_eq!(owner_of_file("/usr/bin/python3.11"), Some(Owner::System));
        for program in [
            "/home/u/heat",
            "/home/u/libmpi-test/heat",
            "/home/u/ld-heat",
            "/home/u/python-like",
            "/lib/libcurl.so.4",
            "",
        ] {
            assert_eq!(owner_of_file(program), None, "{program}");
        }
    }
}
