//! Numbers of targets. (The table is compiled under the model checker, too, where these tests cannot run.)

use std::sync::Arc;

use super::targets::{FIRST, Target, Targets, place};

#[test]
fn places_follow_each_other() {
    let mut expected = (0, 0);
    for number in 0..10_000 {
        assert_eq!(place(number), expected);
        expected.1 += 1;
        if expected.1 == FIRST << expected.0 {
            expected = (expected.0 + 1, 0);
        }
    }
}

#[test]
fn a_number_is_one_targets_until_that_goes() {
    let all = Arc::<Targets>::default();
    let some: Vec<Target> = (0..200).map(|_| Targets::open(&all)).collect();
    for (i, target) in some.iter().enumerate() {
        assert_eq!(target.number(), Some(i as u32));
        assert!(std::ptr::eq(all.get(i as u32).unwrap(), &**target));
    }
    assert!(all.get(200).is_none() && all.get(u32::MAX - 100).is_none());
    some[7].begin();
    some[8].messages.send(true, |_| Ok::<(), ()>(())).unwrap();
    drop(some);
    let next: Vec<Target> = (0..200).map(|_| Targets::open(&all)).collect();
    assert!(next.iter().all(|target| target.number() != Some(7)), "something is under way there");
    assert!(next.iter().all(|target| target.is_idle() && target.messages.unconfirmed().is_none()));
}
