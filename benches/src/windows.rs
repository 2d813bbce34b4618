//! The windows of one kind, for operations on bytes, words and doubles.

use std::hint::black_box;
use std::time::Duration;

use transom::{Communicator, Result, Sum};

use crate::area::{Area, in_epochs, in_one_epoch, take_part};
use crate::operation::{Operation, Verb, WORD};
use crate::options::Kind;
use crate::repeat::{Repeat, Timed};

/// What gets that are completed together fill at most.
const BATCH: usize = 16 << 20;

/// Windows of three element types, and the origin's buffers.
#[derive(Debug)]
pub struct Windows {
    /// Words.
    pub words: Area<u64>,
    bytes: Area<u8>,
    doubles: Area<f64>,
    fetched: Vec<f64>,
}

impl Windows {
    /// For transfers of up to `most` bytes. Collective.
    ///
    /// # Errors
    /// As [`Communicator::allocate`].
    pub fn new(comm: &Communicator, kind: Kind, most: usize) -> Result<Self> {
        let count = most.max(8192).div_ceil(WORD);
        let gets = most.saturating_mul(64).min(BATCH).max(most);
        Ok(Self {
            words: Area::new(comm, kind, count, count, 1)?,
            bytes: Area::new(comm, kind, most, gets, 1)?,
            doubles: Area::new(comm, kind, count, count, 1.0)?,
            fetched: vec![0.0; count],
        })
    }

    /// How many operations of so many bytes are streamed before they are completed: as OSU's window of 64, but no more memory than
    /// this has.
    pub fn batch(bytes: usize) -> usize {
        (BATCH / bytes.max(1)).clamp(1, 64)
    }

    /// Carries out an operation on `target`, as often as `repeat` says.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn act(&mut self, operation: Operation, target: usize, repeat: &mut impl Repeat) -> Result<()> {
        let Operation { verb, bytes, count, sync } = operation;
        let to = (target, sync);
        match verb {
            Verb::Put if bytes == WORD => {
                let (area, value) = (&self.words, self.words.own[0]);
                in_epochs(&area.window, to, repeat, |epoch| {
                    (0..count).try_for_each(|i| epoch.put_value(target, area.at(target, i), black_box(value)))
                })
            }
            Verb::Put => {
                let (area, data) = (&self.bytes, &self.bytes.own[..bytes]);
                let at = area.at(target, 0);
                in_epochs(&area.window, to, repeat, |epoch| {
                    (0..count).try_for_each(|_| epoch.put(target, at, data))
                })
            }
            Verb::Get => self.get(operation, target, repeat),
            Verb::Accumulate | Verb::GetAccumulate => self.accumulate(operation, target, repeat),
            Verb::FetchAndOp => {
                let at = self.words.at(target, 0);
                in_epochs(&self.words.window, to, repeat, |epoch| {
                    (0..count).try_for_each(|_| {
                        black_box(epoch.fetch_add(target, at, black_box(1))?);
                        Ok(())
                    })
                })
            }
            Verb::CompareAndSwap => {
                let at = self.words.at(target, 0);
                // What the word was last seen to be: but for the first, each swaps.
                let mut known = 1_u64;
                in_epochs(&self.words.window, to, repeat, |epoch| {
                    (0..count).try_for_each(|_| {
                        let old = epoch.compare_and_swap(
                            target,
                            at,
                            black_box(known),
                            black_box(known.wrapping_add(1)),
                        )?;
                        known = if old == known { known.wrapping_add(1) } else { old };
                        Ok(())
                    })
                })
            }
        }
    }

    fn get(&mut self, operation: Operation, target: usize, repeat: &mut impl Repeat) -> Result<()> {
        let Operation { bytes, count, sync, .. } = operation;
        if bytes == WORD && count == 1 {
            let (at, Area { window, own, .. }) = (self.words.at(target, 0), &mut self.words);
            return in_epochs(window, (target, sync), repeat, |epoch| {
                own[0] = black_box(epoch.get_value(target, at)?);
                Ok(())
            });
        }
        let (at, Area { window, own, .. }) = (self.bytes.at(target, 0), &mut self.bytes);
        if count == 1 {
            return in_epochs(window, (target, sync), repeat, |epoch| {
                epoch.read(target, at, &mut own[..bytes])
            });
        }
        // Each get has memory of its own, which it borrows until the end of its epoch: there is one a batch.
        repeat.repeat(|| {
            let mut places = own.chunks_exact_mut(bytes).take(count);
            in_one_epoch(window, (target, sync), |epoch| {
                places.try_for_each(|place| epoch.get(target, at, place))
            })
        })
    }

    fn accumulate(&mut self, operation: Operation, target: usize, repeat: &mut impl Repeat) -> Result<()> {
        let Operation { verb, bytes, count, sync } = operation;
        let at = self.doubles.at(target, 0);
        let (Area { window, own, .. }, data) = (&self.doubles, &mut self.fetched[..bytes / WORD]);
        let own = &own[..bytes / WORD];
        in_epochs(window, (target, sync), repeat, |epoch| {
            (0..count).try_for_each(|_| match verb {
                Verb::GetAccumulate => epoch.get_accumulate(target, at, Sum, own, data),
                _ => epoch.accumulate(target, at, Sum, own),
            })
        })
    }

    /// The part of `origin`'s target in [`Windows::act`].
    ///
    /// # Errors
    /// Those of the calls.
    pub fn take_part(&mut self, operation: Operation, origin: usize, repeat: &mut impl Repeat) -> Result<()> {
        let from = (origin, operation.sync);
        match operation.verb {
            Verb::Put if operation.bytes == WORD => take_part(&self.words.window, from, repeat),
            Verb::Get if operation.bytes == WORD && operation.count == 1 => {
                take_part(&self.words.window, from, repeat)
            }
            Verb::Put | Verb::Get => take_part(&self.bytes.window, from, repeat),
            Verb::Accumulate | Verb::GetAccumulate => take_part(&self.doubles.window, from, repeat),
            Verb::FetchAndOp | Verb::CompareAndSwap => take_part(&self.words.window, from, repeat),
        }
    }

    /// Time that rank 0 takes for `count` operations on rank 1, after one to warm up.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn time(&mut self, operation: Operation, count: u64) -> Result<Duration> {
        let mut timed = Timed::new(count);
        self.act(operation, 1, &mut timed)?;
        Ok(timed.time)
    }

    /// Collective.
    ///
    /// # Errors
    /// As [`transom::Window::free`].
    pub fn free(self) -> Result<()> {
        self.words.free()?;
        self.bytes.free()?;
        self.doubles.free()
    }
}

/// Checks of the data that operations move, each with data of its own.
impl Windows {
    /// Prepares memory for [`Windows::holds`]; to be called by both ranks, before the operation and a barrier.
    ///
    /// # Errors
    /// Local memory cannot be accessed.
    pub fn prepare(&mut self, operation: Operation, seed: u64, is_origin: bool) -> Result<()> {
        let len = operation.bytes;
        match (operation.verb, is_origin) {
            (Verb::Put, true) | (Verb::Get, false) => {
                let data = pattern(seed, len);
                if is_origin {
                    self.bytes.own[..len].copy_from_slice(&data);
                    self.words.own[0] = word(&data);
                    return Ok(());
                }
                self.bytes.local(|local| local.write(0, &data))?;
                self.words.local(|local| local.set(0, word(&data)))
            }
            (Verb::Put | Verb::Get, _) => Ok(()),
            (Verb::Accumulate | Verb::GetAccumulate, true) => {
                self.doubles.own[..len / WORD].fill(addend(seed));
                Ok(())
            }
            (Verb::Accumulate | Verb::GetAccumulate, false) => {
                self.doubles.local(|local| local.write(0, &vec![0.5; len / WORD]))
            }
            (_, true) => Ok(()),
            (_, false) => self.words.local(|local| local.set(0, 1)),
        }
    }

    /// Whether the operation, carried out once, did what it should; to be called by both ranks, after a barrier.
    ///
    /// # Errors
    /// Local memory cannot be accessed.
    pub fn holds(&self, operation: Operation, seed: u64, is_origin: bool) -> Result<bool> {
        let Operation { verb, bytes, count, .. } = operation;
        let data = || pattern(seed, bytes);
        Ok(match (verb, is_origin) {
            (Verb::Put, false) if bytes == WORD => {
                self.words.first(count)?.iter().all(|w| *w == word(&data()))
            }
            (Verb::Put, false) => self.bytes.first(bytes)? == data(),
            (Verb::Get, true) if bytes == WORD && count == 1 => self.words.own[0] == word(&data()),
            (Verb::Get, true) => self.bytes.own.chunks_exact(bytes).take(count).all(|place| *place == data()),
            (Verb::Accumulate | Verb::GetAccumulate, false) => {
                let sum = 0.5 + count as f64 * addend(seed);
                self.doubles.first(bytes / WORD)?.iter().all(|element| *element == sum)
            }
            (Verb::GetAccumulate, true) => {
                let before = 0.5 + (count - 1) as f64 * addend(seed);
                self.fetched[..bytes / WORD].iter().all(|element| *element == before)
            }
            (Verb::FetchAndOp | Verb::CompareAndSwap, false) => self.words.first(1)? == [1 + count as u64],
            _ => true,
        })
    }
}

/// Bytes that no other seed gives.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The word of a pattern of 8 bytes.
fn word(data: &[u8]) -> u64 {
    data.iter().take(WORD).fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A double whose multiples are exact.
fn addend(seed: u64) -> f64 {
    (seed % 1000) as f64 + 0.25
}
