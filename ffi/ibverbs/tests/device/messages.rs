//! Messages into a shared receive queue, and waking up for them.

use std::time::Duration;

use ibverbs::{Opcode, Operation, Status};

use crate::support::{PLAN, Plan, pair, readable, request};

#[test]
fn messages_land_in_the_shared_queue() {
    let Some([a, b]) = pair(&Plan { shared: true, ..PLAN }) else { return };
    let shared = b.shared.as_ref().unwrap();
    for id in 0..3 {
        // SAFETY: the memory stays until the receives have completed, below.
        unsafe { shared.post(id, b.memory.part(100 * id as usize, 64)) }.unwrap();
    }
    for n in 0..3 {
        a.memory.set(0, 70 + n);
        let sent = a.carry_out(Operation::Send, &[a.memory.part(0, 8 + n as u32)]);
        assert_eq!(sent.opcode(), Opcode::Send);
        let received = b.completion();
        assert!(received.is_success(), "{}", received.status());
        assert_eq!((received.opcode(), received.len()), (Opcode::Receive, 8 + n as u32));
        assert_eq!(received.queue_pair(), b.pair.number());
        assert_eq!(b.memory.get(100 * received.id() as usize), 70 + n);
    }
}

#[test]
fn a_message_without_a_receive_gives_up() {
    let Some([a, _b]) = pair(&Plan { shared: true, rnr_retries: 0, ..PLAN }) else { return };
    a.post(&[request(1, Operation::Send, &[a.memory.part(0, 8)])]);
    let status = a.completion().status();
    assert_eq!(status, Status::RnrRetryExceeded, "{status}");
    assert!(status.is_unreachable());
}

#[test]
fn a_message_too_long_for_its_receive_fails_on_both_sides() {
    let Some([a, b]) = pair(&PLAN) else { return };
    // SAFETY: the memory stays until the receive has completed, below.
    unsafe { b.pair.post_receive(1, b.memory.part(0, 8)) }.unwrap();
    a.post(&[request(2, Operation::Send, &[a.memory.part(0, 64)])]);
    // Soft-RoCE says the latter of each.
    let (receiver, sender) = (b.completion().status(), a.completion().status());
    assert!(matches!(receiver, Status::LocalLength | Status::LocalQp), "{receiver}");
    assert!(matches!(sender, Status::RemoteInvalidRequest | Status::RemoteOperation), "{sender}");
}

#[test]
fn a_full_receive_queue_says_so() {
    let Some([_a, b]) = pair(&Plan { shared: true, ..PLAN }) else { return };
    let shared = b.shared.as_ref().unwrap();
    let mut posted = 0;
    let error = loop {
        // SAFETY: the memory stays until the side is dropped.
        match unsafe { shared.post(posted, b.memory.part(0, 64)) } {
            Ok(()) => posted += 1,
            Err(error) => break error,
        }
        assert!(posted < 10_000);
    };
    assert!(posted >= 16, "{posted} receives");
    assert!(error.is_exhausted(), "{error}");
}

#[test]
fn a_completion_wakes_a_sleeper() {
    let Some([a, b]) = pair(&PLAN) else { return };
    // SAFETY: the memory stays until the receives have completed, below.
    (0..2).for_each(|id| unsafe { b.pair.post_receive(id, b.memory.part(0, 64)) }.unwrap());
    b.queue.request_notification().unwrap();
    b.assert_nothing_completes();
    assert!(!readable(&*b.channel, Duration::ZERO));
    assert_eq!(b.channel.take_events(), 0);

    a.carry_out(Operation::Send, &[a.memory.part(0, 8)]);
    assert!(readable(&*b.channel, Duration::from_secs(20)));
    assert_eq!(b.channel.take_events(), 1);
    assert!(!readable(&*b.channel, Duration::ZERO));
    assert_eq!(b.completion().id(), 0);

    // Not asked again, not woken again.
    a.carry_out(Operation::Send, &[a.memory.part(0, 8)]);
    assert_eq!(b.completion().id(), 1);
    assert_eq!(b.channel.take_events(), 0);
}

/// Destroying a queue waits for notifications that were taken and not acknowledged; those not taken must not hold it up.
#[test]
fn a_queue_can_go_with_a_notification_waiting() {
    let Some([a, b]) = pair(&PLAN) else { return };
    a.queue.request_notification().unwrap();
    let address = b.memory.address(0);
    let write = Operation::Write { address, key: b.memory.region().remote_key() };
    a.carry_out(write, &[a.memory.part(0, 8)]);
    assert!(readable(&*a.channel, Duration::from_secs(20)));
    let channel = a.channel.clone();
    drop(a);
    assert_eq!(channel.take_events(), 0);
}
