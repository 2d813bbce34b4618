//! Every kind of operation, between two endpoints of one process.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use libc::{POLLIN, poll, pollfd};
use libfabric::{
    Address, AtomicCall, AtomicKind, AtomicOp, Completion, Datatype, Local, MemoryRegion, Remote, flags,
};

use crate::support::{self, Side, loopback, offer, pair};

const REMOTE_ACCESS: u64 = flags::REMOTE_READ | flags::REMOTE_WRITE;

fn start(caps: u64) -> Option<[Side; 2]> {
    let library = support::library()?;
    Some(pair(&offer(library, &loopback(caps))?))
}

/// Registers memory at a side and says where its peer finds it.
fn expose<T>(side: &Side, memory: *mut T, len: usize, requested_key: u64) -> (MemoryRegion, Remote) {
    // SAFETY: every caller keeps the memory for longer than the region and reads it through pointers.
    let region =
        unsafe { MemoryRegion::register(&side.domain, memory.cast(), len, REMOTE_ACCESS, requested_key) }
            .unwrap();
    let remote = Remote { address: 0, key: region.key() };
    (region, remote)
}

#[test]
fn a_message_arrives_whole_and_in_one_piece() {
    let Some([a, b]) = start(flags::MSG) else { return };
    let mut inbox = [0_u8; 64];
    // SAFETY: the inbox outlives the receive, which completes below.
    b.post(&a, |endpoint| unsafe { endpoint.recv(Local::new(inbox.as_mut_ptr(), 64), 7) });
    let (header, payload) = (*b"header ", *b"payload");
    let parts = [Local::read_only(header.as_ptr(), 7), Local::read_only(payload.as_ptr(), 7)];
    // SAFETY: the parts outlive the send, which completes below.
    a.post(&b, |endpoint| unsafe { endpoint.send_parts(&parts, a.peer, 8, flags::COMPLETION) });

    let sent = a.completion_beside(&b, 7);
    assert_eq!(sent.0.context(), 8);
    assert_eq!(sent.1.len(), 14);
    assert_eq!(&inbox[..14], b"header payload");
}

#[test]
fn a_multi_receive_buffer_takes_messages_until_it_is_given_back() {
    let Some([a, b]) = start(flags::MSG | flags::MULTI_RECV) else { return };
    let mut inbox = [0_u8; 128];
    let base = inbox.as_mut_ptr();
    // SAFETY: the inbox outlives the receive, which is given back below.
    b.post(&a, |endpoint| unsafe { endpoint.recv_multi(Local::new(base, 128), 1) });
    let mut at = Vec::new();
    for text in [b"first message, 40 bytes long ...........", b"second message, just as long ..........."] {
        // SAFETY: injected bytes are copied.
        a.post(&b, |endpoint| unsafe { endpoint.inject(text, a.peer) });
        let received = b.completion(&a);
        assert_eq!(received.len(), 40);
        // SAFETY: the provider put the message there and is done with these bytes.
        assert_eq!(unsafe { std::slice::from_raw_parts(received.buffer(), 40) }, text);
        at.push(received.buffer() as usize - base as usize);
        if received.flags() & flags::MULTI_RECV != 0 {
            assert_eq!(at, [0, 40]);
            return;
        }
    }
    let last = b.completion(&a);
    assert_ne!(last.flags() & flags::MULTI_RECV, 0, "{last:?}");
}

#[test]
fn a_write_with_delivery_complete_is_in_memory_and_a_read_sees_it() {
    let Some([a, b]) = start(flags::MSG | flags::RMA) else { return };
    let mut window = [0_u64; 8];
    let (_region, remote) = expose(&b, window.as_mut_ptr(), 64, 0x1234_5678);
    let second = Remote { address: 8, ..remote };

    let value = 0xfeed_u64;
    let from = [Local::read_only((&raw const value).cast(), 8)];
    let flags_of_write = flags::COMPLETION | flags::DELIVERY_COMPLETE;
    // SAFETY: the value outlives the write, which completes below.
    a.post(&b, |endpoint| unsafe { endpoint.write_parts(&from, a.peer, second, 1, flags_of_write) });
    assert_eq!(a.completion(&b).context(), 1);
    // SAFETY: a word of our own array, which the network has written to.
    assert_eq!(unsafe { window.as_ptr().add(1).read_volatile() }, 0xfeed);

    let mut seen = 0_u64;
    let into = Local::new((&raw mut seen).cast(), 8);
    // SAFETY: `seen` outlives the read, which completes below.
    a.post(&b, |endpoint| unsafe { endpoint.read(into, a.peer, second, 2) });
    assert_eq!(a.completion(&b).context(), 2);
    assert_eq!(seen, 0xfeed);

    // SAFETY: injected bytes are copied.
    a.post(&b, |endpoint| unsafe { endpoint.inject_write(&9_u64.to_ne_bytes(), a.peer, remote) });
    let start = Instant::now();
    // SAFETY: as above.
    while unsafe { window.as_ptr().read_volatile() } != 9 {
        assert_eq!(b.queue.read(&mut []).unwrap(), 0);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn a_key_that_was_never_given_is_an_error_at_the_origin() {
    let Some([a, b]) = start(flags::MSG | flags::RMA) else { return };
    let mut window = [0_u64; 1];
    let (_region, remote) = expose(&b, window.as_mut_ptr(), 8, 5);
    let wrong = Remote { key: remote.key + 1, ..remote };
    let mut seen = 0_u64;
    let into = Local::new((&raw mut seen).cast(), 8);
    // SAFETY: `seen` outlives the read, which fails below.
    a.post(&b, |endpoint| unsafe { endpoint.read(into, a.peer, wrong, 3) });
    let start = Instant::now();
    let mut one = [Completion::EMPTY];
    let error = loop {
        match a.queue.read(&mut one) {
            Ok(0) => {}
            Ok(_) => panic!("{one:?}"),
            Err(error) if error.is_error_available() => break a.queue.read_error().unwrap().unwrap(),
            Err(error) => panic!("{error}"),
        }
        let _ = b.queue.read(&mut []);
        assert!(start.elapsed() < Duration::from_secs(20));
    };
    assert_eq!(error.context, 3);
    assert_ne!(error.errno, 0);
    assert!(!error.text.is_empty());
    assert_eq!(a.queue.read_error().unwrap(), None);
}

#[test]
fn atomics_are_granted_as_the_provider_does_them() {
    let Some([a, b]) = start(flags::MSG | flags::RMA | flags::ATOMIC) else { return };
    let limits = a.domain.query_atomic(Datatype::Int64, AtomicOp::Sum, AtomicKind::Fetch).unwrap();
    assert_eq!(limits.size, 8);
    assert!(limits.count >= 1);
    let by_endpoint = a.endpoint.query_atomic(Datatype::Int64, AtomicOp::Sum, AtomicKind::Fetch).unwrap();
    assert_eq!(by_endpoint, limits);
    assert_eq!(a.domain.query_atomic(Datatype::Double, AtomicOp::Bxor, AtomicKind::Plain), None);
    assert_eq!(a.endpoint.query_atomic(Datatype::Double, AtomicOp::Bxor, AtomicKind::Plain), None);

    let mut word = 40_i64;
    let (_region, remote) = expose(&b, &raw mut word, 8, 1);
    let call = |op| AtomicCall {
        to: a.peer,
        remote,
        datatype: Datatype::Int64,
        op,
        count: 1,
        flags: flags::COMPLETION | flags::DELIVERY_COMPLETE,
    };
    let (two, fifty, mut old) = (2_i64, 50_i64, 0_i64);
    let two = Local::read_only((&raw const two).cast(), 8);
    let fifty = Local::read_only((&raw const fifty).cast(), 8);
    let result = Local::new((&raw mut old).cast(), 8);

    // SAFETY: the operands and the result outlive the operations, each of which completes before the next; so below.
    a.post(&b, |endpoint| unsafe { endpoint.fetch_atomic(&call(AtomicOp::Sum), two, result, 1) });
    assert_eq!(a.completion(&b).context(), 1);
    assert_eq!(old, 40);
    // SAFETY: as above. The comparand (2) differs from the target (42): nothing is written.
    a.post(&b, |endpoint| unsafe { endpoint.compare_atomic(&call(AtomicOp::Cswap), fifty, two, result, 2) });
    assert_eq!(a.completion(&b).context(), 2);
    assert_eq!(old, 42);
    // SAFETY: as above.
    a.post(&b, |endpoint| unsafe { endpoint.atomic(&call(AtomicOp::Max), fifty, 3) });
    assert_eq!(a.completion(&b).context(), 3);
    // SAFETY: our own word, which the network has written to.
    assert_eq!(unsafe { (&raw const word).read_volatile() }, 50);
}

#[test]
fn without_atomics_asked_for_there_are_none() {
    let Some([a, _b]) = start(flags::MSG | flags::RMA) else { return };
    assert_eq!(a.endpoint.query_atomic(Datatype::Int64, AtomicOp::Sum, AtomicKind::Plain), None);
}

#[test]
fn the_wait_descriptor_wakes_a_sleeper() {
    let Some([a, b]) = start(flags::MSG) else { return };
    let mut inbox = [0_u8; 8];
    // SAFETY: the inbox outlives the receive, which completes below.
    b.post(&a, |endpoint| unsafe { endpoint.recv(Local::new(inbox.as_mut_ptr(), 8), 1) });
    // SAFETY: injected bytes are copied.
    a.post(&b, |endpoint| unsafe { endpoint.inject(b"wake up!", a.peer) });

    let mut one = [Completion::EMPTY];
    let start = Instant::now();
    while b.queue.read(&mut one).unwrap() == 0 {
        assert!(start.elapsed() < Duration::from_secs(20));
        if b.fabric.try_wait(&[&b.queue]).unwrap() {
            let mut descriptor =
                pollfd { fd: b.queue.wait_fd().unwrap().as_raw_fd(), events: POLLIN, revents: 0 };
            // SAFETY: one valid structure.
            assert_eq!(unsafe { poll(&mut descriptor, 1, 20_000) }, 1, "poll timed out");
        }
        assert_eq!(a.queue.read(&mut []).unwrap(), 0);
    }
    assert_eq!(&inbox, b"wake up!");
}

#[test]
fn what_is_of_another_domain_or_no_address_is_refused() {
    let Some([a, b]) = start(flags::MSG) else { return };
    assert!(a.fabric.try_wait(&[&b.queue]).is_err());
    assert!(a.endpoint.addresses().insert(&[]).is_err());
    assert!(a.endpoint.addresses().insert(&[0; 4096]).is_err());
    let parts = [Local::new(std::ptr::null_mut(), 0); libfabric::MAX_PARTS + 1];
    // SAFETY: refused before anything is posted.
    assert!(unsafe { a.endpoint.send_parts(&parts, Address::ANY, 0, 0) }.is_err());
}

impl Side {
    /// A completion here and one at the other side, in whatever order.
    fn completion_beside(&self, other: &Side, context_there: usize) -> (Completion, Completion) {
        let (mut here, mut there) = ([Completion::EMPTY], [Completion::EMPTY]);
        let (mut have_here, mut have_there) = (false, false);
        let start = Instant::now();
        while !(have_here && have_there) {
            have_here = have_here || self.queue.read(&mut here).unwrap() == 1;
            have_there = have_there || other.queue.read(&mut there).unwrap() == 1;
            assert!(start.elapsed() < Duration::from_secs(20));
        }
        assert_eq!(there[0].context(), context_there);
        (here[0], there[0])
    }
}
