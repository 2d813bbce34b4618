//! Environment variables of the specification (OpenSHMEM 1.5 §7), and their old names.

use std::env;

/// Name, type, default and meaning of each.
const TABLE: [(&str, &str, &str, &str); 4] = [
    (
        "SHMEM_SYMMETRIC_SIZE",
        "bytes, with k, m, g or t behind",
        "512m",
        "symmetric heap of each PE; memory is taken when it is first used",
    ),
    ("SHMEM_INFO", "any", "not set", "PE 0 prints this table at the start"),
    ("SHMEM_VERSION", "any", "not set", "PE 0 prints the library's version at the start"),
    (
        "SHMEM_DEBUG",
        "any",
        "not set",
        "every access is checked to be in a block of the heap that is in use, which takes longer; allocations that find no room say so",
    ),
];
const DEFAULT_SIZE: usize = 512 << 20;

/// What the variables say.
#[derive(Debug)]
pub struct Variables {
    pub symmetric_size: usize,
    pub debug: bool,
    info: bool,
    version: bool,
}

/// A variable, by its old name if not by its own.
fn variable(name: &str) -> Option<String> {
    let old = name.replacen("SHMEM_", "SMA_", 1);
    [name, &old].into_iter().find_map(env::var_os).map(|value| value.to_string_lossy().into_owned())
}

/// Whether what goes wrong is to be told though the program is told, too.
pub fn is_debug() -> bool {
    variable("SHMEM_DEBUG").is_some()
}

/// Reads all. An error says which is wrong.
pub fn read() -> Result<Variables, String> {
    let symmetric_size = match variable("SHMEM_SYMMETRIC_SIZE") {
        None => DEFAULT_SIZE,
        Some(text) => size(&text).ok_or_else(|| {
            format!("SHMEM_SYMMETRIC_SIZE is {text:?}: give a number of bytes, as 1000000, 64m or 1.5g")
        })?,
    };
    let is_set = |name| variable(name).is_some();
    let (debug, info, version) = (is_set("SHMEM_DEBUG"), is_set("SHMEM_INFO"), is_set("SHMEM_VERSION"));
    Ok(Variables { symmetric_size, debug, info, version })
}

/// A number with a multiplier; what follows that is ignored.
fn size(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let shift = match rest.chars().next().map(|c| c.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') => 40,
        Some(_) => return None,
    };
    if let Ok(whole) = number.parse::<usize>() {
        return whole.checked_mul(1 << shift);
    }
    let bytes = (number.parse::<f64>().ok()? * (1u64 << shift) as f64).ceil();
    (bytes < (1u64 << 52) as f64).then_some(bytes as usize)
}

impl Variables {
    /// Prints what the user has asked for.
    pub fn tell(&self, pe: usize) {
        if pe != 0 {
            return;
        }
        if self.version {
            println!("Transom {}, OpenSHMEM 1.5", env!("CARGO_PKG_VERSION"));
        }
        if self.info {
            println!(
                "OpenSHMEM's variables (their old names begin with SMA_); `transom info` has Transom's own:"
            );
            for (name, kind, default, meaning) in TABLE {
                println!("  {name} ({kind}; default: {default}): {meaning}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_as_the_specification_says() {
        for (text, expected) in [
            ("20m", Some(20971520)),
            ("3.1M", Some(3250586)),
            (".5m", Some(524288)),
            ("0.5m", Some(524288)),
            ("20kk", Some(20480)),
            ("0", Some(0)),
            ("1t", Some(1 << 40)),
            ("1.5G", Some(3 << 29)),
            ("", None),
            ("x", None),
            ("-1", None),
            ("1.2.3", None),
            ("12b", None),
            ("99999999999t", None),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
