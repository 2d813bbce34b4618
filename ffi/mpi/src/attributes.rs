//! Attributes: what a program keeps at communicators, windows and datatypes (MPI-4.1 §7.7).

pub mod calls;

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

#[cfg(mpich)]
use crate::abi::Aint;
use crate::abi::{ERR_KEYVAL, KEYVAL_INVALID, SUCCESS, Word};
use crate::failure::{Failure, Result, fail};
#[cfg(mpich)]
use crate::fortran::callbacks;

/// What attributes are kept at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Comm,
    Win,
    Type,
}

/// How a program's functions for attributes are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    C,
    /// By Fortran's, with values of an address's size.
    #[cfg(mpich)]
    Fortran,
    /// By Fortran's of before MPI-2, with values of an INTEGER's size.
    #[cfg(mpich)]
    OldFortran,
}

/// A program's functions for the attributes of a key.
#[derive(Debug, Clone, Copy)]
pub struct Functions {
    pub convention: Convention,
    pub copy: *const c_void,
    pub delete: *const c_void,
}

/// A key, with the program's functions.
#[derive(Debug)]
pub struct Keyval {
    of: Of,
    number: c_int,
    convention: Convention,
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
pub fn create(of: Of, functions: Functions, extra_state: *mut c_void) -> c_int {
    let mut keyvals = KEYVALS.lock();
    let number = keyvals.next;
    keyvals.next += 1;
    let keyval = Keyval {
        of,
        number,
        convention: functions.convention,
        copy: functions.copy as usize,
        delete: functions.delete as usize,
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

/// The value of an attribute.
#[derive(Debug, Clone)]
pub enum Value {
    /// A pointer of C's, whose address Fortran gets.
    Pointer(usize),
    /// An integer of Fortran's, of which C gets the address (MPI-4.1 §19.3.7).
    #[cfg(mpich)]
    Integer(Arc<usize>),
}

impl Value {
    /// What C gets.
    pub fn for_c(&self) -> usize {
        match self {
            Self::Pointer(address) => *address,
            #[cfg(mpich)]
            Self::Integer(number) => Arc::as_ptr(number) as usize,
        }
    }

    /// What Fortran gets.
    #[cfg(mpich)]
    pub fn for_fortran(&self) -> usize {
        match self {
            Self::Pointer(address) => *address,
            Self::Integer(number) => **number,
        }
    }
}

/// The attributes of one object, in the order in which they were set.
#[derive(Debug, Default)]
pub struct Attributes(Mutex<Vec<(Arc<Keyval>, Value)>>);

impl Attributes {
    /// The value of a key.
    pub fn get(&self, of: Of, number: c_int) -> Result<Option<Value>> {
        known(of, number)?;
        let all = self.0.lock();
        Ok(all.iter().find_map(|(keyval, value)| (keyval.number == number).then(|| value.clone())))
    }

    /// Sets a value; a former one is deleted by the program's function first.
    pub fn set(&self, of: Of, object: Word, number: c_int, value: Value) -> Result<()> {
        let keyval = known(of, number)?;
        let former = self.0.lock().iter().find(|(keyval, _)| keyval.number == number).cloned();
        if let Some((keyval, value)) = former {
            keyval.deleted(object, &value)?;
        }
        let mut all = self.0.lock();
        match all.iter_mut().find(|(keyval, _)| keyval.number == number) {
            Some((_, former)) => *former = value,
            None => all.push((keyval, value)),
        }
        Ok(())
    }

    /// Deletes the attribute of a key, if there is one.
    pub fn delete(&self, of: Of, object: Word, number: c_int) -> Result<()> {
        known(of, number)?;
        let found = self.0.lock().iter().find(|(keyval, _)| keyval.number == number).cloned();
        let Some((keyval, value)) = found else { return Ok(()) };
        keyval.deleted(object, &value)?;
        self.0.lock().retain(|(keyval, _)| keyval.number != number);
        Ok(())
    }

    /// Deletes all, the last that was set first (§11.2.4).
    pub fn delete_all(&self, object: Word) -> Result<()> {
        loop {
            let last = self.0.lock().last().cloned();
            let Some((keyval, value)) = last else { return Ok(()) };
            keyval.deleted(object, &value)?;
            self.0.lock().retain(|(other, _)| other.number != keyval.number);
        }
    }

    /// What a copy of the object has.
    pub fn copied(&self, object: Word) -> Result<Self> {
        let mut copies = Vec::new();
        let all = self.0.lock().clone();
        for (keyval, value) in all {
            if let Some(value) = keyval.copied(object, &value)? {
                copies.push((keyval, value));
            }
        }
        Ok(Self(Mutex::new(copies)))
    }
}

impl Keyval {
    fn deleted(&self, object: Word, value: &Value) -> Result<()> {
        type Function = unsafe extern "C" fn(Word, c_int, *mut c_void, *mut c_void) -> c_int;
        if self.delete == 0 {
            return Ok(());
        }
        // SAFETY: the program gave the address as that of an MPI_Comm_delete_attr_function or its like, whose first
        // argument is a handle: a word; or of Fortran's, as the convention says.
        let code = unsafe {
            match self.convention {
                Convention::C => {
                    let function: Function = std::mem::transmute::<usize, Function>(self.delete);
                    let (value, extra) = (value.for_c() as *mut c_void, self.extra_state as *mut c_void);
                    function(object, self.number, value, extra)
                }
                #[cfg(mpich)]
                Convention::Fortran => {
                    let value = value.for_fortran();
                    callbacks::delete::<Aint>(self.delete, object, self.number, value, self.extra_state)
                }
                #[cfg(mpich)]
                Convention::OldFortran => {
                    let value = value.for_fortran();
                    callbacks::delete::<c_int>(self.delete, object, self.number, value, self.extra_state)
                }
            }
        };
        self.checked(code)
    }

    fn copied(&self, object: Word, value: &Value) -> Result<Option<Value>> {
        type Function =
            unsafe extern "C" fn(Word, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
        match self.copy {
            0 => return Ok(None),
            DUP => return Ok(Some(value.clone())),
            // The same for both languages: an integer stays one.
            #[cfg(mpich)]
            copy if copy == crate::mpich::duplicate as *const () as usize => return Ok(Some(value.clone())),
            _ => {}
        }
        // SAFETY: as in `deleted`; the fifth argument is the address of a pointer variable.
        let (code, copy) = unsafe {
            match self.convention {
                Convention::C => {
                    let (mut copy, mut wanted) = (0usize, 0);
                    let function: Function = std::mem::transmute::<usize, Function>(self.copy);
                    let (extra, value) = (self.extra_state as *mut c_void, value.for_c() as *mut c_void);
                    let code =
                        function(object, self.number, extra, value, (&raw mut copy).cast(), &raw mut wanted);
                    (code, (wanted != 0).then_some(Value::Pointer(copy)))
                }
                #[cfg(mpich)]
                Convention::Fortran => {
                    let (extra, value) = (self.extra_state, value.for_fortran());
                    let (code, copy) = callbacks::copy::<Aint>(self.copy, object, self.number, extra, value);
                    (code, copy.map(|copy| Value::Integer(Arc::new(copy))))
                }
                #[cfg(mpich)]
                Convention::OldFortran => {
                    let (extra, value) = (self.extra_state, value.for_fortran());
                    let (code, copy) = callbacks::copy::<c_int>(self.copy, object, self.number, extra, value);
                    (code, copy.map(|copy| Value::Integer(Arc::new(copy))))
                }
            }
        };
        self.checked(code)?;
        Ok(copy)
    }

    /// What the program's function says of its own work (§7.7.2).
    fn checked(&self, code: c_int) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        Err(Failure::new(code, format!("the program's function for key {} failed", self.number)))
    }
}
