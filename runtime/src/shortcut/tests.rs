//! A line is in use while its target is covered, whatever other threads look it up.

use transom_transport::{Span, Stripes, Updates};

use super::line::STORES;
use super::*;

fn short_cut(ranks: usize) -> ShortCut {
    let sections = Sections::new(&Span::anonymous(Sections::BYTES).unwrap()).unwrap();
    ShortCut::new(ranks, Arc::new(sections), true)
}

fn prepare(way: &ShortCut, target: usize) {
    let peer = Peer::new(crate::engine::Pendings::default().target(), target, 64, 8, 0);
    let locks = || Stripes::private().unwrap();
    let updates = Updates::new(&Span::anonymous(64).unwrap(), locks(), locks(), 0).unwrap();
    let fill =
        |memory: &Mapped| memory.fill(target, Span::anonymous(64).unwrap(), (64, 8), Some(Arc::new(updates)));
    way.prepare(target, Arc::new(peer), fill);
}

#[test]
fn only_covered_targets_are_accessed() {
    for ranks in [1, 2, 3, 300] {
        let way = short_cut(ranks);
        let target = ranks - 1;
        let strangers = [target + LINES, target ^ 1, usize::MAX, usize::MAX >> 1, target | 1 << 63];
        assert!(!way.put(target, 0, &[1; 8]));
        way.cover(target, Coverage::Passive);
        assert!(!way.put(target, 0, &[1; 8]));
        prepare(&way, target);
        assert!(!way.put(target, 0, &[1; 8]));
        way.cover(target, Coverage::Passive);
        assert!(way.put(target, 0, &[1; 8]) && way.flush(target));
        for stranger in strangers {
            assert!(!way.put(stranger, 0, &[1; 8]) && !way.flush(stranger), "{stranger} of {ranks}");
        }
        way.uncover(target);
        for rank in strangers.into_iter().chain([target]) {
            assert!(!way.put(rank, 0, &[1; 8]) && !way.flush_any(rank), "{rank} of {ranks}");
        }
        way.cover(target, Coverage::Active);
        assert!(way.put(target, 1, &[2; 8]) && !way.flush(target) && way.flush_any(target));
        let mut both = [0; 16];
        assert!(way.get(target, 0, &mut both));
        assert_eq!(both[0] + both[8], 3);
    }
}

#[test]
fn a_line_belongs_to_the_first_who_has_it() {
    let way = short_cut(1000);
    for target in [5, 5 + LINES] {
        prepare(&way, target);
        way.cover(target, Coverage::Passive);
    }
    assert!(way.put(5, 0, &[1]) && !way.put(5 + LINES, 0, &[1]));
    way.uncover(5 + LINES);
    assert!(way.put(5, 0, &[1]));
}

#[test]
fn a_flush_knows_what_went_another_way() {
    let way = short_cut(2);
    prepare(&way, 1);
    way.cover(1, Coverage::Passive);
    assert!(way.flush(1) && way.put(1, 0, &[1]));
    assert_eq!(way.lines.at(1).pending(), STORES);
    assert!(way.flush(1));
    assert_eq!(way.lines.at(1).pending(), NOTHING);
    way.touch(1);
    assert!(way.put(1, 0, &[1]) && !way.flush(1) && !way.flush_any(1));
    way.uncover(1);
    way.cover(1, Coverage::Passive);
    assert!(way.flush(1));
}

#[test]
fn threads_write_no_line_that_they_share() {
    let way = short_cut(2);
    way.share();
    prepare(&way, 0);
    way.cover(0, Coverage::Passive);
    for _ in 0..2 {
        assert_eq!(way.lines.at(0).pending(), STORES_OF_THREADS);
        assert!(way.put(0, 0, &[1]) && way.flush(0));
    }
}
