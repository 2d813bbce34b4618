//! Attributes: what a program keeps at communicators, windows and datatypes (MPI-4.1 §7.7).

pub mod calls;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::abi::{ERR_KEYVAL, KEYVAL_INVALID, SUCCESS};
use crate::failure::{Failure, Result, fail};

/// What attributes are kept at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Comm,
    Win,
    Type,
}

/// A key, with the program's functions.
#[derive(Debug)]
pub struct Keyval {
    of: Of,
    number: c_int,
    copy: usize,
    delete: usize,
    extra_state: usize,
    freed: AtomicBool,
}

/// `MPI_COMM_DUP_FN` and its like: the value is copied. 0 is `MPI_COMM_NULL_COPY_FN`.
const DUP: usize = 1;
/// The first number of a program's key: predefined ones are below.
const FIRST: c_int = 1000;

struct Keyvals {
    next: c_int,
    known: BTreeMap<c_int, Arc<Keyval>>,
}

static KEYVALS: Mutex<Keyvals> = Mutex::new(Keyvals { next: FIRST, known: BTreeMap::new() });

/// A new key.
pub fn create(of: Of, copy: *const c_void, delete: *const c_void, extra_state: *mut c_void) -> c_int {
    let mut keyvals = KEYVALS.lock();
    let number = keyvals.next;
    keyvals.next += 1;
    let keyval = Keyval {
        of,
        number,
        copy: copy as usize,
        delete: delete as usize,
        extra_state: extra_state as usize,
        freed: AtomicBool::new(false),
    };
    keyvals.known.insert(number, Arc::new(keyval));
    number
}

/// The key of a number. One that was freed is there as long as an attribute has it (§7.7.2).
fn known(of: Of, number: c_int) -> Result<Arc<Keyval>> {
    let mut keyvals = KEYVALS.lock();
    let gone = |keyval: &Arc<Keyval>| keyval.freed.load(Ordering::Relaxed) && Arc::strong_count(keyval) == 1;
    if keyvals.known.get(&number).is_some_and(gone) {
        keyvals.known.remove(&number);
    }
    match keyvals.known.get(&number) {
        Some(keyval) if keyval.of == of => Ok(keyval.clone()),
        Some(_) => fail(ERR_KEYVAL, format!("key {number} is for objects of another kind")),
        None => fail(ERR_KEYVAL, format!("{number} is no key: it was freed, or never was one")),
    }
}

/// Frees a key: its attributes stay (§7.7.2).
pub fn free(of: Of, number: c_int) -> Result<c_int> {
    known(of, number)?.freed.store(true, Ordering::Relaxed);
    Ok(KEYVAL_INVALID)
}

/// The attributes of one object, in the order in which they were set.
#[derive(Debug, Default)]
pub struct Attributes(Mutex<Vec<(Arc<Keyval>, usize)>>);

impl Attributes {
    /// The value of a key.
    pub fn get(&self, of: Of, number: c_int) -> Result<Option<usize>> {
        known(of, number)?;
        Ok(self.0.lock().iter().find_map(|(keyval, value)| (keyval.number == number).then_some(*value)))
    }

    /// Sets a value; a former one is deleted by the program's function first.
    pub fn set(&self, of: Of, object: usize, number: c_int, value: *mut c_void) -> Result<()> {
        let keyval = known(of, number)?;
        let former = self.0.lock().iter().find(|(keyval, _)| keyval.number == number).cloned();
        if let Some((keyval, value)) = former {
            keyval.deleted(object, value)?;
        }
        let mut all = self.0.lock();
        match all.iter_mut().find(|(keyval, _)| keyval.number == number) {
            Some((_, former)) => *former = value as usize,
            None => all.push((keyval, value as usize)),
        }
        Ok(())
    }

    /// Deletes the attribute of a key, if there is one.
    pub fn delete(&self, of: Of, object: usize, number: c_int) -> Result<()> {
        known(of, number)?;
        let found = self.0.lock().iter().find(|(keyval, _)| keyval.number == number).cloned();
        let Some((keyval, value)) = found else { return Ok(()) };
        keyval.deleted(object, value)?;
        self.0.lock().retain(|(keyval, _)| keyval.number != number);
        Ok(())
    }

    /// Deletes all, the last that was set first (§11.2.4).
    pub fn delete_all(&self, object: usize) -> Result<()> {
        loop {
            let last = self.0.lock().last().cloned();
            let Some((keyval, value)) = last else { return Ok(()) };
            keyval.deleted(object, value)?;
            self.0.lock().retain(|(other, _)| other.number != keyval.number);
        }
    }

    /// What a copy of the object has.
    pub fn copied(&self, object: usize) -> Result<Self> {
        let mut copies = Vec::new();
        let all = self.0.lock().clone();
        for (keyval, value) in all {
            if let Some(value) = keyval.copied(object, value)? {
                copies.push((keyval, value));
            }
        }
        Ok(Self(Mutex::new(copies)))
    }
}

impl Keyval {
    fn deleted(&self, object: usize, value: usize) -> Result<()> {
        type Function = unsafe extern "C" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;
        if self.delete == 0 {
            return Ok(());
        }
        // SAFETY: the program gave the address as that of an MPI_Comm_delete_attr_function or its like, whose first
        // argument is a handle: a pointer-sized number.
        let code = unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.delete);
            function(object, self.number, value as *mut c_void, self.extra_state as *mut c_void)
        };
        self.checked(code)
    }

    fn copied(&self, object: usize, value: usize) -> Result<Option<usize>> {
        type Function =
            unsafe extern "C" fn(usize, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
        match self.copy {
            0 => return Ok(None),
            DUP => return Ok(Some(value)),
            _ => {}
        }
        let (mut copy, mut wanted) = (0usize, 0);
        // SAFETY: as in `deleted`; the fifth argument is the address of a pointer variable.
        let code = unsafe {
            let function: Function = std::mem::transmute::<usize, Function>(self.copy);
            let (extra, value) = (self.extra_state as *mut c_void, value as *mut c_void);
            function(object, self.number, extra, value, (&raw mut copy).cast(), &raw mut wanted)
        };
        self.checked(code)?;
        Ok((wanted != 0).then_some(copy))
    }

    /// What the program's function says of its own work (§7.7.2).
    fn checked(&self, code: c_int) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        Err(Failure::new(code, format!("the program's function for key {} failed", self.number)))
    }
}
