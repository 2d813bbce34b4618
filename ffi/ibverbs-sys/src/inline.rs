//! The functions that C programs get inline from the header: calls through the table in the object's context.
//!
//! An entry that is absent gives `EOPNOTSUPP`, in the form of the call, where C would jump to null.

use std::ffi::c_int;

use crate::bindings::*;

macro_rules! inline_calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($object:ident: *mut $kind:ty $(, $argument:ident: $type:ty)*) -> c_int
            = $entry:ident else $absent:expr;
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As in C: the object is live and of its kind, and every other pointer is valid for what the manual page says is
        /// done with it.
        #[inline]
        pub unsafe fn $name($object: *mut $kind $(, $argument: $type)*) -> c_int {
            // SAFETY: the caller vouches that the object is live, so its context is open; the table is part of that, at the
            // same place since libibverbs 1.1. The arguments are passed on as they are.
            unsafe {
                match (*(*$object).context).ops.$entry {
                    Some(call) => call($object $(, $argument)*),
                    None => $absent,
                }
            }
        }
    )*};
}

inline_calls! {
    /// `ibv_post_send(3)`.
    fn ibv_post_send(qp: *mut ibv_qp, wr: *mut ibv_send_wr, bad_wr: *mut *mut ibv_send_wr) -> c_int
        = post_send else libc::EOPNOTSUPP;
    /// `ibv_post_recv(3)`.
    fn ibv_post_recv(qp: *mut ibv_qp, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int
        = post_recv else libc::EOPNOTSUPP;
    /// `ibv_post_srq_recv(3)`.
    fn ibv_post_srq_recv(srq: *mut ibv_srq, wr: *mut ibv_recv_wr, bad_wr: *mut *mut ibv_recv_wr) -> c_int
        = post_srq_recv else libc::EOPNOTSUPP;
    /// `ibv_poll_cq(3)`: how many completions, or a negative number.
    fn ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int
        = poll_cq else -libc::EOPNOTSUPP;
    /// `ibv_req_notify_cq(3)`.
    fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int
        = req_notify_cq else libc::EOPNOTSUPP;
}

#[cfg(test)]
mod tests {
    use std::mem::zeroed;
    use std::ptr::null_mut;

    use super::*;

    unsafe extern "C" fn poll(cq: *mut ibv_cq, room: c_int, wc: *mut ibv_wc) -> c_int {
        // SAFETY: called below only, with live objects.
        unsafe {
            (*wc).wr_id = (*cq).handle.into();
        }
        room - 1
    }

    #[test]
    fn a_call_reaches_the_entry_with_its_arguments() {
        // SAFETY: numbers, nullable pointers and mutexes that nobody locks, for all of which zero is valid.
        let (mut context, mut queue, mut completion): (ibv_context, ibv_cq, ibv_wc) =
            unsafe { (zeroed(), zeroed(), zeroed()) };
        context.ops.poll_cq = Some(poll);
        queue.context = &raw mut context;
        queue.handle = 17;
        // SAFETY: the objects are live.
        assert_eq!(unsafe { ibv_poll_cq(&raw mut queue, 5, &raw mut completion) }, 4);
        assert_eq!(completion.wr_id, 17);
    }

    #[test]
    fn an_absent_entry_is_an_error() {
        // SAFETY: as above.
        let (mut context, mut queue, mut pair): (ibv_context, ibv_cq, ibv_qp) =
            unsafe { (zeroed(), zeroed(), zeroed()) };
        queue.context = &raw mut context;
        pair.context = &raw mut context;
        // SAFETY: the objects are live, and nothing is called.
        unsafe {
            assert_eq!(ibv_poll_cq(&raw mut queue, 1, null_mut()), -libc::EOPNOTSUPP);
            assert_eq!(ibv_req_notify_cq(&raw mut queue, 0), libc::EOPNOTSUPP);
            assert_eq!(ibv_post_send(&raw mut pair, null_mut(), null_mut()), libc::EOPNOTSUPP);
        }
    }
}
