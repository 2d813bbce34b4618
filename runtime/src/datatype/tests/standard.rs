//! The examples of MPI-4.1 §5.1, by hand.

use super::{numbers, runs};
use crate::Datatype;
use crate::datatype::{Contents, ElementRun};
use transom_transport::DataType;

/// {(double, 0), (char, 8)}, the type of most examples: extent 16.
fn pair() -> Datatype {
    Datatype::structure(&[(1, 0, Datatype::of::<f64>()), (1, 8, Datatype::of::<i8>())]).unwrap()
}

/// Offsets of doubles and of chars, in order.
fn elements(ty: &Datatype) -> Vec<(char, i64)> {
    let name = |ty| match ty {
        DataType::F64 => 'd',
        DataType::F32 => 'f',
        DataType::I32 => 'i',
        _ => 'c',
    };
    let unrolled = |ElementRun { offset, count, ty }| {
        (0..count).map(move |i| (name(ty), offset + (i * ty.size()) as i64))
    };
    ty.elements(1).unwrap().flat_map(unrolled).collect()
}

#[test]
fn extents_are_padded_for_alignment() {
    assert_eq!(numbers(&pair()), (9, 0, 16, 0, 9));
    assert_eq!(pair().element(), None);
    assert!(!pair().is_contiguous());
    let word = Datatype::of::<i32>();
    let mixed = Datatype::structure(&[(1, 0, Datatype::of::<i8>()), (1, 4, word.clone())]).unwrap();
    assert_eq!(numbers(&mixed), (5, 0, 8, 0, 8));
    // Below its buffer's address.
    let below = Datatype::structure(&[(1, -7, Datatype::of::<i8>()), (1, 0, word)]).unwrap();
    assert_eq!(numbers(&below), (5, -7, 12, -7, 11));
}

#[test]
fn no_block_ends_behind_the_extent() {
    let uneven = Datatype::hvector(2, 1, 17, &pair()).unwrap();
    assert_eq!(numbers(&uneven), (18, 0, 40, 0, 26));
    let again = Datatype::hvector(2, 1, 41, &uneven).unwrap();
    assert_eq!(numbers(&again), (36, 0, 88, 0, 67));
}

#[test]
fn contiguous() {
    let ty = Datatype::contiguous(3, &pair()).unwrap();
    assert_eq!(elements(&ty), [('d', 0), ('c', 8), ('d', 16), ('c', 24), ('d', 32), ('c', 40)]);
    assert_eq!(numbers(&ty), (27, 0, 48, 0, 41));
    assert_eq!(runs(&ty, 1), [(0, 9), (16, 9), (32, 9)]);
}

#[test]
fn vectors() {
    let ty = Datatype::vector(2, 3, 4, &pair()).unwrap();
    let doubles = elements(&ty).into_iter().filter(|(name, _)| *name == 'd').map(|(_, at)| at);
    assert_eq!(doubles.collect::<Vec<_>>(), [0, 16, 32, 64, 80, 96]);
    assert_eq!((ty.size(), ty.extent()), (54, 112));
    let ty = Datatype::vector(3, 1, -2, &pair()).unwrap();
    assert_eq!(elements(&ty), [('d', 0), ('c', 8), ('d', -32), ('c', -24), ('d', -64), ('c', -56)]);
    assert_eq!(numbers(&ty), (27, -64, 80, -64, 73));
    let bytes = Datatype::hvector(2, 3, 64, &pair()).unwrap();
    assert_eq!(runs(&bytes, 1), runs(&Datatype::vector(2, 3, 4, &pair()).unwrap(), 1));
}

#[test]
fn indexed() {
    let ty = Datatype::indexed(&[(3, 4), (1, 0)], &pair()).unwrap();
    let expected = [('d', 64), ('c', 72), ('d', 80), ('c', 88), ('d', 96), ('c', 104), ('d', 0), ('c', 8)];
    assert_eq!(elements(&ty), expected);
    let bytes = Datatype::hindexed(&[(3, 64), (1, 0)], &pair()).unwrap();
    assert_eq!(elements(&bytes), expected);
    let blocks = Datatype::indexed_block(2, &[4, 0], &Datatype::of::<f32>()).unwrap();
    assert_eq!(runs(&blocks, 1), [(16, 8), (0, 8)]);
    let blocks = Datatype::hindexed_block(2, &[5, 50], &Datatype::of::<f32>()).unwrap();
    assert_eq!((runs(&blocks, 1), blocks.lower_bound()), (vec![(5, 8), (50, 8)], 5));
}

#[test]
fn structure() {
    let fields = [(2, 0, Datatype::of::<f32>()), (1, 16, pair()), (3, 26, Datatype::of::<i8>())];
    let ty = Datatype::structure(&fields).unwrap();
    let expected = [('f', 0), ('f', 4), ('d', 16), ('c', 24), ('c', 26), ('c', 27), ('c', 28)];
    assert_eq!(elements(&ty), expected);
    assert_eq!((numbers(&ty), ty.basic_count()), ((20, 0, 32, 0, 29), 7));
    assert_eq!(runs(&ty, 1), [(0, 8), (16, 9), (26, 3)]);
}

#[test]
fn explicit_bounds_stay() {
    let word = Datatype::of::<i32>();
    // {(lb, -3), (int, 0), (ub, 6)} and two of it.
    let one = word.resized(-3, 9).unwrap();
    assert_eq!(numbers(&one), (4, -3, 9, 0, 4));
    let two = Datatype::contiguous(2, &one).unwrap();
    assert_eq!(numbers(&two), (8, -3, 18, 0, 13));
    assert_eq!(runs(&two, 1), [(0, 4), (9, 4)]);
    // Inside a structure they are the only ones that count.
    let within = Datatype::structure(&[(1, -100, word.clone()), (1, 0, one.clone())]).unwrap();
    assert_eq!(numbers(&within), (8, -3, 9, -100, 104));
    // Only resizing takes them back; bounds without data are bounds.
    assert_eq!(numbers(&one.resized(0, 4).unwrap()), (4, 0, 4, 0, 4));
    let empty = Datatype::contiguous(0, &word).unwrap();
    assert_eq!(numbers(&empty), (0, 0, 0, 0, 0));
    assert_eq!(numbers(&empty.resized(-2, 7).unwrap()), (0, -2, 7, 0, 0));
    // Instances can go downwards, and lie over each other.
    assert_eq!(runs(&word.resized(0, -4).unwrap(), 3), [(0, 4), (-4, 4), (-8, 4)]);
    assert_eq!(runs(&word.resized(0, 0).unwrap(), 2), [(0, 4), (0, 4)]);
}

#[test]
fn transposing_a_matrix() {
    // A row of columns: the 3 x 2 matrix of reals in the order of its transpose.
    let column = Datatype::vector(3, 1, 2, &Datatype::of::<f32>()).unwrap();
    let transposed = Datatype::hvector(2, 1, 4, &column).unwrap();
    assert_eq!(runs(&transposed, 1), [(0, 4), (8, 4), (16, 4), (4, 4), (12, 4), (20, 4)]);
}

#[test]
fn received_counts() {
    let two = Datatype::contiguous(2, &Datatype::of::<f32>()).unwrap();
    assert_eq!((two.get_count(8), two.get_elements(8)), (Some(1), Some(2)));
    assert_eq!((two.get_count(12), two.get_elements(12)), (None, Some(3)));
    assert_eq!((two.get_count(11), two.get_elements(11)), (None, None));
    assert_eq!((pair().get_elements(17), pair().get_elements(16)), (Some(3), None));
    let located = Datatype::contiguous(2, &Datatype::basic(DataType::F64I32)).unwrap();
    assert_eq!(
        [0, 8, 12, 20, 24, 25, 4].map(|n| located.get_elements(n)),
        [Some(0), Some(1), Some(2), Some(3), Some(4), None, None]
    );
    assert_eq!((located.get_count(24), located.basic_count()), (Some(1), 2));
}

#[test]
fn contents_and_names() {
    let ty = Datatype::vector(3, 2, 5, &Datatype::of::<f64>()).unwrap();
    assert_eq!(ty.to_string(), "vector(3, 2, 5, f64)");
    assert_eq!(format!("{:?}", ty.dup().unwrap()), "dup(vector(3, 2, 5, f64))");
    assert_eq!(pair().to_string(), "structure([(1, 0, f64), (1, 8, i8)])");
    let long = Datatype::indexed_block(1, &[0; 20], &ty).unwrap();
    let zeros = "0, 0, 0, 0, 0, 0, 0, 0, … 12 more";
    assert_eq!(long.to_string(), format!("indexed_block(1, [{zeros}], vector(3, 2, 5, f64))"));
    let Contents::Vector { count: 3, blocklength: 2, stride: 5, inner } = ty.contents() else {
        panic!("{:?}", ty.contents())
    };
    assert_eq!((inner, ty.contents().combiner()), (&Datatype::of::<f64>(), "MPI_COMBINER_VECTOR"));
    assert_eq!(pair().contents().types().count(), 2);
    assert_ne!(ty, Datatype::vector(3, 2, 6, &Datatype::of::<f64>()).unwrap());
    assert_ne!(ty, Datatype::vector(3, 2, 5, &Datatype::of::<i64>()).unwrap());
    assert_ne!(ty, ty.dup().unwrap());
}

#[test]
fn signatures() {
    let (word, real) = (Datatype::of::<i32>(), Datatype::of::<f32>());
    let vector = Datatype::vector(3, 2, 5, &word).unwrap();
    assert!(Datatype::matches(1, &vector, 6, &word));
    assert!(!Datatype::matches(1, &vector, 5, &word));
    assert!(!Datatype::matches(1, &vector, 6, &real));
    let ab = Datatype::structure(&[(1, 0, word.clone()), (1, 4, real.clone())]).unwrap();
    let ba = Datatype::structure(&[(1, 4, real.clone()), (1, 0, word.clone())]).unwrap();
    assert!(!Datatype::matches(2, &ab, 2, &ba));
    let abab = Datatype::structure(&[(1, 9, word), (1, 0, real), (1, 77, ab.clone())]).unwrap();
    assert!(Datatype::matches(2, &ab, 1, &abab) && Datatype::matches(4, &ab, 2, &abab));
    assert!(Datatype::matches(0, &ab, 0, &ba));
}
