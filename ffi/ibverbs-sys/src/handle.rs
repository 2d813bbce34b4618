//! A shared library, and functions in it at their symbol versions.
//!
//! Knows nothing of the libraries but what to say when they are missing ([`Wanted`]).

use std::env;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A library, for people who lack it.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: &'static str,
    /// Commands that install it.
    pub install: &'static str,
    /// The environment variable that names its file.
    pub variable: &'static str,
    /// What the dynamic linker knows it by.
    pub soname: &'static str,
}

impl Wanted {
    /// What `load` makes of the file that the environment names, or else of [`Wanted::soname`]. The first success is kept for
    /// the process; a failure is not.
    pub(crate) fn open_once<L>(
        &self,
        opened: &'static OnceLock<L>,
        load: impl FnOnce(&Path) -> Result<L, OpenError>,
    ) -> Result<&'static L, OpenError> {
        if let Some(library) = opened.get() {
            return Ok(library);
        }
        let named = env::var_os(self.variable).filter(|name| !name.is_empty());
        let library = load(Path::new(named.as_deref().unwrap_or(OsStr::new(self.soname))))?;
        Ok(opened.get_or_init(|| library))
    }
}

/// Why a library could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no such library, or it does not load.
    #[error(
        "no {}: {reason}. Install it ({}), or set {} to the path of {}",
        library.name, library.install, library.variable, library.soname
    )]
    Missing {
        /// Which.
        library: &'static Wanted,
        /// What the dynamic linker said.
        reason: String,
    },
    /// It loads and lacks a function.
    #[error("{} is not a usable {}: it has no {symbol}", path.display(), library.name)]
    Symbol {
        /// Which it is not.
        library: &'static Wanted,
        /// The file, or name, that was opened.
        path: PathBuf,
        /// The function.
        symbol: &'static str,
    },
}

/// What `dlopen` returned. Never closed.
pub(crate) struct Handle<'p> {
    library: &'static Wanted,
    path: &'p Path,
    handle: *mut c_void,
    /// Whether its symbols have versions.
    versioned: bool,
}

impl<'p> Handle<'p> {
    /// Opens a file. `known` is a function with its version, by which a library with symbol versions is known.
    pub(crate) fn open(
        library: &'static Wanted,
        path: &'p Path,
        known: (&str, &str),
    ) -> Result<Self, OpenError> {
        let missing = |reason| OpenError::Missing { library, reason };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| missing(format!("{path:?} holds a zero byte")))?;
        // SAFETY: dlopen(3) with a valid string; it runs the library's constructors, which is what is asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(missing(last_error()));
        }
        let mut opened = Handle { library, path, handle, versioned: true };
        opened.versioned = opened.find(known.0, known.1).is_some();
        Ok(opened)
    }

    /// A function at one symbol version; at any version only if the library has no symbol versions at all.
    ///
    /// # Safety
    /// `F` is the function's type.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &'static str, version: &str) -> Result<F, OpenError> {
        // SAFETY: the caller vouches for the type.
        let found = unsafe { self.optional(name, version) };
        let (library, path) = (self.library, self.path.to_owned());
        found.ok_or(OpenError::Symbol { library, path, symbol: name })
    }

    /// The same, of a function that not every release has.
    ///
    /// # Safety
    /// `F` is the function's type.
    pub(crate) unsafe fn optional<F: Copy>(&self, name: &str, version: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F is a function pointer") };
        let found = self.find(name, version)?;
        // SAFETY: of the same size (above) and of this type (the caller); POSIX has data and function pointers alike.
        Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
    }

    /// A symbol's address; never null.
    fn find(&self, name: &str, version: &str) -> Option<*mut c_void> {
        let (name, version) = (CString::new(name).ok()?, CString::new(version).ok()?);
        let found = if self.versioned {
            // SAFETY: the handle is open and both strings are valid.
            unsafe { libc::dlvsym(self.handle, name.as_ptr(), version.as_ptr()) }
        } else {
            // SAFETY: as above.
            unsafe { libc::dlsym(self.handle, name.as_ptr()) }
        };
        (!found.is_null()).then_some(found)
    }
}

/// What the dynamic linker says of the failure that this thread just had.
fn last_error() -> String {
    // SAFETY: dlerror(3) returns null or a string that stays valid until this thread's next dl* call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gives no reason".into();
    }
    // SAFETY: not null, and valid as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A library whose functions are looked up when it is opened: its struct with what is said of it, the variable and the name by
/// which it is known, a function with its version by which it is recognised, functions that not every release has, and all
/// others with their versions. Their signatures are those of its header, whose default symbol versions are the ones named: a
/// library with versioned symbols keeps the meaning of a version for ever.
macro_rules! library {
    (
        $(#[$of_library:meta])*
        $library:ident: $wanted:expr, $known:expr;
        optional { $($(#[$of_optional:meta])* $optional:ident: $type_of:ty = ($symbol:literal, $since:literal);)* }
        $(
            $(#[$doc:meta])*
            fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $version:literal;
        )*
    ) => {
        $(#[$of_library])*
        pub struct $library {
            path: std::path::PathBuf,
            $( $(#[$of_optional])* pub $optional: Option<$type_of>, )*
            $( $(#[$doc])* pub $name: unsafe extern "C" fn($($argument: $type),*) $(-> $result)?, )*
        }

        impl $library {
            /// Opens the library that the environment names, or else the one of its usual name.
            ///
            /// The first success is kept for the process; a failure is not.
            pub fn open() -> Result<&'static Self, $crate::OpenError> {
                static OPENED: std::sync::OnceLock<$library> = std::sync::OnceLock::new();
                $wanted.open_once(&OPENED, Self::load)
            }

            /// Opens one file (or, without a slash, what the dynamic linker finds under that name).
            pub fn load(path: &std::path::Path) -> Result<Self, $crate::OpenError> {
                let handle = $crate::handle::Handle::open(&$wanted, path, $known)?;
                // SAFETY: the fields have the signatures of the header at these versions.
                unsafe {
                    Ok(Self {
                        path: path.to_owned(),
                        $( $optional: handle.optional($symbol, $since), )*
                        $( $name: handle.function(stringify!($name), $version)?, )*
                    })
                }
            }

            /// The file, or name, that was opened.
            pub fn path(&self) -> &std::path::Path {
                &self.path
            }
        }

        impl std::fmt::Debug for $library {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($library)).field("path", &self.path).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use library;
