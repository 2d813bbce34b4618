//! The windows of one kind, for operations on bytes, words and doubles.

use std::hint::black_box;

use transom::{Communicator, Result, Sum};

use crate::area::{Area, Buffer, in_epochs, in_one_epoch, take_part};
use crate::kind::Kind;
use crate::operation::{Operation, Verb, WORD};
use crate::repeat::Repeat;

/// What bursts move at most, if nobody says how many operations they have.
const BURST: usize = 16 << 20;

/// Bytes after which patterns of data repeat themselves: a prime number.
const PERIOD: usize = 65_537;

/// Bytes of windows, and of the origin's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Of a window.
    pub window: usize,
    /// Of the window that many operations at once go to.
    pub spread: usize,
    /// What these move.
    pub burst: usize,
}

/// Windows of three element types, and the origin's buffers.
#[derive(Debug)]
pub struct Windows {
    /// Words.
    pub words: Area<u64>,
    bytes: Area<u8>,
    doubles: Area<f64>,
    fetched: Buffer<f64>,
}

impl Windows {
    /// Collective.
    ///
    /// # Errors
    /// As [`Communicator::allocate`].
    pub fn new(comm: &Communicator, kind: Kind, extent: Extent) -> Result<Self> {
        let Extent { window, spread, burst } = extent;
        let count = window.max(8192).div_ceil(WORD);
        Ok(Self {
            words: Area::new(comm, kind, count, count, 1)?,
            bytes: Area::new(comm, kind, spread.max(window), burst.max(spread).max(window), 1)?,
            doubles: Area::new(comm, kind, count, count, 1.0)?,
            fetched: Buffer::new(count, 0.0),
        })
    }

    /// How many operations of so many bytes are completed together, unless somebody says: as OSU's window of 64, but no more than 16 MiB.
    pub fn burst(bytes: usize) -> usize {
        (BURST / bytes.max(1)).clamp(1, 64)
    }

    /// Carries out an operation on `target`, as often as `repeat` says.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn act(&mut self, operation: Operation, target: usize, repeat: &mut impl Repeat) -> Result<()> {
        let Operation { verb, bytes, count, sync, .. } = operation;
        let to = (target, sync);
        match verb {
            Verb::Put if operation.is_of_value() => {
                let (at, value) = (self.words.at(target, 0), self.words.own[0]);
                in_epochs(&self.words.window, to, repeat, |epoch| {
                    epoch.put_value(target, at, black_box(value))
                })
            }
            Verb::Put => {
                let (area, data) = (&self.bytes, &self.bytes.own);
                let start = area.at(target, 0);
                in_epochs(&area.window, to, repeat, |epoch| {
                    let mut offsets = operation.transfers().offsets();
                    (0..count).try_for_each(|_| {
                        let at = offsets.step();
                        epoch.put(target, start + at, &data[at..at + bytes])
                    })
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
        if operation.is_of_value() {
            let (at, Area { window, own, .. }) = (self.words.at(target, 0), &mut self.words);
            return in_epochs(window, (target, sync), repeat, |epoch| {
                own[0] = black_box(epoch.get_value(target, at)?);
                Ok(())
            });
        }
        let (start, Area { window, own, .. }) = (self.bytes.at(target, 0), &mut self.bytes);
        if count == 1 {
            return in_epochs(window, (target, sync), repeat, |epoch| {
                epoch.read(target, start, &mut own[..bytes])
            });
        }
        // Each get has memory of its own, which it borrows until the end of its epoch: there is one a burst.
        repeat.repeat(|| {
            let (mut places, mut offsets) = (own.chunks_exact_mut(bytes), operation.transfers().offsets());
            in_one_epoch(window, (target, sync), |epoch| {
                places
                    .by_ref()
                    .take(count)
                    .try_for_each(|place| epoch.get(target, start + offsets.step(), place))
            })
        })
    }

    fn accumulate(&mut self, operation: Operation, target: usize, repeat: &mut impl Repeat) -> Result<()> {
        let Operation { verb, bytes, count, sync, .. } = operation;
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
            Verb::Put | Verb::Get if operation.is_of_value() => take_part(&self.words.window, from, repeat),
            Verb::Put | Verb::Get => take_part(&self.bytes.window, from, repeat),
            Verb::Accumulate | Verb::GetAccumulate => take_part(&self.doubles.window, from, repeat),
            Verb::FetchAndOp | Verb::CompareAndSwap => take_part(&self.words.window, from, repeat),
        }
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
            (Verb::Put, true) if operation.is_of_value() => {
                self.words.own[0] = word(seed);
                Ok(())
            }
            (Verb::Get, false) if operation.is_of_value() => {
                self.words.local(|local| local.set(0, word(seed)))
            }
            (Verb::Put, true) => {
                let data = pattern(seed, operation.transfers().memory());
                self.bytes.own[..data.len()].copy_from_slice(&data);
                Ok(())
            }
            (Verb::Get, false) => {
                let data = pattern(seed, operation.transfers().memory());
                self.bytes.local(|local| local.write(0, &data))
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
        let data = || pattern(seed, operation.transfers().memory());
        Ok(match (verb, is_origin) {
            (Verb::Put, false) if operation.is_of_value() => self.words.first(1)? == [word(seed)],
            (Verb::Get, true) if operation.is_of_value() => self.words.own[0] == word(seed),
            (Verb::Put, false) => {
                let data = data();
                self.bytes.first(data.len())? == data
            }
            (Verb::Get, true) => {
                let data = data();
                let places = data.chunks_exact(bytes).cycle();
                self.bytes.own.chunks_exact(bytes).take(count).zip(places).all(|(own, place)| own == place)
            }
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
    let mut state = word(seed);
    let next = || {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    // Long ones repeat themselves, at no distance of two places.
    let own = len.min(PERIOD);
    let mut data: Vec<u8> = std::iter::repeat_with(next).take(own.div_ceil(WORD)).flatten().collect();
    data.truncate(own);
    while data.len() < len {
        data.extend_from_within(..own.min(len - data.len()));
    }
    data
}

/// A word that no other seed gives, and not 0.
fn word(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// A double whose multiples are exact.
fn addend(seed: u64) -> f64 {
    (seed % 1000) as f64 + 0.25
}
