//! Puts and gets of lists of parts.

use transom_transport::{Moves, Part, Remote, Span};

use crate::{Random, Ranks, Subject};

const BYTES: usize = 4 << 20;

/// Lists, each within what the transport takes: of a few bytes, as long as may be copied, and with as many parts as the
/// device is named, of one size and of any.
fn lists(moves: &Moves, write: bool) -> Vec<Vec<Part>> {
    let lists = moves.lists.unwrap();
    let most = if write { lists.put } else { lists.get };
    let spread = |count: usize, len: usize, step: usize| -> Vec<Part> {
        (0..count).map(|i| Part { offset: 3 + i * step, len }).collect()
    };
    let long = (lists.bytes / most).min(BYTES / most / 2);
    let mut random = Random::new(9);
    let mut any = Vec::new();
    let mut offset = 0;
    while any.len() < most {
        offset += random.below(100);
        let len = random.below(long.min(70_000));
        any.push(Part { offset, len });
        offset += len;
    }
    let mut backwards = spread(20, 16, 50);
    backwards.reverse();
    vec![
        Vec::new(),
        spread(1, 1, 1),
        spread(5, 1, 10),
        spread(moves.copied / 8, 8, 24),
        spread(moves.copied, 1, 2),
        backwards,
        spread(most, long, long + 1),
        // Far apart.
        spread(most, moves.copied / most + 1, BYTES / most - 8),
        any,
    ]
}

fn gather(buffer: &[u8], parts: &[Part]) -> Vec<u8> {
    parts.iter().flat_map(|part| &buffer[part.offset..part.offset + part.len]).copied().collect()
}

fn memory_of(ranks: &Ranks) -> Option<(Moves, Span)> {
    let moves = ranks[0].transport.capabilities().moves?;
    moves.lists.is_some().then(|| (moves, ranks[1].allocate(BYTES)))
}

/// What lists put is there, one part after the other, and what they get is in the parts, with nothing beside.
pub fn lists_arrive(_: &Subject, ranks: &Ranks) {
    let Some((moves, memory)) = memory_of(ranks) else { return };
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let mut random = Random::new(3);
    let there = |offset: usize, len: usize| {
        let mut bytes = vec![0; len];
        memory.copy_out(offset, &mut bytes).unwrap();
        bytes
    };
    for (i, parts) in lists(&moves, true).into_iter().enumerate() {
        let data = random.bytes(BYTES);
        let offset = 5 * i;
        ranks.put_list(0, (&remote, offset), &data, &parts).unwrap();
        let expected = gather(&data, &parts);
        assert!(there(offset, expected.len()) == expected, "list {i}");
    }
    memory.copy_in(0, &random.bytes(BYTES)).unwrap();
    for (i, parts) in lists(&moves, false).into_iter().enumerate() {
        let mut data = vec![0; BYTES];
        let offset = 5 * i;
        ranks.get_list(0, (&remote, offset), &mut data, &parts).unwrap();
        let bytes = parts.iter().map(|part| part.len).sum();
        assert!(gather(&data, &parts) == there(offset, bytes), "list {i}");
        parts.iter().for_each(|part| data[part.offset..part.offset + part.len].fill(0));
        assert!(data.iter().all(|byte| *byte == 0), "list {i} wrote beside its parts");
    }
}

/// Lists that leave the region or what the transport takes are refused, before anything is sent.
pub fn wrong_lists_are_refused(_: &Subject, ranks: &Ranks) {
    let Some((moves, memory)) = memory_of(ranks) else { return };
    let (_region, remote) = ranks[1].expose(1, &memory, &ranks[0]);
    let lists = moves.lists.unwrap();
    let data = vec![1; 2 * BYTES];
    let refused = |remote: &Remote, offset: usize, parts: &[Part]| {
        ranks.put_list(0, (remote, offset), &data, parts).is_err()
    };
    let short = [Part { offset: 0, len: 8 }, Part { offset: 16, len: 8 }];
    assert!(refused(&remote, BYTES - 15, &short) && refused(&remote, usize::MAX, &short));
    let many = vec![Part { offset: 0, len: moves.copied }; lists.put + 1];
    assert!(refused(&remote, 0, &many), "too many parts");
    let long = [Part { offset: 0, len: lists.bytes }, Part { offset: 0, len: 1 }];
    assert!(refused(&remote, 0, &long), "too many bytes");
    let mut first = [0; 8];
    memory.copy_out(0, &mut first).unwrap();
    assert_eq!(first, [0; 8]);
    ranks.put_list(0, (&remote, BYTES - 16), &data, &short).unwrap();
}
