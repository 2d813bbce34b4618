//! What is plain is done as a span does it; what is not is refused, and changes nothing.

use super::*;
use crate::memory::Stripes;

const BYTES: usize = 256;

struct Part {
    memory: Span,
    sections: Sections,
    mapped: Mapped,
}

fn part(unit: usize) -> Part {
    let memory = Span::anonymous(BYTES).unwrap();
    let sections = Sections::new(&Span::anonymous(Sections::BYTES).unwrap()).unwrap();
    let state = Span::anonymous(64).unwrap();
    let locks = || Stripes::private().unwrap();
    let updates = Updates::new(&state, locks(), locks(), 0).unwrap();
    let mapped = Mapped::new(memory.clone(), BYTES, unit, Some(Arc::new(updates)));
    Part { memory, sections, mapped }
}

fn bytes(part: &Part) -> [u8; BYTES] {
    let mut all = [0; BYTES];
    part.memory.copy_out(0, &mut all).unwrap();
    all
}

#[test]
fn what_is_outside_is_refused() {
    let part = part(8);
    for displacement in [32, 33, usize::MAX, usize::MAX / 8 + 1, 1 << 61] {
        assert!(!part.mapped.put(displacement, &[1]));
        assert!(!part.mapped.get(displacement, &mut [1]));
        assert!(part.mapped.update_one(&part.sections, displacement, ReduceOp::Sum, 1u8).is_none());
        assert!(part.mapped.compare_swap_one(&part.sections, displacement, 0u8, 1).is_none());
    }
    assert!(!part.mapped.put(31, &[1; 9]) && part.mapped.put(32, &[]));
    assert_eq!(bytes(&part), [0; BYTES]);
}

#[test]
fn copies_of_every_length_and_alignment() {
    let part = part(1);
    for len in 0..40usize {
        for start in 0..9usize {
            let data: Vec<u8> = (0..len).map(|i| (i * 7 + start + len) as u8).collect();
            assert!(part.mapped.put(start, &data));
            let mut back = vec![0; len];
            assert!(part.mapped.get(start, &mut back));
            assert_eq!(back, data);
        }
    }
}

/// Every operation on one element of every type: as `Span::update`, or refused where that needs a lock.
#[test]
fn updates_are_those_of_spans() {
    for (displacement, ty) in DataType::ALL.into_iter().flat_map(|ty| [(16, ty), (17, ty)]) {
        for code in 0..=u8::MAX {
            let Some(op) = ReduceOp::from_wire(code) else { break };
            let (part, twin) = (part(1), part(1));
            let start: Vec<u8> = (0..ty.size() as u8).map(|i| i % 3).collect();
            let operand: Vec<u8> = (0..ty.size() as u8).map(|i| (i + 1) % 2).collect();
            assert!(part.mapped.put(displacement, &start) && twin.mapped.put(displacement, &start));
            let (mut old, mut expected) = (vec![9; ty.size()], vec![9; ty.size()]);
            let done =
                part.mapped.update(&part.sections, displacement, (op, ty), &operand, Some(&mut old[..]));
            let plain = reduce_valid(op, ty) && ty.is_narrow() && displacement.is_multiple_of(ty.size());
            assert_eq!(done, plain, "{op:?} {ty:?} at {displacement}");
            if done {
                let stripes = Stripes::private().unwrap();
                let fetched = Some(&mut expected[..]);
                twin.memory.update(&stripes, 0, op, ty, displacement, &operand, fetched).unwrap();
            }
            assert_eq!((old, bytes(&part)), (expected, bytes(&twin)), "{op:?} {ty:?}");
        }
    }
}

#[test]
fn swaps_compare_bytes() {
    for ty in DataType::ALL {
        let part = part(1);
        let size = ty.size();
        let (zeros, ones) = (vec![0; size], vec![1; size]);
        let mut old = vec![7; size];
        let mut swap = |compare: &[u8], at| {
            let done = part.mapped.compare_swap(&part.sections, at, ty, (compare, &ones), &mut old);
            (done, old.clone())
        };
        if swap_valid(ty) {
            assert_eq!(swap(&ones, 32), (true, zeros.clone()));
            assert_eq!(swap(&zeros, 32), (true, zeros.clone()));
            assert_eq!(swap(&zeros, 32), (true, ones.clone()));
            assert_eq!(swap(&zeros, 33).0, size == 1, "misaligned");
        } else {
            assert!(!swap(&zeros, 32).0);
        }
    }
}

#[test]
fn without_a_state_nothing_is_updated() {
    let Part { memory, sections, .. } = part(1);
    let mapped = Mapped::new(memory, BYTES, 1, None);
    assert!(mapped.put(0, &[5]) && mapped.update_one(&sections, 0, ReduceOp::Sum, 1u8).is_none());
    assert!(!mapped.update(&sections, 0, (ReduceOp::Sum, DataType::U64), &[0; 8], None));
    assert!(!mapped.update(&sections, 0, (ReduceOp::Sum, DataType::U64), &[0; 16], None));
}
