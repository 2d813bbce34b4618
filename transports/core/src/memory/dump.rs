//! What a core dump has of memory that is shared: by itself all of it, even pages that were never touched, which the dump then
//! brings into being.

use super::{Owner, Span};

impl Span {
    /// Windows up to so many bytes are in the dumps of their ranks: a dump brings each of their pages into being, and takes seconds for
    /// a GiB.
    pub const DUMPED: usize = 64 << 20;

    /// Whether a core dump of this process has these bytes, which begin with a page, and what else is in their last page. If the
    /// kernel does not know that, dumps are larger. Nothing is done to memory of the caller's.
    pub fn dump(&self, wanted: bool) {
        if self.is_callers()
            || self.is_empty()
            || !matches!(self.owner(), Owner::File(..) | Owner::Sparse(..))
        {
            return;
        }
        let advice = if wanted { libc::MADV_DODUMP } else { libc::MADV_DONTDUMP };
        // SAFETY: inside a mapping that the span keeps; the advice changes nothing but core dumps, and fails if the address is none
        // of a page (madvise(2)).
        unsafe { libc::madvise(self.address() as *mut libc::c_void, self.len(), advice) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the mapping at an address is in dumps (VmFlags of proc_pid_smaps(5)).
    fn is_dumped(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let at = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(start)?..number(end)?).contains(&address))
        };
        let flags =
            maps.lines().skip_while(|line| at(line) != Some(true)).find(|line| line.starts_with("VmFlags:"));
        !flags.unwrap().contains(" dd")
    }

    #[test]
    fn a_part_is_dumped() {
        const PAGE: usize = 1 << 16;
        let span = Span::reserve(None, 8 * PAGE, 0x2e00_0000_0000).unwrap();
        let part = span.part(2 * PAGE, PAGE).unwrap();
        let dumped = || [1, 2, 3].map(|page| is_dumped(span.address() + page * PAGE));
        assert_eq!(dumped(), [false; 3]);
        part.dump(true);
        assert_eq!(dumped(), [false, true, false]);
        part.dump(false);
        assert_eq!(dumped(), [false; 3]);
    }
}
