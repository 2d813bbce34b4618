//! What memory of this process is: its mappings, its threads, what the kernel holds on to (proc(5)).

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::PAGE;

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub pages: Range<usize>,
    pub kind: Kind,
}

/// What is mapped, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Private memory, to be read and written: the heap, static data that begins as zeroes.
    Private,
    /// The stack of the first thread, which grows downward.
    Stack,
    /// Static data, whose pages come from a file until they are written.
    Static,
    /// The same bytes of a shared file with this inode number, from this offset on.
    File(u64, usize),
    /// Anything else, and what.
    Other(&'static str),
}

/// All mappings, in the order of their addresses.
pub fn all() -> io::Result<Vec<Mapping>> {
    Ok(fs::read_to_string("/proc/self/maps")?.lines().filter_map(parse).collect())
}

/// A line of /proc/PID/maps: `start-end rwxp offset device inode path`.
fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let number = |text: &str| usize::from_str_radix(text, 16).ok();
    let access = fields.next()?;
    let offset = number(fields.next()?)?;
    let _device = fields.next()?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("").trim_start();
    let kind = match access {
        "rw-s" => Kind::File(inode, offset),
        "rw-p" if inode == 0 && path == "[stack]" => Kind::Stack,
        "rw-p" if inode == 0 && (path.is_empty() || path == "[heap]" || path.starts_with("[anon:")) => {
            Kind::Private
        }
        "rw-p" if path.starts_with('/') && !path.starts_with("/dev/") && !path.ends_with("(deleted)") => {
            Kind::Static
        }
        "rw-p" => Kind::Other("a file or device that is mapped privately, or huge pages"),
        "rwxp" | "rwxs" => Kind::Other("executable"),
        access if access.starts_with("r-") => Kind::Other("read-only"),
        _ => Kind::Other("neither readable nor writable"),
    };
    Some(Mapping { pages: number(start)?..number(end)?, kind })
}

/// Number of threads.
pub fn threads() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}

/// Bytes that are locked in memory, or pinned for devices.
pub fn held() -> io::Result<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Ok((kib("VmLck:").unwrap_or(0) * 1024, kib("VmPin:").unwrap_or(0) * 1024))
}

/// Most mappings that a process may have.
pub fn most() -> usize {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(65_530)
}

/// Whether programs have huge pages without asking for them.
pub fn has_huge_pages() -> bool {
    static ALWAYS: OnceLock<bool> = OnceLock::new();
    *ALWAYS.get_or_init(|| {
        let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        enabled.contains("[always]")
    })
}

/// Those of some pages that have contents: all others are zero, and nobody has touched them.
pub fn touched(pages: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
    with_flags(pages, PRESENT | SWAPPED)
}

/// Those of some pages that are in memory now.
pub fn present(pages: &Range<usize>) -> io::Result<Vec<Range<usize>>> {
    with_flags(pages, PRESENT)
}

/// Flags of an entry of /proc/PID/pagemap, in its last byte. Pages that are not there, and of which writers wait, have the second,
/// too.
const PRESENT: u8 = 1 << 7;
const SWAPPED: u8 = 1 << 6;

fn with_flags(pages: &Range<usize>, flags: u8) -> io::Result<Vec<Range<usize>>> {
    const ENTRY: usize = size_of::<u64>();
    const AT_ONCE: usize = 8192;
    let pagemap = fs::File::open("/proc/self/pagemap")?;
    let mut entries = vec![0u8; AT_ONCE.min(pages.len() / PAGE) * ENTRY];
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut at = pages.start;
    while at < pages.end {
        let some = ((pages.end - at) / PAGE).min(AT_ONCE) * ENTRY;
        pagemap.read_exact_at(&mut entries[..some], (at / PAGE * ENTRY) as u64)?;
        for entry in entries[..some].chunks_exact(ENTRY) {
            if entry[ENTRY - 1] & flags != 0 {
                match runs.last_mut() {
                    Some(run) if run.end == at => run.end += PAGE,
                    _ => runs.push(at..at + PAGE),
                }
            }
            at += PAGE;
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let kind = |line: &str| parse(line).unwrap().kind;
        assert_eq!(
            parse("55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]"),
            Some(Mapping { pages: 0x55d0_c8a0_0000..0x55d0_c8a2_1000, kind: Kind::Private })
        );
        assert_eq!(kind("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 "), Kind::Private);
        assert_eq!(kind("7ffc0000-7ffd0000 rw-p 00000000 00:00 0        [stack]"), Kind::Stack);
        assert_eq!(kind("4000-5000 rw-p 00002000 fe:00 77   /usr/lib/a b.so"), Kind::Static);
        assert_eq!(kind("4000-5000 rw-s 00004000 00:01 1234   /memfd:x (deleted)"), Kind::File(1234, 0x4000));
        for other in [
            "4000-5000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)",
            "4000-5000 r--p 00000000 00:00 0 ",
            "4000-5000 rwxp 00000000 00:00 0 ",
            "4000-5000 ---p 00000000 00:00 0 ",
            "4000-5000 rw-p 00000000 00:00 0 [vvar]",
        ] {
            assert!(matches!(kind(other), Kind::Other(_)), "{other}");
        }
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn only_pages_with_contents_are_touched() {
        let mut map = memmap2::MmapMut::map_anon(64 * PAGE).unwrap();
        let start = map.as_ptr() as usize;
        for page in [3, 4, 9] {
            map[page * PAGE + 1] = 1;
        }
        let runs = touched(&(start..start + 64 * PAGE)).unwrap();
        let pages = |first: usize, last: usize| start + first * PAGE..start + last * PAGE;
        assert_eq!(runs, [pages(3, 5), pages(9, 10)]);
    }
}
