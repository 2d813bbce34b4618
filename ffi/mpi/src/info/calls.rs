//! The calls for info objects (MPI-4.1 chapter 10).

use std::ffi::{c_char, c_int};

use super::{INFOS, object, pairs, with};
use crate::abi::{self, ERR_ARG, ERR_INFO_KEY, ERR_INFO_NOKEY, ERR_INFO_VALUE, INFO_NULL, Info};
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, Text, flag};

/// A key, if it can be one.
fn checked(key: Text) -> Result<String> {
    let key = key.get()?;
    if key.is_empty() || key.len() >= abi::MAX_INFO_KEY as usize {
        return fail(ERR_INFO_KEY, format!("a key has 1 to {} bytes", abi::MAX_INFO_KEY - 1));
    }
    Ok(key)
}

/// `MPI_Info_create`.
pub fn info_create(info: Pointer<Info>) -> Result<()> {
    info.set(with(Vec::new())?)
}

/// `MPI_Info_create_env`.
pub fn info_create_env(_argc: c_int, _argv: Pointer<*mut c_char>, info: Pointer<Info>) -> Result<()> {
    info.set(with(pairs(abi::INFO_ENV)?)?)
}

/// `MPI_Info_dup`.
pub fn info_dup(info: Info, copy: Pointer<Info>) -> Result<()> {
    copy.set(with(pairs(info)?)?)
}

/// `MPI_Info_free`.
pub fn info_free(info: Pointer<Info>) -> Result<()> {
    INFOS.remove(info.get()?.0)?;
    info.set(INFO_NULL)
}

/// `MPI_Info_set`.
pub fn info_set(info: Info, key: Text, value: Text) -> Result<()> {
    set(info, checked(key)?, value.get()?)
}

/// Sets the value of a key.
pub fn set(info: Info, key: String, value: String) -> Result<()> {
    let object = object(info)?;
    if value.len() >= abi::MAX_INFO_VAL as usize {
        return fail(ERR_INFO_VALUE, format!("a value has at most {} bytes", abi::MAX_INFO_VAL - 1));
    }
    let mut pairs = object.0.lock();
    match pairs.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => pairs.push((key, value)),
    }
    Ok(())
}

/// `MPI_Info_delete`.
pub fn info_delete(info: Info, key: Text) -> Result<()> {
    let object = object(info)?;
    let key = checked(key)?;
    let mut pairs = object.0.lock();
    match pairs.iter().position(|(known, _)| *known == key) {
        Some(place) => pairs.remove(place),
        None => return fail(ERR_INFO_NOKEY, format!("there is no key {key:?}")),
    };
    Ok(())
}

/// The value of a key.
fn value(info: Info, key: Text) -> Result<Option<String>> {
    let key = checked(key)?;
    Ok(pairs(info)?.into_iter().find_map(|(known, value)| (known == key).then_some(value)))
}

/// `MPI_Info_get`.
pub fn info_get(info: Info, key: Text, capacity: c_int, text: Text, found: Pointer<c_int>) -> Result<()> {
    let value = value(info, key)?;
    let capacity = usize::try_from(capacity).or_else(|_| fail(ERR_ARG, "a negative length"))?;
    if let Some(value) = &value {
        text.set(value, capacity + 1)?;
    }
    found.set(flag(value.is_some()))
}

/// `MPI_Info_get_string`.
pub fn info_get_string(
    info: Info,
    key: Text,
    len: Pointer<c_int>,
    text: Text,
    found: Pointer<c_int>,
) -> Result<()> {
    let value = value(info, key)?;
    if let Some(value) = &value {
        let capacity = usize::try_from(len.get()?).or_else(|_| fail(ERR_ARG, "a negative length"))?;
        if capacity > 0 {
            text.set(value, capacity)?;
        }
        len.set(c_int::try_from(value.len() + 1).unwrap_or(c_int::MAX))?;
    }
    found.set(flag(value.is_some()))
}

/// `MPI_Info_get_valuelen`.
pub fn info_get_valuelen(info: Info, key: Text, len: Pointer<c_int>, found: Pointer<c_int>) -> Result<()> {
    let value = value(info, key)?;
    if let Some(value) = &value {
        len.set(c_int::try_from(value.len()).unwrap_or(c_int::MAX))?;
    }
    found.set(flag(value.is_some()))
}

/// `MPI_Info_get_nkeys`.
pub fn info_get_nkeys(info: Info, count: Pointer<c_int>) -> Result<()> {
    count.set(c_int::try_from(pairs(info)?.len()).unwrap_or(c_int::MAX))
}

/// `MPI_Info_get_nthkey`.
pub fn info_get_nthkey(info: Info, number: c_int, key: Text) -> Result<()> {
    let pairs = pairs(info)?;
    match usize::try_from(number).ok().and_then(|number| pairs.get(number)) {
        Some((name, _)) => key.set(name, abi::MAX_INFO_KEY as usize).map(drop),
        None => fail(ERR_ARG, format!("there are {} keys, not one with number {number}", pairs.len())),
    }
}
