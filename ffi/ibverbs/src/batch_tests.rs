//! The chain is what a device reads: its links, its parts and its words.

use super::*;

fn part(number: u64) -> Local {
    Local { address: 0x1000 + number, len: number as u32 + 1, key: 7 }
}

fn write<'a>(id: u64, parts: &'a [Local]) -> Request<'a> {
    Request {
        id,
        operation: Operation::Write { address: 0x9000 + id, key: 0x77 },
        parts,
        signalled: false,
        inline: false,
        fence: false,
        solicited: false,
    }
}

/// Follows the chain as ibv_post_send(3) describes it: each request's id and its parts.
fn follow(batch: &mut Batch) -> Vec<(u64, Vec<Local>)> {
    let mut seen = Vec::new();
    let mut next = batch.link().unwrap_or(null_mut());
    while !next.is_null() {
        // SAFETY: the chain of a batch that is neither moved nor changed meanwhile; `Local` has the layout of its parts.
        unsafe {
            let parts = std::slice::from_raw_parts((*next).sg_list.cast::<Local>(), (*next).num_sge as usize);
            seen.push(((*next).wr_id, parts.to_vec()));
            next = (*next).next;
        }
    }
    seen
}

#[test]
fn a_chain_has_every_request_with_its_parts_in_order() {
    let mut batch = Batch::new();
    assert!(follow(&mut batch).is_empty());
    let parts: Vec<Local> = (0..3).map(part).collect();
    batch.push(&write(1, &parts[..1])).unwrap();
    batch.push(&write(2, &[])).unwrap();
    batch.push(&write(3, &parts)).unwrap();
    let wanted = [(1, parts[..1].to_vec()), (2, vec![]), (3, parts.clone())];
    assert_eq!(follow(&mut batch), wanted);
    // A batch that was moved is linked anew.
    let mut moved = Box::new(batch);
    assert_eq!(follow(&mut moved), wanted);
}

#[test]
fn what_was_taken_leaves_from_the_front() {
    let mut batch = Batch::new();
    let parts: Vec<Local> = (0..6).map(part).collect();
    for (id, range) in [(1, 0..1), (2, 1..3), (3, 3..6)] {
        batch.push(&write(id, &parts[range])).unwrap();
    }
    batch.link();
    let second = &raw const batch.requests[1];
    assert_eq!(batch.position(second), 1);
    batch.skip(1);
    assert_eq!(batch.position(second), 0);
    assert_eq!(follow(&mut batch), [(2, parts[1..3].to_vec()), (3, parts[3..].to_vec())]);
    batch.skip(7);
    assert!(batch.is_empty());
    batch.push(&write(4, &parts)).unwrap();
    assert_eq!(follow(&mut batch), [(4, parts)]);
}

#[test]
fn a_full_batch_says_so() {
    let mut batch = Batch::new();
    for id in 0..BATCH as u64 {
        batch.push(&write(id, &[part(id)])).unwrap();
    }
    assert_eq!(batch.push(&write(99, &[])), Err(PushError::Full));
    assert_eq!(batch.len(), BATCH);
    let ids: Vec<u64> = follow(&mut batch).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, (0..BATCH as u64).collect::<Vec<_>>());
}

#[test]
fn long_lists_fit_and_longer_ones_never() {
    let parts: Vec<Local> = (0..=MAX_PARTS as u64).map(part).collect();
    let mut batch = Batch::new();
    assert_eq!(batch.push(&write(0, &parts)), Err(PushError::TooManyParts));
    let mut taken = 0;
    while batch.push(&write(taken, &parts[..MAX_PARTS])).is_ok() {
        taken += 1;
    }
    assert_eq!(taken as usize, PARTS / MAX_PARTS);
    assert_eq!(batch.push(&write(taken, &parts)), Err(PushError::TooManyParts));
    assert_eq!(batch.push(&write(taken, &parts[..1])), Err(PushError::Full));
}

#[test]
fn operations_have_their_words() {
    let mut batch = Batch::new();
    let operations = [
        Operation::Read { address: 8, key: 1 },
        Operation::FetchAdd { address: 16, key: 2, add: 3 },
        Operation::CompareSwap { address: 24, key: 4, compare: 5, swap: 6 },
        Operation::Send,
    ];
    for operation in operations {
        batch.push(&Request { operation, signalled: true, inline: true, ..write(0, &[]) }).unwrap();
    }
    batch.push(&Request { fence: true, solicited: true, ..write(1, &[]) }).unwrap();
    let requests = &batch.requests[..5];
    assert_eq!(requests.iter().map(|at| at.opcode).collect::<Vec<_>>(), [4, 6, 5, 2, 0]);
    assert_eq!(requests.iter().map(|at| at.send_flags).collect::<Vec<_>>(), [10, 10, 10, 10, 5]);
    // SAFETY: every bit pattern is a valid number in these parts of the union.
    unsafe {
        assert_eq!((requests[0].wr.rdma.remote_addr, requests[0].wr.rdma.rkey), (8, 1));
        let add = requests[1].wr.atomic;
        assert_eq!((add.remote_addr, add.rkey, add.compare_add), (16, 2, 3));
        let swap = requests[2].wr.atomic;
        assert_eq!((swap.remote_addr, swap.rkey, swap.compare_add, swap.swap), (24, 4, 5, 6));
    }
}

#[test]
fn all_types_cross_threads() {
    fn crosses<T: Send + Sync + fmt::Debug>() {}
    crosses::<Batch>();
    crosses::<crate::Context>();
    crosses::<crate::CompletionQueue>();
    crosses::<crate::QueuePair>();
    crosses::<crate::MemoryRegion>();
    crosses::<AddressHandle>();
    crosses::<crate::WorkCompletion>();
    crosses::<crate::QueuePairOptions<'static>>();
    crosses::<Request<'static>>();
}
