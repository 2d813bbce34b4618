//! Arguments that make no sense, and the far ends of 64 bits: errors, never panics.

use proptest::prelude::*;

use crate::datatype::{Distribution, Order, zip_runs};
use crate::{Class, Datatype, Result};

fn class(result: Result<Datatype>) -> Class {
    result.unwrap_err().class()
}

#[test]
fn arrays_check_their_arguments() {
    let byte = Datatype::of::<u8>();
    let sub = |sizes: &[usize], subsizes: &[usize], starts: &[usize]| {
        class(Datatype::subarray(sizes, subsizes, starts, Order::C, &byte))
    };
    assert_eq!(sub(&[], &[], &[]), Class::Argument);
    assert_eq!(sub(&[4], &[1, 1], &[0]), Class::Argument);
    assert_eq!(sub(&[4], &[0], &[0]), Class::Argument);
    assert_eq!(sub(&[4], &[2], &[3]), Class::Argument);
    assert_eq!(sub(&[4], &[2], &[usize::MAX]), Class::Argument);
    assert_eq!(sub(&[1 << 40, 1 << 40], &[1, 1], &[0, 0]), Class::Count);
    let dealt = |size, rank, gsize, distribution, width| {
        class(Datatype::darray(size, rank, &[gsize], &[distribution], &[width], Order::C, &byte))
    };
    let block = Distribution::Block(None);
    assert_eq!(dealt(4, 4, 10, block, 4), Class::Argument);
    assert_eq!(dealt(4, 0, 10, block, 3), Class::Argument);
    assert_eq!(dealt(0, 0, 10, block, 0), Class::Argument);
    assert_eq!(dealt(4, 0, 0, block, 4), Class::Argument);
    assert_eq!(dealt(4, 0, 10, Distribution::Block(Some(2)), 4), Class::Argument);
    assert_eq!(dealt(4, 0, 10, Distribution::Cyclic(Some(0)), 4), Class::Argument);
    assert_eq!(dealt(4, 0, 10, Distribution::None, 4), Class::Argument);
    let error = Datatype::darray(1, 0, &[], &[], &[], Order::C, &byte).unwrap_err();
    assert!(error.to_string().contains("at least one"), "{error}");
}

#[test]
fn overflows_are_errors() {
    let real = Datatype::of::<f64>();
    assert_eq!(class(Datatype::contiguous(usize::MAX, &real)), Class::Count);
    assert_eq!(class(Datatype::contiguous(1 << 60, &real)), Class::Count);
    assert_eq!(class(Datatype::vector(2, 1, i64::MAX, &real)), Class::Count);
    assert_eq!(class(Datatype::hvector(2, 1, i64::MAX, &real)), Class::Count);
    assert_eq!(class(Datatype::indexed(&[(1, i64::MIN)], &real)), Class::Count);
    assert_eq!(class(Datatype::hindexed(&[(1, i64::MIN), (1, i64::MAX - 8)], &real)), Class::Count);
    assert_eq!(class(real.resized(i64::MAX, 1)), Class::Count);
    // One block has no stride, and none has no displacement.
    assert!(Datatype::vector(1, 1, i64::MAX, &real).is_ok());
    assert!(Datatype::structure(&[(0, i64::MAX, real.clone())]).is_ok());
    assert!(Datatype::hindexed(&[(1, i64::MIN)], &Datatype::of::<u8>()).is_ok());
    let deep = (0..1000).try_fold(real, |ty, _| ty.dup());
    assert_eq!(class(deep), Class::Type);
}

#[test]
fn sizes_of_both_sides_must_agree() {
    let (word, real) = (Datatype::of::<u32>(), Datatype::of::<f64>());
    assert!(zip_runs(2, &word, 1, &real).is_ok());
    assert_eq!(zip_runs(3, &word, 1, &real).unwrap_err().class(), Class::Count);
}

fn count() -> impl Strategy<Value = usize> {
    let large =
        (0..64_u32, -2..3_i64).prop_map(|(bit, more)| (1_usize << bit).wrapping_add_signed(more as isize));
    prop_oneof![0..4_usize, large]
}

fn displacement() -> impl Strategy<Value = i64> {
    prop_oneof![-4..9_i64, count().prop_map(|count| count as i64)]
}

/// A constructor around `ty`.
fn around(choice: u8, a: &[usize], d: &[i64], ty: &Datatype) -> Result<Datatype> {
    let order = if d[0] % 2 == 0 { Order::C } else { Order::Fortran };
    let distribution = |i: usize| match a[i] % 5 {
        0 => Distribution::None,
        1 => Distribution::Block(None),
        2 => Distribution::Cyclic(None),
        3 => Distribution::Block(Some(a[3])),
        _ => Distribution::Cyclic(Some(a[3])),
    };
    match choice {
        0 => Datatype::contiguous(a[0], ty),
        1 => Datatype::vector(a[0], a[1], d[0], ty),
        2 => Datatype::hvector(a[0], a[1], d[0], ty),
        3 => Datatype::indexed(&[(a[0], d[0]), (a[1], d[1]), (a[2], d[2])], ty),
        4 => Datatype::hindexed(&[(a[0], d[0]), (a[1], d[1]), (a[2], d[2])], ty),
        5 => Datatype::indexed_block(a[0], d, ty),
        6 => Datatype::hindexed_block(a[0], d, ty),
        7 => Datatype::structure(&[(a[0], d[0], ty.clone()), (a[1], d[1], Datatype::of::<u8>())]),
        8 => Datatype::structure(&[(1, d[0], ty.clone()), (a[1], d[1], ty.clone()), (1, d[2], ty.dup()?)]),
        9 => Datatype::subarray(&a[..2], &a[2..4], &[a[4] % 3, 0], order, ty),
        10 => Datatype::darray(a[4], a[5], &a[..2], &[distribution(2), distribution(3)], &a[4..6], order, ty),
        11 => {
            let (size, rank) = (a[4].wrapping_mul(3), a[5] % a[4].max(1));
            Datatype::darray(size, rank, &a[..2], &[distribution(2), distribution(3)], &[a[4], 3], order, ty)
        }
        _ => ty.resized(d[0], d[1]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_argument_panics(
        steps in proptest::collection::vec(
            (0..13_u8, proptest::collection::vec(count(), 6), proptest::collection::vec(displacement(), 3)),
            1..6,
        ),
        instances in count(),
        bytes in count(),
        origin in count(),
    ) {
        let mut ty = Datatype::of::<u32>();
        for (choice, a, d) in &steps {
            let before = ty.clone();
            ty = around(*choice, a, d, &ty).unwrap_or(before);
        }
        let _ = (ty.to_string(), ty.true_extent(), ty.is_contiguous(), ty.element());
        let _ = (ty.get_count(bytes), ty.get_elements(bytes), ty.basic_count());
        let _ = (ty.span(instances), ty.element_span(instances), ty.single_run(instances));
        let _ = Datatype::matches(instances, &ty, bytes, &Datatype::of::<u32>());
        if let (Ok(runs), Ok(elements)) = (ty.runs(instances), ty.elements(instances)) {
            prop_assert_eq!(runs.take(9).count() == 0, elements.take(9).count() == 0);
        }
        if let Ok(mut cursor) = ty.cursor(instances) {
            cursor.skip(bytes);
            let _ = cursor.next(origin);
            cursor.skip(origin);
            prop_assert_eq!(cursor.peek().is_none(), cursor.remaining() == 0);
        }
        let (mut small, mut packed) = ([0; 64], Vec::new());
        if ty.pack_size(instances).is_ok_and(|bytes| bytes < 1 << 16) {
            let done = ty.pack(instances, &small, origin, &mut packed);
            prop_assert_eq!(done.is_ok(), ty.pack_external(instances, &small, origin, &mut packed).is_ok());
            let undone = ty.unpack(instances, &packed, &mut 0, &mut small, origin);
            prop_assert_eq!(done.is_ok(), undone.is_ok());
        }
        let mut position = origin;
        let _ = ty.pack_at(instances, &[0; 64], bytes, &mut small, &mut position);
        let _ = ty.pack_part(instances, bytes, &[0; 64], origin, &mut small);
        let _ = ty.unpack(instances, &[0; 64], &mut position, &mut small, bytes);
    }
}
