//! Symmetric allocation (OpenSHMEM 1.5 §9.3): every PE finds the same block in its own account, and all compare what they asked for.

use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Shmem;
use crate::raw::{self, Combine};
use crate::{Class, Error, Result};

/// What a PE asks for, as it travels; and the first two that differ, once they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Asked {
    what: [u64; 3],
    pe: u64,
    other: [u64; 3],
    other_pe: u64,
    differ: u64,
}

/// What is asked for: a call, and two numbers that must be the same at all PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Allocate { bytes: usize, alignment: usize },
    Free { offset: usize },
    Reallocate { offset: usize, bytes: usize },
}

impl Request {
    fn words(self) -> [u64; 3] {
        match self {
            Self::Allocate { bytes, alignment } => [0, bytes as u64, alignment as u64],
            Self::Free { offset } => [1, offset as u64, 0],
            Self::Reallocate { offset, bytes } => [2, bytes as u64, offset as u64],
        }
    }
}

fn describe([call, first, second]: [u64; 3]) -> String {
    match call {
        0 if second > 1 => format!("{first} bytes at a multiple of {second}"),
        0 => format!("{first} bytes"),
        1 => format!("to free the block at offset {first:#x}"),
        _ => format!("to change the block at offset {second:#x} to {first} bytes"),
    }
}

impl Shmem {
    /// Memory of `bytes` bytes at a multiple of `alignment`, a power of two, the same place at every PE (`shmem_malloc`,
    /// `shmem_align`). Returns its address here, or none if there is no room. Collective; returns when all have come. What is in it is
    /// not said.
    ///
    /// # Errors
    /// [`Class::Size`]: PEs ask for different things. [`Class::Argument`]: the alignment is no power of two. A peer is gone.
    pub fn allocate_bytes(
        &self,
        call: &'static str,
        bytes: usize,
        alignment: usize,
    ) -> Result<Option<usize>> {
        if bytes == 0 {
            return Ok(None);
        }
        if !alignment.is_power_of_two() {
            let message = format!("an alignment of {alignment}, which is no power of two");
            return Err(self.error(Class::Argument, call, message));
        }
        self.agree(call, Request::Allocate { bytes, alignment })?;
        Ok(self.place(bytes, alignment))
    }

    fn place(&self, bytes: usize, alignment: usize) -> Option<usize> {
        if alignment > self.alignment {
            return None;
        }
        let origin = self.heap.base() % self.alignment;
        let start = self.blocks.lock().allocate(bytes, alignment, origin)?;
        Some(self.heap.base() + start)
    }

    /// Frees a block (`shmem_free`). Collective: all PEs have come before it is used again.
    ///
    /// # Errors
    /// [`Class::Base`]: no block begins at the address. [`Class::Size`]: PEs free different blocks. A peer is gone.
    pub fn free_block(&self, call: &'static str, address: usize) -> Result<()> {
        let (offset, _) = self.block(call, address)?;
        self.quiet(self.default_context())?;
        self.agree(call, Request::Free { offset })?;
        self.blocks.lock().release(offset);
        Ok(())
    }

    /// A block of another length with the same contents, as far as both reach (`shmem_realloc`). None if there is no room: the old block
    /// stays. Collective.
    ///
    /// # Errors
    /// As [`Shmem::allocate_bytes`] and [`Shmem::free_block`].
    pub fn reallocate(&self, call: &'static str, address: usize, bytes: usize) -> Result<Option<usize>> {
        let (offset, old) = self.block(call, address)?;
        self.quiet(self.default_context())?;
        self.agree(call, Request::Reallocate { offset, bytes })?;
        let Some(new) = self.place(bytes, 1) else { return Ok(None) };
        let window = self.heap.window().local();
        let mut rest = 0..old.min(bytes);
        let mut page = [0u8; 4096];
        while !rest.is_empty() {
            let part = &mut page[..rest.len().min(4096)];
            window.read(offset + rest.start, part)?;
            window.write(new - self.heap.base() + rest.start, part)?;
            rest.start += part.len();
        }
        self.blocks.lock().release(offset);
        self.world.comm().barrier()?;
        Ok(Some(new))
    }

    /// Offset and length of the block at an address.
    fn block(&self, call: &'static str, address: usize) -> Result<(usize, usize)> {
        let offset = address.wrapping_sub(self.heap.base());
        match self.blocks.lock().bytes(offset) {
            Some(bytes) => Ok((offset, bytes)),
            None => {
                let message = format!(
                    "no block of the symmetric heap begins at {address:#x}: it was freed before, or never allocated"
                );
                Err(self.error(Class::Base, call, message))
            }
        }
    }

    /// Waits for all PEs, and finds out whether they ask for the same.
    fn agree(&self, call: &'static str, request: Request) -> Result<()> {
        let own =
            Asked { what: request.words(), pe: self.my_pe() as u64, other: [0; 3], other_pe: 0, differ: 0 };
        let combine: Combine = Arc::new(|left: &[u8], right: &mut [u8]| {
            let (Ok(a), Ok(b)) = (Asked::read_from_bytes(left), Asked::read_from_bytes(right)) else {
                return;
            };
            let both = match (a.differ, b.differ) {
                (0, 0) if a.what != b.what => Asked { other: b.what, other_pe: b.pe, differ: 1, ..a },
                (0, 1) => b,
                _ => a,
            };
            right.copy_from_slice(both.as_bytes());
        });
        let all = raw::allreduce(self.world.comm(), own.as_bytes().to_vec(), combine)?;
        match Asked::read_from_bytes(&all) {
            Ok(all) if all.differ == 0 => Ok(()),
            Ok(all) => {
                let message = format!(
                    "PE {} asks for {}, PE {} for {}: all PEs ask for the same, in the same order",
                    all.pe,
                    describe(all.what),
                    all.other_pe,
                    describe(all.other)
                );
                Err(self.error(Class::Size, call, message))
            }
            Err(_) => Err(Error::new(Class::Collective, call, "another collective's data came")),
        }
    }
}
