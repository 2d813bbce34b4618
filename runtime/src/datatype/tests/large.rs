//! Counts of thousands of millions: everything is answered at once, or these tests never end.

use super::runs;
use crate::datatype::{Distribution, Order, zip_runs};
use crate::{Class, Datatype};

const MANY: usize = 1_000_000_000;

#[test]
fn contiguous_beyond_32_bits() {
    let ty = Datatype::contiguous(1 << 33, &Datatype::of::<f64>()).unwrap();
    assert_eq!((ty.size(), ty.basic_count(), ty.is_contiguous()), (1 << 36, 1 << 33, true));
    assert_eq!(runs(&ty, 4), [(0, 1 << 38)]);
    assert_eq!(ty.elements(1).unwrap().next().unwrap().count, 1 << 33);
    assert_eq!(ty.span(1 << 26).unwrap(), Some((0, 1 << 62)));
    assert_eq!(ty.span(1 << 27).unwrap_err().class(), Class::Count);
    assert_eq!(ty.runs(1 << 27).map(|_| ()).unwrap_err().class(), Class::Count);
}

#[test]
fn a_vector_of_many_blocks() {
    let ty = Datatype::vector(MANY, 1, 2, &Datatype::of::<f64>()).unwrap();
    let extent = 16 * MANY as i64 - 8;
    assert_eq!((ty.size(), ty.extent()), (8 * MANY, extent));
    assert_eq!(ty.span(3).unwrap(), Some((0, 3 * extent)));
    let mut runs = ty.runs(2).unwrap();
    assert_eq!((runs.next().unwrap().offset, runs.next().unwrap().offset), (0, 16));
    let mut cursor = ty.cursor(2).unwrap();
    cursor.skip(8 * MANY - 3);
    // The last block of one instance touches the first of the next.
    assert_eq!((cursor.next(2).unwrap().offset, cursor.peek().unwrap().bytes), (extent - 3, 9));
    cursor.skip(8 * MANY);
    assert_eq!((cursor.position(), cursor.peek().unwrap().bytes), (16 * MANY - 1, 1));
    assert_eq!(cursor.next(9).unwrap().offset, 2 * extent - 1);
    assert!(cursor.next(9).is_none());
    assert_eq!(ty.get_elements(8 * MANY + 8), Some(MANY + 1));
}

#[test]
fn nested_structures_of_many() {
    let real = Datatype::of::<f64>();
    let pair = Datatype::structure(&[(1, 0, Datatype::of::<i32>()), (1, 8, real.clone())]).unwrap();
    let many = Datatype::contiguous(MANY, &pair).unwrap();
    assert!(Datatype::matches(1, &many, MANY, &pair));
    assert!(!Datatype::matches(2, &many, 2 * MANY, &real));
    assert_eq!(many.get_elements(12 * MANY - 8), Some(2 * MANY - 1));
    let grid = Datatype::hvector(1000, 1, 1 << 40, &many).unwrap();
    let mut cursor = grid.cursor(1).unwrap();
    cursor.skip(999 * 12 * MANY + 12 * MANY - 12);
    assert_eq!(cursor.next(100).unwrap().offset, (999 << 40) + 16 * (MANY as i64 - 1));
    let mut pieces = zip_runs(MANY, &pair, 1, &many).unwrap();
    assert_eq!(pieces.next(), Some((0, 0, 4)));
    assert_eq!(pieces.next(), Some((8, 8, 12)));
}

#[test]
fn arrays_of_many() {
    let gsizes = [1 << 20, 1 << 20, 1 << 10];
    let cyclic = Distribution::Cyclic(Some(3));
    let distributions = [Distribution::Block(None), cyclic, Distribution::None];
    let real = Datatype::of::<f64>();
    let of = |rank| Datatype::darray(35, rank, &gsizes, &distributions, &[5, 7, 1], Order::C, &real).unwrap();
    assert_eq!((0..35).map(|rank| of(rank).size()).sum::<usize>(), 1 << 53);
    assert_eq!(of(34).extent(), 1 << 53);
    assert_eq!(of(1).runs(1).unwrap().next().unwrap(), super::Run { offset: 3 << 13, bytes: 3 << 13 });
}

#[test]
fn shared_types_do_not_unfold() {
    // 2^59 elements in 59 types, each of which has the one before twice.
    let build = |ty: Datatype| {
        (0..59).fold(ty, |ty, i| {
            let fields = [(1, 0, ty.clone()), (1, 0, Datatype::of::<u8>()), (1, 1 + i, ty.clone())];
            Datatype::structure(&fields).unwrap()
        })
    };
    let (a, b) = (build(Datatype::of::<u8>()), build(Datatype::of::<u8>()));
    assert_eq!(a, b);
    assert_eq!(a.size(), (1 << 60) - 1);
    assert!(a.to_string().len() < 10_000);
    assert!(Datatype::matches(1, &a, 1, &b));
    let mut cursor = a.cursor(1).unwrap();
    cursor.skip(1 << 59);
    assert!(cursor.peek().is_some());
    assert_ne!(a, build(Datatype::of::<i8>()));
}
