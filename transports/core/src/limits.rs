//! Mappings that the system refuses: tried again with fewer bytes, and what to do if that does not help.

use std::fmt::Display;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::{TransportError, TransportResult};

/// What mappings that take address space only are to be measured by under valgrind, whose tools read all that is mapped: so pages
/// come to it.
const UNDER_VALGRIND: usize = 1 << 30;

/// Bytes of address space that this process is to be content with, if there is a limit.
pub fn address_space() -> Option<usize> {
    // Valgrind's own libraries come first in each program that it runs.
    let tool =
        std::env::var_os("LD_PRELOAD").is_some_and(|list| list.to_string_lossy().contains("/vgpreload_"));
    let under_tool = tool.then_some(UNDER_VALGRIND);
    limit().into_iter().chain(under_tool).min()
}

/// The limit that the system sets (`RLIMIT_AS`).
fn limit() -> Option<usize> {
    match getrlimit(Resource::RLIMIT_AS) {
        Ok((limit, _)) if limit != RLIM_INFINITY => Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        _ => None,
    }
}

/// The error of a mapping of `bytes` bytes that the system refused, with what may limit it.
pub fn refused(bytes: usize, error: impl Display) -> TransportError {
    let remedy = match limit() {
        Some(limit) => format!("the limit on address space is {} MiB (ulimit -v): raise it", limit >> 20),
        None => "there is no limit on address space (ulimit -v), so a tool that runs the program (valgrind, a sanitizer) or \
                 the system (vm.overcommit_memory, vm.max_map_count) leaves no more"
            .into(),
    };
    TransportError::NoMemory { bytes, reason: format!("mmap: {error}; {remedy}") }
}

/// Maps `most` bytes by `map`; as long as the system refuses that, a sixteenth of it, but never less than `least`. Tools and
/// limits leave little address space, most of which is to stay the program's.
///
/// # Errors
/// `least` bytes are refused, too; or `map` fails otherwise.
pub fn as_much<T>(
    most: usize,
    least: usize,
    map: impl Fn(usize) -> TransportResult<T>,
) -> TransportResult<T> {
    let mut bytes = most.max(least);
    loop {
        match map(bytes) {
            Err(TransportError::NoMemory { .. }) if bytes > least => {
                bytes = (bytes / 16).next_multiple_of(1 << 16).min(bytes / 2).max(least);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_mapping_is_tried_smaller() {
        let up_to = |limit| move |bytes| if bytes <= limit { Ok(bytes) } else { Err(refused(bytes, "no")) };
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(64 << 30)).unwrap(), 64 << 30);
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(63 << 30)).unwrap(), 4 << 30);
        assert_eq!(as_much(64 << 30, 1 << 20, up_to(1 << 20)).unwrap(), 1 << 20);
        assert_eq!(as_much(0, 5, up_to(5)).unwrap(), 5);
        let error = as_much(64 << 30, 1 << 20, up_to(9)).unwrap_err();
        assert!(matches!(error, TransportError::NoMemory { bytes, .. } if bytes == 1 << 20), "{error}");
        assert!(error.to_string().contains("ulimit -v"), "{error}");
    }
}
