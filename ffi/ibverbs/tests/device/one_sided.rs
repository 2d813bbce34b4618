//! Writes, reads and atomics.

use ibverbs::{Atomics, BATCH, Local, MAX_PARTS, Opcode, Operation, Request};

use crate::support::{PLAN, Side, pair, request};

fn write_to(side: &Side, word: usize) -> Operation<'static> {
    Operation::Write { address: side.memory.address(word), key: side.memory.region().remote_key() }
}

#[test]
fn a_write_arrives() {
    let Some([a, b]) = pair(&PLAN) else { return };
    (0..1024).for_each(|word| a.memory.set(word, word as u64 * 3 + 1));
    let completion = a.carry_out(write_to(&b, 1000), &[a.memory.part(0, 8 * 1024)]);
    assert_eq!(completion.opcode(), Opcode::Write);
    assert!((0..1024).all(|word| b.memory.get(1000 + word) == word as u64 * 3 + 1));
    assert_eq!((b.memory.get(999), b.memory.get(2024)), (0, 0));
}

#[test]
fn an_inline_write_is_copied_when_posted() {
    let Some([a, b]) = pair(&PLAN) else { return };
    assert!(a.pair.inline() >= 8, "{} bytes inline", a.pair.inline());
    let mut word = 77_u64;
    let part = Local { address: &raw const word as u64, len: 8, key: 0 };
    a.post(&[Request { inline: true, ..request(1, write_to(&b, 5), &[part]) }]);
    word += 1;
    assert!(a.completion().is_success());
    assert_eq!((b.memory.get(5), word), (77, 78));
}

#[test]
fn parts_are_gathered_in_order() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let parts: Vec<Local> = (0..MAX_PARTS)
        .map(|part| {
            a.memory.set(10 * part, 500 + part as u64);
            a.memory.part(10 * part, 8)
        })
        .collect();
    a.carry_out(write_to(&b, 0), &parts);
    assert!((0..MAX_PARTS).all(|word| b.memory.get(word) == 500 + word as u64));
    assert_eq!(b.memory.get(MAX_PARTS), 0);
}

#[test]
fn a_chain_completes_once_and_in_order() {
    let Some([a, b]) = pair(&PLAN) else { return };
    let parts: Vec<[Local; 1]> = (0..BATCH)
        .map(|word| {
            a.memory.set(word, 1000 + word as u64);
            [a.memory.part(word, 8)]
        })
        .collect();
    // Each writes a word of its own and, by turns, one of two that they share: the last ones must win.
    let requests: Vec<Request<'_>> = (0..BATCH)
        .map(|n| Request {
            signalled: n + 1 == BATCH,
            ..request(n as u64, write_to(&b, if n % 2 == 0 { 100 } else { n }), &parts[n])
        })
        .collect();
    a.post(&requests);
    let completion = a.completion();
    assert!(completion.is_success(), "{}", completion.status());
    assert_eq!(completion.id(), BATCH as u64 - 1);
    a.assert_nothing_completes();
    assert_eq!(b.memory.get(100), 1000 + BATCH as u64 - 2);
    assert!((1..BATCH).step_by(2).all(|word| b.memory.get(word) == 1000 + word as u64));
}

#[test]
fn a_read_brings_the_peers_words() {
    let Some([a, b]) = pair(&PLAN) else { return };
    (0..512).for_each(|word| b.memory.set(word, !(word as u64)));
    let read = Operation::Read { address: b.memory.address(0), key: b.memory.region().remote_key() };
    let completion = a.carry_out(read, &[a.memory.part(64, 4096)]);
    assert_eq!(completion.opcode(), Opcode::Read);
    assert!((0..512).all(|word| a.memory.get(64 + word) == !(word as u64)));
}

#[test]
fn atomics_bring_the_old_value() {
    let Some([a, b]) = pair(&PLAN) else { return };
    if b.context.attributes().unwrap().atomics == Atomics::None {
        return println!("skipped: {} has no atomics", b.context.name());
    }
    let (address, key) = (b.memory.address(3), b.memory.region().remote_key());
    let result = [a.memory.part(0, 8)];
    b.memory.set(3, u64::MAX);

    let completion = a.carry_out(Operation::FetchAdd { address, key, add: 5 }, &result);
    assert_eq!(completion.opcode(), Opcode::FetchAdd);
    assert_eq!((a.memory.get(0), b.memory.get(3)), (u64::MAX, 4));

    let completion = a.carry_out(Operation::CompareSwap { address, key, compare: 9, swap: 1 }, &result);
    assert_eq!(completion.opcode(), Opcode::CompareSwap);
    assert_eq!((a.memory.get(0), b.memory.get(3)), (4, 4));

    a.carry_out(Operation::CompareSwap { address, key, compare: 4, swap: 1 << 63 }, &result);
    assert_eq!((a.memory.get(0), b.memory.get(3)), (4, 1 << 63));
}
