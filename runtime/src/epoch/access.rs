//! The operations of an open access epoch on bytes: by the short cut where that does all there is to do, else as a description that
//! goes its way in `operation`. Scopes and calls translate their arguments to these.

use transom_transport::{Basic, DataType, NativeAtomic, ReduceOp, Swappable};

use crate::engine::unpack_bytes;
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::operation::{self, Accumulate, Completion, Description, Place, device, single};
use crate::window::Core;
use crate::{Class, Layout, NULL_RANK, Result};

/// Access to a window in whatever epochs are open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access<'w> {
    pub core: &'w Core,
    /// The only target, in the scope of a lock.
    pub only: Option<usize>,
}

impl Access<'_> {
    /// Carries out what is described.
    #[inline(never)]
    pub fn perform(self, description: Description<'_>, completion: Completion<'_>) -> Result<()> {
        self.check_only(description.name, description.target)?;
        operation::perform(self.core, description, completion)
    }

    /// Whether this is an access to the target whose lock is held.
    pub fn check_only(self, name: &'static str, target: usize) -> Result<()> {
        let Some(locked) = self.only else { return Ok(()) };
        if target == locked || target == NULL_RANK {
            return Ok(());
        }
        self.core.target(name, target)?;
        let message = format!("the epoch covers rank {locked} only: lock rank {target}, or use lock_all");
        Err(self.core.error(Class::RmaSync, name, message).with_target(target))
    }

    /// `MPI_Put`. The bytes are read by the call if it `copies` them, else until the operation is complete.
    #[inline(always)]
    pub fn put(self, target: usize, displacement: usize, bytes: &[u8], copies: bool) -> Result<()> {
        if self.core.shortcut.put(target, displacement, bytes) {
            return Ok(());
        }
        self.put_described(target, displacement, bytes, copies)
    }

    #[inline(never)]
    fn put_described(self, target: usize, displacement: usize, bytes: &[u8], copies: bool) -> Result<()> {
        let short_cut = || self.core.shortcut.put(target, displacement, bytes);
        if self.covers_and("put", target, short_cut)? {
            return Ok(());
        }
        let origin = if copies { OriginBuffer::Copied(bytes) } else { OriginBuffer::borrowed(bytes) };
        if let Some(place) = self.plain_place("put", target, displacement, bytes.len()) {
            self.core.touch(target);
            return single::put(self.core, &place, &origin, None);
        }
        self.perform(Description::put(target, displacement, origin), Completion::Flush)
    }

    /// [`Core::cover_and`], where that may be: over a network this is all of it.
    #[inline(always)]
    fn covers_and(self, name: &'static str, target: usize, work: impl FnOnce() -> bool) -> Result<bool> {
        if self.only.is_some() || !self.core.shortcut.is_owned_by(target) {
            return Ok(false);
        }
        self.core.cover_and(name, target, work)
    }

    /// `MPI_Get`, complete when `completion` says.
    #[inline(always)]
    pub fn get(
        self,
        target: usize,
        displacement: usize,
        bytes: &mut [u8],
        completion: Completion<'_>,
    ) -> Result<()> {
        if self.core.shortcut.get(target, displacement, bytes) {
            return Ok(());
        }
        self.get_described(target, displacement, bytes, completion)
    }

    #[inline(never)]
    fn get_described(
        self,
        target: usize,
        displacement: usize,
        bytes: &mut [u8],
        completion: Completion<'_>,
    ) -> Result<()> {
        let short_cut = || self.core.shortcut.get(target, displacement, bytes);
        if self.covers_and("get", target, short_cut)? {
            return Ok(());
        }
        let result = ResultBuffer::borrowed(bytes);
        match (self.plain_place("get", target, displacement, result.len()), completion) {
            (Some(place), Completion::Call) => return single::get_now(self.core, &place, &result),
            (Some(place), Completion::Flush) => {
                self.core.touch(target);
                return single::get(self.core, &place, &result, None);
            }
            _ => {}
        }
        self.perform(Description::get(target, displacement, result), completion)
    }

    /// An update of one element that is one atomic of the network device and needs no check but of its range: none if it is not.
    #[inline(always)]
    pub fn by_device(
        &self,
        name: &'static str,
        at: (usize, usize),
        ty: DataType,
        atomic: Option<NativeAtomic>,
        old: &mut [u8],
    ) -> Option<Result<()>> {
        if self.only.is_some_and(|locked| locked != at.0) {
            return None;
        }
        let found = device::one_plain(self.core, name, at, ty, atomic?)?;
        Some(found.map(|found| unpack_bytes(found, old)))
    }

    /// The place of an operation over a network that needs no check but of its range.
    #[inline(always)]
    fn plain_place(
        &self,
        name: &'static str,
        target: usize,
        displacement: usize,
        bytes: usize,
    ) -> Option<Place<'_>> {
        if self.only.is_some_and(|locked| locked != target) {
            return None;
        }
        single::plain_place(self.core, name, target, displacement, bytes)
    }

    /// `MPI_Put` between layouts.
    pub fn put_as(
        self,
        target: usize,
        displacement: usize,
        origin: OriginBuffer<'_>,
        (here, there): (Layout<'_>, Layout<'_>),
    ) -> Result<()> {
        let description = Description::put(target, displacement, origin).with_layouts(here, there);
        self.perform(description, Completion::Flush)
    }

    /// `MPI_Get` between layouts.
    pub fn get_as(
        self,
        target: usize,
        displacement: usize,
        bytes: &mut [u8],
        (here, there): (Layout<'_>, Layout<'_>),
        completion: Completion<'_>,
    ) -> Result<()> {
        let description = Description::get(target, displacement, ResultBuffer::borrowed(bytes));
        self.perform(description.with_layouts(here, there), completion)
    }

    /// `MPI_Accumulate`, or with `fetched` `MPI_Get_accumulate`, of elements one behind the other.
    #[inline(always)]
    pub fn accumulate(
        self,
        target: usize,
        displacement: usize,
        what: Accumulate<'_>,
        mut fetched: Option<&mut [u8]>,
    ) -> Result<()> {
        let Accumulate { op, ty, operands } = what;
        let as_long = fetched.as_ref().is_none_or(|fetched| fetched.len() == operands.len());
        let result = fetched.as_deref_mut();
        if as_long && self.core.shortcut.update(target, displacement, (op, ty), operands, result) {
            return Ok(());
        }
        self.perform(Description::accumulate(target, displacement, what, fetched), Completion::Flush)
    }

    /// The same between layouts; what was there goes to where a layout says.
    pub fn accumulate_as(
        self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        (data, from): (&[u8], Layout<'_>),
        to: Layout<'_>,
        fetch: Option<(&mut [u8], Layout<'_>)>,
    ) -> Result<()> {
        let core = self.core;
        let name = if fetch.is_some() { "get_accumulate" } else { "accumulate" };
        let (ty, operands) = operation::operands(core, name, op, (data, &from), &to)?;
        let what = Accumulate { op, ty, operands: &operands };
        let perform = |fetched: Option<&mut [u8]>| {
            let description = Description::accumulate(target, displacement, what, fetched);
            self.perform(Description { layout: Some(to), ..description }, Completion::Flush)
        };
        let Some((result, layout)) = fetch else { return perform(None) };
        operation::check_result(core, name, op, (result.len(), &layout), &to)?;
        let named = |e| operation::rename(core, name, &e);
        if let Some(room) =
            operation::dense(&layout, ty).map_err(named)?.and_then(|range| result.get_mut(range))
        {
            return perform(Some(room));
        }
        let mut stream = vec![0; operands.len()];
        perform(Some(&mut stream))?;
        if target == NULL_RANK {
            return Ok(());
        }
        operation::scatter(&stream, result, &layout, ty).map_err(named)
    }

    /// `MPI_Accumulate` of one element.
    #[inline(always)]
    pub fn accumulate_one<T: Basic>(self, target: usize, at: usize, op: ReduceOp, operand: T) -> Result<()> {
        if self.core.shortcut.update_one(target, at, op, operand).is_some() {
            return Ok(());
        }
        let what = Accumulate { op, ty: T::TYPE, operands: operand.as_bytes() };
        self.perform(Description::accumulate(target, at, what, None), Completion::Flush)
    }

    /// `MPI_Fetch_and_op`. Zero from the null rank.
    #[inline(always)]
    pub fn fetch_op<T: Basic>(
        self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        if let Some(old) = self.core.shortcut.update_one(target, displacement, op, operand) {
            return Ok(old);
        }
        self.fetch_op_described(target, displacement, op, operand)
    }

    #[inline(never)]
    fn fetch_op_described<T: Basic>(
        self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        let mut old = T::new_zeroed();
        let what = Accumulate { op, ty: T::TYPE, operands: operand.as_bytes() };
        let atomic = device::fetching(op, T::TYPE, what.operands);
        self.fetch_one("fetch_and_op", (target, displacement), atomic, &mut old, |old| {
            Description::fetch_op(target, displacement, what, old)
        })?;
        Ok(old)
    }

    /// `MPI_Compare_and_swap`. Zero from the null rank.
    #[inline(always)]
    pub fn compare_swap<T: Swappable>(
        self,
        target: usize,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Result<T> {
        if let Some(old) = self.core.shortcut.compare_swap_one(target, displacement, (compare, value)) {
            return Ok(old);
        }
        self.compare_swap_described(target, displacement, compare, value)
    }

    #[inline(never)]
    fn compare_swap_described<T: Swappable>(
        self,
        target: usize,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Result<T> {
        let mut old = T::new_zeroed();
        let bytes = (compare.as_bytes(), value.as_bytes());
        let atomic = Some(device::swapping(bytes.0, bytes.1));
        self.fetch_one("compare_and_swap", (target, displacement), atomic, &mut old, |old| {
            Description::compare_swap(target, displacement, T::TYPE, bytes, old)
        })?;
        Ok(old)
    }

    /// Fetches an element to `old` by an atomic of the device, if it can be done by one, else as `described`.
    #[inline(always)]
    fn fetch_one<'a, T: Basic>(
        self,
        name: &'static str,
        at: (usize, usize),
        atomic: Option<NativeAtomic>,
        old: &'a mut T,
        described: impl FnOnce(&'a mut [u8]) -> Description<'a>,
    ) -> Result<()> {
        match self.by_device(name, at, T::TYPE, atomic, old.as_mut_bytes()) {
            Some(done) => done,
            None => self.perform(described(old.as_mut_bytes()), Completion::Flush),
        }
    }
}
