//! Requests of receives in slots: from one rank, of plain data. Their handles lead to a slot of the runtime, without an object, until a call
//! wants one that has none of its own for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use parking_lot::Mutex;
use transom::raw::{SLOTS, SlotHold, SlotReceive};

use super::{Kind, Outcome, RequestObject, State};
use crate::abi::{COMM_WORLD, Comm, ERR_REQUEST, REQUEST_NULL, Request, TABLE, narrow, wide};
use crate::failure::{Result, fail};
use crate::handlers::ErrorObject;
use crate::message::{self, Envelope, receive};
use crate::pointer::Pointer;
use crate::world;

/// Of their handles, which are as those of a table, but that there are fewer slots and more generations: slots are used again at once.
const KIND: usize = 14;
const KIND_SHIFT: u32 = 27;
const GENERATION_SHIFT: u32 = SLOTS.ilog2();
const GENERATIONS: usize = 1 << (KIND_SHIFT - GENERATION_SHIFT);
const _: () = assert!(SLOTS.is_power_of_two());

/// No handle has this bit.
const OBJECT: usize = 1 << 40;

/// What the program knows of the receive in a slot.
struct Place {
    /// The handle that leads here, with [`OBJECT`] if it is as other requests are; none when it is 0.
    handle: AtomicUsize,
    comm: AtomicUsize,
    rank: AtomicI32,
    tag: AtomicI32,
    object: Mutex<Option<(Arc<RequestObject>, SlotHold)>>,
    uses: AtomicUsize,
}

impl Place {
    const fn vacant() -> Self {
        Self {
            handle: AtomicUsize::new(0),
            comm: AtomicUsize::new(0),
            rank: AtomicI32::new(0),
            tag: AtomicI32::new(0),
            object: Mutex::new(None),
            uses: AtomicUsize::new(0),
        }
    }
}

static PLACES: [Place; SLOTS] = [const { Place::vacant() }; SLOTS];

/// A handle for a receive that has just been posted.
#[inline]
pub fn handle(receive: SlotReceive, of: Envelope) -> Request {
    let place = &PLACES[receive.slot];
    let uses = place.uses.load(Ordering::Relaxed).wrapping_add(1) % GENERATIONS;
    let handle = wide(TABLE) | KIND << KIND_SHIFT | uses << GENERATION_SHIFT | receive.slot;
    place.uses.store(uses, Ordering::Relaxed);
    place.comm.store(wide(of.comm.0), Ordering::Relaxed);
    place.rank.store(of.rank, Ordering::Relaxed);
    place.tag.store(of.tag, Ordering::Relaxed);
    place.handle.store(handle, Ordering::Release);
    Request(narrow(handle))
}

/// Whether a handle is one of these, be it stale.
#[inline(always)]
pub fn is_one(request: Request) -> bool {
    wide(request.0) >> KIND_SHIFT == wide(TABLE) >> KIND_SHIFT | KIND
}

/// The place that a handle leads to.
#[inline]
fn place(request: Request) -> Option<(usize, &'static Place)> {
    let handle = wide(request.0);
    let slot = handle & ((1 << GENERATION_SHIFT) - 1);
    let place = PLACES.get(slot)?;
    (is_one(request) && place.handle.load(Ordering::Acquire) & !OBJECT == handle).then_some((slot, place))
}

/// A receive in a slot, as the program's request names it.
#[derive(Clone, Copy)]
pub struct InSlot {
    receive: SlotReceive,
    place: &'static Place,
    request: Request,
}

/// The receive of a request that has no object.
#[inline]
pub fn find(request: Request) -> Option<InSlot> {
    let (slot, place) = place(request)?;
    if place.handle.load(Ordering::Relaxed) & OBJECT != 0 {
        return None;
    }
    let (rank, tag) = (place.rank.load(Ordering::Relaxed), place.tag.load(Ordering::Relaxed));
    let receive = SlotReceive { slot, source: rank.cast_unsigned() as usize, tag: message::tag(tag) };
    Some(InSlot { receive, place, request })
}

#[cold]
fn stale<R>(request: Request) -> Result<R> {
    fail(ERR_REQUEST, format!("{:#x} is no request: it was completed or freed", wide(request.0)))
}

/// That a handle leads to a request.
pub fn check(request: Request) -> Result<()> {
    if place(request).is_some() { Ok(()) } else { stale(request) }
}

/// The object of a request, which has one from now on.
pub fn object(request: Request) -> Result<Arc<RequestObject>> {
    let Some((_, place)) = place(request) else { return stale(request) };
    let mut object = place.object.lock();
    if let Some((object, _)) = &*object {
        return Ok(object.clone());
    }
    let Some(in_slot) = find(request) else { return stale(request) };
    if !in_slot.claim(wide(request.0) | OBJECT) {
        return stale(request);
    }
    let comm = in_slot.comm()?;
    let finish =
        |result: transom::Result<()>, status| receive::received(None, status, receive::in_place(result));
    let (pending, hold) = in_slot.receive.into_request(&comm.comm, finish);
    let error_object = in_slot.error_object();
    let made = Arc::new(RequestObject {
        state: Mutex::new(State::Running(pending)),
        kind: Kind::Plain,
        error_object,
    });
    *object = Some((made.clone(), hold));
    Ok(made)
}

/// The handle leads nowhere from now on.
pub fn remove(request: Request) -> Result<()> {
    let Some((_, place)) = place(request) else { return stale(request) };
    let object = place.object.lock().take();
    place.handle.store(0, Ordering::Release);
    // Last: another receive may be in the slot then.
    drop(object);
    Ok(())
}

impl InSlot {
    /// Its communicator; if that was freed another one, of the same job.
    fn comm(self) -> Result<world::Held> {
        let comm = Comm(narrow(self.place.comm.load(Ordering::Relaxed)));
        world::hold(comm).or_else(|_| world::hold(COMM_WORLD))
    }

    fn error_object(self) -> ErrorObject {
        ErrorObject::Comm(Comm(narrow(self.place.comm.load(Ordering::Relaxed))))
    }

    /// Changes the place's handle, unless another thread has: it may take a request back that this one waits for.
    fn claim(self, to: usize) -> bool {
        let handle = wide(self.request.0);
        self.place.handle.compare_exchange(handle, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// What came, if it has ended and has no object: its handle and its slot are free then.
    #[inline]
    pub fn take(self, request: Pointer<Request>, index: usize) -> Option<Outcome> {
        let (all, error_object) = (&world::all()?.comm, self.error_object());
        if !self.receive.has_ended(all) || !self.claim(0) {
            return None;
        }
        let (result, status) = self.receive.outcome(all)?;
        // Last: another receive may be in the slot then.
        self.receive.free(all);
        request.replace_at(index, REQUEST_NULL);
        let outcome = receive::received(None, status, receive::in_place(result));
        Some(outcome.map_err(|failure| failure.at(error_object)))
    }

    /// Waits, and takes what came; nothing if the wait has failed: then the request has an object, which has the error.
    pub fn end(self, request: Pointer<Request>, index: usize) -> Result<Option<Outcome>> {
        if let Some(outcome) = self.take(request, index) {
            return Ok(Some(outcome));
        }
        match self.receive.wait(&self.comm()?.comm) {
            Ok(()) => Ok(self.take(request, index)),
            Err(error) => {
                object(self.request)?.state.lock().fail(error);
                Ok(None)
            }
        }
    }

    /// Makes progress; whether it has ended.
    pub fn poll(self) -> Result<bool> {
        Ok(self.receive.poll(&self.comm()?.comm)?)
    }
}
