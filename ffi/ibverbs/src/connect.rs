//! A queue pair's way from creation to use: its states (ibv_modify_qp(3)).

use ibverbs_sys as sys;

use crate::error::check;
use crate::{Access, ConnectionId, Mtu, QueuePair, Route, VerbsError};

/// The state of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QpState {
    /// As created.
    Reset,
    /// Receives may be posted.
    Initialised,
    /// It answers its peer.
    ReadyToReceive,
    /// Everything may be posted.
    ReadyToSend,
    /// Requests to the peer are held back.
    SendDrained,
    /// A datagram failed.
    SendError,
    /// It failed: whatever is posted ends [`crate::Status::Flushed`].
    Error,
    /// Another, by its number.
    Other(u32),
}

/// What one side must know of the other to receive from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The peer's queue pair ([`QueuePair::number`]).
    pub number: u32,
    /// The peer's first packet, 24 bits: [`Sending::sequence`] of its.
    pub sequence: u32,
    /// The peer's port in an InfiniBand subnet; zero on Ethernet.
    pub lid: u16,
    /// The peer's address; used if `global`.
    pub gid: [u8; 16],
    /// This side's address, by its place ([`crate::Gid::index`]); used if `global`.
    pub gid_index: u8,
    /// Whether packets carry both addresses: always on Ethernet, and between InfiniBand subnets.
    pub global: bool,
    /// The payload of a packet: the lesser of both ports'.
    pub mtu: Mtu,
    /// This side's port.
    pub port: u8,
    /// Reads and atomics of the peer under way at once, at most [`crate::Attributes::max_qp_rd_atom`]
    /// (`max_dest_rd_atomic`).
    pub responder_depth: u8,
    /// How long the peer shall wait when no receive is posted here: a code of five bits, 12 for 0.64 ms
    /// (`min_rnr_timer`).
    pub receiver_not_ready: u8,
}

impl Path {
    fn route(&self) -> Route {
        Route {
            lid: self.lid,
            gid: self.gid,
            gid_index: self.gid_index,
            global: self.global,
            port: self.port,
        }
    }
}

/// How a queue pair sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The number of its first packet, 24 bits.
    pub sequence: u32,
    /// How long it waits for an answer: 4.096 µs · 2ⁿ, so 14 for 67 ms; 0 for ever.
    pub timeout: u8,
    /// How often it tries again without an answer, 0 to 7. Soft-RoCE takes 7 for ever (observed): use 6 if a lost peer is to
    /// be noticed.
    pub retries: u8,
    /// How often it tries again when the peer has no receive posted, 0 to 6; 7 for ever.
    pub receiver_not_ready_retries: u8,
    /// Own reads and atomics under way at once: at most the peer's [`Path::responder_depth`] and
    /// [`crate::Attributes::max_qp_init_rd_atom`] (`max_rd_atomic`).
    pub initiator_depth: u8,
}

impl QueuePair {
    /// From [`QpState::Reset`] to [`QpState::Initialised`], for a reliable pair. Peers may access memory in the remote
    /// ways given.
    pub fn initialise(&self, port: u8, access: Access) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_INIT);
        attr.port_num = port;
        attr.qp_access_flags = access.bits();
        let fields = sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_ACCESS_FLAGS;
        self.modify("ibv_modify_qp (to INIT)", &mut attr, fields)
    }

    /// From [`QpState::Initialised`] to [`QpState::ReadyToReceive`].
    pub fn ready_to_receive(&self, path: &Path) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_RTR);
        attr.ah_attr = path.route().to_raw();
        attr.path_mtu = path.mtu.to_raw();
        attr.dest_qp_num = path.number;
        attr.rq_psn = path.sequence;
        attr.max_dest_rd_atomic = path.responder_depth;
        attr.min_rnr_timer = path.receiver_not_ready;
        let fields = sys::IBV_QP_AV
            | sys::IBV_QP_PATH_MTU
            | sys::IBV_QP_DEST_QPN
            | sys::IBV_QP_RQ_PSN
            | sys::IBV_QP_MAX_DEST_RD_ATOMIC
            | sys::IBV_QP_MIN_RNR_TIMER;
        self.modify("ibv_modify_qp (to RTR)", &mut attr, fields)
    }

    /// From [`QpState::ReadyToReceive`] to [`QpState::ReadyToSend`].
    pub fn ready_to_send(&self, sending: &Sending) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_RTS);
        attr.sq_psn = sending.sequence;
        attr.timeout = sending.timeout;
        attr.retry_cnt = sending.retries;
        attr.rnr_retry = sending.receiver_not_ready_retries;
        attr.max_rd_atomic = sending.initiator_depth;
        let fields = sys::IBV_QP_SQ_PSN
            | sys::IBV_QP_TIMEOUT
            | sys::IBV_QP_RETRY_CNT
            | sys::IBV_QP_RNR_RETRY
            | sys::IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify("ibv_modify_qp (to RTS)", &mut attr, fields)
    }

    /// From [`QpState::Reset`] to [`QpState::ReadyToSend`], for a datagram pair. It takes datagrams that carry the same
    /// `qkey`.
    pub fn initialise_datagram(&self, port: u8, qkey: u32) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_INIT);
        attr.port_num = port;
        attr.qkey = qkey;
        let fields = sys::IBV_QP_PKEY_INDEX | sys::IBV_QP_PORT | sys::IBV_QP_QKEY;
        self.modify("ibv_modify_qp (to INIT)", &mut attr, fields)?;
        self.modify("ibv_modify_qp (to RTR)", &mut attributes(sys::IBV_QPS_RTR), 0)?;
        let mut attr = attributes(sys::IBV_QPS_RTS);
        self.modify("ibv_modify_qp (to RTS)", &mut attr, sys::IBV_QP_SQ_PSN)
    }

    /// The same step as [`QueuePair::initialise`], on the device and port of a connection.
    pub fn initialise_for(&self, id: &ConnectionId, access: Access) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_INIT);
        let fields = id.attributes(&mut attr)?;
        attr.qp_access_flags = access.bits();
        self.modify("ibv_modify_qp (to INIT)", &mut attr, fields | sys::IBV_QP_ACCESS_FLAGS)
    }

    /// The same step as [`QueuePair::ready_to_receive`], to the peer of a connection. Not on iWARP, where accepting does it.
    pub fn ready_to_receive_from(&self, id: &ConnectionId, receiver_not_ready: u8) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_RTR);
        let fields = id.attributes(&mut attr)?;
        attr.min_rnr_timer = receiver_not_ready;
        self.modify("ibv_modify_qp (to RTR)", &mut attr, fields | sys::IBV_QP_MIN_RNR_TIMER)
    }

    /// The same step as [`QueuePair::ready_to_send`], with this timeout and so many retries.
    pub fn ready_to_send_to(&self, id: &ConnectionId, timeout: u8, retries: u8) -> Result<(), VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_RTS);
        let fields = id.attributes(&mut attr)?;
        (attr.timeout, attr.retry_cnt) = (timeout, retries);
        self.modify("ibv_modify_qp (to RTS)", &mut attr, fields)
    }

    /// To [`QpState::Error`], from any state: what is under way ends [`crate::Status::Flushed`], and nothing of the peer's
    /// is carried out any more.
    pub fn fail(&self) -> Result<(), VerbsError> {
        self.modify("ibv_modify_qp (to ERR)", &mut attributes(sys::IBV_QPS_ERR), 0)
    }

    /// The state it is in (ibv_query_qp(3)).
    pub fn state(&self) -> Result<QpState, VerbsError> {
        let mut attr = attributes(sys::IBV_QPS_RESET);
        // SAFETY: numbers and pointers, for which zero is valid.
        let mut init: sys::ibv_qp_init_attr = unsafe { std::mem::zeroed() };
        let fields = sys::IBV_QP_STATE.cast_signed();
        let library = self.library();
        // SAFETY: ibv_query_qp(3): a live queue pair and room for both answers.
        check("ibv_query_qp", unsafe {
            (library.ibv_query_qp)(self.as_ptr(), &mut attr, fields, &mut init)
        })?;
        Ok(match attr.qp_state {
            sys::IBV_QPS_RESET => QpState::Reset,
            sys::IBV_QPS_INIT => QpState::Initialised,
            sys::IBV_QPS_RTR => QpState::ReadyToReceive,
            sys::IBV_QPS_RTS => QpState::ReadyToSend,
            sys::IBV_QPS_SQD => QpState::SendDrained,
            sys::IBV_QPS_SQE => QpState::SendError,
            sys::IBV_QPS_ERR => QpState::Error,
            other => QpState::Other(other),
        })
    }

    fn modify(
        &self,
        operation: &'static str,
        attr: &mut sys::ibv_qp_attr,
        fields: sys::ibv_qp_attr_mask,
    ) -> Result<(), VerbsError> {
        let fields = (sys::IBV_QP_STATE | fields).cast_signed();
        // SAFETY: ibv_modify_qp(3): a live queue pair, and attributes that outlive the call.
        check(operation, unsafe { (self.library().ibv_modify_qp)(self.as_ptr(), attr, fields) })
    }
}

/// All zero but for the state: partition key 0, the default one, among them.
fn attributes(state: sys::ibv_qp_state) -> sys::ibv_qp_attr {
    // SAFETY: numbers, and an address that is numbers, for which zero is valid.
    let mut attr: sys::ibv_qp_attr = unsafe { std::mem::zeroed() };
    attr.qp_state = state;
    attr
}
