//! Puts and gets (OpenSHMEM 1.5 §9.6, §9.7): by the short cut where it does all there is to do, else with checks and the pipeline.

use super::context::Way;
use super::{Context, Segment, Shmem};
use crate::datatype::Datatype;
use crate::memory::{OriginBuffer, RawBuffer, ResultBuffer};
use crate::operation::{self, Completion, Description};
use crate::{Class, DataType, Layout, ReduceOp, Result};

/// Up to so many bytes a blocking put copies the source, where a network takes it; more it sends from its place, and waits until
/// they are there.
const COPIED: usize = 16 << 10;

/// Where blocks of elements lie that are some distance apart (`shmem_ibput`, `shmem_ibget`; of one element `shmem_iput`, `shmem_iget`).
#[derive(Debug, Clone, Copy)]
pub struct Strides {
    /// Bytes of an element.
    pub size: usize,
    /// Elements of a block.
    pub block: usize,
    /// Distance of blocks at this PE, in elements.
    pub here: isize,
    /// Distance of blocks at the other PE, in elements.
    pub there: isize,
    /// Number of blocks.
    pub count: usize,
}

impl Strides {
    /// Bytes from the first block's first to the last one's last, at a distance of blocks.
    fn span(&self, distance: isize) -> Option<usize> {
        let steps = self.count.checked_sub(1)?;
        steps.checked_mul(distance.try_into().ok()?)?.checked_add(self.block)?.checked_mul(self.size)
    }

    fn layout(&self, distance: isize) -> Result<Datatype> {
        let block = Datatype::contiguous(self.bytes(), &Datatype::basic(DataType::Byte))?;
        let stride = i64::try_from(distance.saturating_mul(self.size as isize)).unwrap_or(i64::MAX);
        Datatype::hvector(self.count, 1, stride, &block)
    }

    /// Bytes of a block, which are in memory.
    fn bytes(&self) -> usize {
        self.block * self.size
    }
}

/// What a signal does to the word that it is sent to (OpenSHMEM 1.5 §9.8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOp {
    /// The word becomes the signal.
    Set,
    /// The signal is added.
    Add,
}

impl Shmem {
    /// A put that is a copy to mapped memory. False, and nothing is done, if it is not.
    #[inline(always)]
    pub fn put_now(&self, address: usize, data: RawBuffer, pe: usize) -> bool {
        self.heap.put_now(address, data, pe)
            || matches!(&self.statics, Some(statics) if statics.put_now(address, data, pe))
    }

    /// A get that is a copy from mapped memory. False, and nothing is done, if it is not.
    #[inline(always)]
    pub fn get_now(&self, address: usize, data: RawBuffer, pe: usize) -> bool {
        self.heap.get_now(address, data, pe)
            || matches!(&self.statics, Some(statics) if statics.get_now(address, data, pe))
    }

    /// Puts `data` to `address` of a PE of the world, both symmetric. The data may be reused when the call returns, or without
    /// `blocking` after the context's [`Shmem::quiet`].
    ///
    /// # Errors
    /// No such PE; an address that is not symmetric; a peer is gone. `call` is named in them.
    pub fn put_raw(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        data: RawBuffer,
        blocking: bool,
    ) -> Result<()> {
        let bytes = data.bytes();
        if bytes.is_empty() {
            return self.check_pe(call, pe);
        }
        let (segment, at) = self.check(call, address, bytes.len(), pe)?;
        self.settle(context, pe, Way::Put)?;
        context.touch();
        let copies = blocking && bytes.len() <= COPIED;
        let access = context.access(segment, call, pe)?;
        access.put(pe, at, bytes, copies)?;
        segment.remember(access.core, pe);
        if blocking && !copies { access.core.flush(pe) } else { Ok(()) }
    }

    /// Gets from `address` of a PE of the world to `data`: there when the call returns, or without `blocking` after the context's
    /// [`Shmem::quiet`].
    ///
    /// # Errors
    /// As [`Shmem::put_raw`].
    pub fn get_raw(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        data: RawBuffer,
        blocking: bool,
    ) -> Result<()> {
        let bytes = data.bytes_mut();
        if bytes.is_empty() {
            return self.check_pe(call, pe);
        }
        let (segment, at) = self.check(call, address, bytes.len(), pe)?;
        let completion = if blocking { Completion::Call } else { Completion::Flush };
        if !blocking {
            context.touch();
        }
        let access = context.access(segment, call, pe)?;
        access.get(pe, at, bytes, completion)?;
        segment.remember(access.core, pe);
        Ok(())
    }

    /// Puts elements that are some distance apart, here and there, which need not be the same (`shmem_iput`). `data` holds all of
    /// them.
    ///
    /// # Errors
    /// As [`Shmem::put_raw`]; a distance below 1.
    pub fn iput_raw(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        (start, strides): (*mut u8, Strides),
        raw: impl Fn(*mut u8, usize) -> RawBuffer,
    ) -> Result<()> {
        self.strided(call, (address, pe), strides, |segment, at, here| {
            if self.each(strides, |from, to| {
                self.put_now(address + to, raw(start.wrapping_add(from), strides.bytes()), pe)
            }) {
                return Ok(());
            }
            self.settle(context, pe, Way::Put)?;
            context.touch();
            let data = raw(start, here);
            let types = (strides.layout(strides.here)?, strides.layout(strides.there)?);
            let description = Description::put(pe, at, OriginBuffer::borrowed(data.bytes()))
                .with_layouts(Layout::new(1, &types.0), Layout::new(1, &types.1));
            let access = context.access(segment, call, pe)?;
            access.perform(description, Completion::Flush)?;
            access.core.flush(pe)
        })
    }

    /// Gets elements that are some distance apart (`shmem_iget`).
    ///
    /// # Errors
    /// As [`Shmem::iput_raw`].
    pub fn iget_raw(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        (start, strides): (*mut u8, Strides),
        raw: impl Fn(*mut u8, usize) -> RawBuffer,
    ) -> Result<()> {
        self.strided(call, (address, pe), strides, |segment, at, here| {
            if self.each(strides, |to, from| {
                self.get_now(address + from, raw(start.wrapping_add(to), strides.bytes()), pe)
            }) {
                return Ok(());
            }
            let data = raw(start, here);
            let types = (strides.layout(strides.here)?, strides.layout(strides.there)?);
            let description = Description::get(pe, at, ResultBuffer::borrowed(data.bytes_mut()))
                .with_layouts(Layout::new(1, &types.0), Layout::new(1, &types.1));
            context.access(segment, call, pe)?.perform(description, Completion::Call)
        })
    }

    fn strided(
        &self,
        call: &'static str,
        (address, pe): (usize, usize),
        strides: Strides,
        body: impl FnOnce(&Segment, usize, usize) -> Result<()>,
    ) -> Result<()> {
        if strides.count == 0 || strides.block == 0 {
            return self.check_pe(call, pe);
        }
        let block = isize::try_from(strides.block).unwrap_or(isize::MAX);
        let apart = strides.here >= block && strides.there >= block;
        let spans = strides.span(strides.here).zip(strides.span(strides.there)).filter(|_| apart);
        let Some((here, there)) = spans else {
            let message = format!(
                "{} blocks of {} elements of {} bytes at distances of {} and {}: distances are those of blocks at least",
                strides.count, strides.block, strides.size, strides.here, strides.there
            );
            return Err(self.error(Class::Argument, call, message));
        };
        let (segment, at) = self.check(call, address, there, pe)?;
        body(segment, at, here)
    }

    /// Whether the first block could be moved, and then all were. Each is given as its offsets in bytes here and there.
    fn each(&self, strides: Strides, mut one: impl FnMut(usize, usize) -> bool) -> bool {
        let step = |distance: isize| distance.unsigned_abs() * strides.size;
        let (here, there) = (step(strides.here), step(strides.there));
        (0..strides.count).all(|index| one(index * here, index * there))
    }

    /// A put and then a signal: who sees the signal sees the data (`shmem_put_signal`).
    ///
    /// # Errors
    /// As [`Shmem::put_raw`].
    pub fn put_signal_raw(
        &self,
        context: &Context,
        call: &'static str,
        (address, pe): (usize, usize),
        data: RawBuffer,
        (word, signal, op): (usize, u64, SignalOp),
    ) -> Result<()> {
        if !self.put_now(address, data, pe) {
            self.put_raw(context, call, (address, pe), data, true)?;
            // On most networks the signal could overtake the data.
            if let Ok((segment, _)) = self.check(call, address, 0, pe) {
                let core = context.access(segment, call, pe)?.core;
                if !core.peers.get(pe).is_some_and(|peer| operation::is_behind_puts(core, peer)) {
                    core.flush(pe)?;
                }
            }
        }
        let op = if op == SignalOp::Add { ReduceOp::Sum } else { ReduceOp::Replace };
        self.update(context, call, (word, pe), op, signal)
    }
}
