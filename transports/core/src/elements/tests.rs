#[cfg(target_arch = "x86_64")]
use proptest::prelude::*;

use super::*;
use crate::ReduceOp::*;

/// An x87 number from its mantissa, whose highest bit is the 1 before the point, and its exponent.
#[cfg(target_arch = "x86_64")]
fn x87(mantissa: u64, exponent: i16) -> LongDouble {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
    bytes[8..10].copy_from_slice(&(exponent + 16383).to_le_bytes());
    LongDouble::from_bytes(bytes)
}

#[cfg(target_arch = "x86_64")]
proptest! {
    #[test]
    fn long_double_agrees_with_double(a in -(1i64 << 26)..1 << 26, b in -(1i64 << 26)..1 << 26) {
        let (a, b) = (a as f64, b as f64);
        let long = |x: f64| LongDouble::from(x);
        for (op, expected) in
            [(Sum, a + b), (Prod, a * b), (Min, a.min(b)), (Max, a.max(b)), (Replace, b), (NoOp, a)]
        {
            let result = LongDouble::reduce(op, long(a), long(b));
            prop_assert_eq!(f64::from(result), expected);
            prop_assert_eq!(result, long(expected));
            prop_assert_eq!(&result.to_bytes()[10..], &[0; 6]);
        }
        prop_assert_eq!(long(a).partial_cmp(&long(b)), a.partial_cmp(&b));
        prop_assert_eq!(f64::from(long(a) - long(b)), a - b);
    }

    #[test]
    fn long_double_keeps_any_double(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        prop_assert_eq!(f64::from(LongDouble::from(value)).to_bits(), bits);
    }

    #[test]
    fn complex_is_by_the_formula(a in -999..999, b in -999..999, c in -999..999, d in -999..999) {
        let (a, b, c, d) = (a as f64, b as f64, c as f64, d as f64);
        let (sum, product) = ((a + c, b + d), (a * c - b * d, a * d + b * c));
        for (op, (re, im)) in [(Sum, sum), (Prod, product), (Replace, (c, d)), (NoOp, (a, b))] {
            prop_assert_eq!(
                Complex::reduce(op, Complex::new(a, b), Complex::new(c, d)),
                Complex::new(re, im)
            );
            let single = |re: f64, im: f64| Complex::new(re as f32, im as f32);
            prop_assert_eq!(Complex::reduce(op, single(a, b), single(c, d)), single(re, im));
            let long = |re: f64, im: f64| ComplexLongDouble::new(re.into(), im.into());
            prop_assert_eq!(Complex::reduce(op, long(a, b), long(c, d)), long(re, im));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn long_double_has_64_bits_of_mantissa() {
    let one = LongDouble::from(1.0);
    assert_eq!(one.to_bytes(), x87(1 << 63, 0).to_bytes());
    let big = LongDouble::from((1u64 << 63) as f64);
    let sum = big + one; // needs all 64 bits; a double has 53
    assert_eq!(sum.to_bytes(), x87((1 << 63) + 1, 63).to_bytes());
    assert_ne!(sum, big);
    assert_eq!(sum - big, one);
    assert_eq!(f64::from(sum), (1u64 << 63) as f64);
    // (2^32 + 1)(2^31 + 1) = 2^63 + 2^32 + 2^31 + 1, from 2^63 to 1.
    let product = LongDouble::from(4_294_967_297.0) * LongDouble::from(2_147_483_649.0);
    assert_eq!(product.to_bytes(), x87((1 << 63) + (1 << 32) + (1 << 31) + 1, 63).to_bytes());
    // Beyond the range of a double, and back.
    let huge = x87(1 << 63, 5000);
    assert_eq!(f64::from(huge * x87(1 << 63, -4990)), 1024.0);
    assert_eq!(f64::from(huge), f64::INFINITY);
}

#[test]
fn locations_of_equal_values_are_the_smaller() {
    for op in [MinLoc, MaxLoc] {
        for (a, b) in [(3, 7), (7, 3), (-1, i32::MAX), (5, 5)] {
            let least = a.min(b);
            assert_eq!(F32I32::reduce(op, F32I32::new(1.5, a), F32I32::new(1.5, b)), F32I32::new(1.5, least));
            assert_eq!(F64I32::reduce(op, F64I32::new(0.0, a), F64I32::new(-0.0, b)).index, least);
            assert_eq!(I64I32::reduce(op, I64I32::new(-9, a), I64I32::new(-9, b)), I64I32::new(-9, least));
            assert_eq!(I32I32::reduce(op, I32I32::new(0, a), I32I32::new(0, b)), I32I32::new(0, least));
            assert_eq!(I16I32::reduce(op, I16I32::new(4, a), I16I32::new(4, b)), I16I32::new(4, least));
            #[cfg(target_arch = "x86_64")]
            {
                let pair = |i| F80I32::new(2.5.into(), i);
                assert_eq!(F80I32::reduce(op, pair(a), pair(b)), pair(least));
            }
        }
    }
    let (low, high) = (I64I32::new(i64::MIN, 9), I64I32::new(i64::MAX, 1));
    for (a, b) in [(low, high), (high, low)] {
        assert_eq!(I64I32::reduce(MinLoc, a, b), low);
        assert_eq!(I64I32::reduce(MaxLoc, a, b), high);
        assert_eq!(I64I32::reduce(NoOp, a, b), a);
        assert_eq!(I64I32::reduce(Replace, a, b), b);
    }
}

#[test]
fn padding_stays_the_targets() {
    let target = I16I32::read_from_bytes(&[1, 0, 0xAA, 0xBB, 9, 0, 0, 0]).unwrap();
    let origin = I16I32::read_from_bytes(&[0, 0, 0xCC, 0xDD, 5, 0, 0, 0]).unwrap();
    for op in [MinLoc, Replace] {
        assert_eq!(I16I32::reduce(op, target, origin).as_bytes(), [0, 0, 0xAA, 0xBB, 5, 0, 0, 0]);
    }
    assert_eq!(I16I32::reduce(MaxLoc, target, origin).as_bytes(), target.as_bytes());
}

#[test]
fn numbers_win_over_nan() {
    for op in [MinLoc, MaxLoc] {
        let (nan, one) = (F64I32::new(f64::NAN, 1), F64I32::new(1.0, 2));
        assert_eq!(F64I32::reduce(op, nan, one), one);
        assert_eq!(F64I32::reduce(op, one, nan), one);
        assert!(F64I32::reduce(op, nan, nan).value.is_nan());
    }
    #[cfg(target_arch = "x86_64")]
    for op in [Min, Max] {
        let (nan, one) = (LongDouble::from(f64::NAN), LongDouble::from(1.0));
        assert_eq!(LongDouble::reduce(op, nan, one), one);
        assert_eq!(LongDouble::reduce(op, one, nan), one);
        assert!(f64::from(LongDouble::reduce(op, nan, nan)).is_nan());
        assert!(nan != nan && nan != one && f64::from(nan + one).is_nan());
    }
}

#[test]
fn flags_are_zero_or_not() {
    for (a, b) in [(0, 0), (0, 2), (2, 0), (2, 4), (255, 1)] {
        let (x, y) = (a != 0, b != 0);
        for (op, expected) in [(Land, x && y), (Lor, x || y), (Lxor, x != y)] {
            assert_eq!(Flag::reduce(op, Flag(a), Flag(b)), Flag::from(expected));
        }
    }
    assert_eq!(Flag::reduce(Replace, Flag(0), Flag(7)), Flag(7));
}
