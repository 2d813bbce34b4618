//! Buffers of several parts, as bytes: in place where their data is one after the other.

use std::borrow::Cow;
use std::sync::Arc;

use transom::raw;

use super::Parts;
use crate::buffer::Buffer;
use crate::comm::CommObject;
use crate::failure::Result;

/// What all ranks know of the lengths of a root's parts.
#[derive(Clone, Copy)]
pub enum Lengths {
    /// They are equal.
    Equal,
    /// Only the root has their list.
    Listed,
}

impl Lengths {
    /// The most ranks with which a root exchanges parts of unknown lengths itself, and not down a tree.
    const NEAR: usize = 256;

    /// Whether the root exchanges with each rank itself, and what is long is fetched where it is. All ranks must see it alike:
    /// `sample` is some rank's part.
    pub fn is_direct(self, comm: &CommObject, sample: Option<&Buffer>) -> Result<bool> {
        Ok(match self {
            Self::Equal => sample.map_or(Ok(0), Buffer::capacity)? >= raw::LONG,
            Self::Listed => comm.comm.size() <= Self::NEAR,
        })
    }
}

/// Calls `body` with a buffer's data, or with none where there is no buffer.
pub fn read(buffer: Option<&Buffer>, body: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    match buffer {
        Some(buffer) => buffer.read(body),
        None => body(&[]),
    }
}

/// A buffer's data.
pub fn data_of(part: &Buffer) -> Result<Cow<'_, [u8]>> {
    match part.plain()? {
        Some(data) => Ok(Cow::Borrowed(data)),
        None => Ok(Cow::Owned(part.pack()?)),
    }
}

/// The data of all parts.
pub fn data(parts: &Parts) -> Result<Vec<Cow<'_, [u8]>>> {
    parts.iter().map(data_of).collect()
}

/// The data of all parts. Where `to` is the same buffer, copies of it.
pub fn given<'a>(from: &'a Parts, to: &Parts) -> Result<Vec<Cow<'a, [u8]>>> {
    match Arc::ptr_eq(from, to) {
        true => from.iter().map(|part| Ok(Cow::Owned(part.pack()?))).collect(),
        false => data(from),
    }
}

/// Has `body` fill all parts.
pub fn fill(parts: &Parts, body: impl FnOnce(&mut [&mut [u8]]) -> Result<()>) -> Result<()> {
    let mut buffers = parts.to_vec();
    let mut places = Vec::with_capacity(parts.len());
    let mut packed = Vec::new();
    for (part, buffer) in parts.iter().zip(&mut buffers) {
        places.push(buffer.plain_mut()?);
        if places.last().is_some_and(Option::is_none) {
            packed.push((part, part.pack()?));
        }
    }
    let mut owned = packed.iter_mut().map(|(_, data)| &mut data[..]);
    let mut all: Vec<&mut [u8]> =
        places.into_iter().filter_map(|place| place.or_else(|| owned.next())).collect();
    body(&mut all)?;
    drop((all, owned));
    packed.iter().try_for_each(|(part, data)| part.unpack(data))
}

/// Bytes of the longest part.
pub fn longest(parts: &Parts) -> Result<usize> {
    parts.iter().try_fold(0, |longest, part| Ok(part.capacity()?.max(longest)))
}
