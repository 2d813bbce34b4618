//! What is plain is done as a span does it; what is not is refused, and changes nothing.

use super::*;
use crate::memory::Stripes;

const BYTES: usize = 256;

struct Part {
    memory: Span,
    sections: Sections,
    mapped: Mapped,
}

impl Part {
    fn at_hand(&self) -> &Memory {
        self.mapped.covered(0).unwrap()
    }
}

fn part(unit: usize) -> Part {
    let memory = Span::anonymous(BYTES).unwrap();
    let sections = Sections::new(&Span::anonymous(Sections::BYTES).unwrap()).unwrap();
    let state = Span::anonymous(64).unwrap();
    let locks = || Stripes::private().unwrap();
    let updates = Updates::new(&state, locks(), locks(), 0).unwrap();
    let mapped = Mapped::new(0);
    mapped.cover(0, true);
    assert!(mapped.covered(0).is_none() && mapped.target().is_none() && !mapped.is_free(0));
    mapped.fill(0, memory.clone(), (BYTES, unit), Some(Arc::new(updates)));
    mapped.fill(2, Span::anonymous(8).unwrap(), (8, 1), None);
    assert!(mapped.covered(0).is_none() && mapped.is_free(0));
    mapped.cover(0, false);
    assert!(!mapped.is_covered_passively(0) && mapped.target() == Some(0));
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
        assert!(!part.at_hand().put(displacement, &[1]));
        assert!(!part.at_hand().get(displacement, &mut [1]));
        assert!(part.at_hand().update_one(&part.sections, displacement, ReduceOp::Sum, 1u8).is_none());
        assert!(part.at_hand().compare_swap_one(&part.sections, displacement, (0u8, 1)).is_none());
    }
    assert!(
        !part.at_hand().put(31, &[1; 9]) && !part.at_hand().put(32, &[]) && !part.at_hand().get(0, &mut [])
    );
    assert_eq!(bytes(&part), [0; BYTES]);
}

#[test]
fn copies_of_every_length_and_alignment() {
    let part = part(1);
    for len in 1..40usize {
        for start in 0..9usize {
            let data: Vec<u8> = (0..len).map(|i| (i * 7 + start + len) as u8).collect();
            assert!(part.at_hand().put(start, &data));
            let mut back = vec![0; len];
            assert!(part.at_hand().get(start, &mut back));
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
            assert!(part.at_hand().put(displacement, &start) && twin.at_hand().put(displacement, &start));
            let (mut old, mut expected) = (vec![9; ty.size()], vec![9; ty.size()]);
            let done =
                part.at_hand().update(&part.sections, displacement, (op, ty), &operand, Some(&mut old[..]));
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
            let done = part.at_hand().compare_swap(&part.sections, at, ty, (compare, &ones), &mut old);
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
    let mapped = Mapped::new(3);
    mapped.fill(3, memory, (BYTES, 1), None);
    mapped.cover(3, true);
    let mapped = mapped.covered(3).unwrap();
    assert!(mapped.put(0, &[5]) && mapped.update_one(&sections, 0, ReduceOp::Sum, 1u8).is_none());
    assert!(!mapped.update(&sections, 0, (ReduceOp::Sum, DataType::U64), &[0; 8], None));
    assert!(!mapped.update(&sections, 0, (ReduceOp::Sum, DataType::U64), &[0; 16], None));
}

#[test]
fn words_are_added_to_and_swapped_as_elements_are() {
    let part = part(8);
    // A thread that has no word of its own yet is to get one elsewhere.
    assert!(part.at_hand().add(&part.sections, 1, 5).is_none());
    assert_eq!(part.at_hand().update_one(&part.sections, 1, ReduceOp::Sum, 5u64), Some(0));
    assert_eq!(part.at_hand().add(&part.sections, 1, 7), Some(5));
    assert_eq!(part.at_hand().swap(&part.sections, 1, 11, 0), Some(12));
    assert_eq!(part.at_hand().swap(&part.sections, 1, 12, 3), Some(12));
    assert_eq!(part.at_hand().swap(&part.sections, 1, 0, 0), Some(3));
    assert!(part.at_hand().add(&part.sections, 32, 1).is_none(), "outside");
}

#[test]
fn what_is_not_covered_is_not_accessed() {
    let part = part(8);
    part.mapped.uncover(1);
    assert!(part.mapped.covered(0).is_some());
    part.mapped.uncover(0);
    let strangers = [0, 1, 2, usize::MAX, usize::MAX >> 1, 1 << 63];
    assert!(strangers.iter().all(|target| part.mapped.covered(*target).is_none() || *target == 1));
    part.mapped.cover(2, true);
    assert!(part.mapped.covered(0).is_none());
    part.mapped.cover(0, true);
    assert!(part.mapped.covered(0).is_some() && part.mapped.is_covered_passively(0));
    for stranger in &strangers[1..] {
        assert!(part.mapped.covered(*stranger).is_none() && !part.mapped.is_free(*stranger), "{stranger}");
        assert!(!part.mapped.is_covered_passively(*stranger), "{stranger}");
    }
}

/// Several elements are updated here until they are worth the switch to locks, which is for others to make: it is offered to
/// them until they do.
#[test]
fn accumulates_add_up_to_a_switch() {
    let locks = || Stripes::private().unwrap();
    let updates = Arc::new(Updates::new(&Span::anonymous(64).unwrap(), locks(), locks(), 0).unwrap());
    let part = part(1);
    let mapped = Mapped::new(0);
    mapped.fill(0, part.memory.clone(), (BYTES, 1), Some(updates.clone()));
    mapped.cover(0, true);
    let (what, operands) = ((ReduceOp::Sum, DataType::F64), [0; 64]);
    let update = || mapped.covered(0).unwrap().update(&part.sections, 0, what, &operands, None);
    assert_eq!((0..10_000).take_while(|_| update()).count(), (16 << 10) / operands.len() - 1);
    assert!(!update() && !update());
    assert!(updates.should_switch(operands.len()) && !updates.should_switch(operands.len()));
    assert!(update());
}
