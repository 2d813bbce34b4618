//! Packing in the format `external32`: big-endian, without padding (MPI-4.1 §5.3 and §14.5.2).

use transom_transport::DataType;

use super::pack::{reserve, room};
use super::{Datatype, basic};
use crate::{Class, Error, Result};

impl Datatype {
    /// Bytes of `count` instances in external32 (`MPI_Pack_external_size`).
    ///
    /// # Errors
    /// `Class::Type` if one of the basic types has another size there and cannot be converted; `Class::Count`
    /// if the size is beyond 63 bits.
    pub fn pack_external_size(&self, count: usize) -> Result<usize> {
        self.check_external(count)?;
        self.pack_size(count)
    }

    /// As [`pack`](Self::pack), in external32 (`MPI_Pack_external`).
    ///
    /// ```
    /// use transom::Datatype;
    /// let mut packed = Vec::new();
    /// Datatype::of::<u16>().pack_external(1, &0x1234_u16.to_ne_bytes(), 0, &mut packed)?;
    /// assert_eq!(packed, [0x12, 0x34]);
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`pack`](Self::pack) and [`pack_external_size`](Self::pack_external_size).
    pub fn pack_external(&self, count: usize, source: &[u8], origin: usize, out: &mut Vec<u8>) -> Result<()> {
        self.check_external(count)?;
        reserve(out, self.check_buffer(count, source.len(), origin)?)?;
        self.scalars(count, origin, |at, len| {
            let begin = out.len();
            out.extend_from_slice(source.get(at..)?.get(..len)?);
            swap(&mut out[begin..]);
            Some(())
        })
    }

    /// As [`unpack`](Self::unpack), from external32 (`MPI_Unpack_external`).
    ///
    /// # Errors
    /// As [`unpack`](Self::unpack) and [`pack_external_size`](Self::pack_external_size).
    pub fn unpack_external(
        &self,
        count: usize,
        packed: &[u8],
        position: &mut usize,
        target: &mut [u8],
        origin: usize,
    ) -> Result<()> {
        let bytes = self.pack_external_size(count)?;
        let end = room(bytes, packed.len(), *position)?;
        self.check_buffer(count, target.len(), origin)?;
        let mut rest = &packed[*position..end];
        self.scalars(count, origin, |at, len| {
            let scalar;
            (scalar, rest) = rest.split_at_checked(len)?;
            let to = target.get_mut(at..)?.get_mut(..len)?;
            to.copy_from_slice(scalar);
            swap(to);
            Some(())
        })?;
        *position = end;
        Ok(())
    }

    /// Calls `each` with the index and length of every scalar, in the order of the type map.
    fn scalars(
        &self,
        count: usize,
        origin: usize,
        mut each: impl FnMut(usize, usize) -> Option<()>,
    ) -> Result<()> {
        for run in self.elements(count)? {
            let begin = origin.wrapping_add_signed(run.offset as isize);
            for element in 0..run.count {
                let at = begin.wrapping_add(element * basic::size(run.ty));
                let mut scalars = basic::scalars(run.ty).ok_or_else(|| refused(run.ty))?;
                let moved = scalars.try_for_each(|(offset, len)| each(at.wrapping_add(offset), len));
                moved.ok_or_else(|| self.outside(count))?;
            }
        }
        Ok(())
    }

    /// Whether all basic types can be converted.
    fn check_external(&self, count: usize) -> Result<()> {
        match self.layout().signature.foreign {
            Some(ty) if count > 0 => Err(refused(ty)),
            _ => Ok(()),
        }
    }
}

#[cold]
fn refused(ty: DataType) -> Error {
    let message =
        format!("external32 has {} in another size; convert the values first, or use pack", basic::name(ty));
    Error::new(Class::Type, "datatype", message)
}

/// To big-endian, or from it.
fn swap(scalar: &mut [u8]) {
    if cfg!(target_endian = "little") {
        scalar.reverse();
    }
}
