//! What each operation makes of two elements, written down a second time: integers as `i128`, floating types as `f64`.
//!
//! Floating values are small integers, so that all that is computed with them is exact. What is not is refused.

use transom::{DataType, LongDouble, ReduceOp};
use zerocopy::{FromBytes, IntoBytes};

/// The program asks for something that is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inexact;

/// The largest floating value that is let through: `f32` holds it exactly.
const MOST: f64 = (1 << 22) as f64;

/// Bytes of one real number.
fn scalar(ty: DataType) -> usize {
    match ty {
        DataType::F80 | DataType::C80 => 16,
        DataType::F64 | DataType::C64 => 8,
        _ => 4,
    }
}

fn read_float(bytes: &[u8]) -> f64 {
    match bytes.len() {
        4 => f32::read_from_bytes(bytes).map_or(f64::NAN, f64::from),
        8 => f64::read_from_bytes(bytes).unwrap_or(f64::NAN),
        _ => LongDouble::read_from_bytes(bytes).map_or(f64::NAN, |number| {
            let value = f64::from(number);
            // Other bytes can stand for the same number (and the six behind it for anything).
            if LongDouble::from(value).to_bytes() == number.to_bytes() { value } else { f64::NAN }
        }),
    }
}

pub fn write_float(bytes: &mut [u8], value: f64) {
    match bytes.len() {
        4 => bytes.copy_from_slice((value as f32).as_bytes()),
        8 => bytes.copy_from_slice(value.as_bytes()),
        _ => bytes.copy_from_slice(&LongDouble::from(value).to_bytes()),
    }
}

fn exact(value: f64) -> Result<f64, Inexact> {
    let plain = value.fract() == 0.0 && value.abs() <= MOST && (value != 0.0 || value.is_sign_positive());
    if plain { Ok(value) } else { Err(Inexact) }
}

pub fn read_integer(bytes: &[u8], signed: bool) -> i128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let shift = 128 - 8 * bytes.len() as u32;
    let value = u128::from_le_bytes(wide) << shift;
    if signed { (value as i128) >> shift } else { (value >> shift) as i128 }
}

fn integer(op: ReduceOp, a: i128, b: i128) -> i128 {
    let truth = |value| i128::from(value);
    match op {
        ReduceOp::Sum => a.wrapping_add(b),
        ReduceOp::Prod => a.wrapping_mul(b),
        ReduceOp::Min => a.min(b),
        ReduceOp::Max => a.max(b),
        ReduceOp::Land => truth(a != 0 && b != 0),
        ReduceOp::Lor => truth(a != 0 || b != 0),
        ReduceOp::Lxor => truth((a != 0) != (b != 0)),
        ReduceOp::Band => a & b,
        ReduceOp::Bor => a | b,
        _ => a ^ b,
    }
}

fn float(op: ReduceOp, a: f64, b: f64) -> f64 {
    match op {
        ReduceOp::Sum => a + b,
        ReduceOp::Prod => a * b,
        ReduceOp::Min if b < a => b,
        ReduceOp::Max if b > a => b,
        _ => a,
    }
}

fn floats(op: ReduceOp, ty: DataType, target: &mut [u8], origin: &[u8]) -> Result<(), Inexact> {
    let size = scalar(ty);
    let read = |bytes: &[u8]| -> Result<Vec<f64>, Inexact> {
        bytes.chunks(size).map(|part| exact(read_float(part))).collect()
    };
    let (a, b) = (read(target)?, read(origin)?);
    let result = match (op, a.len()) {
        (ReduceOp::Prod, 2) => vec![a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]],
        _ => a.iter().zip(&b).map(|(a, b)| float(op, *a, *b)).collect(),
    };
    for (part, value) in target.chunks_mut(size).zip(result) {
        write_float(part, exact(value)?);
    }
    Ok(())
}

/// Where a pair has its value and its index.
fn parts(ty: DataType) -> (usize, usize) {
    match ty {
        DataType::F64I32 | DataType::I64I32 => (8, 8),
        DataType::F80I32 => (16, 16),
        DataType::I16I32 => (2, 4),
        _ => (4, 4),
    }
}

fn pair(op: ReduceOp, ty: DataType, target: &mut [u8], origin: &[u8]) -> Result<(), Inexact> {
    let (len, at) = parts(ty);
    let value = |bytes: &[u8]| match ty {
        DataType::I64I32 | DataType::I32I32 | DataType::I16I32 => Ok(read_integer(&bytes[..len], true)),
        _ => exact(read_float(&bytes[..len])).map(|value| value as i128),
    };
    let index = |bytes: &[u8]| read_integer(&bytes[at..at + 4], true);
    let (a, b) = (value(target)?, value(origin)?);
    let better = if op == ReduceOp::MinLoc { b < a } else { b > a };
    if better || (a == b && index(origin) < index(target)) {
        copy(ty, target, origin);
    }
    Ok(())
}

/// Copies an element, but not its padding.
pub fn copy(ty: DataType, to: &mut [u8], from: &[u8]) {
    for (start, len) in ty.fields() {
        to[*start..start + len].copy_from_slice(&from[*start..start + len]);
    }
}

/// `target = target op origin`.
pub fn apply(op: ReduceOp, ty: DataType, target: &mut [u8], origin: &[u8]) -> Result<(), Inexact> {
    match op {
        ReduceOp::NoOp => {}
        ReduceOp::Replace => copy(ty, target, origin),
        _ if ty.is_pair() => pair(op, ty, target, origin)?,
        _ if ty.is_float() || ty.is_complex() => floats(op, ty, target, origin)?,
        _ => {
            use DataType::{I8, I16, I32, I64};
            let signed = matches!(ty, I8 | I16 | I32 | I64);
            let result = integer(op, read_integer(target, signed), read_integer(origin, signed));
            target.copy_from_slice(&result.to_le_bytes()[..target.len()]);
        }
    }
    Ok(())
}
