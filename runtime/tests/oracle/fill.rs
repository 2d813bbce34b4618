//! Values that operations are done with.

use transom::{DataType, ReduceOp, reduce_valid};

use super::Random;
use super::reduce::write_float;

/// One element that arithmetic is exact with; its padding is not zero.
pub fn element(random: &mut Random, ty: DataType, to: &mut [u8]) {
    let integer = |random: &mut Random| random.below(9) as f64;
    match ty {
        DataType::F32 | DataType::F64 | DataType::F80 => write_float(to, integer(random)),
        DataType::C32 | DataType::C64 | DataType::C80 => {
            let half = to.len() / 2;
            to.chunks_mut(half).for_each(|part| write_float(part, integer(random)));
        }
        DataType::F32I32 | DataType::F64I32 | DataType::F80I32 => {
            let (value, index) = match ty {
                DataType::F32I32 => (4, 4),
                DataType::F64I32 => (8, 8),
                _ => (16, 16),
            };
            bytes(random, to);
            write_float(&mut to[..value], integer(random));
            to[index..index + 4].copy_from_slice(&(random.below(1000) as i32).to_ne_bytes());
        }
        DataType::Bool => to[0] = if random.one_in(4) { random.next() as u8 } else { random.below(2) as u8 },
        // Small values now and then, so that there are equal ones and zeros.
        _ if random.one_in(3) => {
            to.fill(0);
            to[0] = random.below(3) as u8;
        }
        _ => bytes(random, to),
    }
}

/// Any bytes.
pub fn bytes(random: &mut Random, to: &mut [u8]) {
    for chunk in to.chunks_mut(8) {
        let number = random.next().to_le_bytes();
        chunk.copy_from_slice(&number[..chunk.len()]);
    }
}

/// As many elements as fit between some bytes, from `start` on.
pub fn zone(random: &mut Random, ty: DataType, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    let whole = len - len % ty.size();
    data[..whole].chunks_mut(ty.size()).for_each(|to| element(random, ty, to));
    bytes(random, &mut data[whole..]);
    data
}

/// An operation that is defined on a type.
pub fn operation(random: &mut Random, ty: DataType) -> ReduceOp {
    let valid: Vec<ReduceOp> = ReduceOp::ALL.into_iter().filter(|op| reduce_valid(*op, ty)).collect();
    random.pick(&valid)
}

/// An operation on a type that gives the same result in any order.
pub fn commutative(random: &mut Random) -> (ReduceOp, DataType) {
    loop {
        let ty = random.pick(&DataType::ALL);
        let op = operation(random, ty);
        // A complex product has zeros of either sign, as the order will have it.
        let ordered = op == ReduceOp::Replace || (op == ReduceOp::Prod && ty.is_complex());
        if !ordered {
            return (op, ty);
        }
    }
}
