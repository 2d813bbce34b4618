//! What a device reports without being asked.

use ibverbs_sys as sys;
use nix::errno::Errno;

use crate::{Context, VerbsError};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AsyncKind {
    /// A queue pair is broken.
    QpFatal,
    /// A peer's request was not allowed, and the queue pair is in the error state.
    QpAccessError,
    /// A peer's request was malformed, and the queue pair is in the error state.
    QpRequestError,
    /// A completion queue has run over.
    CqError,
    /// The device is broken.
    DeviceFatal,
    /// A port went down.
    PortError,
    /// A port came up.
    PortActive,
    /// A shared receive queue is broken.
    SrqError,
    /// A shared receive queue has fewer receives left than its limit.
    SrqLimit,
    /// A queue pair in the error state will take no more from its shared receive queue.
    LastWqeReached,
    /// Another, by its number in ibv_get_async_event(3).
    Other(u32),
}

impl AsyncKind {
    fn from_raw(raw: sys::ibv_event_type) -> AsyncKind {
        match raw {
            sys::IBV_EVENT_QP_FATAL => AsyncKind::QpFatal,
            sys::IBV_EVENT_QP_ACCESS_ERR => AsyncKind::QpAccessError,
            sys::IBV_EVENT_QP_REQ_ERR => AsyncKind::QpRequestError,
            sys::IBV_EVENT_CQ_ERR => AsyncKind::CqError,
            sys::IBV_EVENT_DEVICE_FATAL => AsyncKind::DeviceFatal,
            sys::IBV_EVENT_PORT_ERR => AsyncKind::PortError,
            sys::IBV_EVENT_PORT_ACTIVE => AsyncKind::PortActive,
            sys::IBV_EVENT_SRQ_ERR => AsyncKind::SrqError,
            sys::IBV_EVENT_SRQ_LIMIT_REACHED => AsyncKind::SrqLimit,
            sys::IBV_EVENT_QP_LAST_WQE_REACHED => AsyncKind::LastWqeReached,
            other => AsyncKind::Other(other),
        }
    }
}

/// Something that a device reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: AsyncKind,
    /// The number of the queue pair that it happened to, if it did to one.
    pub queue_pair: Option<u32>,
    /// The port that it happened to, if it did to one.
    pub port: Option<u8>,
}

impl AsyncEvent {
    /// What happened, in words.
    pub fn text(&self) -> String {
        let what = match self.kind {
            AsyncKind::QpFatal => "the queue pair is broken",
            AsyncKind::QpAccessError => "a peer's request to the queue pair was not allowed",
            AsyncKind::QpRequestError => "a peer's request to the queue pair was malformed",
            AsyncKind::CqError => "a completion queue has run over",
            AsyncKind::DeviceFatal => "the device is broken",
            AsyncKind::PortError => "the port went down",
            AsyncKind::PortActive => "the port came up",
            AsyncKind::SrqError => "a shared receive queue is broken",
            AsyncKind::SrqLimit => "a shared receive queue runs low",
            AsyncKind::LastWqeReached => "the queue pair took its last shared receive",
            AsyncKind::Other(number) => return format!("asynchronous event {number}"),
        };
        match (self.queue_pair, self.port) {
            (Some(number), _) => format!("{what} (queue pair {number})"),
            (None, Some(number)) => format!("{what} (port {number})"),
            (None, None) => what.into(),
        }
    }
}

impl Context {
    /// Takes an event that the device has reported, if there is one. Does not block.
    pub fn async_event(&self) -> Result<Option<AsyncEvent>, VerbsError> {
        // SAFETY: a number, and pointers that are not followed before the library sets them: zero is valid.
        let mut event: sys::ibv_async_event = unsafe { std::mem::zeroed() };
        // SAFETY: ibv_get_async_event(3): an open device and room for one event.
        let returned = unsafe { (self.library().ibv_get_async_event)(self.as_ptr(), &mut event) };
        if returned != 0 {
            return match Errno::last() {
                Errno::EAGAIN | Errno::EINTR => Ok(None),
                error => Err(VerbsError::new("ibv_get_async_event", error)),
            };
        }
        let raw = event.event_type;
        // SAFETY: ibv_get_async_event(3): `element` is by type. A queue pair that has an event which is not acknowledged
        // cannot be destroyed: ibv_destroy_qp waits for it.
        let (queue_pair, port) = unsafe {
            match raw {
                1..=7 | 16 => (Some((*event.element.qp).qp_num), None),
                9..=13 | 17 | 18 => (None, u8::try_from(event.element.port_num).ok()),
                _ => (None, None),
            }
        };
        // SAFETY: ibv_get_async_event(3): an event that was got, once.
        unsafe { (self.library().ibv_ack_async_event)(&mut event) };
        Ok(Some(AsyncEvent { kind: AsyncKind::from_raw(raw), queue_pair, port }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_words() {
        assert_eq!(AsyncKind::from_raw(10), AsyncKind::PortError);
        assert_eq!(AsyncKind::from_raw(99), AsyncKind::Other(99));
        let event = AsyncEvent { kind: AsyncKind::from_raw(3), queue_pair: Some(17), port: None };
        assert_eq!(event.text(), "a peer's request to the queue pair was not allowed (queue pair 17)");
        let event = AsyncEvent { kind: AsyncKind::from_raw(99), queue_pair: None, port: None };
        assert_eq!(event.text(), "asynchronous event 99");
    }
}
