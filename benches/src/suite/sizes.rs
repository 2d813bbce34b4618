//! Sizes of transfers, as they are asked for and shown.

use std::fmt;
use std::str::FromStr;

/// The longest transfer: buffers of it are on the heap of both ranks.
pub const LONGEST: usize = 1 << 30;

/// Sizes to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((least, most)) = text.split_once(':') else {
            let mut sizes = text.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
            sizes.sort_unstable();
            sizes.dedup();
            return Ok(Self(sizes));
        };
        let (least, most) = (parse(least)?, parse(most)?);
        if least > most {
            return Err(format!("{} is more than {}", show(least), show(most)));
        }
        let doubled = std::iter::successors(Some(least), |size| size.checked_mul(2));
        Ok(Self(doubled.take_while(|size| *size <= most).collect()))
    }
}

/// One size: `8`, `64K`, `4M`, `1G`.
///
/// # Errors
/// No number, no such suffix, or no size that can be measured.
pub fn parse(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        other => return Err(format!("{other:?} is no unit of bytes: K, M or G")),
    };
    let number: usize = digits.parse().map_err(|_| format!("{text:?} is no number of bytes"))?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("a transfer of 0 bytes has no time worth measuring: 1 at least".to_owned()),
        Some(size) if size <= LONGEST => Ok(size),
        _ => Err(format!("{text} is more than {}, the longest transfer", show(LONGEST))),
    }
}

/// A size for people: `64 KiB`.
pub fn show(bytes: usize) -> String {
    let whole = |shift: u32| bytes > 0 && bytes.trailing_zeros() >= shift;
    match bytes {
        _ if bytes >= 1 << 30 && whole(30) => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 && whole(20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && whole(10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&sizes.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        let sizes = |text: &str| Sizes::from_str(text).map(|sizes| sizes.0);
        assert_eq!(sizes("8").unwrap(), [8]);
        assert_eq!(sizes("64K,8,8,1m").unwrap(), [8, 65536, 1 << 20]);
        assert_eq!(sizes("1:8").unwrap(), [1, 2, 4, 8]);
        assert_eq!(sizes("3:20").unwrap(), [3, 6, 12]);
        for wrong in ["", "0", "0:8", "8:4", "8X", "-1", "K", "8,", "2G", "99999999999999999999", "1:9999G"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shown_in_whole_units() {
        let shown = [1, 1000, 1024, 1536, 65536, 4 << 20, 1 << 30].map(show);
        assert_eq!(shown, ["1 B", "1000 B", "1 KiB", "1536 B", "64 KiB", "4 MiB", "1 GiB"]);
    }
}
