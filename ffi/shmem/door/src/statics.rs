//! The program's static data, which is symmetric: what of the executable is mapped writable.

use std::ffi::c_void;

use libc::{PF_W, PT_GNU_RELRO, PT_LOAD, c_int, dl_phdr_info, size_t};
use transom::RawBuffer;

/// Start and end.
#[derive(Debug, Clone, Copy, Default)]
struct Range {
    start: usize,
    end: usize,
}

/// Static data of the executable, if it has any. All processes of a program have the same, each wherever it is loaded.
pub fn find() -> Option<RawBuffer> {
    let mut range = Range::default();
    // SAFETY: the callback has the type that is asked for, and `range` is valid while it is called (dl_iterate_phdr(3)).
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut range).cast()) };
    // SAFETY: mapped readable and writable for as long as the process lives; others access it as the specification lets programs access
    // symmetric objects (OpenSHMEM 1.5 §3, §8).
    (range.start < range.end)
        .then(|| unsafe { RawBuffer::new(range.start as *mut u8, range.end - range.start) })
}

/// Called for the executable first, and stops there.
unsafe extern "C" fn look(info: *mut dl_phdr_info, _size: size_t, range: *mut c_void) -> c_int {
    // SAFETY: valid while the callback runs; the headers are as many as it says (dl_iterate_phdr(3)). `range` is find's.
    let (info, range) = unsafe { (&*info, &mut *range.cast::<Range>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let place = |header: &libc::Elf64_Phdr| {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        Range { start, end: start.wrapping_add(header.p_memsz as usize) }
    };
    // What is only written while the program is loaded is protected then, in whole pages.
    let fixed = headers.iter().find(|header| header.p_type == PT_GNU_RELRO).map(place).unwrap_or_default();
    let writable =
        headers.iter().filter(|header| header.p_type == PT_LOAD && header.p_flags & PF_W != 0).map(place);
    let data = writable.map(|segment| {
        let behind = fixed.start <= segment.start && segment.start < fixed.end;
        Range { start: if behind { fixed.end } else { segment.start }, ..segment }
    });
    if let Some(longest) = data.filter(|data| data.start < data.end).max_by_key(|data| data.end - data.start)
    {
        *range = longest;
    }
    1
}
