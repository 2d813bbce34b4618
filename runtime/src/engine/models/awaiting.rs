//! Callers wait for operations, or stop waiting, while these end: each is told of the end of its own, and no slot is lost.

use shuttle::thread;
use transom_transport::{Completion, TransportError};

use super::awaited::SLOTS;
use super::check;
use super::pending::Pendings;
use super::sync::Arc;

const CALLERS: u64 = 3;

/// Whether the operation of a caller fails.
fn fails(caller: u64) -> bool {
    caller == 2
}

fn end(pendings: &Pendings, context: u64, caller: u64) {
    let error = TransportError::Peer { peer: 0, reason: caller.to_string() };
    let result = if fails(caller) { Err(error) } else { Ok(()) };
    drop(pendings.complete(Completion { context, value: caller, result }));
}

#[test]
fn shuttle_callers_are_told_of_their_own_operation() {
    check(|| {
        let pendings = Arc::new(Pendings::default());
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let pendings = pendings.clone();
                thread::spawn(move || {
                    let awaited = pendings.begin_awaited().unwrap();
                    let context = awaited.context;
                    let ending = thread::spawn({
                        let pendings = pendings.clone();
                        move || end(&pendings, context, caller)
                    });
                    // The first does not wait for the end.
                    let outcome = || loop {
                        match awaited.outcome() {
                            None => thread::yield_now(),
                            Some(outcome) => return outcome,
                        }
                    };
                    if caller > 0 {
                        assert_eq!(outcome().ok(), (!fails(caller)).then_some(caller));
                    }
                    drop(awaited);
                    ending.join().unwrap();
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        let all: Vec<_> = std::iter::from_fn(|| pendings.begin_awaited()).collect();
        assert_eq!(all.len(), SLOTS);
        assert!(all.iter().all(|awaited| awaited.outcome().is_none()));
    });
}
