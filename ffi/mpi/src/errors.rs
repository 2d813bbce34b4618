//! Error classes, codes and strings (MPI-4.1 §9.4, §9.5).

use std::collections::BTreeMap;
use std::ffi::c_int;

use parking_lot::Mutex;

use crate::abi::{self, ERR_ARG, ERR_LASTCODE, ERROR_CLASSES, SUCCESS};
use crate::failure::{Result, fail};
use crate::handlers;
use crate::pointer::{Pointer, Text};

/// What a program has added: code, its class, its text.
static ADDED: Mutex<BTreeMap<c_int, Added>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct Added {
    class: c_int,
    text: String,
}

/// The name of a code.
pub fn name(code: c_int) -> String {
    match ERROR_CLASSES.iter().find(|(class, _)| *class == code) {
        Some((_, name)) => (*name).into(),
        None if code == SUCCESS => "MPI_SUCCESS".into(),
        None => format!("code {code}"),
    }
}

/// The highest code in use (`MPI_LASTUSEDCODE`).
pub fn last_used() -> c_int {
    ADDED.lock().last_key_value().map_or(ERR_LASTCODE, |(code, _)| *code)
}

fn is_predefined(code: c_int) -> bool {
    code == SUCCESS || ERROR_CLASSES.iter().any(|(class, _)| *class == code)
}

/// `MPI_Error_class`.
pub fn error_class(code: c_int, class: Pointer<c_int>) -> Result<()> {
    if is_predefined(code) {
        return class.set(code);
    }
    match ADDED.lock().get(&code) {
        Some(added) => class.set(added.class),
        None => fail(ERR_ARG, format!("{code} is no error code")),
    }
}

/// `MPI_Error_string`: what this thread's last error of that code was about, too.
pub fn error_string(code: c_int, text: Text, len: Pointer<c_int>) -> Result<()> {
    let known = if is_predefined(code) {
        let detail = handlers::last_message(code);
        let about = if code == SUCCESS { Some("no error".into()) } else { detail };
        about.map_or(name(code), |about| format!("{}: {about}", name(code)))
    } else {
        match ADDED.lock().get(&code) {
            Some(added) => added.text.clone(),
            None => return fail(ERR_ARG, format!("{code} is no error code")),
        }
    };
    text.set_with_length(&known, abi::MAX_ERROR_STRING, len)
}

fn add(class: Option<c_int>) -> c_int {
    let mut added = ADDED.lock();
    let code = added.last_key_value().map_or(ERR_LASTCODE, |(code, _)| *code) + 1;
    added.insert(code, Added { class: class.unwrap_or(code), text: String::new() });
    code
}

/// `MPI_Add_error_class`.
pub fn add_error_class(class: Pointer<c_int>) -> Result<()> {
    class.set(add(None))
}

/// `MPI_Add_error_code`.
pub fn add_error_code(class: c_int, code: Pointer<c_int>) -> Result<()> {
    let known = is_predefined(class) || ADDED.lock().get(&class).is_some_and(|added| added.class == class);
    if !known {
        return fail(ERR_ARG, format!("{class} is no error class"));
    }
    code.set(add(Some(class)))
}

/// `MPI_Add_error_string`.
pub fn add_error_string(code: c_int, text: Text) -> Result<()> {
    let text = text.get()?;
    if text.len() >= abi::MAX_ERROR_STRING as usize {
        return fail(ERR_ARG, "the text is longer than MPI_MAX_ERROR_STRING");
    }
    match ADDED.lock().get_mut(&code) {
        Some(added) => added.text = text,
        None => return fail(ERR_ARG, format!("{code} was not added by the program")),
    }
    Ok(())
}

/// Removes what `is_it` says of a code and its entry.
fn remove(code: c_int, is_it: impl Fn(&Added) -> bool) -> Result<()> {
    let mut added = ADDED.lock();
    let used = added.iter().any(|(other, entry)| *other != code && entry.class == code);
    match added.get(&code) {
        Some(_) if used => fail(ERR_ARG, format!("class {code} still has codes: remove them first")),
        Some(entry) if !entry.text.is_empty() => {
            fail(ERR_ARG, format!("code {code} still has a text: remove that first"))
        }
        Some(entry) if is_it(entry) => {
            added.remove(&code);
            Ok(())
        }
        _ => fail(ERR_ARG, format!("{code} was not added by the program")),
    }
}

/// `MPI_Remove_error_class`.
pub fn remove_error_class(class: c_int) -> Result<()> {
    remove(class, |entry| entry.class == class)
}

/// `MPI_Remove_error_code`.
pub fn remove_error_code(code: c_int) -> Result<()> {
    remove(code, |entry| entry.class != code)
}

/// `MPI_Remove_error_string`.
pub fn remove_error_string(code: c_int) -> Result<()> {
    match ADDED.lock().get_mut(&code) {
        Some(added) if !added.text.is_empty() => added.text.clear(),
        _ => return fail(ERR_ARG, format!("code {code} has no text of the program's")),
    }
    Ok(())
}
