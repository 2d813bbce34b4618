//! Reductions of many elements by plain loads and stores: loops that the compiler makes vector instructions of, once for each
//! set of them that a CPU may have. Which it has is found out when the program runs.

use std::ptr;
use std::sync::OnceLock;

use super::update::update_plain;
use crate::elements::cell::element;
use crate::{Basic, Complex, DataType, ReduceOp, with_basic, with_number};

/// Reduces the elements of `ty` in `origin` into those of `target`: as many as both have. Padding stays the target's.
pub fn reduce_into(op: ReduceOp, ty: DataType, target: &mut [u8], origin: &[u8]) {
    let whole = target.len().min(origin.len()) / ty.size() * ty.size();
    // SAFETY: `target` is borrowed for this alone, and has so many bytes.
    unsafe { reduce_exclusive(op, ty, target.as_mut_ptr(), &origin[..whole]) };
}

/// Reduces the elements of `ty` in `origin` into those at `target`, both at any address. Padding stays the target's.
///
/// # Safety
/// `target` is valid for reads and writes of as many bytes as `origin` has, whole elements, which no other thread updates meanwhile.
pub(super) unsafe fn reduce_exclusive(op: ReduceOp, ty: DataType, target: *mut u8, origin: &[u8]) {
    if op == ReduceOp::NoOp {
        return;
    }
    if op == ReduceOp::Replace && ty.fields() == [(0, ty.size())] {
        // SAFETY: the same contract. The origin may be memory of a window, too, so they may overlap.
        return unsafe { ptr::copy(origin.as_ptr(), target, origin.len()) };
    }
    // SAFETY: the same contract, for elements of the same bytes.
    unsafe {
        with_number!(computed_as(op, ty), T => numbers::<T>(op, target, origin), else => match (op, ty) {
            (ReduceOp::Prod, DataType::C32) => all(target, origin, |a: Complex<f32>, b| a * b),
            (ReduceOp::Prod, DataType::C64) => all(target, origin, |a: Complex<f64>, b| a * b),
            _ => with_basic!(ty, T => one_by_one::<T>(op, target, origin)),
        });
    }
}

/// The type of numbers that an operation treats the elements of another type as, or the type itself.
fn computed_as(op: ReduceOp, ty: DataType) -> DataType {
    match (op, ty) {
        (ReduceOp::Sum, DataType::C32) => DataType::F32,
        (ReduceOp::Sum, DataType::C64) => DataType::F64,
        (ReduceOp::Band | ReduceOp::Bor | ReduceOp::Bxor, DataType::Byte) => DataType::U8,
        _ => ty,
    }
}

/// # Safety
/// As [`reduce_exclusive`].
unsafe fn numbers<T: Basic>(op: ReduceOp, target: *mut u8, origin: &[u8]) {
    // An operation that the compiler knows makes a loop that it can turn into vector instructions.
    macro_rules! with_op {
        ($($op:ident)*) => {
            match op {
                // SAFETY: the same contract.
                $(ReduceOp::$op => unsafe { all(target, origin, |a: T, b| T::reduce(ReduceOp::$op, a, b)) },)*
                // Numbers are replaced by a copy, and have no locations.
                ReduceOp::Replace | ReduceOp::NoOp | ReduceOp::MinLoc | ReduceOp::MaxLoc => {}
            }
        };
    }
    with_op!(Sum Prod Min Max Land Lor Lxor Band Bor Bxor);
}

/// # Safety
/// As [`reduce_exclusive`].
unsafe fn one_by_one<T: Basic>(op: ReduceOp, target: *mut u8, origin: &[u8]) {
    for (i, operand) in origin.chunks_exact(size_of::<T>()).enumerate() {
        // SAFETY: in bounds for as many elements as `origin` holds, by contract.
        unsafe { update_plain::<T>(target.add(i * size_of::<T>()), op, element(operand)) };
    }
}

/// Vector instructions of the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vectors {
    /// Those that every CPU of this architecture has.
    Any,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

#[inline]
fn vectors() -> Vectors {
    static FOUND: OnceLock<Vectors> = OnceLock::new();
    *FOUND.get_or_init(find_vectors)
}

#[cold]
fn find_vectors() -> Vectors {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            return Vectors::Avx512;
        }
        if is_x86_feature_detected!("avx2") {
            return Vectors::Avx2;
        }
    }
    Vectors::Any
}

/// Calls `reduce` on each element at the target and its operand.
///
/// # Safety
/// As [`reduce_exclusive`], for elements of `T`, which has no padding.
unsafe fn all<T: Basic>(target: *mut u8, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    // SAFETY: the same contract; the CPU has the instructions, as just found.
    unsafe { all_by(vectors(), target, origin, reduce) }
}

/// # Safety
/// As [`all`]; the CPU has the instructions.
unsafe fn all_by<T: Basic>(vectors: Vectors, target: *mut u8, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    // SAFETY: the same contract.
    unsafe {
        match vectors {
            Vectors::Any => each(target, origin, reduce),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx2 => each_avx2(target, origin, reduce),
            #[cfg(target_arch = "x86_64")]
            Vectors::Avx512 => each_avx512(target, origin, reduce),
        }
    }
}

/// # Safety
/// As [`all`]; the CPU has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn each_avx2<T: Basic>(target: *mut u8, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    // SAFETY: the same contract.
    unsafe { each(target, origin, reduce) }
}

/// # Safety
/// As [`all`]; the CPU has these instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn each_avx512<T: Basic>(target: *mut u8, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    // SAFETY: the same contract.
    unsafe { each(target, origin, reduce) }
}

/// The loop: part of each of the functions above, and compiled for its instructions.
///
/// # Safety
/// As [`all`].
#[inline(always)]
unsafe fn each<T: Basic>(target: *mut u8, origin: &[u8], reduce: impl Fn(T, T) -> T) {
    let (target, source): (*mut T, *const T) = (target.cast(), origin.as_ptr().cast());
    for i in 0..origin.len() / size_of::<T>() {
        // SAFETY: i is below the number of elements of both; every bit pattern is a T (FromBytes).
        unsafe {
            let new = reduce(target.add(i).read_unaligned(), source.add(i).read_unaligned());
            target.add(i).write_unaligned(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce_valid;

    /// Bytes without an order, of which none makes a signalling NaN.
    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 58) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Every loop, at every alignment, gives what one element after the other gives.
    #[test]
    fn vectors_compute_what_elements_do() {
        for ty in DataType::ALL {
            for op in ReduceOp::ALL.into_iter().filter(|op| reduce_valid(*op, ty)) {
                for (count, shift) in [(0, 0), (1, 1), (3, 0), (64, 3), (67, 5), (131, 8)] {
                    let (len, size) = (count * ty.size(), ty.size());
                    let mut memory = bytes(len + shift + 16, len as u64 + 1);
                    let origin = bytes(len, 7);
                    let mut expected = memory.clone();
                    for i in 0..count {
                        let at = shift + i * size;
                        let (before, operand) = (&mut expected[at..at + size], &origin[i * size..][..size]);
                        // SAFETY: whole elements in slices of our own.
                        with_basic!(ty, T => unsafe {
                            update_plain::<T>(before.as_mut_ptr(), op, element(operand));
                        });
                    }
                    // SAFETY: `memory` is longer than `shift` and the operands.
                    unsafe { reduce_exclusive(op, ty, memory.as_mut_ptr().add(shift), &origin) };
                    assert!(memory == expected, "{op:?} of {count} {ty:?} at {shift}");
                }
            }
        }
    }

    #[test]
    fn every_set_of_instructions_computes_the_same() {
        let (origin, before) = (bytes(8 * 1001, 3), bytes(8 * 1001, 5));
        let of = |vectors: Vectors| {
            let mut target = before.clone();
            // SAFETY: as long as the operands; the CPU has the instructions, see below.
            unsafe { all_by(vectors, target.as_mut_ptr(), &origin, |a: f64, b: f64| a * b + a) };
            target
        };
        let expected = of(Vectors::Any);
        assert!(of(vectors()) == expected);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            assert!(of(Vectors::Avx2) == expected);
        }
    }
}
