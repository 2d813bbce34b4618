//! The innermost loops: between regular blocks in a buffer and consecutive bytes.

/// Blocks at a regular stride. Indices wrap where the layout leaves the buffer; nothing there is accessed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    /// Where the first one begins in the buffer.
    pub(super) index: usize,
    /// Bytes from one's begin to the next one's.
    pub(super) stride: i64,
    /// Bytes of each, at least 1.
    pub(super) len: usize,
    /// How many, at least 1.
    pub(super) count: usize,
}

impl Blocks {
    fn at(&self, block: usize) -> usize {
        self.index.wrapping_add_signed((self.stride as isize).wrapping_mul(block as isize))
    }

    /// The stride, and the end of the last block, if blocks go upwards without touching: then the buffer can
    /// be taken in chunks.
    fn upwards(&self) -> Option<(usize, usize)> {
        let stride = usize::try_from(self.stride).ok().filter(|stride| *stride >= self.len)?;
        Some((stride, self.at(self.count - 1).checked_add(self.len)?))
    }

    /// From the blocks in `source` to `packed`, which has room for exactly them; `None` if they are not
    /// inside.
    pub(super) fn gather(&self, source: &[u8], packed: &mut [u8]) -> Option<()> {
        if self.count > 1
            && let Some((stride, end)) = self.upwards()
        {
            let region = source.get(self.index..end)?;
            match self.len {
                1 => gather_fixed::<1>(region, stride, packed),
                2 => gather_fixed::<2>(region, stride, packed),
                4 => gather_fixed::<4>(region, stride, packed),
                8 => gather_fixed::<8>(region, stride, packed),
                16 => gather_fixed::<16>(region, stride, packed),
                len => {
                    for (to, from) in packed.chunks_exact_mut(len).zip(region.chunks(stride)) {
                        to.copy_from_slice(from.get(..len)?);
                    }
                }
            }
            return Some(());
        }
        for (block, to) in packed.chunks_exact_mut(self.len).enumerate() {
            let from = self.at(block);
            to.copy_from_slice(source.get(from..from.checked_add(self.len)?)?);
        }
        Some(())
    }

    /// From `packed`, which has exactly their bytes, to the blocks in `target`; `None` if they are not
    /// inside.
    pub(super) fn scatter(&self, packed: &[u8], target: &mut [u8]) -> Option<()> {
        if self.count > 1
            && let Some((stride, end)) = self.upwards()
        {
            let region = target.get_mut(self.index..end)?;
            match self.len {
                1 => scatter_fixed::<1>(packed, region, stride),
                2 => scatter_fixed::<2>(packed, region, stride),
                4 => scatter_fixed::<4>(packed, region, stride),
                8 => scatter_fixed::<8>(packed, region, stride),
                16 => scatter_fixed::<16>(packed, region, stride),
                len => {
                    for (from, to) in packed.chunks_exact(len).zip(region.chunks_mut(stride)) {
                        to.get_mut(..len)?.copy_from_slice(from);
                    }
                }
            }
            return Some(());
        }
        for (block, from) in packed.chunks_exact(self.len).enumerate() {
            let to = self.at(block);
            target.get_mut(to..to.checked_add(self.len)?)?.copy_from_slice(from);
        }
        Some(())
    }
}

fn gather_fixed<const LEN: usize>(region: &[u8], stride: usize, packed: &mut [u8]) {
    for (to, from) in packed.as_chunks_mut::<LEN>().0.iter_mut().zip(region.chunks(stride)) {
        if let Some(from) = from.first_chunk() {
            *to = *from;
        }
    }
}

fn scatter_fixed<const LEN: usize>(packed: &[u8], region: &mut [u8], stride: usize) {
    for (from, to) in packed.as_chunks::<LEN>().0.iter().zip(region.chunks_mut(stride)) {
        if let Some(to) = to.first_chunk_mut() {
            *to = *from;
        }
    }
}
