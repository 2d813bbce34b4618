//! The program's buffers: an address, a count and a datatype, as bytes.

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

use transom::{Layout, RawBuffer};

use crate::abi::{self, Datatype, ERR_BUFFER, ERR_COUNT, ERR_TRUNCATE, ERR_TYPE};
use crate::failure::{Result, fail};
use crate::types::{self, TypeObject};

/// Bytes of the program's memory that a call reads.
#[inline]
pub fn bytes<'a>(address: *const c_void, len: usize) -> Result<&'a [u8]> {
    check(address, len)?;
    // SAFETY: not null, and readable as long as the call's arguments say (MPI-4.1 §2.5.1); the program does not change
    // the buffer of a call before it is complete (§3.7.2).
    Ok(if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(address.cast(), len) } })
}

/// Bytes of the program's memory that a call writes.
#[inline]
pub fn bytes_mut<'a>(address: *mut c_void, len: usize) -> Result<&'a mut [u8]> {
    check(address, len)?;
    // SAFETY: not null, and writable as long as the call's arguments say (MPI-4.1 §2.5.1); the program does not access
    // the buffer of a call before it is complete (§3.7.2).
    Ok(if len == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(address.cast(), len) } })
}

/// [`raw_buffer`] of an address that is one, and of any length: for the short cut, which finds out whether there can be so many bytes.
#[inline(always)]
pub fn plain(address: *const c_void, len: usize) -> Option<RawBuffer> {
    // SAFETY: as in `raw_buffer`.
    abi::is_address(address.addr()).then(|| unsafe { RawBuffer::unchecked(address.cast_mut().cast(), len) })
}

/// The word at an address that is one.
#[inline(always)]
pub fn load_word(address: *const c_void) -> Option<u64> {
    // SAFETY: as in `bytes`, for 8 of them.
    abi::is_address(address.addr()).then(|| unsafe { address.cast::<u64>().read_unaligned() })
}

/// The place of a word, at an address that is one.
#[inline(always)]
pub fn word_place<'a>(address: *mut c_void) -> Option<&'a mut [u8; size_of::<u64>()]> {
    // SAFETY: as in `bytes_mut`, for 8 of them.
    abi::is_address(address.addr()).then(|| unsafe { &mut *address.cast() })
}

/// Bytes of the program's memory that an operation accesses until it is complete.
#[inline]
pub fn raw_buffer(address: *mut c_void, len: usize) -> Result<RawBuffer> {
    check(address, len)?;
    // SAFETY: not null; the program keeps the buffer of a one-sided operation until that is complete, window memory until the
    // window is freed (MPI-4.1 §12.3, §12.2.1), and that of a message until its request is complete (§3.7.2).
    Ok(unsafe { RawBuffer::new(address.cast(), len) })
}

#[inline]
fn check(address: *const c_void, len: usize) -> Result<()> {
    // MPI_BOTTOM is null, and its bytes are elsewhere.
    if len > 0 && !abi::is_address(address.addr()) {
        return fail(ERR_BUFFER, format!("{len} bytes at address {address:p}"));
    }
    if isize::try_from(len).is_err() {
        return fail(ERR_COUNT, format!("{len} bytes are more than an address space holds"));
    }
    Ok(())
}

/// A count that a caller gives.
#[inline]
pub fn count(count: i64) -> Result<usize> {
    usize::try_from(count).or_else(|_| fail(ERR_COUNT, format!("a count of {count}")))
}

/// A buffer as the arguments of a call say it: so many instances of a datatype at an address.
#[derive(Debug, Clone, Copy)]
pub struct Triple {
    pub address: *mut c_void,
    pub n: i64,
    pub ty: Datatype,
}

impl Triple {
    /// A buffer of three arguments.
    #[inline(always)]
    pub fn new(address: *const c_void, n: i64, ty: Datatype) -> Self {
        Self { address: address.cast_mut(), n, ty }
    }

    /// Bytes of predefined data without padding; none of others.
    #[inline]
    pub fn plain_len(self) -> Option<usize> {
        let size = types::size_or_zero(self.ty).filter(|size| *size > 0)?;
        usize::try_from(self.n.checked_mul(i64::from(size))?).ok()
    }

    /// As many instances at another address.
    pub fn at(self, address: *const c_void) -> Self {
        Self { address: address.cast_mut(), ..self }
    }

    /// Its layout, where `ty` is its datatype.
    pub fn typed(self, ty: &TypeObject) -> Result<TypedBuffer<'_>> {
        TypedBuffer::new(self.address, count(self.n)?, &ty.datatype)
    }
}

/// A buffer with its datatype, whose layout begins with its first byte of data, at or behind the address.
#[derive(Debug)]
pub struct TypedBuffer<'a> {
    /// The address from which the layout counts.
    pub address: *mut c_void,
    /// Bytes from there to the end of the data.
    pub len: usize,
    pub count: usize,
    pub datatype: Cow<'a, transom::Datatype>,
}

impl<'a> TypedBuffer<'a> {
    /// `count` instances at `address`. Where data lies before the address, or the address is `MPI_BOTTOM`, the layout is
    /// moved to the first byte of data.
    pub fn new(address: *const c_void, count: usize, datatype: &'a transom::Datatype) -> Result<Self> {
        let address = address.cast_mut();
        let Some((low, high)) = datatype.element_span(count)? else {
            return Ok(Self { address, len: 0, count, datatype: Cow::Borrowed(datatype) });
        };
        if low >= 0 && !address.is_null() {
            return Ok(Self { address, len: high as usize, count, datatype: Cow::Borrowed(datatype) });
        }
        let moved = transom::Datatype::hindexed(&[(count, low.wrapping_neg())], datatype)?;
        let address = address.wrapping_byte_offset(low as isize);
        Ok(Self { address, len: high.abs_diff(low) as usize, count: 1, datatype: Cow::Owned(moved) })
    }

    /// The layout.
    pub fn layout(&self) -> Layout<'_> {
        Layout::new(self.count, &self.datatype)
    }
}

/// Whether instances are bytes one after the other, from the address on.
fn is_plain(datatype: &transom::Datatype) -> bool {
    datatype.is_contiguous() && datatype.true_lower_bound() == 0
}

/// A buffer of the program's with its datatype, kept as long as something is under way with it.
#[derive(Debug, Clone)]
pub struct Buffer {
    address: usize,
    count: usize,
    ty: Arc<TypeObject>,
}

impl Buffer {
    /// The buffer that a call names.
    pub fn new(named: Triple) -> Result<Self> {
        Ok(Self { address: named.address as usize, count: count(named.n)?, ty: types::committed(named.ty)? })
    }

    /// No buffer: what a message has that goes to nobody or comes from nobody.
    pub fn none() -> Result<Self> {
        Ok(Self { address: 0, count: 0, ty: types::get(abi::BYTE)? })
    }

    /// The same kind of buffer elsewhere: `instances` further, `n` of them.
    pub fn part(&self, instances: i64, n: i64) -> Result<Self> {
        let Some(distance) = self.ty.datatype.extent().checked_mul(instances) else {
            return fail(ERR_COUNT, "displacements go beyond 64 bits");
        };
        let address = self.address.wrapping_add_signed(distance as isize);
        Ok(Self { address, count: count(n)?, ty: self.ty.clone() })
    }

    /// Its address.
    pub fn place(&self) -> *mut c_void {
        self.address as *mut c_void
    }

    /// The datatype.
    pub fn ty(&self) -> &Arc<TypeObject> {
        &self.ty
    }

    /// Instances.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Its capacity: bytes of packed data.
    pub fn capacity(&self) -> Result<usize> {
        Ok(self.ty.datatype.pack_size(self.count)?)
    }

    /// Its data, one after the other.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let datatype = &self.ty.datatype;
        if is_plain(datatype) {
            return Ok(bytes(self.place(), self.capacity()?)?.to_vec());
        }
        let typed = TypedBuffer::new(self.place(), self.count, datatype)?;
        let mut packed = Vec::new();
        typed.datatype.pack(typed.count, bytes(typed.address, typed.len)?, 0, &mut packed)?;
        Ok(packed)
    }

    /// Calls `body` with its data, one after the other: in place if it is so there.
    pub fn read<R>(&self, body: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        match self.plain()? {
            Some(data) => body(data),
            None => body(&self.pack()?),
        }
    }

    /// Has `body` fill it with data, one after the other: in place if it is so there. What is not filled stays as it is.
    pub fn fill<R>(&self, body: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        if let Some(data) = self.clone().plain_mut()? {
            return body(data);
        }
        let mut data = self.pack()?;
        let result = body(&mut data)?;
        self.unpack(&data)?;
        Ok(result)
    }

    /// Puts data where the buffer has it; less than its capacity is no error (MPI-4.1 §3.2.4), unless the last element is cut:
    /// then it is of another type (§3.3.1).
    pub fn unpack(&self, data: &[u8]) -> Result<()> {
        let datatype = &self.ty.datatype;
        if data.len() > self.capacity()? {
            let message = format!("{} bytes came, there is room for {}", data.len(), self.capacity()?);
            return fail(ERR_TRUNCATE, message);
        }
        if is_plain(datatype) {
            bytes_mut(self.place(), data.len())?.copy_from_slice(data);
            return Ok(());
        }
        let typed = TypedBuffer::new(self.place(), self.count, datatype)?;
        typed.datatype.unpack_part(typed.count, 0, data, bytes_mut(typed.address, typed.len)?, 0)?;
        if datatype.get_elements(data.len()).is_none() {
            let message =
                format!("{} bytes came, which end within an element: another type was sent", data.len());
            return fail(ERR_TYPE, message);
        }
        Ok(())
    }

    /// Its bytes, if they are its data, one after the other: for an operation that goes on when the call returns.
    pub fn raw(&self) -> Result<Option<RawBuffer>> {
        let plain = is_plain(&self.ty.datatype);
        if plain { raw_buffer(self.place(), self.capacity()?).map(Some) } else { Ok(None) }
    }

    /// Its bytes, if they are its data, one after the other.
    pub fn plain(&self) -> Result<Option<&[u8]>> {
        let plain = is_plain(&self.ty.datatype);
        if plain { bytes(self.place(), self.capacity()?).map(Some) } else { Ok(None) }
    }

    /// As [`Buffer::plain`], to be written.
    pub fn plain_mut(&mut self) -> Result<Option<&mut [u8]>> {
        let plain = is_plain(&self.ty.datatype);
        if plain { bytes_mut(self.place(), self.capacity()?).map(Some) } else { Ok(None) }
    }
}
