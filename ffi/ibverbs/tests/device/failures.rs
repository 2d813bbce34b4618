//! What goes wrong is said, and to the right request.

use ibverbs::{Batch, Local, Operation, QpState, Request, Status};
use nix::errno::Errno;

use crate::support::{Memory, PLAN, Side, all_access, pair, request};

fn write(side: &Side, word: usize, key: u32) -> Operation<'static> {
    Operation::Write { address: side.memory.address(word), key }
}

#[test]
fn a_wrong_key_breaks_the_pair() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let key = b.memory.region().remote_key();
    let part = [a.memory.part(0, 8)];
    a.memory.set(0, 1);
    let wrong = Request { signalled: false, ..request(1, write(&b, 0, key ^ 0x5500), &part) };
    a.post(&[wrong, request(2, write(&b, 0, key), &part), request(3, write(&b, 0, key), &part)]);
    // Not signalled, and yet reported, because it failed.
    let first = a.completion();
    assert_eq!((first.id(), first.status()), (1, Status::RemoteAccess), "{}", first.status());
    for id in [2, 3] {
        let next = a.completion();
        assert_eq!(next.id(), id);
        assert!(next.status().is_flushed(), "{}", next.status());
    }
    assert_eq!(a.pair.state().unwrap(), QpState::Error);
    assert_eq!(b.memory.get(0), 0);
}

#[test]
fn a_region_that_ended_is_out_of_reach() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let extra = Memory::new(&b.domain, all_access());
    let operation = Operation::Write { address: extra.address(0), key: extra.region().remote_key() };
    a.memory.set(0, 5);
    a.carry_out(operation, &[a.memory.part(0, 8)]);
    assert_eq!(extra.get(0), 5);
    drop(extra);
    a.post(&[request(1, operation, &[a.memory.part(0, 8)])]);
    assert_eq!(a.completion().status(), Status::RemoteAccess);
}

#[test]
fn a_wrong_local_key_is_a_local_error() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let part = Local { key: a.memory.region().local_key() ^ 0x5500, ..a.memory.part(0, 8) };
    a.post(&[request(1, write(&b, 0, b.memory.region().remote_key()), &[part])]);
    // Soft-RoCE says the latter.
    let status = a.completion().status();
    assert!(matches!(status, Status::LocalProtection | Status::LocalQp), "{status}");
}

#[test]
fn a_peer_that_is_gone_does_not_answer() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let operation = write(&b, 0, b.memory.region().remote_key());
    drop(b);
    a.post(&[request(1, operation, &[a.memory.part(0, 8)])]);
    let status = a.completion().status();
    assert_eq!(status, Status::RetryExceeded, "{status}");
    assert!(status.is_unreachable());
}

/// Soft-RoCE refuses it when it is posted; hardware leaves it to the peer.
#[test]
fn a_misaligned_atomic_is_refused_and_the_rest_goes_on() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let key = b.memory.region().remote_key();
    let part = [a.memory.part(0, 8)];
    a.memory.set(0, 6);
    let misaligned = Operation::FetchAdd { address: b.memory.address(0) + 4, key, add: 1 };
    let mut batch = Batch::new();
    batch.push(&request(1, write(&b, 1, key), &part)).unwrap();
    batch.push(&request(2, misaligned, &[a.memory.part(9, 8)])).unwrap();
    batch.push(&request(3, write(&b, 3, key), &part)).unwrap();
    // SAFETY: the parts are of this side's memory, which stays.
    let posted = unsafe { a.pair.post(&mut batch) };
    if !a.context.name().starts_with("rxe") && posted.is_ok() {
        assert!(a.completion().is_success());
        return assert_eq!(a.completion().status(), Status::RemoteInvalidRequest);
    }
    let error = posted.unwrap_err();
    assert_eq!((error.taken, error.error.code), (1, Errno::EINVAL as i32), "{error}");
    assert_eq!(batch.len(), 2);
    batch.skip(1);
    // SAFETY: as above.
    unsafe { a.pair.post(&mut batch) }.unwrap();
    for id in [1, 3] {
        let completion = a.completion();
        assert_eq!((completion.id(), completion.status()), (id, Status::Success));
    }
    assert_eq!([0, 1, 2, 3].map(|word| b.memory.get(word)), [0, 6, 0, 6]);
}

#[test]
fn more_inline_than_granted_is_refused() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let operation = write(&b, 0, b.memory.region().remote_key());
    let part = [a.memory.part(0, a.pair.inline() + 1)];
    let mut batch = Batch::new();
    batch.push(&Request { inline: true, ..request(1, operation, &part) }).unwrap();
    // SAFETY: the part is of this side's memory, which stays.
    let error = unsafe { a.pair.post(&mut batch) }.unwrap_err();
    println!("{error}");
    assert_eq!((error.taken, batch.len()), (0, 1));
}
