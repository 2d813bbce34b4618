//! Packing and unpacking (MPI-4.1 §5.2) between local buffers.

use std::ops::Range;

use super::Datatype;
use super::copy::Blocks;
use super::walk::Walk;
use crate::{Class, Error, Result};

/// Bytes that are appended at a time: they stay in the first-level cache between the zeroing and the copy.
const PORTION: usize = 16 << 10;

/// The walk's next `bytes` bytes as blocks, each with the range of the packed bytes that it is; `None` if
/// `copy` returns it.
fn transfer(
    walk: &mut Walk<'_>,
    origin: usize,
    bytes: usize,
    mut copy: impl FnMut(Blocks, Range<usize>) -> Option<()>,
) -> Option<()> {
    let mut done = 0;
    while done < bytes && walk.ready() {
        let inner = walk.inner;
        let index = origin.wrapping_add_signed(inner.offset as isize);
        let whole = if walk.head == 0 { inner.left.min((bytes - done) / inner.len) } else { 0 };
        if whole > 0 {
            let blocks = Blocks { index, stride: inner.stride, len: inner.len, count: whole };
            let end = done + whole * inner.len;
            copy(blocks, done..end)?;
            walk.inner.advance(whole);
            done = end;
        } else {
            let len = (inner.len - walk.head).min(bytes - done);
            copy(
                Blocks { index: index.wrapping_add(walk.head), stride: 0, len, count: 1 },
                done..done + len,
            )?;
            done += len;
            walk.head += len;
            if walk.head == inner.len {
                walk.head = 0;
                walk.inner.advance(1);
            }
        }
    }
    Some(())
}

impl Datatype {
    /// Appends the data of `count` instances to `out`. Index `origin` of `source` is the buffer's address,
    /// from which displacements count.
    ///
    /// ```
    /// use transom::Datatype;
    /// let odd = Datatype::vector(3, 1, 2, &Datatype::of::<u8>())?;
    /// let mut packed = Vec::new();
    /// odd.pack(1, &[0, 1, 2, 3, 4, 5], 1, &mut packed)?;
    /// assert_eq!(packed, [1, 3, 5]);
    /// let (mut target, mut position) = ([9; 5], 0);
    /// odd.unpack(1, &packed, &mut position, &mut target, 0)?;
    /// assert_eq!((target, position), ([1, 9, 3, 9, 5], 3));
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Class::Argument` if data is outside `source`; `Class::Count` if it is beyond 64-bit addresses;
    /// `Class::NoMemory` if there is none for the packed bytes. `out` is then as it was.
    pub fn pack(&self, count: usize, source: &[u8], origin: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut rest = self.check_buffer(count, source.len(), origin)?;
        let mut walk = self.walk(count);
        reserve(out, rest)?;
        while rest > 0 {
            let (begin, portion) = (out.len(), rest.min(PORTION));
            out.resize(begin + portion, 0);
            let packed = &mut out[begin..];
            let copied = transfer(&mut walk, origin, portion, |blocks, range| {
                blocks.gather(source, packed.get_mut(range)?)
            });
            copied.ok_or_else(|| self.outside(count))?;
            rest -= portion;
        }
        Ok(())
    }

    /// As [`pack`](Self::pack), into `out` from `position` on, which then is behind the data (`MPI_Pack`).
    ///
    /// # Errors
    /// As [`pack`](Self::pack), and `Class::Count` if `out` has no room for the data.
    pub fn pack_at(
        &self,
        count: usize,
        source: &[u8],
        origin: usize,
        out: &mut [u8],
        position: &mut usize,
    ) -> Result<()> {
        let end = self.check_packed(count, out.len(), *position)?;
        self.pack_part(count, 0, source, origin, &mut out[*position..end])?;
        *position = end;
        Ok(())
    }

    /// The bytes of `count` packed instances from `skip` on, as many as there are and `out` has room for;
    /// returns how many. Takes no longer for a large `skip`.
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
    pub fn pack_part(
        &self,
        count: usize,
        skip: usize,
        source: &[u8],
        origin: usize,
        out: &mut [u8],
    ) -> Result<usize> {
        let total = self.check_buffer(count, source.len(), origin)?;
        let bytes = total.saturating_sub(skip).min(out.len());
        let copied = transfer(&mut self.walk_from(count, skip, bytes), origin, bytes, |blocks, range| {
            blocks.gather(source, out.get_mut(range)?)
        });
        copied.ok_or_else(|| self.outside(count)).map(|()| bytes)
    }

    /// The data of `count` instances from `packed`, which it is in from `position` on, to `target`, where
    /// index `origin` is the buffer's address. `position` then is behind the data (`MPI_Unpack`).
    ///
    /// # Errors
    /// `Class::Argument` if data is outside `target`; `Class::Count` if `packed` is too short, or data is
    /// beyond 64-bit addresses. Nothing is written then.
    pub fn unpack(
        &self,
        count: usize,
        packed: &[u8],
        position: &mut usize,
        target: &mut [u8],
        origin: usize,
    ) -> Result<()> {
        let end = self.check_packed(count, packed.len(), *position)?;
        self.unpack_part(count, 0, &packed[*position..end], target, origin)?;
        *position = end;
        Ok(())
    }

    /// `packed` is what `count` packed instances have from `skip` on, as far as they go: to `target`. Returns
    /// how many bytes that is.
    ///
    /// # Errors
    /// As [`unpack`](Self::unpack).
    pub fn unpack_part(
        &self,
        count: usize,
        skip: usize,
        packed: &[u8],
        target: &mut [u8],
        origin: usize,
    ) -> Result<usize> {
        let total = self.check_buffer(count, target.len(), origin)?;
        let bytes = total.saturating_sub(skip).min(packed.len());
        let copied = transfer(&mut self.walk_from(count, skip, bytes), origin, bytes, |blocks, range| {
            blocks.scatter(packed.get(range)?, target)
        });
        copied.ok_or_else(|| self.outside(count)).map(|()| bytes)
    }

    fn walk(&self, count: usize) -> Walk<'_> {
        Walk::new(self.layout().bytes(), count, self.extent())
    }

    /// A walk from byte `skip` on, if `bytes` > 0 bytes are left there.
    fn walk_from(&self, count: usize, skip: usize, bytes: usize) -> Walk<'_> {
        let mut walk = self.walk(count);
        if bytes > 0 && skip > 0 {
            walk.seek(skip);
        }
        walk
    }

    /// The bytes of data in `count` instances, all of which, with padding, are in a buffer of `len` bytes.
    pub(super) fn check_buffer(&self, count: usize, len: usize, origin: usize) -> Result<usize> {
        let bytes = self.checked_bytes(count)?;
        let Some((low, high)) = self.span(count)? else { return Ok(bytes) };
        let (low, high) = (i128::from(low) + origin as i128, i128::from(high) + origin as i128);
        if low >= 0 && high <= len as i128 {
            return Ok(bytes);
        }
        let message = format!(
            "{count} instances of {self} are bytes {low}..{high} of a buffer of {len}; \
             give a larger one, or the index where displacements count from"
        );
        Err(Error::new(Class::Argument, "datatype", message))
    }

    /// The end of `count` packed instances in `len` bytes.
    fn check_packed(&self, count: usize, len: usize, position: usize) -> Result<usize> {
        let bytes = self.pack_size(count)?;
        room(bytes, len, position)
    }

    #[cold]
    pub(super) fn outside(&self, count: usize) -> Error {
        Error::new(Class::Argument, "datatype", format!("{count} instances of {self} are not in the buffer"))
    }
}

/// Room for `bytes` more bytes: many, if instances lie over each other.
pub(super) fn reserve(out: &mut Vec<u8>, bytes: usize) -> Result<()> {
    out.try_reserve(bytes).map_err(|_| {
        let message = format!("no memory for {bytes} packed bytes; pack them in parts");
        Error::new(Class::NoMemory, "datatype", message)
    })
}

/// The end of `bytes` from `position` on in `len` bytes.
pub(super) fn room(bytes: usize, len: usize, position: usize) -> Result<usize> {
    position.checked_add(bytes).filter(|end| *end <= len).ok_or_else(|| {
        let message = format!("{bytes} packed bytes at {position} of {len}; give a longer buffer");
        Error::new(Class::Count, "datatype", message)
    })
}
