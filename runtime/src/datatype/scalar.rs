//! Scalars in memory and in external32, which is big-endian (MPI-4.1 §14.5.2).

/// What external32 converts as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// As many bytes in external32, most significant first.
    Same(usize),
    /// An integer of 8 bytes, 4 in external32.
    Long,
    /// The same without a sign.
    UnsignedLong,
    /// A character of 4 bytes, 2 in external32.
    WideChar,
    /// The C compiler's `long double` in 16 bytes, binary128 of IEEE 754 in external32.
    LongDouble,
}

impl Scalar {
    /// Bytes in memory.
    pub(super) const fn size(self) -> usize {
        match self {
            Self::Same(bytes) => bytes,
            Self::Long | Self::UnsignedLong => 8,
            Self::WideChar => 4,
            Self::LongDouble => 16,
        }
    }

    /// Bytes in external32.
    pub(super) const fn external_size(self) -> usize {
        match self {
            Self::Same(bytes) => bytes,
            Self::Long | Self::UnsignedLong => 4,
            Self::WideChar => 2,
            Self::LongDouble => 16,
        }
    }

    /// Appends what `memory` holds to `out`; `None` if it does not fit there.
    pub(super) fn append(self, memory: &[u8], out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Same(_) => {
                let begin = out.len();
                out.extend_from_slice(memory);
                swap(&mut out[begin..]);
            }
            Self::Long => {
                let value = i32::try_from(i64::from_ne_bytes(memory.try_into().ok()?)).ok()?;
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::UnsignedLong => {
                let value = u32::try_from(u64::from_ne_bytes(memory.try_into().ok()?)).ok()?;
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::WideChar => {
                let value = u16::try_from(u32::from_ne_bytes(memory.try_into().ok()?)).ok()?;
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::LongDouble => {
                let value = u128::from_ne_bytes(memory.try_into().ok()?);
                out.extend_from_slice(&if X87 { quad(value) } else { value }.to_be_bytes());
            }
        }
        Some(())
    }

    /// To `memory` what `external` holds; `None` if either has another length than its size.
    pub(super) fn store(self, external: &[u8], memory: &mut [u8]) -> Option<()> {
        match self {
            Self::Same(_) => {
                memory.copy_from_slice(external.get(..memory.len())?);
                swap(memory);
                Some(())
            }
            Self::Long => {
                let value = i32::from_be_bytes(external.try_into().ok()?);
                fill(memory, i64::from(value).to_ne_bytes())
            }
            Self::UnsignedLong => {
                let value = u32::from_be_bytes(external.try_into().ok()?);
                fill(memory, u64::from(value).to_ne_bytes())
            }
            Self::WideChar => {
                let value = u16::from_be_bytes(external.try_into().ok()?);
                fill(memory, u32::from(value).to_ne_bytes())
            }
            Self::LongDouble => {
                let value = u128::from_be_bytes(external.try_into().ok()?);
                fill(memory, if X87 { extended(value) } else { value }.to_ne_bytes())
            }
        }
    }
}

fn fill<const N: usize>(memory: &mut [u8], bytes: [u8; N]) -> Option<()> {
    *memory.first_chunk_mut()? = bytes;
    Some(())
}

/// To big-endian, or from it.
fn swap(scalar: &mut [u8]) {
    if cfg!(target_endian = "little") {
        scalar.reverse();
    }
}

/// Whether `long double` is the x87's, with 80 bits; other platforms have binary128 itself.
const X87: bool = cfg!(target_arch = "x86_64");

/// The bits of the fraction that binary128 has more.
const MORE: u32 = 112 - 63;

/// The x87's leading bit of the significand, which binary128 leaves out.
const LEADING: u64 = 1 << 63;

/// Sign and exponent, of which the greatest stands for infinities and what is no number. Both formats have the same.
const GREATEST: u16 = 0x7fff;

/// binary128 from the x87's format: every value is there.
fn quad(x87: u128) -> u128 {
    let (significand, mut head) = (x87 as u64, (x87 >> 64) as u16);
    let mut fraction = u128::from(significand & !LEADING) << MORE;
    match (head & GREATEST, significand & LEADING != 0) {
        // A subnormal with the leading bit is the least normal number's neighbour.
        (0, true) => head |= 1,
        (0, false) | (_, true) => {}
        // No number to the x87 either.
        (_, false) => (head, fraction) = (head | GREATEST, 1 << 111),
    }
    u128::from(head) << 112 | fraction
}

/// The x87's format from binary128, rounded to the nearest, of two such to the even one.
fn extended(quad: u128) -> u128 {
    let (mut head, fraction) = ((quad >> 112) as u16, quad & ((1 << 112) - 1));
    let mut significand = (fraction >> MORE) as u64;
    if head & GREATEST == GREATEST {
        // What is no number stays none if the bits that say so are cut off.
        let lost = significand == 0 && fraction != 0;
        significand |= LEADING | if lost { LEADING >> 1 } else { 0 };
        return u128::from(head) << 64 | u128::from(significand);
    }
    let (rest, half) = (fraction & ((1 << MORE) - 1), 1 << (MORE - 1));
    if rest > half || rest == half && significand & 1 == 1 {
        significand += 1;
    }
    // Rounded up to the next power of two, which is infinity behind the last.
    if significand & LEADING != 0 {
        (head, significand) = (head + 1, 0);
    }
    if head & GREATEST != 0 {
        significand |= LEADING;
    }
    u128::from(head) << 64 | u128::from(significand)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The value of sign, exponent and 63 bits of fraction, as the x87 has it and as binary128 has it.
    fn both(head: u16, fraction: u64) -> (u128, u128) {
        let leading = if head & GREATEST == 0 { 0 } else { LEADING };
        let x87 = u128::from(head) << 64 | u128::from(leading | fraction);
        (x87, u128::from(head) << 112 | u128::from(fraction) << MORE)
    }

    #[test]
    fn one_and_its_neighbours() {
        // 1.0 and -2.0, as IEEE 754 and Intel's manual have them.
        assert_eq!(quad(0x3fff_8000_0000_0000_0000), 0x3fff << 112);
        assert_eq!(quad(0xc000_8000_0000_0000_0000), 0xc000 << 112);
        assert_eq!(quad(0), 0);
        // The least x87 number with a leading bit is a normal one, though its exponent says otherwise.
        assert_eq!(quad(0x0000_8000_0000_0000_0000), 1 << 112);
        // 1 + 2^-64 lies half way to the next number: to the even one.
        let half = 1_u128 << (MORE - 1);
        let one = 0x3fff_u128 << 112;
        assert_eq!(extended(one | half), 0x3fff_8000_0000_0000_0000);
        assert_eq!(extended(one | half | 1), 0x3fff_8000_0000_0000_0001);
        assert_eq!(extended(one | half << 1 | half), 0x3fff_8000_0000_0000_0002);
        // All ones are rounded up to the next power of two, the greatest number to infinity, the greatest subnormal to
        // the least normal number.
        let ones = (1_u128 << 112) - 1;
        assert_eq!(extended(one | ones), 0x4000_8000_0000_0000_0000);
        assert_eq!(extended(0x7ffe << 112 | ones), 0x7fff_8000_0000_0000_0000);
        assert_eq!(extended(ones), 0x0001_8000_0000_0000_0000);
        // No number remains none.
        assert_eq!(extended(0x7fff << 112 | 1), 0x7fff_c000_0000_0000_0000);
        assert_eq!(quad(0x3fff_0000_0000_0000_0000) >> 111, 0xffff);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut out = Vec::new();
        for value in [i64::from(i32::MIN), -1, 0, i64::from(i32::MAX)] {
            Scalar::Long.append(&value.to_ne_bytes(), &mut out).unwrap();
            let mut memory = [7; 8];
            Scalar::Long.store(&out, &mut memory).unwrap();
            assert_eq!(i64::from_ne_bytes(memory), value);
            out.clear();
        }
        assert_eq!(Scalar::Long.append(&(1_i64 << 31).to_ne_bytes(), &mut out), None);
        assert_eq!(Scalar::UnsignedLong.append(&(1_u64 << 32).to_ne_bytes(), &mut out), None);
        assert_eq!(Scalar::WideChar.append(&0x1_f600_u32.to_ne_bytes(), &mut out), None);
        Scalar::UnsignedLong.append(&0xffff_fffe_u64.to_ne_bytes(), &mut out).unwrap();
        Scalar::WideChar.append(&0x20ac_u32.to_ne_bytes(), &mut out).unwrap();
        assert_eq!(out, [0xff, 0xff, 0xff, 0xfe, 0x20, 0xac]);
    }

    proptest! {
        #[test]
        fn every_x87_number_comes_back(head: u16, fraction in 0..LEADING) {
            let (x87, binary128) = both(head, fraction);
            prop_assert_eq!(quad(x87), binary128);
            prop_assert_eq!(extended(binary128), x87);
        }
    }
}
