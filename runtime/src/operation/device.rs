//! Accumulates by the network device's own atomics, on elements of 8 bytes that are aligned to 8 (`window/domain.rs` says
//! when). The target's CPU has no part in them.
//!
//! Sums of integers are fetch-and-adds; every other operation is a loop around compare-and-swap, which begins with a guess:
//! a wrong one costs the same round trip as reading first would. Many elements are under way at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transom_transport::{
    DataType, NativeAtomic, Posted, ReduceOp, Remote, Transport, TransportError, TransportResult,
    reduce_valid, reduce_word,
};

use super::description::Accumulate;
use super::place::Place;
use super::single::plain_place;
use super::transfer::finish_part;
use crate::Result;
use crate::engine::{Countdown, Pending, pack_bytes};
use crate::explain::Path;
use crate::waits::Awaits;
use crate::window::{AtomicsHint, Core, Domain, WORD, device_path, is_devices};

/// Elements under way at once.
const AT_ONCE: usize = 64;

/// A place whose elements the device updates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    device: &'a dyn Transport,
    remote: &'a Remote,
    /// Byte offset of the first.
    offset: usize,
}

impl Core {
    /// Whether the device updates aligned elements of `ty`.
    pub(crate) fn is_devices(&self, ty: DataType) -> bool {
        self.domain != Domain::Cpu && is_devices(ty, self.hints.atomics == AtomicsHint::Nic)
    }

    /// The elements of `ty`, `ahead` bytes behind a place, if the device updates them.
    #[inline]
    pub(super) fn words<'a>(
        &'a self,
        place: &Place<'a>,
        ty: DataType,
        ahead: usize,
    ) -> Result<Option<Words<'a>>> {
        if !self.is_devices(ty) {
            return Ok(None);
        }
        self.words_of_device(place, ahead)
    }

    #[inline]
    fn words_of_device<'a>(&'a self, place: &Place<'a>, ahead: usize) -> Result<Option<Words<'a>>> {
        if self.domain == Domain::Both && place.remote.direct.is_some() {
            return Ok(None);
        }
        let Some(device) = self.member.engine.routes.device() else { return Ok(None) };
        let Some(remote) = self.device_remote(place.operation, place.target, place.peer)? else {
            return Ok(None);
        };
        let offset = place.offset + ahead;
        let aligned = remote.base.wrapping_add(offset as u64).is_multiple_of(WORD as u64);
        Ok(aligned.then_some(Words { device, remote, offset }))
    }
}

/// Adds to an element, or replaces it if it is `compare`, where that is one atomic of the device on a place that needs no check but
/// of its range; returns what was there.
#[inline]
pub(crate) fn one_plain(
    core: &Core,
    operation: &'static str,
    (target, displacement): (usize, usize),
    ty: DataType,
    atomic: NativeAtomic,
) -> Option<Result<u64>> {
    if !core.is_devices(ty) {
        return None;
    }
    let place = plain_place(core, operation, target, displacement, WORD)?;
    match core.words(&place, ty, 0) {
        Ok(words) => Some(words?.one(core, &place, atomic)),
        Err(error) => Some(Err(error)),
    }
}

/// Starts an accumulate. A sum of integers is complete at the target after a flush, others when the call returns.
pub(super) fn accumulate(
    core: &Core,
    place: &Place<'_>,
    words: Words<'_>,
    what: Accumulate<'_>,
) -> Result<()> {
    if !is_sum(what.op, what.ty) {
        return update(core, place, words, what, None);
    }
    for (i, operand) in elements(what.operands).enumerate() {
        words.post(core, place, i, NativeAtomic::FetchAdd(operand), None)?;
    }
    Ok(())
}

/// Accumulates, and fetches what was there. Complete when the call returns.
pub(super) fn update(
    core: &Core,
    place: &Place<'_>,
    words: Words<'_>,
    what: Accumulate<'_>,
    result: Option<&mut [u8]>,
) -> Result<()> {
    let Accumulate { op, ty, operands } = what;
    check(core, place, op, ty, operands.len())?;
    if let Ok(operand) = operands.try_into() {
        let operand = u64::from_ne_bytes(operand);
        let old = match single(op, ty) {
            Some(atomic) => words.one(core, place, atomic(operand))?,
            None => words.exchange(core, place, 0, (op, ty), &[operand])?.first().copied().unwrap_or(0),
        };
        if let Some(result) = result {
            result.copy_from_slice(&old.to_ne_bytes());
        }
        return Ok(());
    }
    let mut results = result.map(|result| result.chunks_exact_mut(WORD));
    for (i, some) in operands.chunks(AT_ONCE * WORD).enumerate() {
        let operands: Vec<u64> = elements(some).collect();
        let first = i * AT_ONCE;
        let old = match single(op, ty) {
            Some(atomic) => {
                let atomics = operands.iter().enumerate();
                words.run(core, place, atomics.map(|(i, operand)| (first + i, atomic(*operand))))?
            }
            None => words.exchange(core, place, first, (op, ty), &operands)?,
        };
        if let Some(results) = &mut results {
            old.iter().zip(results).for_each(|(old, result)| result.copy_from_slice(&old.to_ne_bytes()));
        }
    }
    Ok(())
}

/// Replaces one element if it has the bytes of `compare`; what was there goes to `old`.
pub(super) fn compare_swap(
    core: &Core,
    place: &Place<'_>,
    words: Words<'_>,
    (compare, value): (&[u8], &[u8]),
    old: &mut [u8],
) -> Result<()> {
    let found = words.one(core, place, swapping(compare, value))?;
    old.copy_from_slice(&found.to_ne_bytes());
    Ok(())
}

/// The atomic that replaces an element which has the bytes of `compare`.
#[inline(always)]
pub(crate) fn swapping(compare: &[u8], value: &[u8]) -> NativeAtomic {
    NativeAtomic::CompareSwap { compare: pack_bytes(compare), swap: pack_bytes(value) }
}

/// The one atomic that is an operation on an element and fetches what was there, if there is one.
#[inline(always)]
pub(crate) fn fetching(op: ReduceOp, ty: DataType, operand: &[u8]) -> Option<NativeAtomic> {
    Some(single(op, ty)?(pack_bytes(operand)))
}

#[inline(always)]
fn check(core: &Core, place: &Place<'_>, op: ReduceOp, ty: DataType, bytes: usize) -> Result<()> {
    if reduce_valid(op, ty) && bytes.is_multiple_of(WORD) { Ok(()) } else { undefined(core, place, op, ty) }
}

#[cold]
fn undefined(core: &Core, place: &Place<'_>, op: ReduceOp, ty: DataType) -> Result<()> {
    let undefined = TransportError::Undefined { operation: format!("{op:?}"), ty };
    Err(core.failed(place.operation, place.target, &undefined))
}

/// The one atomic that does it, if there is one.
#[inline(always)]
fn single(op: ReduceOp, ty: DataType) -> Option<fn(u64) -> NativeAtomic> {
    match op {
        ReduceOp::NoOp => Some(|_| NativeAtomic::FetchAdd(0)),
        _ if is_sum(op, ty) => Some(NativeAtomic::FetchAdd),
        _ => None,
    }
}

/// Whether an addition of the device is this operation.
#[inline(always)]
fn is_sum(op: ReduceOp, ty: DataType) -> bool {
    op == ReduceOp::Sum && path(Some(op), ty) == Path::Hardware
}

/// How the device does it.
#[inline(always)]
pub(super) fn path(op: Option<ReduceOp>, ty: DataType) -> Path {
    device_path(op, ty, true)
}

fn elements(operands: &[u8]) -> impl Iterator<Item = u64> {
    operands.chunks_exact(WORD).map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes))
}

/// Where the value of one of several atomics goes.
type Slot<'a> = (&'a Arc<[AtomicU64]>, usize);

impl Words<'_> {
    /// Does one atomic, on the first element; returns what was there.
    fn one(&self, core: &Core, place: &Place<'_>, atomic: NativeAtomic) -> Result<u64> {
        let engine = &core.member.engine;
        let Some(awaited) = engine.pendings.begin_awaited() else {
            return self.one_counted(core, place, atomic);
        };
        self.issue(core, place, self.offset, atomic, awaited.context)?;
        let what = || Awaits::target(format!("atomics at rank {}", place.target), place.peer.world);
        let found = engine.wait_briefly(place.operation, self.device, &what, || awaited.outcome())?;
        found.map_err(|error| core.failed(place.operation, place.target, &error))
    }

    /// The same, where many callers wait for theirs already.
    #[cold]
    fn one_counted(&self, core: &Core, place: &Place<'_>, atomic: NativeAtomic) -> Result<u64> {
        let count = Countdown::reusable();
        let posted = self.post(core, place, 0, atomic, Some((&count, None)));
        let finished = self.finish(core, place, posted, &count);
        let value = count.value();
        Countdown::give_back(count);
        finished.map(|()| value)
    }

    /// Does each atomic, on the element of its number; returns what was there.
    fn run(
        &self,
        core: &Core,
        place: &Place<'_>,
        atomics: impl Iterator<Item = (usize, NativeAtomic)>,
    ) -> Result<Vec<u64>> {
        let values: Arc<[AtomicU64]> = (0..AT_ONCE).map(|_| AtomicU64::new(0)).collect();
        let count = Countdown::new(1, None);
        let mut started = 0;
        let posted = atomics.take(AT_ONCE).try_for_each(|(element, atomic)| {
            self.post(core, place, element, atomic, Some((&count, Some((&values, started)))))?;
            started += 1;
            Ok(())
        });
        self.finish(core, place, posted, &count)?;
        Ok(values[..started].iter().map(|value| value.load(Ordering::Acquire)).collect())
    }

    /// Waits for the end of what was posted.
    fn finish(
        &self,
        core: &Core,
        place: &Place<'_>,
        posted: Result<()>,
        count: &Arc<Countdown>,
    ) -> Result<()> {
        let engine = &core.member.engine;
        finish_part(engine, count);
        let what = || Awaits::target(format!("atomics at rank {}", place.target), place.peer.world);
        engine.wait_until(place.operation, &what, None, || count.is_finished().then_some(Ok(())))?;
        posted?;
        match place.peer.state.take_error() {
            Some(error) => Err(core.failed(place.operation, place.target, &error)),
            None => Ok(()),
        }
    }

    /// Updates elements from number `first` on by compare-and-swap, each until it succeeds.
    fn exchange(
        &self,
        core: &Core,
        place: &Place<'_>,
        first: usize,
        (op, ty): (ReduceOp, DataType),
        operands: &[u64],
    ) -> Result<Vec<u64>> {
        let mut old = vec![0; operands.len()];
        let mut left: Vec<usize> = (0..operands.len()).collect();
        while !left.is_empty() {
            let swap = |i: &usize| {
                let (compare, operand) = (old[*i], operands[*i]);
                let swap = reduce_word(op, ty, compare, operand);
                (first + i, NativeAtomic::CompareSwap { compare, swap })
            };
            let found = self.run(core, place, left.iter().map(swap))?;
            let mut found = found.into_iter();
            left.retain(|i| {
                let now = found.next().unwrap_or(old[*i]);
                let failed = now != old[*i];
                old[*i] = now;
                failed
            });
        }
        Ok(old)
    }

    /// Posts one atomic; makes progress while the queue is full.
    fn post(
        &self,
        core: &Core,
        place: &Place<'_>,
        element: usize,
        atomic: NativeAtomic,
        fetching: Option<(&Arc<Countdown>, Option<Slot<'_>>)>,
    ) -> Result<()> {
        let engine = &core.member.engine;
        let state = &place.peer.state;
        let context = match fetching {
            Some((count, slot)) => {
                count.add(1);
                let (target, done) = (state.share(), Some(count.clone()));
                let value = slot.map(|(values, at)| (values.clone(), at));
                engine.pendings.begin(Pending { target, buffer: None, done, pull: None, value })
            }
            None => engine.pendings.begin_plain(state),
        };
        let issued = self.issue(core, place, self.offset + element * WORD, atomic, context);
        if let Some((count, _)) = fetching
            && !matches!(issued, Ok(Posted::Pending))
        {
            finish_part(engine, count);
        }
        issued.map(drop)
    }

    /// Has the device start an atomic at an offset, making room for it by progress. What is not under way then is over.
    #[inline]
    fn issue(
        &self,
        core: &Core,
        place: &Place<'_>,
        offset: usize,
        atomic: NativeAtomic,
        context: u64,
    ) -> Result<Posted> {
        match self.device.atomic(self.remote, offset, atomic, context) {
            Ok(Posted::Pending) => Ok(Posted::Pending),
            posted => self.issue_otherwise(core, place, (offset, atomic, context), posted),
        }
    }

    /// The device has refused an atomic, or has no room for it now.
    #[cold]
    fn issue_otherwise(
        &self,
        core: &Core,
        place: &Place<'_>,
        (offset, atomic, context): (usize, NativeAtomic, u64),
        first: TransportResult<Posted>,
    ) -> Result<Posted> {
        let engine = &core.member.engine;
        let failed = |error| core.failed(place.operation, place.target, &error);
        let posted = match first {
            Ok(Posted::Again) => {
                let what =
                    || Awaits::room(format!("room in the queue to rank {}", place.target), place.peer.world);
                let attempt = || match self.device.atomic(self.remote, offset, atomic, context) {
                    Ok(Posted::Again) => None,
                    posted => Some(posted.map_err(failed)),
                };
                let nap = Some(std::time::Duration::from_micros(100));
                engine.wait_until(place.operation, &what, nap, attempt)
            }
            posted => posted.map_err(failed),
        };
        if !matches!(posted, Ok(Posted::Pending)) {
            engine.pendings.cancel(context);
        }
        posted
    }
}
