//! The tables of attached regions, by one thread.

use transom_transport::{Remote, Span};

use super::regions::*;
use super::sync::*;

fn region(address: usize, len: usize) -> Attached {
    Attached { address, memory: Span::anonymous(len).unwrap(), keys: Vec::new(), known_to: Mutex::default() }
}

#[test]
fn regions_may_touch_and_accesses_do_not_cross() {
    let regions = Regions::default();
    for (address, len) in [(100, 10), (110, 5), (97, 3)] {
        regions.attach(region(address, len));
    }
    assert_eq!(regions.find(109, 1).map(|(r, offset)| (r.address, offset)), Some((100, 9)));
    assert!(regions.find(109, 2).is_none(), "an access must not cross from one region to the next");
    assert!(regions.find(96, 1).is_none() && regions.find(usize::MAX, 1).is_none());
    regions.detach(100, None).unwrap();
    assert!(regions.find(105, 1).is_none() && regions.detach(100, None).is_none());
}

#[test]
fn a_card_that_crosses_a_detach_is_not_kept() {
    let regions = Regions::default();
    let known = || CachedRegion {
        address: 64,
        remote: Remote { peer: 3, len: 8, direct: None, base: 0, key: 0 },
        left: false,
        gone: AtomicBool::new(false),
        _own: None,
    };
    let before = regions.forgotten();
    regions.forget(3, 64);
    assert!(regions.learn(3, known(), before).is_none());
    let kept = regions.learn(3, known(), regions.forgotten()).unwrap();
    assert!(regions.find_known(3, 71, 1).is_some() && regions.find_known(3, 71, 2).is_none());
    regions.forget(3, 64);
    assert!(kept.gone.load(Ordering::Acquire) && regions.find_known(3, 64, 1).is_none());
}
