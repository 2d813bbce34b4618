mod concurrent;

use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::{Basic, DataType, ReduceOp, reduce_valid, swap_valid, with_basic};

#[test]
fn copies_stay_inside() {
    let span = Span::anonymous(64).unwrap();
    for len in 0..=64 {
        let data: Vec<u8> = (0..len as u8).collect();
        let mut back = vec![0; len];
        span.copy_in(64 - len, &data).unwrap();
        span.copy_out(64 - len, &mut back).unwrap();
        assert_eq!(data, back);
    }
    for (offset, len) in [(64, 1), (60, 5), (usize::MAX, 8), (65, 0)] {
        assert!(span.copy_in(offset, &vec![0; len]).is_err());
        assert!(span.copy_out(offset, &mut vec![0; len]).is_err());
    }
}

#[test]
fn unaligned_atomic_is_refused() {
    let span = Span::anonymous(64).unwrap();
    assert!(span.fetch_op::<u64>(4, ReduceOp::Sum, 1).is_err());
    assert!(span.fetch_op::<u32>(4, ReduceOp::Sum, 1).is_ok());
    assert!(span.fetch_op::<u64>(57, ReduceOp::Sum, 1).is_err());
}

const BYTES: usize = 64;

/// Whether elements have the same bytes, or are NaN: which NaN comes out of an operation is up to the
/// compiler, which may exchange the operands.
fn same(ty: DataType, a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (a.chunks_exact(ty.size()), b.chunks_exact(ty.size()));
    with_basic!(ty, T => a.zip(b).all(|(a, b)| {
        let (x, y) = (T::read_from_bytes(a).unwrap(), T::read_from_bytes(b).unwrap());
        a == b || (PartialEq::ne(&x, &x) && PartialEq::ne(&y, &y))
    }))
}

/// `op` on elements of `ty` at `shift`: what a sequential reduction makes of `a` and `b`, and padding
/// untouched.
fn check_update(
    (span, stripes): (&Span, &Stripes),
    op: ReduceOp,
    ty: DataType,
    shift: usize,
    a: &[u8; BYTES],
    b: &[u8; BYTES],
) -> Result<(), TestCaseError> {
    span.copy_in(shift, a).unwrap();
    let read = || {
        let mut now = [0; BYTES];
        span.copy_out(shift, &mut now).unwrap();
        now
    };
    let mut old = [0; BYTES];
    let done = span.update(stripes, shift as u64, op, ty, shift, b, Some(&mut old));
    prop_assert_eq!(done.is_ok(), reduce_valid(op, ty));
    if done.is_err() {
        prop_assert_eq!(&read(), a);
        return Ok(());
    }
    let now = read();
    let data =
        |j: usize| ty.fields().iter().any(|(start, len)| (*start..start + len).contains(&(j % ty.size())));
    for j in 0..BYTES {
        prop_assert_eq!(a[j], if data(j) { old[j] } else { now[j] });
    }
    let mut expected = *a;
    with_basic!(ty, T => for i in (0..BYTES).step_by(size_of::<T>()) {
        let get = |x: &[u8; BYTES]| T::read_from_bytes(&x[i..i + size_of::<T>()]).unwrap();
        expected[i..i + size_of::<T>()].copy_from_slice(T::reduce(op, get(a), get(b)).as_bytes());
    });
    prop_assert!(same(ty, &now, &expected), "{:?} {:?}", op, ty);

    span.copy_in(shift, a).unwrap();
    span.apply_exclusive(op, ty, shift, b).unwrap();
    prop_assert!(same(ty, &read(), &expected), "{:?} {:?} alone", op, ty);

    span.copy_in(shift, a).unwrap();
    let cells = ty.is_narrow() && shift.is_multiple_of(ty.size());
    prop_assert_eq!(span.apply(op, ty, shift, b, None).is_ok(), cells);
    let expected = if cells { &expected } else { a };
    prop_assert!(same(ty, &read(), expected));
    Ok(())
}

proptest! {
    #[test]
    fn update_is_reduce_per_element(
        shift in 0usize..32,
        a in any::<[u8; BYTES]>(),
        b in any::<[u8; BYTES]>(),
    ) {
        let (span, stripes) = (Span::anonymous(BYTES + 32).unwrap(), Stripes::private().unwrap());
        let pairs = ReduceOp::ALL.into_iter().flat_map(|op| DataType::ALL.map(|ty| (op, ty)));
        for (op, ty) in pairs {
            check_update((&span, &stripes), op, ty, shift, &a, &b)?;
            check_update((&span, &stripes), op, ty, 0, &a, &b)?;
        }
    }

    #[test]
    fn compare_swap_is_by_bytes(
        ty in 0u8..24,
        offset in 0usize..24,
        there in 0u8..2,
        compare in 0u8..2,
    ) {
        let ty = DataType::from_wire(ty).unwrap();
        let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
        let [there, compare, origin] = [there, compare, 9].map(|x| vec![x; ty.size()]);
        span.copy_in(offset, &there).unwrap();
        let mut old = vec![77; ty.size()];
        let swapped = span.compare_swap_bytes(&stripes, 5, ty, offset, &compare, &origin, &mut old);
        prop_assert_eq!(swapped.is_ok(), swap_valid(ty));
        if swapped.is_ok() {
            prop_assert_eq!(&old, &there);
            span.copy_out(offset, &mut old).unwrap();
            prop_assert_eq!(&old, if there == compare { &origin } else { &there });
        }
    }
}

#[test]
fn updates_outside_or_of_parts_are_refused() {
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    let update = |ty, offset, len, fetched: usize| {
        let mut fetched = vec![0; fetched];
        span.update(&stripes, 0, ReduceOp::Replace, ty, offset, &vec![0; len], Some(&mut fetched)).is_ok()
    };
    assert!(update(DataType::C64, 48, 16, 16));
    assert!(update(DataType::C64, 64, 0, 0));
    assert!(!update(DataType::C64, 49, 16, 16));
    assert!(!update(DataType::C64, 0, 24, 24));
    assert!(!update(DataType::C64, 0, 16, 32));
    assert!(!update(DataType::U64, usize::MAX - 3, 8, 8));
    assert!(span.apply_exclusive(ReduceOp::Sum, DataType::C64, 0, &[0; 24]).is_err());
    assert!(span.apply_exclusive(ReduceOp::Sum, DataType::C64, 56, &[0; 16]).is_err());
    let mut old = [0; 8];
    let mut swap = |offset, len| {
        span.compare_swap_bytes(&stripes, 0, DataType::U64, offset, &[0; 8][..len], &[0; 8], &mut old)
    };
    assert!(swap(56, 8).is_ok() && swap(57, 8).is_err() && swap(0, 4).is_err());
    assert!(Stripes::new(&span).is_err());
}
