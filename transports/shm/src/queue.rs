//! The message queue: bounded, many producers (peers), one consumer (the owner), in the owner's memory file.
//!
//! After D. Vyukov's bounded queue: each cell carries a sequence number that says whether a producer or the consumer is
//! next, producers claim cells by compare-and-swap on the tail, and no thread waits while holding a cell. Messages of one
//! producer arrive in order. The queue's size does not depend on the number of peers.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use transom_transport::memory::{Stores, store_load_fence};
use transom_transport::{Rest, Span, TransportError, TransportResult};

/// Cells in a queue. Their blocks are more together than what a core's own cache holds, usually: what is still in the sender's when it
/// is read comes from there at a third of the speed of the shared cache (measured on AMD's Zen 4).
const CELLS: u64 = 128;
/// Free cells that make a full queue worth another look.
const SEVERAL: u64 = 32;
/// Bytes of a cell's near part, its header included: all of a short message, and the beginning of others. Those of all cells are one
/// behind the other, so that short messages are on few pages.
const NEAR_BYTES: usize = 1024;
/// Bytes of a cell's header: sequence number (8), length in the near part (4) and in the block (4), on the first cache line with small
/// messages.
const CELL_HEADER: usize = 16;
/// Bytes of a message in the near part.
const NEAR: usize = NEAR_BYTES - CELL_HEADER;
/// Bytes of a cell's block, for what the near part has no room for.
const BLOCK: usize = 16384;
/// What is short begins elsewhere in its block from round to round, when its sender has sent some, at a multiple of its length or of this:
/// so that it, too, is not written where it is still in both cores' own caches.
const SHORTEST: usize = 2048;
/// Messages in blocks after which a sender uses a place more. Memory that nobody has written yet takes microseconds: a job with few messages
/// uses little of it, and one with many meets it a part at a time.
const MESSAGES_PER_PLACE: u32 = 2048;
/// In the length of what is in the block: where it begins there, in units of [`SHORTEST`].
const START_SHIFT: u32 = 16;
/// In the length: the message begins with the job's prefix, which is left out.
const PREFIXED: u32 = 1 << 31;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Words of a message behind the cell's header in its first line.
const WORDS: usize = (LINE - CELL_HEADER) / size_of::<u64>();
/// The lengths of a message that has the job's prefix and fits the first line just so: most short ones.
const LINE_LENGTHS: [u32; 2] = [(WORDS * size_of::<u64>()) as u32 | PREFIXED, 0];
/// Who sends a payload of so many bytes may well send another such.
const LONG: usize = 1024;
/// So many bytes of its block are fetched at the most: what is longer is written as soon without.
const PREFETCHED: usize = 4096;
/// Offsets of the control words, each on a cache line of its own: producers write TAIL, the consumer ASLEEP.
const TAIL: usize = 0;
const ASLEEP: usize = 128;
/// A number by which peers know that it is this queue.
pub const NONCE: usize = 256;
/// Not zero: the owner has announced something.
const ANNOUNCED: usize = 320;
/// Threads of the owner that are appending to a queue, its own or a peer's; counted where peers may outlive the owner.
const APPENDING: usize = 384;
const FIRST_CELL: usize = 4096;
const FIRST_BLOCK: usize = FIRST_CELL + CELLS as usize * NEAR_BYTES;

/// Most bytes of one message: with a header of a line its payload is a block.
pub const MAX_MESSAGE: usize = LINE + BLOCK;
/// Bytes that a queue takes.
pub const QUEUE_BYTES: usize = FIRST_BLOCK + CELLS as usize * BLOCK;
/// Changes with the layout above, with what words of it say, and with that of the control blocks whose locks these ranks share.
pub const LAYOUT: u32 = 8;

/// Room for a message.
#[derive(Debug)]
#[repr(align(64))]
pub struct Inbox(pub [u8; MAX_MESSAGE]);

impl Default for Inbox {
    fn default() -> Self {
        Self([0; MAX_MESSAGE])
    }
}

/// Bytes of a message that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// In its inbox.
    pub near: usize,
    /// In its block.
    pub far: usize,
    /// Where those begin.
    start: usize,
}

/// Bytes with which the messages of a job begin.
pub type Prefix = [u8; 16];

/// A view of a queue, the owner's or a peer's.
///
/// Messages that begin with the job's prefix travel without it: with a header of 64 bytes that has it, a message without payload
/// is one cache line.
#[derive(Debug)]
pub struct Queue {
    memory: Span,
    /// Messages in blocks that were appended by this view; about as many, if by several threads.
    blocks: AtomicU32,
}

impl Queue {
    /// A view of the queue in `memory`, which is new (all zero) or in use.
    pub fn new(memory: Span) -> Self {
        Self { memory, blocks: AtomicU32::new(0) }
    }

    fn cell(index: u64) -> usize {
        FIRST_CELL + (index % CELLS) as usize * NEAR_BYTES
    }

    fn block(index: u64) -> usize {
        FIRST_BLOCK + (index % CELLS) as usize * BLOCK
    }

    /// Where a message begins in its block, which has so many bytes of it, from a sender that has sent so many in blocks.
    fn start(index: u64, bytes: usize, sent: u32) -> usize {
        let place = bytes.next_power_of_two().clamp(SHORTEST, BLOCK);
        let places = (sent / MESSAGES_PER_PLACE + 1).min((BLOCK / place) as u32);
        ((index / CELLS) as u32 % places) as usize * place
    }

    /// The sequence number of a cell. Stored less the cell's own index, so that fresh zeroed memory is an empty queue.
    fn sequence(&self, index: u64) -> TransportResult<&AtomicU64> {
        self.memory.word64(Self::cell(index))
    }

    /// Tells all who see the queue, by a flag. Owner only.
    pub fn announce(&self) -> TransportResult<()> {
        self.memory.word32(ANNOUNCED)?.store(1, Ordering::Release);
        Ok(())
    }

    /// Whether the owner has told so.
    pub fn is_announced(&self) -> TransportResult<bool> {
        Ok(self.memory.word32(ANNOUNCED)?.load(Ordering::Acquire) != 0)
    }

    fn asleep(&self) -> TransportResult<&AtomicU32> {
        self.memory.word32(ASLEEP)
    }

    /// Whether there is room for several messages: who found the queue full waits until then, or else would wait for the owner again
    /// at every message, and both for the same cache lines.
    pub fn has_room(&self) -> TransportResult<bool> {
        let last = self.memory.word64(TAIL)?.load(Ordering::Relaxed).wrapping_add(SEVERAL - 1);
        // Cells become free in order.
        Ok(self.sequence(last)?.load(Ordering::Acquire) == last / CELLS * 2)
    }

    /// The first line of a cell: sequence number, lengths, and the beginning of the message.
    #[inline]
    fn line(&self, index: u64) -> TransportResult<&[AtomicU64; 8]> {
        self.memory.line(Self::cell(index))
    }

    /// Appends a message, with the long part of the payload written by such stores. `Ok(false)`: the queue is full.
    #[inline]
    pub fn push_by(
        &self,
        stores: Stores,
        prefix: Option<&Prefix>,
        header: &[u8],
        payload: &[u8],
    ) -> TransportResult<bool> {
        let bytes = header.len() + payload.len();
        if bytes > MAX_MESSAGE {
            return Err(TransportError::Range { offset: 0, bytes, len: MAX_MESSAGE });
        }
        let tail = self.memory.word64(TAIL)?;
        let mut index = tail.load(Ordering::Relaxed);
        let line = loop {
            let round = index / CELLS * 2;
            let line = self.line(index)?;
            let sequence = line[0].load(Ordering::Acquire);
            if sequence == round {
                // Release: who sees the claim sees its owner `appending`.
                match tail.compare_exchange_weak(index, index + 1, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => break line,
                    Err(now) => index = now,
                }
            } else if sequence < round {
                return Ok(false);
            } else {
                index = tail.load(Ordering::Relaxed);
            }
        };
        match prefix.and_then(|prefix| header.strip_prefix(prefix)) {
            Some(rest) if payload.is_empty() && rest.len() == size_of::<[u64; WORDS]>() => {
                line[1].store(zerocopy::transmute!(LINE_LENGTHS), Ordering::Relaxed);
                for (word, bytes) in line[2..].iter().zip(rest.as_chunks().0) {
                    word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
                }
            }
            Some(rest) => self.write(index, stores, PREFIXED, rest, payload)?,
            None => self.write(index, stores, 0, header, payload)?,
        }
        line[0].store(index / CELLS * 2 + 1, Ordering::Release);
        // The owner wrote the next cell last: the next message need not wait for its line, nor a short one for the second.
        let next = Self::cell(index + 1);
        self.memory.prefetch(next)?;
        match payload.len() {
            0..LONG => self.memory.prefetch(next + LINE)?,
            long if stores == Stores::Cached => {
                let long = long.min(BLOCK);
                let start = Self::start(index + 1, long, self.blocks.load(Ordering::Relaxed));
                self.memory.prefetch_for_writing(Self::block(index + 1) + start, long.min(PREFETCHED))?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Writes a message of [`MAX_MESSAGE`] bytes at most to a cell that is claimed.
    fn write(
        &self,
        index: u64,
        stores: Stores,
        prefixed: u32,
        header: &[u8],
        payload: &[u8],
    ) -> TransportResult<()> {
        let at = Self::cell(index);
        let (headers, payloads) = near(header.len(), payload.len());
        let (header, over) = header.split_at(headers);
        let (near, payload) = payload.split_at(payloads);
        let far = over.len() + payload.len();
        let mut start = 0;
        if far > 0 {
            let sent = self.blocks.load(Ordering::Relaxed);
            self.blocks.store(sent.saturating_add(1), Ordering::Relaxed);
            start = Self::start(index, far, sent);
            let block = Self::block(index) + start;
            self.memory.copy_in(block, over)?;
            self.memory.copy_in_by(stores, block + over.len(), payload)?;
        }
        // The first line last and all at once: the owner polls it, and would take it away in between.
        self.memory.copy_in(at + CELL_HEADER + header.len(), near)?;
        self.memory.copy_in(at + CELL_HEADER, header)?;
        let far = far as u32 | ((start / SHORTEST) as u32) << START_SHIFT;
        let lengths = [(header.len() + near.len()) as u32 | prefixed, far];
        self.memory.word32(at + 8)?.store(lengths[0], Ordering::Relaxed);
        self.memory.word32(at + 12)?.store(lengths[1], Ordering::Relaxed);
        Ok(())
    }

    /// The owner is appending to a queue, as long as the result is kept.
    pub fn append(&self) -> TransportResult<Appending<'_>> {
        let count = self.memory.word32(APPENDING)?;
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Appending(count))
    }

    /// Whether no thread of the owner is appending to a queue: then the cells that its threads have claimed have their messages.
    pub fn appends_nothing(&self) -> bool {
        self.memory.word32(APPENDING).is_ok_and(|count| count.load(Ordering::Acquire) == 0)
    }

    /// Whether the cell at `head` is claimed. Owner only.
    pub fn is_claimed(&self, head: u64) -> TransportResult<bool> {
        Ok(self.memory.word64(TAIL)?.load(Ordering::Acquire) > head)
    }

    /// Whether the owner slept and this caller is the one to ring for it.
    pub fn must_ring(&self) -> TransportResult<bool> {
        // The message must be visible before `asleep` is read, as the owner sets it before its last look.
        store_load_fence();
        let asleep = self.asleep()?;
        Ok(asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::AcqRel) != 0)
    }

    /// Whether the message at `head` is there. Owner only.
    pub fn ready(&self, head: u64) -> TransportResult<bool> {
        Ok(self.sequence(head)?.load(Ordering::Acquire) == head / CELLS * 2 + 1)
    }

    /// Has the message at `head` brought near.
    pub fn prefetch(&self, head: u64) -> TransportResult<()> {
        self.memory.prefetch(Self::cell(head))
    }

    /// Takes the near part of the message at `head` into `buffer`; its cell stays the message's until it is [released](Queue::release).
    /// Owner only, with `head` counting from 0.
    #[inline]
    pub fn take(
        &self,
        prefix: Option<&Prefix>,
        head: u64,
        Inbox(buffer): &mut Inbox,
    ) -> TransportResult<Option<Taken>> {
        let line = self.line(head)?;
        if line[0].load(Ordering::Acquire) != head / CELLS * 2 + 1 {
            return Ok(None);
        }
        let lengths: [u32; 2] = zerocopy::transmute!(line[1].load(Ordering::Relaxed));
        if let Some(prefix) = prefix.filter(|_| lengths == LINE_LENGTHS) {
            buffer[..prefix.len()].copy_from_slice(prefix);
            for (to, word) in buffer[prefix.len()..LINE].as_chunks_mut().0.iter_mut().zip(&line[2..]) {
                *to = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            return Ok(Some(Taken { near: LINE, far: 0, start: 0 }));
        }
        let (at, [near, far]) = (Self::cell(head), lengths);
        let begin = ((far >> START_SHIFT) as usize * SHORTEST).min(BLOCK);
        let far = (far as usize & ((1 << START_SHIFT) - 1)).min(BLOCK - begin);
        let start = match prefix.filter(|_| near & PREFIXED != 0) {
            Some(prefix) => {
                buffer[..prefix.len()].copy_from_slice(prefix);
                prefix.len()
            }
            None => 0,
        };
        // A length that no producer of ours writes is cut, and the message's own checks refuse it.
        let near = start + ((near & !PREFIXED) as usize).min(NEAR);
        self.memory.copy_out(at + CELL_HEADER, &mut buffer[start..near])?;
        Ok(Some(Taken { near, far: far.min(MAX_MESSAGE - near), start: begin }))
    }

    /// What is in the block of the message at `head`.
    pub fn rest(&self, head: u64, taken: Taken) -> TransportResult<Rest<'_>> {
        Rest::new(&self.memory, Self::block(head) + taken.start, taken.far)
    }

    /// Gives the cell of the message at `head` back. Owner only.
    pub fn release(&self, head: u64) -> TransportResult<()> {
        self.sequence(head)?.store(head / CELLS * 2 + 2, Ordering::Release);
        Ok(())
    }

    /// The owner is about to sleep. Returns false if a message is there already.
    pub fn arm(&self, head: u64) -> TransportResult<bool> {
        self.asleep()?.store(1, Ordering::Relaxed);
        store_load_fence();
        Ok(!self.ready(head)?)
    }

    /// The owner is awake.
    pub fn disarm(&self) {
        if let Ok(asleep) = self.asleep() {
            asleep.store(0, Ordering::Relaxed);
        }
    }
}

/// Of a message with so many bytes of a header and of payload: how many of each are in the near part. All if it has room for all;
/// else the payload begins with the block, unless that has too little room.
fn near(header: usize, payload: usize) -> (usize, usize) {
    let over = header.saturating_sub(NEAR);
    match header + payload {
        0..=NEAR => (header, payload),
        _ => (header - over, (over + payload).saturating_sub(BLOCK)),
    }
}

/// A thread is appending to a queue.
#[derive(Debug)]
pub struct Appending<'a>(&'a AtomicU32);

impl Drop for Appending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use transom_transport::Payload;

    use super::*;

    impl Queue {
        pub fn push(&self, prefix: Option<&Prefix>, header: &[u8], payload: &[u8]) -> TransportResult<bool> {
            self.push_by(Stores::Cached, prefix, header, payload)
        }

        /// Takes the message at `head` whole, and returns its length.
        pub fn pop(
            &self,
            prefix: Option<&Prefix>,
            head: u64,
            inbox: &mut Inbox,
        ) -> TransportResult<Option<usize>> {
            let Some(taken) = self.take(prefix, head, inbox)? else { return Ok(None) };
            let end = taken.near + taken.far;
            Payload::There(self.rest(head, taken)?).copy_to(&mut inbox.0[taken.near..end]);
            self.release(head)?;
            Ok(Some(end))
        }

        /// What is left of a rank that is killed while it appends. `false`: the queue is full.
        pub fn claim(&self) -> bool {
            let tail = self.memory.word64(TAIL).unwrap();
            loop {
                let index = tail.load(Ordering::Relaxed);
                let (sequence, round) =
                    (self.sequence(index).unwrap().load(Ordering::Acquire), index / CELLS * 2);
                if sequence < round {
                    return false;
                }
                if sequence == round
                    && tail.compare_exchange(index, index + 1, Ordering::Release, Ordering::Relaxed).is_ok()
                {
                    return true;
                }
            }
        }
    }

    fn queue() -> Queue {
        Queue::new(Span::anonymous(QUEUE_BYTES).unwrap())
    }

    #[test]
    fn keeps_order_and_refuses_when_full() {
        let queue = queue();
        let mut buffer = Inbox::default();
        for round in 0..3u64 {
            for i in 0..CELLS {
                assert!(queue.push(None, &(round * CELLS + i).to_le_bytes(), b"x").unwrap());
            }
            assert!(!queue.push(None, b"full", b"").unwrap());
            for i in 0..CELLS {
                let head = round * CELLS + i;
                assert_eq!(queue.pop(None, head, &mut buffer).unwrap(), Some(9));
                assert_eq!(buffer.0[..8], head.to_le_bytes());
            }
            assert_eq!(queue.pop(None, (round + 1) * CELLS, &mut buffer).unwrap(), None);
        }
    }

    #[test]
    fn short_messages_come_to_use_all_of_their_blocks() {
        for bytes in [0, 1, NEAR + 1, 2048, 2049, 4096, 8191, BLOCK / 2 + 1, BLOCK] {
            let most = BLOCK / bytes.next_power_of_two().clamp(SHORTEST, BLOCK);
            for (sent, places) in (0..12).map(|more| (more * MESSAGES_PER_PLACE + 7, more as usize + 1)) {
                let starts = (0..100).map(|round| Queue::start(5 + round * CELLS, bytes, sent));
                let starts: std::collections::BTreeSet<_> = starts.collect();
                assert!(starts.iter().all(|start| start + bytes <= BLOCK), "{bytes}: {starts:?}");
                assert_eq!(starts.len(), most.min(places), "{bytes}");
            }
        }
    }

    #[test]
    fn messages_come_back_from_every_place() {
        let (queue, mut buffer) = (queue(), Inbox::default());
        for head in 0..20 * u64::from(MESSAGES_PER_PLACE) {
            let payload = vec![head as u8; 1500 + head as usize % 3000];
            assert!(queue.push(None, &head.to_le_bytes(), &payload).unwrap());
            assert_eq!(queue.pop(None, head, &mut buffer).unwrap(), Some(8 + payload.len()));
            assert_eq!(buffer.0[..8 + payload.len()], [&head.to_le_bytes()[..], &payload].concat());
        }
    }

    #[test]
    fn what_nobody_writes_stays_in_the_block() {
        for far in [u32::MAX, u32::MAX << START_SHIFT, 7 << START_SHIFT | 0xffff, 9 << START_SHIFT | 1] {
            let (queue, mut buffer) = (queue(), Inbox::default());
            assert!(queue.push(None, &[1; 8], &[2; 4000]).unwrap());
            queue.memory.word32(Queue::cell(0) + 12).unwrap().store(far, Ordering::Relaxed);
            let taken = queue.take(None, 0, &mut buffer).unwrap().unwrap();
            assert!(taken.start + taken.far <= BLOCK, "{taken:?}");
            assert!(queue.rest(0, taken).is_ok());
        }
    }

    #[test]
    fn the_prefix_comes_back() {
        let (queue, prefix, mut buffer) = (queue(), [7; 16], Inbox::default());
        let header = [&prefix[..], b"header"].concat();
        let longest = vec![9; MAX_MESSAGE - header.len()];
        for (head, payload) in (0..).zip([&b""[..], b"payload", &longest]) {
            assert!(queue.push(Some(&prefix), &header, payload).unwrap());
            let len = queue.pop(Some(&prefix), head, &mut buffer).unwrap().unwrap();
            assert_eq!(buffer.0[..len], [&header[..], payload].concat());
        }
        assert!(queue.push(Some(&prefix), b"another", b"").unwrap());
        let len = queue.pop(Some(&prefix), 3, &mut buffer).unwrap().unwrap();
        assert_eq!(&buffer.0[..len], b"another");
    }

    #[test]
    fn headers_and_payloads_of_all_lengths_come_as_they_were() {
        let (queue, mut buffer) = (queue(), Inbox::default());
        let bytes: Vec<u8> = (0..MAX_MESSAGE).map(|i| (i * 7 + (i >> 8)) as u8).collect();
        let lengths = [0, 1, 48, 64, NEAR - 1, NEAR, NEAR + 1, BLOCK - 1, BLOCK, BLOCK + 1, MAX_MESSAGE];
        let mut head = 0;
        for header in lengths {
            for len in lengths.into_iter().filter(|len| *len >= header) {
                let (header, payload) = bytes[..len].split_at(header);
                for stores in [Stores::Cached, Stores::PastCaches] {
                    assert!(queue.push_by(stores, None, header, payload).unwrap());
                    assert_eq!(queue.pop(None, head, &mut buffer).unwrap(), Some(len), "{}", header.len());
                    assert!(buffer.0[..len] == bytes[..len], "{len}, {} of them header", header.len());
                    head += 1;
                }
            }
        }
        assert!(queue.push(None, &bytes, b"x").is_err());
        assert!(!queue.ready(head).unwrap(), "nothing is claimed for it");
    }

    #[test]
    fn lengths_that_nobody_writes_are_cut() {
        let (queue, mut buffer) = (queue(), Inbox::default());
        for (head, prefix) in [(0, None), (1, Some(&[7; 16]))] {
            assert!(queue.push(None, b"", b"").unwrap());
            for (at, length) in [(8, u32::MAX), (12, u32::MAX >> START_SHIFT)] {
                queue.memory.word32(Queue::cell(head) + at).unwrap().store(length, Ordering::Relaxed);
            }
            assert_eq!(queue.pop(prefix, head, &mut buffer).unwrap(), Some(MAX_MESSAGE));
        }
    }

    #[test]
    fn many_producers_lose_nothing() {
        let queue = queue();
        const EACH: u64 = 20_000;
        std::thread::scope(|s| {
            for producer in 0..3u64 {
                let queue = &queue;
                s.spawn(move || {
                    for i in 0..EACH {
                        while !queue.push(None, &producer.to_le_bytes(), &i.to_le_bytes()).unwrap() {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0u64; 3];
            let mut buffer = Inbox::default();
            let mut head = 0;
            while head < 3 * EACH {
                match queue.pop(None, head, &mut buffer).unwrap() {
                    Some(len) => {
                        assert_eq!(len, 16);
                        let word = |at| u64::from_le_bytes(buffer.0[at..at + 8].try_into().unwrap());
                        assert_eq!(word(8), next[word(0) as usize]);
                        next[word(0) as usize] += 1;
                        head += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
            assert_eq!(next, [EACH; 3]);
        });
    }
}
