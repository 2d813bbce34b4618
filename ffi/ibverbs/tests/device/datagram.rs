//! Datagrams.

use ibverbs::{AddressHandle, Opcode, Operation};

use crate::support::{PLAN, PORT, Plan, Side, devices, sides};

const QKEY: u32 = 0x1234_5678;
/// Before a datagram's bytes there is room for its global route header.
const HEADER: u32 = 40;

fn ready() -> Option<[Side; 2]> {
    let sides = sides(&devices()?, &Plan { datagram: true, ..PLAN });
    sides.iter().for_each(|side| side.pair.initialise_datagram(PORT, QKEY).unwrap());
    Some(sides)
}

#[test]
fn a_datagram_says_where_it_is_from() {
    let Some([a, b]) = ready() else { return };
    // SAFETY: the memory stays until the receive has completed, below.
    unsafe { b.pair.post_receive(8, b.memory.part(0, HEADER + 256)) }.unwrap();
    let handle = AddressHandle::new(&a.domain, &b.route(&a)).unwrap();
    (0..32).for_each(|word| a.memory.set(word, 900 + word as u64));
    let to = Operation::SendTo { handle: &handle, number: b.pair.number(), qkey: QKEY };
    a.carry_out(to, &[a.memory.part(0, 256)]);

    let received = b.completion();
    assert!(received.is_success(), "{}", received.status());
    assert_eq!((received.id(), received.opcode()), (8, Opcode::Receive));
    assert_eq!((received.len(), received.source_queue_pair()), (HEADER + 256, a.pair.number()));
    assert_eq!(received.has_grh(), b.context.port(PORT).unwrap().ethernet);
    assert!((0..32).all(|word| b.memory.get(HEADER as usize / 8 + word) == 900 + word as u64));
}

#[test]
fn a_datagram_with_another_key_is_not_received() {
    let Some([a, b]) = ready() else { return };
    // SAFETY: the memory stays until the receive has completed, below.
    unsafe { b.pair.post_receive(1, b.memory.part(0, HEADER + 8)) }.unwrap();
    let handle = AddressHandle::new(&a.domain, &b.route(&a)).unwrap();
    for (value, qkey) in [(1, QKEY + 1), (2, QKEY)] {
        a.memory.set(0, value);
        a.carry_out(
            Operation::SendTo { handle: &handle, number: b.pair.number(), qkey },
            &[a.memory.part(0, 8)],
        );
    }
    assert!(b.completion().is_success());
    assert_eq!(b.memory.get(HEADER as usize / 8), 2);
}
