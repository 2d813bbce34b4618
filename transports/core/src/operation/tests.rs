use super::DataType::*;
use super::ReduceOp::*;
use super::*;

/// MPI-4.1 §6.9.2: which group each type is in, and which groups each operation is for.
#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "long double has no arithmetic elsewhere")]
fn valid_pairs_are_the_standards() {
    let integer = [I8, I16, I32, I64, U8, U16, U32, U64];
    let floating = [F32, F64, F80];
    let complex = [C32, C64, C80];
    let pairs = [F32I32, F64I32, I64I32, I32I32, I16I32, F80I32];
    let groups = |op| match op {
        Max | Min => vec![&integer[..], &floating],
        Sum | Prod => vec![&integer[..], &floating, &complex],
        Land | Lor | Lxor => vec![&integer[..], &[Bool]],
        Band | Bor | Bxor => vec![&integer[..], &[Byte]],
        MinLoc | MaxLoc => vec![&pairs[..]],
        Replace | NoOp => vec![&DataType::ALL[..]],
    };
    let mut valid = 0;
    for op in ReduceOp::ALL {
        let types = groups(op).concat();
        for ty in DataType::ALL {
            assert_eq!(reduce_valid(op, ty), types.contains(&ty), "{op:?} on {ty:?}");
            valid += usize::from(reduce_valid(op, ty));
        }
    }
    assert_eq!(valid, 2 * 11 + 2 * 14 + 3 * 9 + 3 * 9 + 2 * 6 + 2 * 24);
    let swapped = [&integer[..], &[Bool, Byte, Char, WideChar]].concat();
    assert!(DataType::ALL.iter().all(|ty| swap_valid(*ty) == swapped.contains(ty)));
}

#[test]
fn wire_codes_are_positions() {
    for (code, ty) in DataType::ALL.into_iter().enumerate() {
        assert_eq!((ty as usize, DataType::from_wire(code as u8)), (code, Some(ty)));
    }
    for (code, op) in ReduceOp::ALL.into_iter().enumerate() {
        assert_eq!((op as usize, ReduceOp::from_wire(code as u8)), (code, Some(op)));
    }
    assert_eq!((DataType::from_wire(24), ReduceOp::from_wire(14)), (None, None));
}

/// Size, size of the data, alignment, as a C compiler for x86-64 has them.
#[test]
fn layouts_are_those_of_c() {
    #[rustfmt::skip]
    let layouts = [
        (I8, 1, 1, 1), (U8, 1, 1, 1), (Bool, 1, 1, 1), (Byte, 1, 1, 1), (Char, 1, 1, 1),
        (I16, 2, 2, 2), (U16, 2, 2, 2),
        (I32, 4, 4, 4), (U32, 4, 4, 4), (F32, 4, 4, 4), (WideChar, 4, 4, 4),
        (I64, 8, 8, 8), (U64, 8, 8, 8), (F64, 8, 8, 8),
        (F80, 16, 16, 16), (C32, 8, 8, 4), (C64, 16, 16, 8), (C80, 32, 32, 16),
        (F32I32, 8, 8, 4), (F64I32, 16, 12, 8), (I64I32, 16, 12, 8), (I32I32, 8, 8, 4), (I16I32, 8, 6, 4),
        (F80I32, 32, 20, 16),
    ];
    assert_eq!(layouts.len(), DataType::ALL.len());
    for (ty, size, packed, alignment) in layouts {
        assert_eq!((ty.size(), ty.packed_size(), ty.alignment()), (size, packed, alignment), "{ty:?}");
        crate::with_basic!(ty, T => {
            assert_eq!((size_of::<T>(), align_of::<T>()), (size, alignment), "{ty:?}");
            assert_eq!(<T as crate::Basic>::TYPE, ty);
        });
        let number = crate::with_number!(ty, T => <T as crate::Basic>::TYPE == ty, else => false);
        assert_eq!(number, ty.is_number());
    }
}
