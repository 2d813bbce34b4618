//! The end of a request.

use std::fmt;

use ibverbs_sys as sys;

/// How a request ended (ibv_poll_cq(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// As wanted.
    Success,
    /// A message did not fit into the receive posted for it, or a request was too long.
    LocalLength,
    /// The request was not one for this queue pair.
    LocalQp,
    /// The request's own memory is not registered for this.
    LocalProtection,
    /// The queue pair was in the error state before the request's turn came.
    Flushed,
    /// The peer does not allow the access: key, range or kind.
    RemoteAccess,
    /// The peer found the request malformed.
    RemoteInvalidRequest,
    /// The peer could not carry the request out.
    RemoteOperation,
    /// The peer did not answer, as often as was tried.
    RetryExceeded,
    /// The peer had no receive posted, as often as was tried.
    RnrRetryExceeded,
    /// Another, by its number in ibv_poll_cq(3).
    Other(u32),
}

impl Status {
    fn from_raw(raw: sys::ibv_wc_status) -> Status {
        match raw {
            sys::IBV_WC_SUCCESS => Status::Success,
            sys::IBV_WC_LOC_LEN_ERR => Status::LocalLength,
            sys::IBV_WC_LOC_QP_OP_ERR => Status::LocalQp,
            sys::IBV_WC_LOC_PROT_ERR => Status::LocalProtection,
            sys::IBV_WC_WR_FLUSH_ERR => Status::Flushed,
            sys::IBV_WC_REM_ACCESS_ERR => Status::RemoteAccess,
            sys::IBV_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
            sys::IBV_WC_REM_OP_ERR => Status::RemoteOperation,
            sys::IBV_WC_RETRY_EXC_ERR => Status::RetryExceeded,
            sys::IBV_WC_RNR_RETRY_EXC_ERR => Status::RnrRetryExceeded,
            other => Status::Other(other),
        }
    }

    /// As wanted.
    pub fn is_success(self) -> bool {
        self == Status::Success
    }

    /// Not carried out, because of an earlier failure of the queue pair.
    pub fn is_flushed(self) -> bool {
        self == Status::Flushed
    }

    /// The peer did not answer.
    pub fn is_unreachable(self) -> bool {
        matches!(self, Status::RetryExceeded | Status::RnrRetryExceeded)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Success => "success",
            Status::LocalLength => "local length error",
            Status::LocalQp => "local queue pair operation error",
            Status::LocalProtection => "local protection error",
            Status::Flushed => "flushed: the queue pair had failed before",
            Status::RemoteAccess => "remote access error",
            Status::RemoteInvalidRequest => "remote invalid request error",
            Status::RemoteOperation => "remote operation error",
            Status::RetryExceeded => "no answer: transport retries exceeded",
            Status::RnrRetryExceeded => "receiver not ready: retries exceeded",
            Status::Other(number) => return write!(f, "work completion status {number}"),
        })
    }
}

/// What a request was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A write to a peer's memory.
    Write,
    /// A read of a peer's memory.
    Read,
    /// A fetch-and-add.
    FetchAdd,
    /// A compare-and-swap.
    CompareSwap,
    /// A message sent.
    Send,
    /// A message received.
    Receive,
    /// Another.
    Other,
}

/// The end of a request (ibv_poll_cq(3)). After a failure only id, status, queue pair and vendor error mean something.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct WorkCompletion(sys::ibv_wc);

impl WorkCompletion {
    /// For arrays to be polled into.
    pub const EMPTY: WorkCompletion = WorkCompletion(sys::ibv_wc {
        wr_id: 0,
        status: sys::IBV_WC_SUCCESS,
        opcode: sys::IBV_WC_SEND,
        vendor_err: 0,
        byte_len: 0,
        __bindgen_anon_1: sys::ibv_wc_immediate { imm_data: 0 },
        qp_num: 0,
        src_qp: 0,
        wc_flags: 0,
        pkey_index: 0,
        slid: 0,
        sl: 0,
        dlid_path_bits: 0,
    });

    /// The number that the request was posted with.
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.wr_id
    }

    /// How it ended.
    #[inline]
    pub fn status(&self) -> Status {
        Status::from_raw(self.0.status)
    }

    /// Whether it ended as wanted.
    #[inline]
    pub fn is_success(&self) -> bool {
        self.0.status == sys::IBV_WC_SUCCESS
    }

    /// What it was.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        match self.0.opcode {
            sys::IBV_WC_RDMA_WRITE => Opcode::Write,
            sys::IBV_WC_RDMA_READ => Opcode::Read,
            sys::IBV_WC_FETCH_ADD => Opcode::FetchAdd,
            sys::IBV_WC_COMP_SWAP => Opcode::CompareSwap,
            sys::IBV_WC_SEND => Opcode::Send,
            sys::IBV_WC_RECV => Opcode::Receive,
            _ => Opcode::Other,
        }
    }

    /// Bytes received; for receives, reads and atomics only. A datagram's count the 40 bytes before it.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a count of bytes, not a collection")]
    pub fn len(&self) -> u32 {
        self.0.byte_len
    }

    /// The number of the queue pair that it was posted to; with a shared receive queue, that it arrived at.
    #[inline]
    pub fn queue_pair(&self) -> u32 {
        self.0.qp_num
    }

    /// The number of the queue pair that a datagram came from.
    #[inline]
    pub fn source_queue_pair(&self) -> u32 {
        self.0.src_qp
    }

    /// Whether the first 40 bytes that a datagram was received into hold its global route header. They are taken up in any
    /// case.
    #[inline]
    pub fn has_grh(&self) -> bool {
        self.0.wc_flags & sys::IBV_WC_GRH != 0
    }

    /// The vendor's number for a failure.
    pub fn vendor_error(&self) -> u32 {
        self.0.vendor_err
    }
}

impl Default for WorkCompletion {
    fn default() -> Self {
        WorkCompletion::EMPTY
    }
}

impl fmt::Debug for WorkCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkCompletion")
            .field("id", &self.id())
            .field("status", &self.status())
            .field("opcode", &self.opcode())
            .field("len", &self.len())
            .field("queue_pair", &self.queue_pair())
            .field("vendor_error", &self.vendor_error())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_own_words() {
        let texts: std::collections::HashSet<String> =
            (0..24).map(|raw| Status::from_raw(raw).to_string()).collect();
        assert_eq!(texts.len(), 24);
        assert_eq!(Status::from_raw(5), Status::Flushed);
        assert_eq!(Status::from_raw(10), Status::RemoteAccess);
        assert!(WorkCompletion::EMPTY.is_success() && WorkCompletion::EMPTY.status().is_success());
    }
}
