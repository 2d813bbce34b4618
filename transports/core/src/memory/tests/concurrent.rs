//! Many threads at the same elements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use zerocopy::IntoBytes;

use super::*;
use crate::{Basic, Complex, DataType, F64I32, ReduceOp};

#[test]
fn concurrent_sums_are_exact() {
    let span = Span::anonymous(64).unwrap();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..10_000 {
                    span.fetch_op::<f64>(0, ReduceOp::Sum, 1.0).unwrap();
                    span.fetch_op::<u16>(8, ReduceOp::Sum, 1).unwrap();
                    span.fetch_op::<u8>(11, ReduceOp::Bxor, 1).unwrap();
                }
            });
        }
    });
    assert_eq!(span.fetch_op::<f64>(0, ReduceOp::NoOp, 0.0).unwrap(), 40_000.0);
    assert_eq!(span.fetch_op::<u16>(8, ReduceOp::NoOp, 0).unwrap(), 40_000);
    assert_eq!(span.fetch_op::<u8>(11, ReduceOp::NoOp, 0).unwrap(), 0);
}

const THREADS: usize = 4;
const ROUNDS: usize = 5000;

/// All threads add `one` at `offset`: the sum, which is exact.
fn sum_of<T: Basic>(op: ReduceOp, offset: usize, operand: impl Fn(usize, usize) -> T + Sync) -> T {
    let (span, stripes) = (Span::anonymous(128).unwrap(), Stripes::private().unwrap());
    let place = 4096 + offset as u64;
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let (span, stripes, operand) = (&span, &stripes, &operand);
            s.spawn(move || {
                for round in 0..ROUNDS {
                    let operand = operand(thread, round);
                    span.update(stripes, place, op, T::TYPE, offset, operand.as_bytes(), None).unwrap();
                }
            });
        }
    });
    let mut bytes = vec![0; size_of::<T>()];
    span.copy_out(offset, &mut bytes).unwrap();
    T::read_from_bytes(&bytes).unwrap()
}

#[test]
fn concurrent_sums_of_any_type_are_exact() {
    const ALL: f64 = (THREADS * ROUNDS) as f64;
    for offset in [0, 8, 13, 15] {
        let sum = sum_of(ReduceOp::Sum, offset, |_, _| Complex::new(1.0f64, -2.0));
        assert_eq!(sum, Complex::new(ALL, -2.0 * ALL));
        let sum = sum_of(ReduceOp::Sum, offset, |_, _| Complex::new(1.0f32, -2.0));
        assert_eq!(sum, Complex::new(ALL as f32, -2.0 * ALL as f32));
        assert_eq!(sum_of(ReduceOp::Sum, offset, |_, _| 1u64), ALL as u64);
        assert_eq!(sum_of(ReduceOp::Sum, offset, |_, _| 0.5f64), ALL / 2.0);
        assert_eq!(sum_of(ReduceOp::Sum, offset, |_, _| 1u16), ALL as u16);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn concurrent_long_doubles_are_exact() {
    use crate::{ComplexLongDouble, LongDouble};
    const ALL: f64 = (THREADS * ROUNDS) as f64;
    for offset in [0, 16, 21] {
        assert_eq!(sum_of(ReduceOp::Sum, offset, |_, _| LongDouble::from(1.5)), LongDouble::from(1.5 * ALL));
        let sum = sum_of(ReduceOp::Sum, offset, |_, _| ComplexLongDouble::new(1.0.into(), 3.0.into()));
        assert_eq!(sum, Complex::new(ALL.into(), (3.0 * ALL).into()));
    }
}

/// The largest of all values, with the smallest of its indices, in whatever order they arrive.
#[test]
fn concurrent_locations_are_exact() {
    let value = |thread: usize, round: usize| ((round * 7919) % 1000) as i32 + thread as i32 % 2;
    let index = |thread: usize, round: usize| (thread * ROUNDS + round) as i32;
    let all = || (0..THREADS).flat_map(|t| (0..ROUNDS).map(move |r| (t, r)));
    let largest = all().map(|(t, r)| value(t, r)).max().unwrap();
    let first = all().filter(|(t, r)| value(*t, *r) == largest).map(|(t, r)| index(t, r)).min().unwrap();
    macro_rules! check {
        ($($pair:ident $convert:expr;)*) => { $(for offset in [0, 16, 17] {
            let operand = |t, r| crate::$pair::new($convert(value(t, r)), index(t, r));
            let found = sum_of(ReduceOp::MaxLoc, offset, operand);
            assert_eq!(found, crate::$pair::new($convert(largest), first), "{offset}");
        })* };
    }
    check! {
        F32I32 |x| x as f32;
        F64I32 f64::from;
        I64I32 i64::from;
        I32I32 |x| x;
        I16I32 |x| x as i16;
    }
    #[cfg(target_arch = "x86_64")]
    check! { F80I32 |x| crate::LongDouble::from(f64::from(x)); }
}

/// Each fetch counts one: every number below the total is drawn once.
#[test]
fn fetches_under_locks_draw_each_number_once() {
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    let mut drawn: Vec<u64> = std::thread::scope(|s| {
        let draw = || {
            (0..ROUNDS).map(|_| {
                let mut old = [0; 8];
                let one = 1u64.to_ne_bytes();
                span.update(&stripes, 3, ReduceOp::Sum, DataType::U64, 3, &one, Some(&mut old)).unwrap();
                u64::from_ne_bytes(old)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(|_| s.spawn(move || draw().collect::<Vec<_>>())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    drawn.sort_unstable();
    assert!(drawn.into_iter().eq(0..(THREADS * ROUNDS) as u64));
}

/// All threads do the same.
fn in_threads(work: impl Fn() + Sync) {
    std::thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(&work);
        }
    });
}

#[test]
fn compare_swaps_under_locks_are_exact() {
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    in_threads(|| {
        let mut seen = [0; 4];
        for _ in 0..ROUNDS {
            loop {
                let compare = seen;
                let next = (u32::from_ne_bytes(compare) + 1).to_ne_bytes();
                span.compare_swap_bytes(&stripes, 9, DataType::U32, 9, &compare, &next, &mut seen).unwrap();
                if seen == compare {
                    break;
                }
            }
        }
    });
    let mut count = [0; 4];
    span.copy_out(9, &mut count).unwrap();
    assert_eq!(u32::from_ne_bytes(count), (THREADS * ROUNDS) as u32);
}

/// Writers replace all bytes by one pattern or another; no reader sees a mixture.
#[test]
fn wide_values_are_never_torn() {
    for (ty, offset) in [
        (DataType::C64, 0),
        (DataType::C64, 56),
        (DataType::F80, 16),
        (DataType::F64I32, 8),
        (DataType::C80, 0),
        (DataType::C80, 41),
        (DataType::F80I32, 32),
        (DataType::U64, 59),
        (DataType::I32I32, 64),
        (DataType::I32I32, 60),
    ] {
        let (span, stripes) = (Span::anonymous(128).unwrap(), Stripes::private().unwrap());
        let stop = AtomicBool::new(false);
        let data: usize = ty.fields().iter().map(|(_, len)| len).sum();
        std::thread::scope(|s| {
            for writer in 1..3u8 {
                let (span, stripes, stop) = (&span, &stripes, &stop);
                s.spawn(move || {
                    for round in (0u8..100).cycle().map(|x| 2 * x + writer) {
                        let (value, place) = (vec![round; ty.size()], offset as u64);
                        span.update(stripes, place, ReduceOp::Replace, ty, offset, &value, None).unwrap();
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            let (zeros, mut seen) = (vec![0; ty.size()], vec![0; ty.size()]);
            let mut different = std::collections::HashSet::new();
            let mut torn = false;
            let mut fetches = 0;
            // Until enough were read while writers came between.
            while !torn && (fetches < 20_000 || different.len() < 20) {
                fetches += 1;
                let fetched = Some(&mut seen[..]);
                span.update(&stripes, offset as u64, ReduceOp::NoOp, ty, offset, &zeros, fetched).unwrap();
                torn |= seen[..data].iter().any(|x| *x != seen[0]);
                different.insert(seen[0]);
            }
            stop.store(true, Ordering::Relaxed);
            assert!(!torn, "{ty:?}");
        });
    }
}

/// A structure of a few words that is sent as small elements is seen as a whole, at any alignment.
#[test]
fn a_few_bytes_are_replaced_together() {
    for (ty, offset, len) in
        [(DataType::Byte, 8, 16), (DataType::U8, 3, 13), (DataType::Char, 32, 64), (DataType::I16, 6, 30)]
    {
        let (span, stripes) = (Span::anonymous(128).unwrap(), Stripes::private().unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                for round in (0u8..=255).cycle() {
                    let (value, place) = (vec![round; len], offset as u64);
                    span.update(&stripes, place, ReduceOp::Replace, ty, offset, &value, None).unwrap();
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let (zeros, mut seen) = (vec![0; len], vec![0; len]);
            let mut different = std::collections::HashSet::new();
            let mut torn = false;
            while !torn && different.len() < 100 {
                let fetched = Some(&mut seen[..]);
                span.update(&stripes, offset as u64, ReduceOp::NoOp, ty, offset, &zeros, fetched).unwrap();
                torn |= seen.iter().any(|x| *x != seen[0]);
                different.insert(seen[0]);
            }
            stop.store(true, Ordering::Relaxed);
            assert!(!torn, "{ty:?}: {seen:?}");
        });
    }
}

/// Sums of many small elements go by the word, those of single ones do not, and none is lost.
#[test]
fn words_of_small_elements_add_up() {
    const ROUNDS: usize = 20_000;
    fn each<T: Basic + From<u8>>(offset: usize, value: impl Fn(usize) -> T + Sync) {
        const MANY: usize = 21;
        let size = size_of::<T>();
        let (span, stripes) = (Span::anonymous(128).unwrap(), Stripes::private().unwrap());
        let sum = |at: usize, bytes: &[u8]| {
            span.update(&stripes, at as u64, ReduceOp::Sum, T::TYPE, at, bytes, None).unwrap();
        };
        std::thread::scope(|s| {
            s.spawn(|| {
                let ones: Vec<u8> =
                    [T::from(1); MANY].iter().flat_map(|one| one.as_bytes().to_vec()).collect();
                (0..ROUNDS).for_each(|_| sum(offset, &ones));
            });
            let one = T::from(1);
            (0..ROUNDS).for_each(|round| sum(offset + round % MANY * size, one.as_bytes()));
        });
        let mut bytes = vec![0; MANY * size];
        span.copy_out(offset, &mut bytes).unwrap();
        for (i, found) in bytes.chunks_exact(size).enumerate() {
            let alone = (0..ROUNDS).filter(|round| round % MANY == i).count();
            assert_eq!(found, value(ROUNDS + alone).as_bytes(), "{:?} {i}", T::TYPE);
        }
    }
    each::<u8>(3, |sum| sum as u8);
    each::<u16>(6, |sum| sum as u16);
    each::<u32>(4, |sum| sum as u32);
    each::<f32>(12, |sum| sum as f32);
}

/// Neighbours of what is replaced by the word are updated by others meanwhile, and nothing of theirs is lost.
#[test]
fn words_stop_where_the_elements_do() {
    const ROUNDS: u64 = 30_000;
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    std::thread::scope(|s| {
        s.spawn(|| {
            for round in 0..ROUNDS {
                let value = [round as u8; 19];
                let mut old = [0; 19];
                let fetched = Some(&mut old[..]);
                span.update(&stripes, 5, ReduceOp::Replace, DataType::U8, 5, &value, fetched).unwrap();
                assert_eq!(old, [round.wrapping_sub(1) as u8 * u8::from(round > 0); 19]);
            }
        });
        for _ in 0..ROUNDS {
            for offset in [4, 24] {
                span.update(&stripes, offset, ReduceOp::Sum, DataType::U8, offset as usize, &[1], None)
                    .unwrap();
            }
        }
    });
    let mut bytes = [0; 26];
    span.copy_out(0, &mut bytes).unwrap();
    let sums = ROUNDS as u8;
    assert_eq!((bytes[3], bytes[4], bytes[24], bytes[25]), (0, sums, sums, 0));
    assert_eq!(bytes[5..24], [(ROUNDS - 1) as u8; 19]);
}

/// A put to the padding of an element is not undone by updates of the element.
#[test]
fn padding_can_be_written_meanwhile() {
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let one = F64I32::new(1.0, 1);
            while !stop.load(Ordering::Relaxed) {
                let op = ReduceOp::Replace;
                span.update(&stripes, 16, op, F64I32::TYPE, 16, one.as_bytes(), None).unwrap();
            }
        });
        while span.word64(16).unwrap().load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        let (word, mut undone) = (span.word32(28).unwrap(), 0);
        for value in 1..200_000 {
            word.store(value, Ordering::Relaxed);
            store_load_fence(); // or the load would be answered from this core's own store buffer
            undone += usize::from((0..20).any(|_| word.load(Ordering::Relaxed) != value));
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(undone, 0);
    });
}

/// Every lock is taken and released by many threads, and no wake-up is lost.
#[test]
fn locks_exclude() {
    let (span, stripes) = (Span::anonymous(64).unwrap(), Stripes::private().unwrap());
    in_threads(|| {
        for round in 0..2000u64 {
            let _held = stripes.lock(1 << 40);
            let count = span.word64(0).unwrap();
            let seen = count.load(Ordering::Relaxed);
            if round.is_multiple_of(500) {
                std::thread::sleep(Duration::from_millis(2)); // so that others sleep in the kernel
            }
            count.store(seen + 1, Ordering::Relaxed);
        }
    });
    assert_eq!(span.word64(0).unwrap().load(Ordering::Relaxed), THREADS as u64 * 2000);
}

/// A thread that sleeps on a lock is woken when it is free, and does not wait for the end of a sleep of a second.
#[test]
fn unlocking_wakes() {
    let stripes = Stripes::private().unwrap();
    let waits = || {
        let held = stripes.lock(0);
        std::thread::scope(|s| {
            let waiter = s.spawn(|| drop(stripes.lock(0)));
            std::thread::sleep(Duration::from_millis(30)); // it sleeps in the kernel by now
            let freed = Instant::now();
            drop(held);
            waiter.join().unwrap();
            freed.elapsed()
        })
    };
    // One of some, for the machine may be busy.
    assert!((0..5).any(|_| waits() < Duration::from_millis(300)));
}
