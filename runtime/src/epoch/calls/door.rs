//! Operations for language bindings: types and operations are values, and buffers are where the program keeps them until
//! the operation is complete. A binding translates its arguments into one of these descriptions; meaning and errors are
//! those of the methods with types.

use transom_transport::{DataType, ReduceOp, reduce_valid, swap_valid};

use super::Explicit;
use crate::epoch::requests::Requested;
use crate::epoch::sync::{By, LockStep, UnlockStep};
use crate::memory::{OriginBuffer, RawBuffer, ResultBuffer};
use crate::operation::{Accumulate, Completion, Description, device};
use crate::protocol::lock::Ticket;
use crate::shortcut::ShortCut;
use crate::{Assert, Class, Element, Layout, LockKind, Result};

/// A put or a get.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    /// Rank.
    pub target: usize,
    /// In the target's displacement units.
    pub displacement: usize,
    /// The program's memory.
    pub memory: RawBuffer,
    /// How the data lies there, and at the target; byte by byte if nothing is said.
    pub layouts: Option<(Layout<'a>, Layout<'a>)>,
    /// Whether the memory is read (a put) or written (a get).
    pub puts: bool,
    /// Whether a request is wanted (MPI-4.1 §12.3.5).
    pub requested: bool,
}

/// An accumulate, fetching or not.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// Rank.
    pub target: usize,
    /// In the target's displacement units.
    pub displacement: usize,
    /// What is computed.
    pub op: ReduceOp,
    /// The operands, read by the call, and how they lie. Meaningless with [`ReduceOp::NoOp`].
    pub operands: (&'a [u8], Layout<'a>),
    /// Where what was there goes, and how it lies there.
    pub result: Option<(RawBuffer, Layout<'a>)>,
    /// How the elements lie at the target.
    pub layout: Layout<'a>,
    /// Whether a request is wanted (MPI-4.1 §12.3.5).
    pub requested: bool,
}

/// How far a lock has been taken or released that is not plain.
#[derive(Debug, Clone, Copy)]
pub enum NotYet {
    /// Not at all, or a ticket has been drawn, for which [`Explicit::lock_later`] waits.
    Begun(Option<Ticket>),
    /// It is taken; [`Explicit::lock_later`], without a ticket, tells whoever waits for it.
    Taken,
    /// It is released; [`Explicit::unlock_later`] tells whoever waits for it, at this target.
    Released(usize),
}

impl<T: Element> Explicit<'_, T> {
    /// The short cut, for operations on consecutive elements: to be tried first.
    #[inline]
    pub fn short_cut(&self) -> &ShortCut {
        &self.core().shortcut
    }

    /// [`Explicit::lock`] of a lock that can be had at once; nothing if it is another, with what to do about that.
    #[inline(always)]
    pub fn lock_now(&self, kind: LockKind, target: usize) -> std::result::Result<(), NotYet> {
        match self.core().lock_ready(kind, target, Assert::NONE, By::Calls) {
            LockStep::Done => Ok(()),
            LockStep::Otherwise => Err(NotYet::Begun(None)),
            LockStep::Awaits(ticket) => Err(NotYet::Begun(Some(ticket))),
            LockStep::Wakes => Err(NotYet::Taken),
        }
    }

    /// Goes on where [`Explicit::lock_now`] has drawn a ticket, or taken the lock.
    ///
    /// # Errors
    /// As [`Explicit::lock`].
    pub fn lock_later(&self, ticket: Option<Ticket>, target: usize) -> Result<()> {
        match ticket {
            Some(ticket) => self.core().lock_awaited(ticket, target, By::Calls),
            None => self.core().lock_wakes(target, By::Calls),
        }
    }

    /// [`Explicit::unlock`] where nothing is under way; nothing otherwise, with what to do.
    #[inline(always)]
    pub fn unlock_now(&self, target: usize) -> std::result::Result<(), NotYet> {
        match self.core().unlock_ready(target, By::Calls) {
            UnlockStep::Done => Ok(()),
            UnlockStep::Otherwise => Err(NotYet::Begun(None)),
            UnlockStep::Wakes(target) => Err(NotYet::Released(target)),
        }
    }

    /// [`Explicit::lock_all`] where that only opens the epoch. False if not, and nothing is done.
    #[inline(always)]
    pub fn lock_all_now(&self) -> bool {
        self.core().lock_all_ready(By::Calls)
    }

    /// [`Explicit::unlock_all`], as [`Explicit::unlock_now`].
    #[inline(always)]
    pub fn unlock_all_now(&self) -> std::result::Result<(), NotYet> {
        match self.core().unlock_all_ready(By::Calls) {
            UnlockStep::Done => Ok(()),
            UnlockStep::Otherwise => Err(NotYet::Begun(None)),
            UnlockStep::Wakes(target) => Err(NotYet::Released(target)),
        }
    }

    /// [`crate::Window::sync`] where the window has no copies. False if it may have, and nothing is done.
    #[inline(always)]
    pub fn sync_now(&self) -> bool {
        let plain = self.core().shortcut.has_plain_locks();
        if plain {
            self.core().order_stores();
        }
        plain
    }

    /// Whether a flush of any rank has nothing to do, as nothing was done in the epoch of lock_all that is open.
    #[inline(always)]
    pub fn is_flushed(&self, target: usize) -> bool {
        self.core().has_done_nothing(target)
    }

    /// Goes on where [`Explicit::unlock_now`] has released the lock.
    ///
    /// # Errors
    /// A peer that waits cannot be told.
    pub fn unlock_later(&self, target: usize) -> Result<()> {
        self.core().unlock_wakes(target)
    }

    /// `MPI_Put`, `MPI_Get`, `MPI_Rput`, `MPI_Rget`. With a request the buffer may be reused when that is complete; none is
    /// returned if the operation is.
    ///
    /// # Errors
    /// As [`Explicit::put_as`] and [`Explicit::rput`].
    pub fn transfer(&self, transfer: Transfer<'_>) -> Result<Requested> {
        let Transfer { target, displacement, memory, layouts, puts, requested } = transfer;
        let description = if puts {
            Description::put(target, displacement, OriginBuffer::borrowed(memory.bytes()))
        } else {
            Description::get(target, displacement, ResultBuffer::borrowed(memory.bytes_mut()))
        };
        let description = match layouts {
            Some((here, there)) => description.with_layouts(here, there),
            None => description,
        };
        if requested {
            let name = if puts { "rput" } else { "rget" };
            return self.access.transfer_raw(description.named(name), memory);
        }
        self.access.perform(description, Completion::Flush).map(|()| None)
    }

    /// `MPI_Put`, `MPI_Get` of bytes that lie together at both ends.
    ///
    /// # Errors
    /// As [`Explicit::put_as`].
    pub fn transfer_bytes(
        &self,
        target: usize,
        displacement: usize,
        memory: RawBuffer,
        puts: bool,
    ) -> Result<()> {
        if puts {
            self.access.put(target, displacement, memory.bytes(), false)
        } else {
            self.access.get(target, displacement, memory.bytes_mut(), Completion::Flush)
        }
    }

    /// `MPI_Accumulate`, `MPI_Get_accumulate`, `MPI_Rget_accumulate`.
    ///
    /// # Errors
    /// As [`Explicit::get_accumulate_as`] and [`Explicit::rget_accumulate`].
    pub fn update(&self, update: Update<'_>) -> Result<Requested> {
        let Update { target, displacement, op, operands, result, layout, requested } = update;
        match result {
            Some(result) if requested => self.access.rget_accumulate_raw(update, result),
            result => {
                let fetch = result.map(|(memory, layout)| (memory.bytes_mut(), layout));
                self.access.accumulate_as(target, displacement, op, operands, layout, fetch).map(|()| None)
            }
        }
    }

    /// `MPI_Fetch_and_op`: one element. Nothing is written to `result` if the target is the null rank.
    ///
    /// # Errors
    /// As [`Explicit::fetch_op`]; an operation that is not defined on the type; a buffer that is shorter than an element.
    pub fn fetch_op_raw(
        &self,
        target: usize,
        displacement: usize,
        (op, ty): (ReduceOp, DataType),
        value: &[u8],
        result: &mut [u8],
    ) -> Result<()> {
        const NAME: &str = "fetch_and_op";
        let (Some(operands), Some(old)) = (value.get(..ty.size()), result.get_mut(..ty.size())) else {
            return Err(self.short(NAME));
        };
        let atomic = device::fetching(op, ty, operands).filter(|_| reduce_valid(op, ty));
        if let Some(done) = self.access.by_device(NAME, (target, displacement), ty, atomic, old) {
            return done;
        }
        let what = Accumulate { op, ty, operands };
        self.access.perform(Description::fetch_op(target, displacement, what, old), Completion::Flush)
    }

    /// `MPI_Compare_and_swap`. Nothing is written to `result` if the target is the null rank.
    ///
    /// # Errors
    /// As [`Explicit::compare_and_swap`]; a type that it is not defined on; a buffer that is shorter than an element.
    pub fn compare_and_swap_raw(
        &self,
        target: usize,
        displacement: usize,
        ty: DataType,
        (compare, value): (&[u8], &[u8]),
        result: &mut [u8],
    ) -> Result<()> {
        const NAME: &str = "compare_and_swap";
        let size = ty.size();
        let (Some(compare), Some(value), Some(old)) =
            (compare.get(..size), value.get(..size), result.get_mut(..size))
        else {
            return Err(self.short(NAME));
        };
        let atomic = swap_valid(ty).then(|| device::swapping(compare, value));
        if let Some(done) = self.access.by_device(NAME, (target, displacement), ty, atomic, old) {
            return done;
        }
        let description = Description::compare_swap(target, displacement, ty, (compare, value), old);
        self.access.perform(description, Completion::Flush)
    }

    #[cold]
    fn short(&self, name: &'static str) -> crate::Error {
        self.core().error(Class::Count, name, "a buffer is shorter than one element")
    }

    /// Whether an operation with a request may be started: an epoch of lock or lock_all covers `target` (§12.3.5).
    ///
    /// # Errors
    /// [`Class::RmaSync`]: none does.
    pub fn check_requests(&self, operation: &'static str, target: usize) -> Result<()> {
        self.core().check_requests(operation, target)
    }

    /// Whether the window can be freed: no epoch is open, but for that of a fence after which nothing was done.
    ///
    /// # Errors
    /// [`Class::RmaSync`]: one is.
    pub fn check_closed(&self, operation: &'static str) -> Result<()> {
        if self.core().is_closed() {
            return Ok(());
        }
        Err(self.core().error(Class::RmaSync, operation, "an epoch is open: end it first"))
    }
}
