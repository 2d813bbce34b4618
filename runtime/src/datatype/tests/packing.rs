//! Packing: positions, block sizes, and how fast it is.

use std::time::Instant;

use transom_transport::DataType;

use crate::{Class, Datatype};

#[test]
fn positions_move() {
    let ty = Datatype::vector(2, 1, 2, &Datatype::of::<u16>()).unwrap();
    let (mut out, mut position) = ([0; 10], 1);
    ty.pack_at(1, &[1, 2, 3, 4, 5, 6], 0, &mut out, &mut position).unwrap();
    assert_eq!(position, 5);
    ty.pack_at(1, &[7, 7, 7, 8, 8, 8, 9], 1, &mut out, &mut position).unwrap();
    assert_eq!((out, position), ([0, 1, 2, 5, 6, 7, 7, 8, 9, 0], 9));
    let error = ty.pack_at(1, &[0; 6], 0, &mut out, &mut position).unwrap_err();
    assert_eq!((error.class(), position), (Class::Count, 9));
    let (mut target, mut position) = ([0; 7], 5);
    ty.unpack(1, &out, &mut position, &mut target, 1).unwrap();
    assert_eq!((target, position), ([0, 7, 7, 0, 0, 8, 9], 9));
    assert_eq!(ty.unpack(1, &out, &mut position, &mut target, 1).unwrap_err().class(), Class::Count);
}

#[test]
fn buffers_are_checked() {
    let below = Datatype::hindexed(&[(1, -4), (1, 4)], &Datatype::of::<u32>()).unwrap();
    let mut out = vec![5];
    for (len, origin) in [(11, 4), (12, 3), (12, 5), (0, 0), (12, usize::MAX)] {
        let mut buffer = vec![0; len];
        assert_eq!(below.pack(1, &buffer, origin, &mut out).unwrap_err().class(), Class::Argument);
        assert_eq!(
            below.unpack(1, &[0; 8], &mut 0, &mut buffer, origin).unwrap_err().class(),
            Class::Argument
        );
        assert_eq!(below.pack_external(1, &buffer, origin, &mut out).unwrap_err().class(), Class::Argument);
    }
    assert_eq!(out, [5]);
    below.pack(1, &[1; 12], 4, &mut out).unwrap();
    below.pack(0, &[], usize::MAX, &mut out).unwrap();
    assert_eq!(out.len(), 9);
}

#[test]
fn external32_is_big_endian() {
    let fields = [(1, 0, Datatype::of::<u8>()), (2, 2, Datatype::of::<u16>()), (1, 8, Datatype::of::<f64>())];
    let ty = Datatype::structure(&fields).unwrap();
    let mut source = [0; 16];
    source[0] = 7;
    source[2..4].copy_from_slice(&0x0102_u16.to_ne_bytes());
    source[4..6].copy_from_slice(&0x0304_u16.to_ne_bytes());
    source[8..].copy_from_slice(&1.0_f64.to_ne_bytes());
    let mut packed = Vec::new();
    ty.pack_external(1, &source, 0, &mut packed).unwrap();
    assert_eq!(packed, [7, 1, 2, 3, 4, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0]);
    let (mut target, mut position) = ([0; 16], 0);
    ty.unpack_external(1, &packed, &mut position, &mut target, 0).unwrap();
    assert_eq!((target, position), (source, 13));
}

#[test]
fn external32_has_some_types_in_other_sizes() {
    let basic = Datatype::basic;
    let sizes = [
        (Datatype::long(), 8, 4),
        (Datatype::unsigned_long(), 8, 4),
        (basic(DataType::I64), 8, 8),
        (basic(DataType::WideChar), 4, 2),
        (basic(DataType::F80), 16, 16),
        (basic(DataType::C80), 32, 32),
        (basic(DataType::I64I32), 12, 8),
        (basic(DataType::F80I32), 20, 20),
    ];
    for (ty, memory, external) in &sizes {
        let three = (ty.pack_size(3).unwrap(), ty.pack_external_size(3).unwrap());
        assert_eq!(three, (3 * memory, 3 * external), "{ty}");
    }
    let beyond = Datatype::contiguous(1 << 59, &Datatype::long()).unwrap();
    assert_eq!(beyond.pack_external_size(16).unwrap_err().class(), Class::Count);
}

/// A `long` is an integer like any other in memory and to whom it is sent.
#[test]
fn longs_are_told_apart_in_external32_only() {
    let (long, int) = (Datatype::long(), Datatype::of::<i64>());
    let both = Datatype::structure(&[(1, 0, long.clone()), (1, 8, int.clone())]).unwrap();
    assert_eq!((both.element(), both.is_contiguous()), (Some(DataType::I64), true));
    assert!(Datatype::matches(1, &both, 2, &int) && Datatype::matches(2, &long, 1, &both));
    assert!(long != int && long != Datatype::unsigned_long());
    assert_eq!(both.to_string(), "structure([(1, 0, long), (1, 8, i64)])");
    let source: Vec<u8> = [-2_i64, -3, 5, 1 << 40].into_iter().flat_map(i64::to_ne_bytes).collect();
    let mut packed = vec![9];
    both.pack_external(2, &source, 0, &mut packed).unwrap();
    let ends: Vec<u8> = packed.iter().copied().skip(4).step_by(4).collect();
    assert_eq!((packed.len(), ends), (25, vec![0xfe, 0xff, 0xfd, 5, 0, 0]));
    let (mut target, mut position) = ([7; 32], 1);
    both.unpack_external(2, &packed, &mut position, &mut target, 0).unwrap();
    assert_eq!((&target[..], position), (&source[..], 25));
    // What 4 bytes do not hold is not cut.
    let error = long.pack_external(4, &source, 0, &mut packed).unwrap_err();
    assert_eq!((error.class(), packed.len()), (Class::Argument, 25));
}

#[test]
fn blocks_of_every_size_and_stride() {
    let source: Vec<u8> = (0..=255).collect();
    for len in 1..20 {
        for stride in -22..23_i64 {
            let ty = Datatype::hvector(5, len, stride, &Datatype::of::<u8>()).unwrap();
            let mut packed = Vec::new();
            ty.pack(1, &source, 100, &mut packed).unwrap();
            let byte = |block: i64, i: i64| (100 + block * stride + i) as u8;
            let expected: Vec<u8> =
                (0..5).flat_map(|block| (0..len as i64).map(move |i| byte(block, i))).collect();
            assert_eq!(packed, expected);
            let mut target = vec![0; 256];
            ty.unpack(1, &packed, &mut 0, &mut target, 100).unwrap();
            let kept = |(at, value): (usize, &u8)| {
                *value == if expected.contains(&(at as u8)) { at as u8 } else { 0 }
            };
            assert!(target.iter().enumerate().all(kept), "{len} {stride}");
        }
    }
}

/// `cargo test --release -p transom --lib datatype -- --ignored --nocapture`
#[test]
#[ignore = "prints figures, and takes seconds"]
fn gigabytes_per_second() {
    const BLOCKS: usize = 1 << 20;
    let best = |mut work: Box<dyn FnMut() + '_>| {
        let once = |work: &mut dyn FnMut()| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64()
        };
        (0..30).map(|_| once(&mut work)).fold(f64::MAX, f64::min)
    };
    for len in [4, 8, 16, 24] {
        let (bytes, stride) = (BLOCKS * len, 2 * len);
        let source: Vec<u8> = (0..2 * bytes).map(|i| i as u8).collect();
        let ty = Datatype::hvector(BLOCKS, len, stride as i64, &Datatype::of::<u8>()).unwrap();
        let (mut packed, mut by_hand) = (Vec::with_capacity(bytes), vec![0; bytes]);
        let pack = best(Box::new(|| {
            packed.clear();
            ty.pack(1, &source, 0, &mut packed).unwrap();
        }));
        let hand = best(Box::new(|| {
            for (to, from) in by_hand.chunks_exact_mut(len).zip(source.chunks_exact(stride)) {
                to.copy_from_slice(&from[..len]);
            }
        }));
        let mut fixed = vec![0_u64; BLOCKS];
        let wide: Vec<u64> = (0..2 * BLOCKS as u64).collect();
        let words = best(Box::new(|| {
            for (to, from) in fixed.iter_mut().zip(wide.chunks_exact(2)) {
                *to = from[0];
            }
        }));
        assert_eq!(packed, by_hand);
        let mut target = vec![0; 2 * bytes];
        let unpack = best(Box::new(|| ty.unpack(1, &packed, &mut 0, &mut target, 0).unwrap()));
        let mut sum = 0;
        let walk = best(Box::new(|| sum += ty.runs(1).unwrap().map(|run| run.offset).sum::<i64>()));
        let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
        println!(
            "blocks of {len:2} at {stride:2}: pack {:.1} GB/s, unpack {:.1}, by hand {:.1}; \
             u64 by hand {:.1}; a run in {:.1} ns",
            rate(pack),
            rate(unpack),
            rate(hand),
            (8 * BLOCKS) as f64 / words / 1e9,
            walk / BLOCKS as f64 * 1e9,
        );
        assert_ne!((sum, fixed[1]), (0, 0));
    }
}
