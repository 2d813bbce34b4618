//! The operations of an access epoch, on bytes: at once where memory is at hand, else by `operation`.

use transom_transport::{Basic, DataType, ReduceOp, Swappable, TransportResult};

use super::access::Access;
use crate::explain::{Kind, Path};
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::operation::{self, Accumulate};
use crate::window::{Domain, Peer};
use crate::{Class, Result};

impl Access<'_> {
    #[inline]
    pub fn put(&self, target: usize, displacement: usize, bytes: &[u8], owned: bool) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            self.stored();
            self.count(Kind::Put, target, bytes.len());
            return memory.copy_in(offset, bytes).map_err(|e| self.core().failed("put", target, &e));
        }
        self.put_elsewhere(target, displacement, bytes, owned)
    }

    #[inline(never)]
    fn put_elsewhere(&self, target: usize, displacement: usize, bytes: &[u8], owned: bool) -> Result<()> {
        let place = match self.place("put", target, displacement, bytes.len()) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(error) => return self.put_over((target, displacement, error), bytes, owned),
        };
        match &place.remote.direct {
            Some(memory) => {
                self.stored();
                self.core().took_mapped(&place, Path::Direct, bytes.len());
                memory.copy_in(place.offset, bytes).map_err(|e| self.core().failed("put", target, &e))
            }
            None => {
                self.touch(target);
                match owned {
                    true => operation::put_copy(self.core(), &place, bytes),
                    false => operation::put(self.core(), &place, &OriginBuffer::of_scope(bytes), None),
                }
            }
        }
    }

    #[inline]
    pub fn get(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            self.count(Kind::Get, target, bytes.len());
            return memory.copy_out(offset, bytes).map_err(|e| self.core().failed("get", target, &e));
        }
        self.get_elsewhere(target, displacement, bytes)
    }

    #[inline(never)]
    fn get_elsewhere(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        let place = match self.place("get", target, displacement, bytes.len()) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(error) => return self.get_over((target, displacement, error), bytes),
        };
        match &place.remote.direct {
            Some(memory) => {
                self.core().took_mapped(&place, Path::Direct, bytes.len());
                memory.copy_out(place.offset, bytes).map_err(|e| self.core().failed("get", target, &e))
            }
            None => {
                self.touch(target);
                operation::get(self.core(), &place, &mut ResultBuffer::of_scope(bytes), None)
            }
        }
    }

    /// A put that tells the target when it is there.
    pub fn put_notify(&self, target: usize, displacement: usize, bytes: &[u8], number: u64) -> Result<()> {
        let Some(place) = self.place("put_notify", target, displacement, bytes.len())? else { return Ok(()) };
        if place.remote.direct.is_some() {
            self.stored();
        } else {
            self.touch(target);
        }
        operation::notify(self.core(), &place, bytes, number)
    }

    /// A get that is complete when the call returns.
    #[inline]
    pub fn get_now(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        if let Some((memory, offset)) = self.at_hand(target, displacement, bytes.len()) {
            self.count(Kind::Get, target, bytes.len());
            return memory.copy_out(offset, bytes).map_err(|e| self.core().failed("get", target, &e));
        }
        self.get_now_elsewhere(target, displacement, bytes)
    }

    #[inline(never)]
    fn get_now_elsewhere(&self, target: usize, displacement: usize, bytes: &mut [u8]) -> Result<()> {
        let place = match self.place("get", target, displacement, bytes.len()) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(error) => return self.get_now_over((target, displacement, error), bytes),
        };
        match &place.remote.direct {
            Some(memory) => {
                self.core().took_mapped(&place, Path::Direct, bytes.len());
                memory.copy_out(place.offset, bytes).map_err(|e| self.core().failed("get", target, &e))
            }
            None => operation::get_now(self.core(), &place, bytes),
        }
    }

    /// Updates an element at hand by a CPU atomic, if that can be and is all there is to do; returns what was there.
    #[inline]
    fn update_at_hand<T: Basic>(
        &self,
        kind: Kind,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Option<T> {
        let (peer, memory, offset) = self.peer_at_hand(target, displacement, size_of::<T>())?;
        let counting = self.counting();
        let old = self.atomically(peer, T::TYPE, offset, || memory.update_one(offset, op, operand))?;
        if let Some(counting) = counting {
            counting.add(kind, target == self.core().rank(), size_of::<T>());
        }
        Some(old)
    }

    /// Adds to a word at hand, as [`Access::update_at_hand`], where nobody counts: compiled for it, without an error to return.
    #[inline(always)]
    pub(super) fn add_at_hand(&self, target: usize, displacement: usize, operand: u64) -> Option<u64> {
        let (peer, memory, offset) = self.peer_at_hand(target, displacement, size_of::<u64>())?;
        if self.counting().is_some() {
            return None;
        }
        self.atomically(peer, u64::TYPE, offset, || memory.update_one(offset, ReduceOp::Sum, operand))
    }

    /// Calls `update` on an element of `ty` at hand, `offset` bytes into the target's part, by the rules of its memory. None if
    /// they are not known yet, or it does not.
    #[inline(always)]
    fn atomically<T>(
        &self,
        peer: &Peer,
        ty: DataType,
        offset: usize,
        update: impl FnOnce() -> TransportResult<Option<T>>,
    ) -> Option<T> {
        let core = self.core();
        let turn = if core.at_hand {
            let updates = peer.updates.get()?;
            Some(updates.turn(&core.member.control.sections, offset as u64)?)
        } else if core.is_at_hand(ty) {
            None
        } else {
            return None;
        };
        // An error goes no further than this: the long way finds it again.
        let updated = update().ok()?;
        drop(turn);
        updated
    }

    /// [`Access::accumulate`] of one element: what programs do most.
    #[inline]
    pub fn accumulate_one<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        one: T,
    ) -> Result<()> {
        match self.update_at_hand(Kind::Accumulate, target, displacement, op, one) {
            Some(_) => Ok(()),
            None => self.accumulate_one_elsewhere(target, displacement, op, one),
        }
    }

    #[inline(never)]
    fn accumulate_one_elsewhere<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        one: T,
    ) -> Result<()> {
        const NAME: &str = "accumulate";
        let Some(place) = self.place(NAME, target, displacement, size_of::<T>())? else { return Ok(()) };
        if place.remote.direct.is_some() && !self.core().is_devices(T::TYPE) {
            return operation::fetch_op(self.core(), &place, op, one).map(drop);
        }
        self.touch(target);
        operation::accumulate(self.core(), &place, Accumulate { op, ty: T::TYPE, operands: one.as_bytes() })
    }

    /// An accumulate of any number of elements.
    pub fn accumulate(&self, target: usize, displacement: usize, what: Accumulate<'_>) -> Result<()> {
        match self.many_at_hand(target, displacement, what) {
            Some(result) => result,
            None => self.accumulate_elsewhere(target, displacement, what),
        }
    }

    /// Updates elements at hand, if that is all there is to do.
    #[inline]
    fn many_at_hand(&self, target: usize, displacement: usize, what: Accumulate<'_>) -> Option<Result<()>> {
        let (peer, memory, offset) = self.peer_at_hand(target, displacement, what.operands.len())?;
        if self.counting().is_some() {
            return None;
        }
        operation::update_known(self.core(), (target, peer), memory, offset, what)
    }

    #[inline(never)]
    fn accumulate_elsewhere(&self, target: usize, displacement: usize, what: Accumulate<'_>) -> Result<()> {
        let bytes = what.operands.len();
        let place = match self.place("accumulate", target, displacement, bytes) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(()),
            Err(error) => {
                return self.accumulate_over("accumulate", (target, displacement, error), what, None);
            }
        };
        if place.remote.direct.is_none() || self.core().domain == Domain::Device {
            self.touch(target);
        }
        operation::accumulate(self.core(), &place, what)
    }

    pub fn get_accumulate(
        &self,
        target: usize,
        displacement: usize,
        what: Accumulate<'_>,
        result: &mut [u8],
    ) -> Result<()> {
        const NAME: &str = "get_accumulate";
        if result.len() != what.operands.len() {
            let message = format!(
                "{} bytes of operands, but room for {} of results",
                what.operands.len(),
                result.len()
            );
            return Err(self.core().error(Class::Count, NAME, message).with_target(target));
        }
        match self.place(NAME, target, displacement, result.len()) {
            Ok(Some(place)) => operation::get_accumulate(self.core(), &place, what, result),
            Ok(None) => Ok(()),
            Err(error) => self.accumulate_over(NAME, (target, displacement, error), what, Some(result)),
        }
    }

    #[inline]
    pub fn fetch_op<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        match self.update_at_hand(Kind::FetchAndOp, target, displacement, op, operand) {
            Some(old) => Ok(old),
            None => self.fetch_op_elsewhere(target, displacement, op, operand),
        }
    }

    #[inline(never)]
    fn fetch_op_elsewhere<T: Basic>(
        &self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        operand: T,
    ) -> Result<T> {
        match self.place("fetch_and_op", target, displacement, size_of::<T>())? {
            Some(place) => operation::fetch_op(self.core(), &place, op, operand),
            None => Ok(T::new_zeroed()),
        }
    }

    #[inline]
    pub fn compare_swap<T: Swappable>(
        &self,
        target: usize,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Result<T> {
        if let Some((peer, memory, offset)) = self.peer_at_hand(target, displacement, size_of::<T>())
            && let Some(old) =
                self.atomically(peer, T::TYPE, offset, || memory.compare_swap_one(offset, compare, value))
        {
            self.count(Kind::CompareAndSwap, target, size_of::<T>());
            return Ok(old);
        }
        self.compare_swap_elsewhere(target, displacement, compare, value)
    }

    #[inline(never)]
    fn compare_swap_elsewhere<T: Swappable>(
        &self,
        target: usize,
        displacement: usize,
        compare: T,
        value: T,
    ) -> Result<T> {
        match self.place("compare_and_swap", target, displacement, size_of::<T>())? {
            Some(place) => operation::compare_swap(self.core(), &place, compare, value),
            None => Ok(T::new_zeroed()),
        }
    }
}
