//! A rank's half of PMIx.

use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::bindings::{
    APPNUM, BYTE_OBJECT, ByteObject, COLLECT_DATA, Data, ERR_NOT_FOUND, GLOBAL, IMMEDIATE, Info, JOB_SIZE,
    KEY_BYTES, NSPACE_BYTES, Proc, RANK_WILDCARD, SUCCESS, Status, UINT32, Value,
};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::library::Library;

/// How long an abort waits for the launcher to take it.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);

/// Whether this process has a client, or had one.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// This process in its PMIx job, initialised. There is one in a process.
#[derive(Debug)]
pub struct Client {
    library: &'static Library,
    own: Proc,
    size: u32,
}

impl Client {
    /// Joins the job that this process was started for; `None` when the environment is not that of a launcher with PMIx.
    ///
    /// # Errors
    /// The environment makes no sense, there is no libpmix, the launcher cannot be reached, or the process has a client
    /// already.
    pub fn from_environment() -> Result<Option<Self>> {
        Environment::read()?.map(|environment| Self::connect(&environment)).transpose()
    }

    fn connect(environment: &Environment) -> Result<Self> {
        let library = Library::open()?;
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err(Error::AlreadyInUse);
        }
        let mut own = Proc { nspace: [0; NSPACE_BYTES], rank: RANK_WILDCARD };
        // SAFETY: PMIx Standard 4.1 §5.1.3: writes the name of this process to the structure, and takes no information.
        let status = unsafe { (library.init)(&mut own, std::ptr::null(), 0) };
        check(library, "PMIx_Init", status)?;
        let mut client = Self { library, own, size: 0 };
        client.size = client.job_size()?;
        if own.rank != environment.rank || own.rank >= client.size {
            let got = format!("{} of {}, and PMIX_RANK={}", own.rank, client.size, environment.rank);
            return Err(Error::Unexpected { what: "rank".into(), got });
        }
        Ok(client)
    }

    /// This process's rank in the job.
    pub fn rank(&self) -> u32 {
        self.own.rank
    }

    /// Number of ranks in the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The library that is used, with its version.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// Publishes a value, which the others can get after the next fence that collects. The key is printable ASCII, not empty,
    /// shorter than 512 bytes; the value is of any size.
    ///
    /// # Errors
    /// The key is none, or libpmix refuses.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let name = c_key(key)?;
        let bytes = ByteObject { bytes: value.as_ptr().cast_mut().cast::<c_char>(), size: value.len() };
        let mut value = Value { kind: BYTE_OBJECT, data: Data { bo: bytes } };
        // SAFETY: PMIx Standard 4.1 §7.1.1: both are valid for the call, which copies them and writes to neither.
        let status = unsafe { (self.library.put)(GLOBAL, name.as_ptr(), &mut value) };
        check(self.library, "PMIx_Put", status)
    }

    /// Waits until every rank is here. What was put before can be got after, if `collect` says so (at all ranks).
    ///
    /// # Errors
    /// libpmix refuses, or the launcher is gone.
    pub fn fence(&mut self, collect: bool) -> Result<()> {
        // SAFETY: PMIx Standard 4.1 §7.1.3: hands over what was put; no arguments.
        check(self.library, "PMIx_Commit", unsafe { (self.library.commit)() })?;
        let info = Info::flag(COLLECT_DATA);
        // SAFETY: §6.1.1: no ranks is all of the job; the one piece of information is valid for the call, which copies it.
        let status = unsafe { (self.library.fence)(std::ptr::null(), 0, &info, usize::from(collect)) };
        check(self.library, "PMIx_Fence", status)
    }

    /// What a rank put under that key before the last fence that collected; `None` if it did not.
    ///
    /// # Errors
    /// The key is none, or libpmix refuses.
    pub fn get(&self, rank: u32, key: &str) -> Result<Option<Vec<u8>>> {
        self.with_value(rank, key, |value| {
            if value.kind != BYTE_OBJECT {
                let got = format!("type {}", value.kind);
                return Err(Error::Unexpected { what: format!("{key} of rank {rank}"), got });
            }
            // SAFETY: `kind` says which member of the union is set (PMIx Standard 4.1 §3.2.17).
            let object = unsafe { value.data.bo };
            if object.bytes.is_null() || object.size == 0 {
                return Ok(Vec::new());
            }
            // SAFETY: not null, and of so many bytes (§3.2.13), which are the value's until it is released.
            Ok(unsafe { std::slice::from_raw_parts(object.bytes.cast::<u8>(), object.size) }.to_vec())
        })
    }

    fn job_size(&self) -> Result<u32> {
        let what = "number of ranks";
        let size = self.number(RANK_WILDCARD, JOB_SIZE, what)?;
        size.ok_or_else(|| Error::Unexpected { what: what.into(), got: "nothing".into() })
    }

    /// Which of the programs that were started together this process is, from 0 on; `None` if the launcher does not say.
    ///
    /// # Errors
    /// libpmix refuses, or gives something else.
    pub fn program(&self) -> Result<Option<u32>> {
        self.number(self.own.rank, APPNUM, "number of the program")
    }

    fn number(&self, rank: u32, key: &str, what: &str) -> Result<Option<u32>> {
        self.with_value(rank, key, |value| match value.kind {
            // SAFETY: `kind` says which member of the union is set (PMIx Standard 4.1 §3.2.17).
            UINT32 => Ok(unsafe { value.data.uint32 }),
            other => Err(Error::Unexpected { what: what.into(), got: format!("type {other}") }),
        })
    }

    /// Gets a value, shows it to `read`, and releases it.
    fn with_value<T>(
        &self,
        rank: u32,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T>,
    ) -> Result<Option<T>> {
        let name = c_key(key)?;
        let of = Proc { rank, ..self.own };
        let info = Info::flag(IMMEDIATE);
        let mut value: *mut Value = std::ptr::null_mut();
        // SAFETY: PMIx Standard 4.1 §7.1.4: all are valid for the call; it writes the address of a value that it allocates.
        let status = unsafe { (self.library.get)(&of, name.as_ptr(), &info, 1, &mut value) };
        if status == ERR_NOT_FOUND {
            return Ok(None);
        }
        check(self.library, "PMIx_Get", status)?;
        // SAFETY: null or what the call has allocated, which nobody else writes.
        let Some(found) = (unsafe { value.as_ref() }) else { return Ok(None) };
        let result = read(found);
        // SAFETY: as PMIX_VALUE_RELEASE does (§3.2.17.5), by free(3): a byte object owns its bytes, a number nothing; what has
        // another type is left alone.
        unsafe {
            match found.kind {
                BYTE_OBJECT => libc::free(found.data.bo.bytes.cast()),
                UINT32 => {}
                _ => return result.map(Some),
            }
            libc::free(value.cast());
        }
        result.map(Some)
    }

    /// Says goodbye. A rank that ends without is taken for one that failed.
    ///
    /// # Errors
    /// The launcher is gone.
    pub fn finalize(self) -> Result<()> {
        // SAFETY: PMIx Standard 4.1 §5.1.4: no information; after an init, once, since the client is consumed.
        check(self.library, "PMIx_Finalize", unsafe { (self.library.finalize)(std::ptr::null(), 0) })
    }

    /// Asks the launcher to end the whole job with that exit code, and waits until it has heard so, but for 5 seconds at most.
    /// End this process next.
    ///
    /// # Errors
    /// libpmix refuses, or the system has no thread left.
    pub fn abort(&mut self, code: i32) -> Result<()> {
        let library = self.library;
        let (done, answer) = mpsc::channel();
        let ask = move || {
            let message = c"a rank aborted the job";
            // SAFETY: PMIx Standard 4.1 §11.1.1: the text is valid, no ranks is all of the job, and the call may come at any
            // time from any thread after the init (a finalize needs the client, which is borrowed here or gone).
            let status = unsafe { (library.abort)(code, message.as_ptr(), std::ptr::null_mut(), 0) };
            // Nobody listens any more after the patience.
            let _ = done.send(status);
        };
        let thread = std::thread::Builder::new().name("pmix-abort".into()).spawn(ask);
        thread.map_err(|e| Error::Refused {
            call: "PMIx_Abort",
            reason: e.to_string(),
            status: e.raw_os_error().unwrap_or(0),
            library: library.path().display().to_string(),
        })?;
        match answer.recv_timeout(ABORT_PATIENCE) {
            Ok(status) => check(library, "PMIx_Abort", status),
            // The launcher does not answer: it ends this process, or this process itself.
            Err(_) => Ok(()),
        }
    }
}

fn check(library: &Library, call: &'static str, status: Status) -> Result<()> {
    if status == SUCCESS {
        return Ok(());
    }
    let named = format!("{}, {}", library.path().display(), library.version());
    Err(Error::Refused { call, reason: library.error_text(status), status, library: named })
}

fn c_key(key: &str) -> Result<CString> {
    let bad = |reason| Error::Key { key: key.to_owned(), reason };
    if key.is_empty() || key.len() >= KEY_BYTES {
        return Err(bad("must have 1 to 511 bytes"));
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("must be printable ASCII"));
    }
    CString::new(key).map_err(|_| bad("must be printable ASCII"))
}
