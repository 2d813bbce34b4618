//! What a call costs more through the C interface than in Rust: both on memory at hand, in turns, in one process.
//!
//! `cargo build --release && cargo bench -p transom-mpi`. Each line is of an operation of 8 bytes in an epoch of lock_all:
//! the median over samples of nanoseconds a call in Rust, in scopes and by calls, and by functions of libmpi_abi.so that
//! are found as a C program finds them; and the median of what C took more than Rust in the sample beside it. With `--bench
//! c_interface -- --multiple` C starts with `MPI_THREAD_MULTIPLE`, and the calls in Rust are those that threads share.

use std::error::Error;
use std::ffi::{CString, c_int, c_void};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use transom::{Assert, Job, Sum};

const SAMPLES: usize = 101;
const CALLS: u32 = 20_000;
/// Puts before a flush, where their rate is measured.
const RATE: u32 = 1000;

/// `MPI_THREAD_SINGLE`, `MPI_THREAD_MULTIPLE` of the ABI.
const SINGLE: c_int = 0;
const MULTIPLE: c_int = 4096;
/// `MPI_COMM_SELF`, `MPI_INFO_NULL`, `MPI_INT64_T`, `MPI_SUM` of the ABI.
const SELF: usize = 0x102;
const INFO_NULL: usize = 0x130;
const INT64: usize = 0x258;
const SUM: usize = 0x21;

/// An operation, in samples of nanoseconds a call.
struct Row {
    name: &'static str,
    scoped: Vec<f64>,
    explicit: Vec<f64>,
    c: Vec<f64>,
    /// 0 if all calls of C succeeded.
    failed: c_int,
}

type Transfer = unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, isize, c_int, usize, usize) -> c_int;
type FetchAndOp =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, isize, usize, usize) -> c_int;
type CompareAndSwap =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, usize, c_int, isize, usize) -> c_int;
type Accumulate =
    unsafe extern "C" fn(*const c_void, c_int, usize, c_int, isize, c_int, usize, usize, usize) -> c_int;

/// The functions of the library that are measured, and a window.
struct C {
    put: Transfer,
    get: Transfer,
    accumulate: Accumulate,
    fetch_and_op: FetchAndOp,
    compare_and_swap: CompareAndSwap,
    flush: unsafe extern "C" fn(c_int, usize) -> c_int,
    win: usize,
}

/// The functions of `libmpi_abi.so` beside this program's folder.
fn library() -> Result<*mut c_void, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let built = program.parent().and_then(|deps| deps.parent()).ok_or("no folder")?;
    let path = CString::new(built.join("libmpi_abi.so").into_os_string().into_encoded_bytes())?;
    // SAFETY: dlopen(3) with a valid string; the library has no constructors of its own.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(format!("{path:?} cannot be opened: build it by `cargo build --release`").into());
    }
    Ok(library)
}

fn address(library: *mut c_void, name: &str) -> Result<*mut c_void, Box<dyn Error>> {
    let c_name = CString::new(name)?;
    // SAFETY: dlsym(3) with a library that was opened and a valid string.
    let found = unsafe { libc::dlsym(library, c_name.as_ptr()) };
    if found.is_null() { Err(format!("the library has no {name}").into()) } else { Ok(found) }
}

/// A function of the library, as the type that its caller wants.
macro_rules! function {
    ($library:expr, $name:literal, $function:ty) => {{
        let found = address($library, $name)?;
        // SAFETY: the address of the function of that name, whose type is mpi.h's.
        unsafe { std::mem::transmute::<*mut c_void, $function>(found) }
    }};
}

fn ok(code: c_int) -> Result<(), Box<dyn Error>> {
    if code == 0 { Ok(()) } else { Err(format!("a call failed with {code}").into()) }
}

impl C {
    /// Starts MPI with a thread level, and opens an epoch of lock_all on a window of this process.
    fn start(level: c_int) -> Result<Self, Box<dyn Error>> {
        type Init = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
        type Allocate = unsafe extern "C" fn(isize, c_int, usize, usize, *mut c_void, *mut usize) -> c_int;
        type OfWindow = unsafe extern "C" fn(c_int, usize) -> c_int;
        let library = library()?;
        let init = function!(library, "MPI_Init_thread", Init);
        let allocate = function!(library, "MPI_Win_allocate", Allocate);
        let lock_all = function!(library, "MPI_Win_lock_all", OfWindow);
        let (mut win, mut base, mut provided) = (0, null_mut::<c_void>(), 0);
        // SAFETY: as mpi.h declares them; all places are of this function's.
        unsafe {
            ok(init(null_mut(), null_mut(), level, &raw mut provided))?;
            ok(allocate(64, 8, INFO_NULL, SELF, (&raw mut base).cast(), &raw mut win))?;
            ok(lock_all(0, win))?;
        }
        if provided != level {
            return Err(format!("thread level {provided} instead of {level}").into());
        }
        Ok(Self {
            put: function!(library, "MPI_Put", Transfer),
            get: function!(library, "MPI_Get", Transfer),
            accumulate: function!(library, "MPI_Accumulate", Accumulate),
            fetch_and_op: function!(library, "MPI_Fetch_and_op", FetchAndOp),
            compare_and_swap: function!(library, "MPI_Compare_and_swap", CompareAndSwap),
            flush: function!(library, "MPI_Win_flush", OfWindow),
            win,
        })
    }

    fn put(&self, value: &mut i64) -> c_int {
        // SAFETY: one element of this process, which lives until the flush; the window is open.
        unsafe { (self.put)((&raw mut *value).cast(), 1, INT64, 0, 0, 1, INT64, self.win) }
    }

    fn get(&self, value: &mut i64) -> c_int {
        // SAFETY: as in `put`.
        unsafe { (self.get)((&raw mut *value).cast(), 1, INT64, 0, 0, 1, INT64, self.win) }
    }

    fn accumulate(&self, value: &i64) -> c_int {
        // SAFETY: as in `put`.
        unsafe { (self.accumulate)((&raw const *value).cast(), 1, INT64, 0, 0, 1, INT64, SUM, self.win) }
    }

    fn fetch_and_op(&self, value: &i64, old: &mut i64) -> c_int {
        // SAFETY: as in `put`.
        unsafe {
            (self.fetch_and_op)(
                (&raw const *value).cast(),
                (&raw mut *old).cast(),
                INT64,
                0,
                0,
                SUM,
                self.win,
            )
        }
    }

    fn compare_and_swap(&self, value: &i64, compare: &i64, old: &mut i64) -> c_int {
        let (value, compare) = ((&raw const *value).cast(), (&raw const *compare).cast());
        // SAFETY: as in `put`.
        unsafe { (self.compare_and_swap)(value, compare, (&raw mut *old).cast(), INT64, 0, 0, self.win) }
    }

    fn flush(&self) -> c_int {
        // SAFETY: the window is open.
        unsafe { (self.flush)(0, self.win) }
    }
}

/// Nanoseconds a call of `calls` calls.
fn time<E>(calls: u32, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let start = Instant::now();
    for _ in 0..calls {
        call()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls))
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures an operation: the three forms one after the other, in every sample.
macro_rules! row {
    ($name:expr, $calls:expr, $scoped:expr, $explicit:expr, $c:expr) => {{
        let mut row = Row { name: $name, scoped: Vec::new(), explicit: Vec::new(), c: Vec::new(), failed: 0 };
        for _ in 0..SAMPLES {
            row.scoped.push(time($calls, || $scoped)?);
            row.explicit.push(time($calls, || $explicit)?);
            let failed = &mut row.failed;
            row.c.push(time($calls, || {
                *failed |= $c;
                transom::Result::Ok(())
            })?);
        }
        row
    }};
}

fn measure(job: &Job, c: &C, level: c_int) -> transom::Result<Vec<Row>> {
    let (scoped, explicit) = (job.allocate::<i64>(8)?, job.allocate::<i64>(8)?);
    explicit.promise_threads(level != MULTIPLE);
    let rma = explicit.explicit();
    rma.lock_all(Assert::NONE)?;
    let (value, mut old, mut mutable, mut got) = ([7i64], 0i64, 7i64, [0i64]);
    let rows = scoped.lock_all(|epoch| {
        Ok(vec![
            row!(
                "put, flush",
                CALLS,
                {
                    epoch.put(0, 0, black_box(&value))?;
                    epoch.flush(0)
                },
                {
                    rma.put(0, 0, black_box(&value))?;
                    rma.flush(0)
                },
                c.put(black_box(&mut mutable)) | c.flush()
            ),
            row!(
                "put, of 1000",
                CALLS / RATE,
                {
                    for _ in 0..RATE {
                        epoch.put(0, 0, black_box(&value))?;
                    }
                    epoch.flush(0)
                },
                {
                    for _ in 0..RATE {
                        rma.put(0, 0, black_box(&value))?;
                    }
                    rma.flush(0)
                },
                {
                    let all = (0..RATE).fold(0, |all, _| all | c.put(black_box(&mut mutable)));
                    all | c.flush()
                }
            ),
            row!(
                "get, flush",
                CALLS,
                {
                    black_box(epoch.get_value(0, 0)?);
                    epoch.flush(0)
                },
                {
                    rma.get(0, 0, black_box(&mut got))?;
                    rma.flush(0)
                },
                c.get(black_box(&mut mutable)) | c.flush()
            ),
            row!(
                "accumulate",
                CALLS,
                epoch.accumulate(0, 0, Sum, black_box(&value)),
                rma.accumulate(0, 0, Sum, black_box(&value)),
                c.accumulate(black_box(&7))
            ),
            row!(
                "fetch_and_op",
                CALLS,
                epoch.fetch_add(0, 0, black_box(1)).map(|old| {
                    black_box(old);
                }),
                rma.fetch_op(0, 0, Sum, black_box(1)).map(|old| {
                    black_box(old);
                }),
                c.fetch_and_op(black_box(&1), black_box(&mut old))
            ),
            row!(
                "compare_and_swap",
                CALLS,
                epoch.compare_and_swap(0, 0, black_box(1), black_box(1)).map(|old| {
                    black_box(old);
                }),
                rma.compare_and_swap(0, 0, black_box(1), black_box(1)).map(|old| {
                    black_box(old);
                }),
                c.compare_and_swap(black_box(&1), black_box(&1), black_box(&mut old))
            ),
        ])
    })?;
    rma.unlock_all()?;
    drop(rma);
    scoped.free()?;
    explicit.free()?;
    Ok(rows)
}

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test` runs this, too, to see that it compiles.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let level = if std::env::args().any(|argument| argument == "--multiple") { MULTIPLE } else { SINGLE };
    let c = C::start(level)?;
    let rows = transom::local(1, |job| measure(&job, &c, level))?.into_iter().flatten();
    println!(
        "{:18} {:>8} {:>8} {:>8} {:>12} {:>14}",
        "ns a call", "scoped", "explicit", "C", "C - scoped", "C - explicit"
    );
    for mut row in rows {
        ok(row.failed)?;
        if row.name.ends_with("1000") {
            let every = [&mut row.scoped, &mut row.explicit, &mut row.c];
            every.into_iter().flatten().for_each(|time| *time /= f64::from(RATE));
        }
        let more = |than: &[f64]| median(row.c.iter().zip(than).map(|(c, rust)| c - rust));
        let all = [&row.scoped, &row.explicit, &row.c].map(|times| median(times.iter().copied()));
        let [scoped, explicit, c] = all;
        let (scopes, calls) = (more(&row.scoped), more(&row.explicit));
        println!("{:18} {scoped:8.1} {explicit:8.1} {c:8.1} {scopes:12.1} {calls:14.1}", row.name);
    }
    Ok(())
}
