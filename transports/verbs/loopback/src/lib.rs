//! A libibverbs for tests, with one device (`loopback0`) that carries every work request out while it is posted.
//!
//! All queue pairs are of one process (`transom::local`), so an address at the peer is an address here: a write is a copy, an
//! atomic one of the CPU's. What Transom adds to a work request can so be counted, without a network that takes its time.
//! Open it by `TRANSOM_IBVERBS=target/release/libtransom_verbs_loopback.so`; `ci/instructions-verbs.sh` does.
//!
//! Not a test of correctness: keys and ranges are believed, and no request fails. What verbs promise is kept otherwise:
//! requests of a queue pair are done in their order, messages wait for a receive, and notifications come when they were
//! asked for (ibv_req_notify_cq(3)).

mod device;
mod pair;
mod queue;
mod receives;

/// The mutex of the objects' lists.
pub(crate) use parking_lot::Mutex;

/// Gives an object to the caller, who destroys it by [`destroy`]. Its first field is what libibverbs has there.
pub(crate) fn create<O, P>(object: O) -> *mut P {
    Box::into_raw(Box::new(object)).cast()
}

/// Ends an object.
///
/// # Safety
/// It was made by [`create`] of the same type, and is used by nobody any more.
pub(crate) unsafe fn destroy<O, P>(object: *mut P) -> std::ffi::c_int {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(object.cast::<O>()) });
    0
}
