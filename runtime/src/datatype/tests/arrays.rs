//! Subarrays, and distributed arrays whose ranks have every element once.

use super::{numbers, runs};
use crate::Datatype;
use crate::datatype::{Distribution, Order};

const BLOCK: Distribution = Distribution::Block(None);

#[test]
fn subarrays_in_both_orders() {
    let real = Datatype::of::<f64>();
    let c = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::C, &real).unwrap();
    assert_eq!(runs(&c, 1), [(64, 24), (112, 24)]);
    assert_eq!(numbers(&c), (48, 0, 192, 64, 72));
    let fortran = Datatype::subarray(&[4, 6], &[2, 3], &[1, 2], Order::Fortran, &real).unwrap();
    assert_eq!(runs(&fortran, 1), [(72, 16), (104, 16), (136, 16)]);
    assert_eq!(numbers(&fortran), (48, 0, 192, 72, 80));
    // The next instance is in the next array.
    assert_eq!(runs(&c, 2)[2], (192 + 64, 24));
    let whole = Datatype::subarray(&[3, 4, 5], &[3, 4, 5], &[0; 3], Order::C, &real).unwrap();
    assert!(whole.is_contiguous());
    assert_eq!(runs(&whole, 7), [(0, 7 * 480)]);
    // Whole planes are one run.
    let planes = Datatype::subarray(&[3, 4, 5], &[2, 4, 5], &[1, 0, 0], Order::C, &real).unwrap();
    assert_eq!(runs(&planes, 1), [(160, 320)]);
}

#[test]
fn blocks_with_a_remainder() {
    let byte = Datatype::of::<u8>();
    let of = |rank| Datatype::darray(4, rank, &[10], &[BLOCK], &[4], Order::C, &byte).unwrap();
    let parts: Vec<_> = (0..4).map(|rank| runs(&of(rank), 1)).collect();
    assert_eq!(parts, [[(0, 3)], [(3, 3)], [(6, 3)], [(9, 1)]]);
    assert_eq!(numbers(&of(3)), (1, 0, 10, 9, 1));
    // Fewer elements than processes: some have none.
    let none = Datatype::darray(4, 3, &[3], &[BLOCK], &[4], Order::C, &byte).unwrap();
    assert_eq!(numbers(&none), (0, 0, 3, 0, 0));
}

#[test]
fn cyclic_blocks() {
    let byte = Datatype::of::<u8>();
    let of = |rank| {
        let ty = Datatype::darray(3, rank, &[13], &[Distribution::Cyclic(Some(2))], &[3], Order::C, &byte);
        runs(&ty.unwrap(), 1)
    };
    assert_eq!(of(0), [(0, 2), (6, 2), (12, 1)]);
    assert_eq!(of(1), [(2, 2), (8, 2)]);
    assert_eq!(of(2), [(4, 2), (10, 2)]);
}

#[test]
fn ranks_are_in_the_grid_row_by_row() {
    // Rank 1 of a grid of 2 x 3 is at (0, 1), in both orders of the array.
    let byte = Datatype::of::<u8>();
    let of = |order| {
        let ty = Datatype::darray(6, 1, &[4, 6], &[BLOCK; 2], &[2, 3], order, &byte);
        runs(&ty.unwrap(), 1)
    };
    assert_eq!(of(Order::C), [(2, 2), (8, 2)]);
    assert_eq!(of(Order::Fortran), [(8, 2), (12, 2)]);
}

#[test]
fn ranks_have_every_element_once() {
    let word = Datatype::of::<u32>();
    let distributions =
        [BLOCK, Distribution::Block(Some(5)), Distribution::Cyclic(None), Distribution::Cyclic(Some(3))];
    for first in distributions {
        for second in distributions {
            for order in [Order::C, Order::Fortran] {
                let gsizes = [7, 2, 11];
                let distributions = [first, Distribution::None, second];
                let mut owners = [0; 7 * 2 * 11];
                for rank in 0..6 {
                    let ty = Datatype::darray(6, rank, &gsizes, &distributions, &[2, 1, 3], order, &word);
                    let ty = ty.unwrap();
                    assert_eq!((ty.lower_bound(), ty.extent()), (0, 4 * 154));
                    for run in ty.elements(1).unwrap() {
                        let begin = run.offset as usize / 4;
                        owners[begin..begin + run.count].iter_mut().for_each(|owner| *owner += 1);
                    }
                }
                assert_eq!(owners, [1; 154], "{first:?} {second:?} {order:?}");
            }
        }
    }
}
