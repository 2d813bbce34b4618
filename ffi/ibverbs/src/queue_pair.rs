//! The queue pair: where requests are posted.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::error::check;
use crate::handle::Handle;
use crate::shared_receive_queue::post_one;
use crate::{
    Batch, CompletionQueue, Local, MAX_PARTS, PostError, ProtectionDomain, Request, SharedReceiveQueue,
    VerbsError,
};

/// What a queue pair is made of (ibv_create_qp(3)).
#[derive(Debug, Clone, Copy)]
pub struct QueuePairOptions<'a> {
    /// Where requests to the peer complete.
    pub send: &'a Arc<CompletionQueue>,
    /// Where receives complete.
    pub receive: &'a Arc<CompletionQueue>,
    /// Where receives are posted, if not to the queue pair itself.
    pub shared: Option<&'a Arc<SharedReceiveQueue>>,
    /// Requests to the peer under way at once.
    pub sends: u32,
    /// Receives posted at once; of no meaning with a shared queue.
    pub receives: u32,
    /// Parts of a request to the peer.
    pub parts: u32,
    /// Bytes that a request shall be able to carry inline; fewer are granted if the device has no room for so many.
    pub inline: u32,
    /// Every request to the peer completes visibly, signalled or not.
    pub signal_all: bool,
}

/// A queue pair (ibv_create_qp(3)).
#[derive(Debug)]
pub struct QueuePair {
    handle: Handle<sys::ibv_qp>,
    inline: u32,
    domain: Arc<ProtectionDomain>,
    _send: Arc<CompletionQueue>,
    _receive: Arc<CompletionQueue>,
    _shared: Option<Arc<SharedReceiveQueue>>,
}

impl QueuePair {
    /// Makes a queue pair to be connected with one other: reliable and ordered, with all operations (RC).
    pub fn reliable(
        domain: &Arc<ProtectionDomain>,
        options: &QueuePairOptions<'_>,
    ) -> Result<QueuePair, VerbsError> {
        QueuePair::new(domain, options, sys::IBV_QPT_RC)
    }

    /// Makes a queue pair for messages of at most one packet to and from anybody (UD).
    pub fn datagram(
        domain: &Arc<ProtectionDomain>,
        options: &QueuePairOptions<'_>,
    ) -> Result<QueuePair, VerbsError> {
        QueuePair::new(domain, options, sys::IBV_QPT_UD)
    }

    fn new(
        domain: &Arc<ProtectionDomain>,
        options: &QueuePairOptions<'_>,
        kind: sys::ibv_qp_type,
    ) -> Result<QueuePair, VerbsError> {
        let context = domain.context();
        let shared = options.shared.map_or(context, |shared| shared.context());
        if [options.send.context(), options.receive.context(), shared]
            .iter()
            .any(|at| !Arc::ptr_eq(at, context))
        {
            return Err(VerbsError::refused("ibv_create_qp", "a queue belongs to another context"));
        }
        let mut inline = options.inline;
        loop {
            match create(domain, options, kind, inline) {
                // Devices refuse what they have no room for and do not say how much there is.
                Err(_) if inline > 0 => inline /= 2,
                Err(error) => return Err(error),
                Ok((handle, inline)) => {
                    return Ok(QueuePair {
                        handle,
                        inline,
                        domain: Arc::clone(domain),
                        _send: Arc::clone(options.send),
                        _receive: Arc::clone(options.receive),
                        _shared: options.shared.cloned(),
                    });
                }
            }
        }
    }

    /// The number by which peers name it.
    #[inline]
    pub fn number(&self) -> u32 {
        // SAFETY: the queue pair is live; its number does not change.
        unsafe { (*self.as_ptr()).qp_num }
    }

    /// The most bytes that a request can carry inline.
    #[inline]
    pub fn inline(&self) -> u32 {
        self.inline
    }

    /// Posts all requests of a batch, in their order, with one call.
    ///
    /// Without an error the batch is empty afterwards. With one it has lost the requests that the device took
    /// ([`PostError::taken`]), and begins with the one that it refused: [`Batch::skip`] it, or [`Batch::clear`].
    ///
    /// # Errors
    /// [`VerbsError::is_exhausted`] when the send queue is full. A request that the device can see to be wrong, such as
    /// an atomic on a misaligned address on some, is refused with `EINVAL`; what only the peer can see ends its completion.
    ///
    /// # Safety
    /// For every request of the batch:
    /// - its parts, if inline, can be read until this returns: the bytes are copied here;
    /// - its parts, if not inline, stay registered until the request completes, in the protection domain of this queue
    ///   pair; until then nothing writes what is sent, and the program expects what a read or an atomic returns to be
    ///   written from outside;
    /// - an unsignalled request completes when a later one of the same queue pair does;
    /// - an address handle is of the same protection domain, and live until the request completes.
    ///
    /// A queue pair that fails or is dropped completes all its requests.
    #[inline]
    pub unsafe fn post(&self, batch: &mut Batch) -> Result<(), PostError> {
        let Some(first) = batch.link() else { return Ok(()) };
        let mut bad = null_mut();
        // SAFETY: ibv_post_send(3): a live queue pair, and a chain of requests that `link` has just closed, in a batch
        // that is not moved during the call. The caller vouches for what they name.
        let returned = unsafe { sys::ibv_post_send(self.as_ptr(), first, &mut bad) };
        if returned == 0 {
            batch.clear();
            return Ok(());
        }
        Err(refused(batch, bad, returned))
    }

    /// Posts one request: what a batch of it does, without a batch.
    ///
    /// # Errors
    /// As [`QueuePair::post`]; more than [`MAX_PARTS`] parts.
    ///
    /// # Safety
    /// As [`QueuePair::post`], for this request.
    #[inline(always)]
    pub unsafe fn post_one(&self, request: &Request<'_>) -> Result<(), VerbsError> {
        if request.parts.len() > MAX_PARTS {
            return Err(VerbsError::refused("ibv_post_send", "a request has too many parts"));
        }
        let mut raw = MaybeUninit::uninit();
        let first = crate::batch::write(&mut raw, request);
        let mut bad = null_mut();
        // SAFETY: ibv_post_send(3): a live queue pair, and a chain of one request, all of whose fields are there that the call
        // reads for its opcode; it only reads the parts, which have the layout of its list (`Local`). The caller vouches
        // for what they name.
        let returned = unsafe { sys::ibv_post_send(self.as_ptr(), first, &mut bad) };
        if returned == 0 { Ok(()) } else { Err(refusal(returned)) }
    }

    /// Posts a receive: a message will be written there. Not for a queue pair with a shared receive queue.
    ///
    /// # Errors
    /// [`VerbsError::is_exhausted`] when the receive queue is full.
    ///
    /// # Safety
    /// Until the receive completes or the queue pair is dropped, the memory stays registered with write access in the
    /// same protection domain, and the program expects it to be written from outside.
    #[inline]
    pub unsafe fn post_receive(&self, id: u64, local: Local) -> Result<(), VerbsError> {
        post_one("ibv_post_recv", id, local, |request, bad| {
            // SAFETY: ibv_post_recv(3): a live queue pair; for the request `post_one` vouches, for the memory the caller.
            unsafe { sys::ibv_post_recv(self.as_ptr(), request, bad) }
        })
    }

    pub(crate) fn library(&self) -> &'static sys::Library {
        self.domain.context().library()
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut sys::ibv_qp {
        self.handle.as_ptr()
    }
}

/// One attempt, with so many bytes inline; and how many are granted.
fn create(
    domain: &ProtectionDomain,
    options: &QueuePairOptions<'_>,
    kind: sys::ibv_qp_type,
    inline: u32,
) -> Result<(Handle<sys::ibv_qp>, u32), VerbsError> {
    let library = domain.context().library();
    let own_receives = if options.shared.is_some() { 0 } else { options.receives };
    let mut attr = sys::ibv_qp_init_attr {
        qp_context: null_mut(),
        send_cq: options.send.as_ptr(),
        recv_cq: options.receive.as_ptr(),
        srq: options.shared.map_or(null_mut(), |shared| shared.as_ptr()),
        cap: sys::ibv_qp_cap {
            max_send_wr: options.sends,
            max_recv_wr: own_receives,
            max_send_sge: options.parts,
            max_recv_sge: own_receives.min(1),
            max_inline_data: inline,
        },
        qp_type: kind,
        sq_sig_all: options.signal_all.into(),
    };
    // SAFETY: ibv_create_qp(3): a live protection domain, live queues of the same device (`QueuePair::new` looked), and
    // attributes that outlive the call.
    let pair = unsafe { (library.ibv_create_qp)(domain.as_ptr(), &mut attr) };
    // SAFETY: just made, and destroyed by nothing else.
    let handle = unsafe { Handle::new("ibv_create_qp", pair, library.ibv_destroy_qp)? };
    Ok((handle, attr.cap.max_inline_data))
}

#[cold]
fn refused(batch: &mut Batch, bad: *mut sys::ibv_send_wr, returned: i32) -> PostError {
    let taken = batch.position(bad);
    batch.skip(taken);
    PostError { taken, error: refusal(returned) }
}

#[cold]
fn refusal(returned: i32) -> VerbsError {
    match check("ibv_post_send", returned) {
        Err(error) => error,
        Ok(()) => VerbsError::new("ibv_post_send", Errno::UnknownErrno),
    }
}
