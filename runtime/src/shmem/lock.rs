//! Distributed locks (OpenSHMEM 1.5 §9.12), as queues: who waits looks at a word of its own, and each hands the lock to the next.
//!
//! A lock is a symmetric `long`, 0 at first. Its first half at the lock's home, a PE that its address tells, is the tail of the queue: the
//! last PE that wants the lock, counted from 1. The second half at each PE is that PE's own place in the queue.

use transom_transport::ReduceOp;

use super::Shmem;
use crate::{Class, Result};

/// The place of a PE that waits. The rest of a place is the PE behind it, counted from 1.
const WAITS: u32 = 1 << 31;

/// A lock as its operations find it.
#[derive(Clone, Copy)]
struct Queue<'a> {
    shmem: &'a Shmem,
    call: &'static str,
    address: usize,
    home: usize,
}

impl Queue<'_> {
    fn own(&self) -> u32 {
        self.shmem.my_pe() as u32 + 1
    }

    fn swap_tail(&self, new: u32) -> Result<u32> {
        self.shmem.fetch_update(
            self.shmem.default_context(),
            self.call,
            (self.address, self.home),
            ReduceOp::Replace,
            new,
        )
    }

    fn exchange_tail(&self, compare: u32, new: u32) -> Result<u32> {
        self.shmem.compare_swap(
            self.shmem.default_context(),
            self.call,
            (self.address, self.home),
            (compare, new),
        )
    }

    fn place(&self, pe: usize, op: ReduceOp, operand: u32) -> Result<u32> {
        self.shmem.fetch_update(self.shmem.default_context(), self.call, (self.address + 4, pe), op, operand)
    }

    fn own_place(&self) -> Result<u32> {
        self.place(self.shmem.my_pe(), ReduceOp::NoOp, 0)
    }
}

impl Shmem {
    fn queue(&self, call: &'static str, address: usize) -> Result<Queue<'_>> {
        let (_, at) = self.check_element::<u64>(call, address, self.my_pe())?;
        Ok(Queue { shmem: self, call, address, home: at / size_of::<u64>() % self.n_pes() })
    }

    /// Waits for a lock (`shmem_set_lock`).
    ///
    /// # Errors
    /// The address is not that of a symmetric `long`; a peer is gone; the deadline passes.
    pub fn set_lock(&self, call: &'static str, address: usize) -> Result<()> {
        let queue = self.queue(call, address)?;
        queue.place(self.my_pe(), ReduceOp::Replace, WAITS)?;
        let before = queue.swap_tail(queue.own())?;
        if before == 0 {
            return Ok(());
        }
        if before == queue.own() {
            return Err(self.error(
                Class::Argument,
                call,
                format!("this PE holds the lock at {address:#x} already"),
            ));
        }
        queue.place(before as usize - 1, ReduceOp::Bor, queue.own())?;
        let served = || queue.own_place().map(|place| place & WAITS == 0);
        self.await_that(call, &|| format!("the lock at {address:#x}, behind PE {}", before - 1), served)
    }

    /// Takes a lock if it is free, and says whether it was (`shmem_test_lock`).
    ///
    /// # Errors
    /// As [`Shmem::set_lock`].
    pub fn test_lock(&self, call: &'static str, address: usize) -> Result<bool> {
        let queue = self.queue(call, address)?;
        // Whoever holds the lock has a place that another may just be entered in.
        if queue.exchange_tail(0, 0)? != 0 {
            self.progress()?;
            return Ok(false);
        }
        queue.place(self.my_pe(), ReduceOp::Replace, WAITS)?;
        Ok(queue.exchange_tail(0, queue.own())? == 0)
    }

    /// Releases a lock, when everything that this PE has done before is complete (`shmem_clear_lock`).
    ///
    /// # Errors
    /// As [`Shmem::set_lock`]; nobody holds the lock.
    pub fn clear_lock(&self, call: &'static str, address: usize) -> Result<()> {
        self.quiet(self.default_context())?;
        let queue = self.queue(call, address)?;
        let mut next = queue.own_place()? & !WAITS;
        if next == 0 {
            let tail = queue.exchange_tail(queue.own(), 0)?;
            if tail == queue.own() {
                return Ok(());
            }
            if tail == 0 {
                return Err(self.error(
                    Class::Argument,
                    call,
                    format!("nobody holds the lock at {address:#x}"),
                ));
            }
            let entered = || {
                next = queue.own_place()? & !WAITS;
                Ok(next != 0)
            };
            self.await_that(call, &|| format!("PE {} to enter itself behind this one", tail - 1), entered)?;
        }
        queue.place(self.my_pe(), ReduceOp::Replace, 0)?;
        queue.place(next as usize - 1, ReduceOp::Band, !WAITS).map(drop)
    }
}
