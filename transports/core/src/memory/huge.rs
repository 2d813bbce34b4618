//! Huge pages under shared memory: by request at once, since kernels give memory files none by themselves (shmem_enabled is never).

use nix::errno::Errno;

use super::{Owner, Span};

/// Bytes of a huge page, where there are any: of x86-64, and of other machines with small pages of 4 KiB. Where they are larger, the
/// kernel refuses.
pub const HUGE_PAGE: usize = 2 << 20;

impl Span {
    /// Has huge pages take the place of all small ones in the span's whole huge pages. They take memory at once, touched or not. Its
    /// bytes stay as they are; whoever maps them as [`Span::map`] and [`Span::reserve`] do has the huge pages, too.
    ///
    /// How many bytes have them now: fewer than were asked for where the kernel has none, cannot move what is there, or knows no such
    /// request (Linux before 6.1); none of memory of the caller's.
    pub fn collapse(&self) -> usize {
        let first = self.address().next_multiple_of(HUGE_PAGE);
        let end = (self.address() + self.len()) / HUGE_PAGE * HUGE_PAGE;
        if first >= end || !matches!(self.owner(), Owner::Mapping(_) | Owner::File(..) | Owner::Sparse(..)) {
            return 0;
        }
        let mut have = 0;
        for page in (first..end).step_by(HUGE_PAGE) {
            let advise = |bytes: usize, advice| {
                // SAFETY: inside a mapping that the span keeps; neither request changes contents (madvise(2)).
                let result = unsafe { libc::madvise(page as *mut libc::c_void, bytes, advice) };
                if result == 0 { Ok(()) } else { Err(Errno::last()) }
            };
            // One without any small page is left alone.
            match advise(1, libc::MADV_POPULATE_WRITE).and_then(|()| advise(HUGE_PAGE, libc::MADV_COLLAPSE)) {
                Ok(()) => have += HUGE_PAGE,
                // Somebody else has the page locked just now.
                Err(Errno::EAGAIN | Errno::EBUSY) => {}
                Err(_) => break,
            }
        }
        have
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::FilePart;

    fn in_file(len: usize) -> Span {
        let fd = nix::sys::memfd::memfd_create(c"test", nix::sys::memfd::MFdFlags::empty()).unwrap();
        nix::unistd::ftruncate(&fd, len as i64).unwrap();
        Span::reserve(Some(FilePart::whole(fd)), len, 0).unwrap()
    }

    fn huge_bytes_mapped(at: usize) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = maps.lines().skip_while(|line| {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let inside = |(start, end): (&str, &str)| {
                Some(
                    (usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
                        .contains(&at),
                )
            };
            range.and_then(inside) != Some(true)
        });
        let line = lines.find(|line| line.starts_with("ShmemPmdMapped:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    }

    #[test]
    fn huge_pages_are_there_at_once_and_for_all_who_map_them() {
        const LEN: usize = 5 * HUGE_PAGE;
        let own = in_file(LEN);
        assert_eq!(own.address() % HUGE_PAGE, 0);
        own.copy_in(HUGE_PAGE + 9, b"before").unwrap();
        // Neither the first nor the last is whole.
        let part = own.part(4096, LEN - 8192).unwrap();
        let have = part.collapse();
        assert!(have.is_multiple_of(HUGE_PAGE) && have <= 3 * HUGE_PAGE, "{have}");
        // Where all small pages are there the kernel has no other reason to refuse than that it has no huge ones.
        let full = in_file(LEN);
        for page in (0..LEN).step_by(4096) {
            full.copy_in(page, &[1]).unwrap();
        }
        assert_eq!(have, full.part(4096, LEN - 8192).unwrap().collapse());
        let mut bytes = [1; 16];
        own.copy_out(HUGE_PAGE + 9, &mut bytes).unwrap();
        assert_eq!(&bytes, b"before\0\0\0\0\0\0\0\0\0\0");
        let (file, _) = own.file().unwrap();
        let peer = Span::map(file, HUGE_PAGE / 2, LEN - HUGE_PAGE / 2).unwrap();
        assert_eq!(peer.address() % HUGE_PAGE, HUGE_PAGE / 2);
        peer.copy_out(HUGE_PAGE / 2 + 9, &mut bytes).unwrap();
        assert_eq!(&bytes[..6], b"before");
        for page in 1..4 {
            peer.copy_out(page * HUGE_PAGE, &mut bytes).unwrap();
        }
        assert!(huge_bytes_mapped(peer.address()) <= have + 2 * HUGE_PAGE);
        if have == 3 * HUGE_PAGE {
            assert!(huge_bytes_mapped(peer.address()) >= 2 * HUGE_PAGE, "the peer has small pages");
        }
        own.part(HUGE_PAGE, HUGE_PAGE).unwrap().discard().unwrap();
        own.copy_out(HUGE_PAGE + 9, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 16]);
    }

    #[test]
    fn memory_that_is_not_ours_is_left_alone() {
        let mut memory = vec![0u8; 3 * HUGE_PAGE];
        // SAFETY: the vector lives on, and is not used otherwise.
        let span = unsafe { Span::from_raw(memory.as_mut_ptr(), memory.len()) };
        assert_eq!(span.collapse(), 0);
        assert_eq!(Span::empty().collapse(), 0);
    }
}
