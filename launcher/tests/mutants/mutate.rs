//! Bytes that are almost right.

use bytes::BytesMut;
use serde::Serialize;
use transom_conformance::Random;
use transom_launcher::frames::{Frame, encode};

/// Numbers that are at the edge of something.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "-1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "1e308",
];

/// How many mutants each test makes: few, or what `TRANSOM_TEST_MUTANTS` says; and the seed they come from, which is said.
pub fn asked(few: usize) -> (usize, Random) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let fresh = || {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
    };
    let seed = number("TRANSOM_TEST_SEED").unwrap_or_else(fresh);
    println!("TRANSOM_TEST_SEED={seed}");
    (number("TRANSOM_TEST_MUTANTS").map_or(few, |count| count as usize), Random::new(seed))
}

/// A message as it is sent.
pub fn bytes_of<M: Serialize>(message: M) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    encode(&Frame::Message(message), &mut buffer).unwrap();
    buffer.to_vec()
}

/// Text, or what was text, with something changed: numbers most often, so that much of it is still understood.
pub fn text(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    let at = random.below(text.len().max(1)).min(text.len());
    let end = (at + random.below(9)).min(text.len());
    match random.below(8) {
        0..=3 => {
            let is_number =
                |at: &usize| text[*at].is_ascii_digit() && (*at == 0 || !text[*at - 1].is_ascii_digit());
            let starts: Vec<usize> = (0..text.len()).filter(is_number).collect();
            if let Some(start) = (!starts.is_empty()).then(|| starts[random.below(starts.len())]) {
                let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                text.splice(start..start + digits, NUMBERS[random.below(NUMBERS.len())].bytes());
            }
        }
        4 => text.truncate(at),
        5 => drop(text.drain(at..end)),
        6 => {
            let part = text[at..end].to_vec();
            text.splice(at..at, part.repeat(1 + random.below(40)));
        }
        _ => {
            for _ in 0..=random.below(8) {
                if !text.is_empty() {
                    let at = random.below(text.len());
                    text[at] ^= random.number() as u8;
                }
            }
        }
    }
    text
}

/// A frame with something changed.
pub fn frame(random: &mut Random, frame: &[u8]) -> Vec<u8> {
    let mut bytes = match random.below(16) {
        // Behind the length and the kind, and before the newline.
        0..=11 if frame.len() > 6 => {
            let body = text(random, &frame[5..frame.len() - 1]);
            let length = (body.len() + 2) as u32;
            [&length.to_be_bytes()[..], &frame[4..5], &body, b"\n"].concat()
        }
        12 => text(random, frame),
        13 => [frame, frame].concat(),
        _ => frame.to_vec(),
    };
    let last = bytes.len().max(1) - 1;
    let kind = if bytes.len() > 5 { random.below(24) } else { 24 };
    match kind {
        0 => bytes[..4].copy_from_slice(&random.bytes(4)),
        1 => bytes[..4].copy_from_slice(&(random.below(200) as u32).to_be_bytes()),
        2 => bytes[4] = random.number() as u8,
        3 => bytes[last] = b'x',
        _ => {}
    }
    bytes
}
