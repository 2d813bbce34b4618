//! Finds libfabric and looks up the functions it exports.
//!
//! Knows nothing of providers or objects.

use std::env;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::signals::Handlers;
use crate::{API_VERSION, fi_fabric_attr, fi_info, fi_major, fi_minor, fid_fabric};

/// Names the library file to open, in place of [`SONAME`].
pub const ENVIRONMENT_VARIABLE: &str = "TRANSOM_LIBFABRIC";

/// What the dynamic linker is asked for when the environment names no file.
pub const SONAME: &str = "libfabric.so.1";

/// The functions libfabric exports, at the symbol versions that go with these bindings.
///
/// Once opened the library stays until the process ends: providers leave threads and exit handlers behind.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    version: u32,
    /// `fi_getinfo(3)`.
    pub fi_getinfo: unsafe extern "C" fn(
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int,
    /// `fi_getinfo(3)`: frees a list.
    pub fi_freeinfo: unsafe extern "C" fn(info: *mut fi_info),
    /// `fi_getinfo(3)`: copies one entry, or makes an empty one from null.
    pub fi_dupinfo: unsafe extern "C" fn(info: *const fi_info) -> *mut fi_info,
    /// `fi_fabric(3)`.
    pub fi_fabric: unsafe extern "C" fn(
        attr: *mut fi_fabric_attr,
        fabric: *mut *mut fid_fabric,
        context: *mut c_void,
    ) -> c_int,
    /// `fi_errno(3)`.
    pub fi_strerror: unsafe extern "C" fn(errnum: c_int) -> *const c_char,
}

/// Why libfabric could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no such library, or it does not load.
    #[error(
        "no libfabric: {reason}. Install it (Debian and Ubuntu: apt install libfabric1 libfabric-bin; Fedora and RHEL: \
         dnf install libfabric; clusters: module load libfabric), or set {ENVIRONMENT_VARIABLE} to the path of \
         {SONAME}"
    )]
    Missing {
        /// What the dynamic linker said.
        reason: String,
    },
    /// It loads and lacks a function.
    #[error("{} is not a usable libfabric: it has no {symbol}", path.display())]
    Symbol {
        /// The file, or name, that was opened.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
    /// It is older than these bindings.
    #[error(
        "{} is libfabric {}.{}; {}.{} or newer is needed",
        path.display(), fi_major(*version), fi_minor(*version), fi_major(API_VERSION), fi_minor(API_VERSION)
    )]
    TooOld {
        /// The file, or name, that was opened.
        path: PathBuf,
        /// Its version, as `fi_version` gives it.
        version: u32,
    },
}

impl Library {
    /// Opens the library named by the environment variable `TRANSOM_LIBFABRIC`, else `libfabric.so.1`.
    ///
    /// The first success is kept for the process; a failure is not.
    pub fn open() -> Result<&'static Library, OpenError> {
        static OPENED: OnceLock<Library> = OnceLock::new();
        if let Some(library) = OPENED.get() {
            return Ok(library);
        }
        let named = env::var_os(ENVIRONMENT_VARIABLE).filter(|name| !name.is_empty());
        let library = Library::load(Path::new(named.as_deref().unwrap_or(OsStr::new(SONAME))))?;
        Ok(OPENED.get_or_init(|| library))
    }

    /// Opens one file (or, without a slash, what the dynamic linker finds under that name).
    pub fn load(path: &Path) -> Result<Library, OpenError> {
        let handlers = Handlers::remember();
        let handle = Handle::open(path)?;
        drop(handlers);
        // SAFETY: fi_version(3) has this signature in every release and may be called at any time.
        let version = unsafe {
            let fi_version: unsafe extern "C" fn() -> u32 = handle.function(c"fi_version", c"FABRIC_1.0")?;
            fi_version()
        };
        if version < API_VERSION {
            return Err(OpenError::TooOld { path: path.to_owned(), version });
        }
        // SAFETY: the fields have the signatures of the 1.17 headers, whose default symbol versions are the ones named;
        // a library with versioned symbols keeps the meaning of a version for ever (libfabric.map).
        unsafe {
            Ok(Library {
                fi_getinfo: handle.function(c"fi_getinfo", c"FABRIC_1.3")?,
                fi_freeinfo: handle.function(c"fi_freeinfo", c"FABRIC_1.3")?,
                fi_dupinfo: handle.function(c"fi_dupinfo", c"FABRIC_1.3")?,
                fi_fabric: handle.function(c"fi_fabric", c"FABRIC_1.1")?,
                fi_strerror: handle.function(c"fi_strerror", c"FABRIC_1.0")?,
                path: path.to_owned(),
                version,
            })
        }
    }

    /// The file, or name, that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library's own version, as `fi_version(major, minor)`.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The text for an error number, positive or negative.
    pub fn error_text(&self, code: c_int) -> String {
        // SAFETY: fi_errno(3): takes any number and returns a static string; null is handled all the same.
        unsafe { text((self.fi_strerror)(code.saturating_abs())) }
    }
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

/// What `dlopen` returned. Never closed.
struct Handle<'p> {
    path: &'p Path,
    handle: *mut c_void,
}

impl<'p> Handle<'p> {
    fn open(path: &'p Path) -> Result<Self, OpenError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| OpenError::Missing { reason: format!("{path:?} holds a zero byte") })?;
        // SAFETY: dlopen(3) with a valid string; it runs the library's constructors, which is what is asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: dlerror(3) returns null or a string that stays valid until this thread's next dl* call.
            let reason = unsafe { text(libc::dlerror()) };
            return Err(OpenError::Missing { reason });
        }
        Ok(Handle { path, handle })
    }

    /// A function at one symbol version; at any version only if the library has no symbol versions at all.
    ///
    /// # Safety
    /// `F` is the function's type.
    unsafe fn function<F: Copy>(&self, name: &'static CStr, version: &CStr) -> Result<F, OpenError> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F is a function pointer") };
        let mut found = self.versioned(name, version);
        if found.is_null() && self.versioned(c"fi_version", c"FABRIC_1.0").is_null() {
            // SAFETY: the handle is open and the name a valid string.
            found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        }
        if found.is_null() {
            let symbol = name.to_str().unwrap_or("a function");
            return Err(OpenError::Symbol { path: self.path.to_owned(), symbol });
        }
        // SAFETY: of the same size (above) and of this type (the caller); POSIX has data and function pointers alike.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }

    fn versioned(&self, name: &CStr, version: &CStr) -> *mut c_void {
        // SAFETY: the handle is open and both strings are valid.
        unsafe { libc::dlvsym(self.handle, name.as_ptr(), version.as_ptr()) }
    }
}
