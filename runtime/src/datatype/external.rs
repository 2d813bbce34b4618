//! Packing in the format `external32`: big-endian, without padding, some types in other sizes (MPI-4.1 §5.3 and §14.5.2).

use super::Datatype;
use super::basic::{self, Leaf};
use super::pack::{reserve, room};
use super::scalar::Scalar;
use crate::{Class, Error, Result};

impl Datatype {
    /// Bytes of `count` instances in external32 (`MPI_Pack_external_size`). They are fewer than in memory where a type is
    /// smaller there: [`long`](Self::long), wide characters.
    ///
    /// # Errors
    /// `Class::Count` if the size is beyond 63 bits.
    pub fn pack_external_size(&self, count: usize) -> Result<usize> {
        self.pack_size(count)?;
        // Never more than in memory.
        Ok(self.layout().signature.external * count)
    }

    /// As [`pack`](Self::pack), in external32 (`MPI_Pack_external`).
    ///
    /// ```
    /// use transom::Datatype;
    /// let mut packed = Vec::new();
    /// Datatype::of::<u16>().pack_external(1, &0x1234_u16.to_ne_bytes(), 0, &mut packed)?;
    /// assert_eq!(packed, [0x12, 0x34]);
    /// Datatype::long().pack_external(1, &(-2_i64).to_ne_bytes(), 0, &mut packed)?;
    /// assert_eq!(packed[2..], [0xff, 0xff, 0xff, 0xfe]);
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`pack`](Self::pack); `Class::Argument`, too, if a value does not fit in the bytes that external32 has for its
    /// type.
    pub fn pack_external(&self, count: usize, source: &[u8], origin: usize, out: &mut Vec<u8>) -> Result<()> {
        self.check_buffer(count, source.len(), origin)?;
        reserve(out, self.pack_external_size(count)?)?;
        let begin = out.len();
        let packed = self.scalars(count, origin, |at, leaf, scalar| {
            let memory = source.get(at..).and_then(|rest| rest.get(..scalar.size()));
            let memory = memory.ok_or_else(|| self.outside(count))?;
            scalar.append(memory, out).ok_or_else(|| too_large(leaf, scalar))
        });
        if packed.is_err() {
            out.truncate(begin);
        }
        packed
    }

    /// As [`unpack`](Self::unpack), from external32 (`MPI_Unpack_external`). A `long double` with fewer bits than external32
    /// has is rounded.
    ///
    /// # Errors
    /// As [`unpack`](Self::unpack).
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
        self.scalars(count, origin, |at, _, scalar| {
            let outside = || self.outside(count);
            let external;
            (external, rest) = rest.split_at_checked(scalar.external_size()).ok_or_else(outside)?;
            let memory = target.get_mut(at..).and_then(|rest| rest.get_mut(..scalar.size()));
            scalar.store(external, memory.ok_or_else(outside)?).ok_or_else(outside)
        })?;
        *position = end;
        Ok(())
    }

    /// Calls `each` with the index of every scalar, and what it is, in the order of the type map.
    fn scalars(
        &self,
        count: usize,
        origin: usize,
        mut each: impl FnMut(usize, Leaf, Scalar) -> Result<()>,
    ) -> Result<()> {
        let mut elements = self.elements(count)?;
        while let Some((run, leaf)) = elements.next_leaves() {
            let begin = origin.wrapping_add_signed(run.offset as isize);
            for element in 0..run.count {
                let at = begin.wrapping_add(element * basic::size(run.ty));
                for (offset, scalar) in leaf.scalars() {
                    each(at.wrapping_add(*offset), leaf, *scalar)?;
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn too_large(leaf: Leaf, scalar: Scalar) -> Error {
    let message = format!(
        "a {} has a value that the {} bytes do not hold which external32 has for it; use a type that has as many bytes there \
         as here",
        leaf.name(),
        scalar.external_size()
    );
    Error::new(Class::Argument, "datatype", message)
}
