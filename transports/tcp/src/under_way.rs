//! Puts and gets that a rank has under way at a peer, in their order.

use std::collections::VecDeque;

use arrayvec::ArrayVec;

use crate::socket::{self, Parts};

/// Contexts of puts, until the peer has served them.
#[derive(Debug, Default)]
pub(crate) struct Puts {
    contexts: VecDeque<u64>,
    /// How many are served, modulo 2^32.
    served: u32,
}

impl Puts {
    #[inline]
    pub fn len(&self) -> usize {
        self.contexts.len()
    }

    #[inline]
    pub fn push(&mut self, context: u64) {
        self.contexts.push_back(context);
    }

    /// The peer says that it has served so many. How many these are of those under way; nothing if it cannot be so.
    #[inline]
    pub fn newly_served(&mut self, served: u32) -> Option<usize> {
        let new = served.wrapping_sub(self.served) as usize;
        if new > self.contexts.len() {
            return None;
        }
        self.served = served;
        Some(new)
    }

    /// Takes the oldest away.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        self.contexts.pop_front()
    }
}

/// A get that is not answered in full.
#[derive(Debug)]
pub(crate) struct Get {
    pub context: u64,
    /// Where its bytes go, as far as they have not come.
    pub to: Destination,
    /// Bytes that have not come.
    pub left: usize,
}

/// Memory of the caller's, in parts.
#[derive(Debug)]
pub(crate) enum Destination {
    One { address: usize },
    Many { parts: Box<[(usize, usize)]>, part: usize, within: usize },
}

impl Destination {
    /// Adds the next `len` bytes to `parts`, as far as there is room but for one; how many bytes these are.
    pub fn next(&self, len: usize, parts: &mut Parts) -> usize {
        match self {
            Self::One { address } => {
                parts.push(socket::part(*address, len));
                len
            }
            Self::Many { parts: all, part, within } => {
                let (mut bytes, mut skip) = (0, *within);
                for (address, part) in all.iter().skip(*part) {
                    let some = (part - skip).min(len - bytes);
                    if parts.remaining_capacity() <= 1 || bytes == len {
                        break;
                    }
                    if some > 0 {
                        parts.push(socket::part(address + skip, some));
                    }
                    bytes += some;
                    skip = 0;
                }
                bytes
            }
        }
    }

    /// The next `len` bytes have come.
    pub fn advance(&mut self, len: usize) {
        match self {
            Self::One { address } => *address += len,
            Self::Many { parts, part, within } => {
                *within += len;
                while let Some((_, len)) = parts.get(*part)
                    && *within >= *len
                {
                    *within -= *len;
                    *part += 1;
                }
            }
        }
    }

    /// Copies the next bytes there.
    ///
    /// # Safety
    /// The memory is valid for writes, has room for so many bytes, and is not accessed by others.
    pub unsafe fn fill(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut parts: Parts = ArrayVec::new();
            let len = self.next(bytes.len(), &mut parts);
            if len == 0 {
                return;
            }
            for part in &parts {
                let (now, later) = bytes.split_at(part.iov_len.min(bytes.len()));
                // SAFETY: the caller's promise; `bytes` is a buffer of ours, so they do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
                bytes = later;
            }
            self.advance(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wrap_and_wrong_ones_are_found() {
        let mut puts = Puts { served: u32::MAX, ..Puts::default() };
        puts.push(7);
        puts.push(8);
        assert_eq!(puts.newly_served(u32::MAX), Some(0));
        assert_eq!(puts.newly_served(2), None);
        assert_eq!(puts.newly_served(0), Some(1));
        assert_eq!((puts.pop(), puts.len()), (Some(7), 1));
        assert_eq!(puts.newly_served(u32::MAX), None);
    }

    #[test]
    fn parts_are_filled_in_order_whatever_comes_at_once() {
        for step in [1, 2, 3, 7, 100] {
            let mut memory = vec![0_u8; 600];
            let base = memory.as_mut_ptr() as usize;
            let lens = (0..100).map(|i| (i * 6, i % 5));
            let parts: Box<[_]> = lens.clone().map(|(at, len)| (base + at, len)).collect();
            let bytes: Vec<u8> = (0..200).map(|i| i as u8 + 1).collect();
            let mut to = Destination::Many { parts, part: 0, within: 0 };
            // SAFETY: the parts are inside the memory, and have 200 bytes together.
            bytes.chunks(step).for_each(|some| unsafe { to.fill(some) });
            let there: Vec<u8> = lens.flat_map(|(at, len)| memory[at..at + len].to_vec()).collect();
            assert_eq!(there, bytes);
            assert_eq!(memory.iter().filter(|byte| **byte != 0).count(), 200);
        }
    }
}
