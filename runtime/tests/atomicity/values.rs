//! Elements of any type.

use transom::{Basic, DataType, LongDouble};

/// A small number as an element; of pairs the index is another one.
pub fn small<B: Basic>(number: u8) -> B {
    let mut element = B::new_zeroed();
    let bytes = element.as_mut_bytes();
    match B::TYPE {
        DataType::F32 | DataType::C32 | DataType::F32I32 => {
            bytes[..4].copy_from_slice(&f32::from(number).to_ne_bytes());
        }
        DataType::F64 | DataType::C64 | DataType::F64I32 => {
            bytes[..8].copy_from_slice(&f64::from(number).to_ne_bytes());
        }
        DataType::F80 | DataType::C80 | DataType::F80I32 => {
            bytes[..16].copy_from_slice(&LongDouble::from(f64::from(number)).to_bytes());
        }
        _ => bytes[0] = number,
    }
    if B::TYPE.is_pair()
        && let Some((start, len)) = B::TYPE.fields().last()
    {
        bytes[start + len - 4] = 7 * number % 11;
    }
    element
}

/// An element that holds the number all over, so that parts of two of them are seen to be such.
pub fn pattern(ty: DataType, number: u32, to: &mut [u8]) {
    for (start, len) in ty.fields() {
        let field = &mut to[*start..start + len];
        field.chunks_mut(4).for_each(|word| word.copy_from_slice(&number.to_le_bytes()[..word.len()]));
    }
}

/// The number of a pattern; none if the element is torn.
pub fn number(ty: DataType, bytes: &[u8]) -> Option<u32> {
    let (start, len) = ty.fields().last().copied()?;
    let end = start + len;
    let number = u32::from_le_bytes(bytes[end - 4..end].try_into().ok()?);
    let mut whole = vec![0; ty.size()];
    pattern(ty, number, &mut whole);
    let same = |(start, len): &(usize, usize)| whole[*start..start + len] == bytes[*start..start + len];
    ty.fields().iter().all(same).then_some(number)
}
