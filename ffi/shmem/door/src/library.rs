//! Libraries of Transom's in one process. Each has a runtime of its own, and exports, as `transom_library_1`, a reference to what the others have to
//! know of it: a process joins one job, once, by one of them.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use libc::{RTLD_LAZY, RTLD_NOLOAD, dl_phdr_info, size_t};

use crate::{FUNCTIONS, Function, IDENTITY};

/// The name by which each exports a reference to its own.
const SYMBOL: &CStr = c"transom_library_1";

/// What a library says of itself. Libraries of different versions of Transom may meet, so fields are added at the end only.
#[derive(Debug)]
#[repr(C)]
pub struct Library {
    /// The version of Transom.
    version: *const c_char,
    /// Which functions `functions` has, and in which order.
    identity: u64,
    /// The functions of OpenSHMEM. Null if they are to be called by nobody else.
    functions: *const Function,
    /// Whether it has joined the job.
    has_job: extern "C" fn() -> bool,
    /// To be called before the functions are.
    prepare: extern "C" fn(),
}

// SAFETY: what it points to is never written.
unsafe impl Sync for Library {}

/// The version, with the null character behind it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

extern "C" fn nothing() {}

impl Library {
    /// A library whose functions are its own only.
    pub const fn alone(has_job: extern "C" fn() -> bool) -> Self {
        let version = VERSION.as_ptr().cast();
        Self { version, identity: IDENTITY, functions: std::ptr::null(), has_job, prepare: nothing }
    }

    /// A library whose functions take the place of libsma.so's.
    pub const fn shared(has_job: extern "C" fn() -> bool, prepare: extern "C" fn()) -> Self {
        Self { functions: (&raw const FUNCTIONS).cast(), prepare, ..Self::alone(has_job) }
    }

    fn version(&self) -> String {
        // SAFETY: a string of C, by contract of the symbol.
        unsafe { CStr::from_ptr(self.version) }.to_string_lossy().into_owned()
    }

    /// The other library of this process that has joined the job, if one has: what to tell the user then.
    pub fn joined_elsewhere(&'static self) -> Option<String> {
        let (name, _) = self.others().into_iter().find(|(_, other)| (other.has_job)())?;
        Some(format!(
            "this process has joined its job by {name} already: link the MPI library to the program, or load it before shmem_init is called"
        ))
    }

    /// The functions of OpenSHMEM that this library has to call in the place of its own, if another library of the process has some. Those of a library
    /// that has joined the job are first.
    ///
    /// # Errors
    /// They are of another version.
    pub fn functions_elsewhere(&'static self) -> Result<Option<&'static [Function]>, String> {
        let mut others = self.others();
        others.retain(|(_, other)| !other.functions.is_null());
        others.sort_by_key(|(_, other)| !(other.has_job)());
        let Some((name, other)) = others.into_iter().next() else { return Ok(None) };
        if other.identity != IDENTITY {
            return Err(format!(
                "{name} is of Transom {}, and libsma.so of {}, with other functions: install both of one version",
                other.version(),
                self.version()
            ));
        }
        (other.prepare)();
        // SAFETY: as many as this library has, since both are of one table; they are never unloaded, as `others` keeps a reference.
        Ok(Some(unsafe { std::slice::from_raw_parts(other.functions, crate::COUNT) }))
    }

    /// The others in this process, with their files' names.
    fn others(&'static self) -> Vec<(String, &'static Self)> {
        let mut names: Vec<CString> = Vec::new();
        // SAFETY: the callback has the type that is asked for, and `names` is valid while it is called (dl_iterate_phdr(3)).
        unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut names).cast()) };
        let mut seen = BTreeSet::from([std::ptr::from_ref(self)]);
        let found = names.iter().filter_map(|name| Some((name, find(name)?)));
        let new = found.filter(|(_, library)| seen.insert(std::ptr::from_ref(*library)));
        new.map(|(name, library)| (name.to_string_lossy().into_owned(), library)).collect()
    }
}

/// Notes an object's name; the program itself has none.
unsafe extern "C" fn collect(info: *mut dl_phdr_info, _size: size_t, names: *mut c_void) -> c_int {
    // SAFETY: valid while the callback runs; `names` is that of `others` (dl_iterate_phdr(3)).
    let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<CString>>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: a string of C (dl_iterate_phdr(3)).
        names.push(unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned());
    }
    0
}

/// What a loaded object, or one that it needs, exports by the name: with RTLD_LOCAL, too, which a search in all objects passes by.
fn find(name: &CStr) -> Option<&'static Library> {
    if name.is_empty() {
        return None;
    }
    // SAFETY: loads nothing, and runs no initialiser: the object is there, or null is returned (dlopen(3)).
    let object = unsafe { libc::dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    if object.is_null() {
        return None;
    }
    // SAFETY: a handle of dlopen's (dlsym(3)).
    let library = unsafe { libc::dlsym(object, SYMBOL.as_ptr()) };
    if library.is_null() {
        // SAFETY: the reference taken above, once (dlclose(3)).
        unsafe { libc::dlclose(object) };
        return None;
    }
    // SAFETY: what the symbol of this name is, in each version; the object stays, since the reference to it is kept.
    Some(unsafe { *library.cast::<&Library>() })
}
