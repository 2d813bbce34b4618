//! The change from atomic instructions to locks: under a model checker, with threads, and what is computed in each state.

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use shuttle::sync::{Arc, Mutex, atomic::AtomicU32 as Modelled};

use super::*;
use crate::memory::sections::Word;

impl State for Modelled {
    fn change(&self, from: u32, to: u32) {
        let _ = self.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Word for Modelled {
    fn enter(&self) {
        self.store(1, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.store(0, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Model {
    state: Modelled,
    words: [Modelled; 3],
    lock: Mutex<()>,
    element: Modelled,
}

impl Model {
    /// What `Updates::one` does.
    fn one(&self, thread: usize) {
        let add = || self.element.fetch_add(1, Ordering::SeqCst);
        self.words[thread].enter();
        if self.state.load(Ordering::SeqCst) == ATOMIC {
            add();
            return self.words[thread].leave();
        }
        self.words[thread].leave();
        let _held = self.lock.lock().unwrap();
        add();
    }

    /// What `Updates::some` does after an attempt to switch to locks.
    fn long(&self, thread: usize) {
        let are_empty = || self.words.iter().all(|word| word.load(Ordering::SeqCst) == 0);
        switch_to_locks(&self.state, || true, are_empty);
        if self.state.load(Ordering::SeqCst) == ATOMIC {
            return self.one(thread);
        }
        let _held = self.lock.lock().unwrap();
        if self.state.load(Ordering::SeqCst) == LOCKED {
            let was = self.element.load(Ordering::SeqCst);
            self.element.store(was + 1, Ordering::SeqCst);
        } else {
            self.element.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn shuttle_no_update_is_lost_while_somebody_leaves() {
    let run = || {
        let model = Arc::new(Model::default());
        let others = [0, 1].map(|thread| {
            let model = model.clone();
            shuttle::thread::spawn(move || {
                model.one(thread);
                if thread == 0 { model.one(thread) } else { model.long(thread) }
            })
        });
        model.long(2);
        model.long(2);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(model.element.load(Ordering::SeqCst), 6, "an update is lost");
    };
    shuttle::check_random(run, 20_000);
    shuttle::check_pct(run, 20_000, 3);
}

/// One window at one rank, and two ranks that share it.
struct Shared {
    updates: Updates,
    memory: Span,
    sections: [(Span, Sections); 2],
}

impl Shared {
    fn new(bytes: usize, granularity: usize) -> Self {
        let state = Span::anonymous(64).unwrap();
        let (granules, stripes) = (Stripes::private().unwrap(), Stripes::private().unwrap());
        let sections = || {
            let memory = Span::anonymous(Sections::BYTES).unwrap();
            let sections = Sections::new(&memory).unwrap();
            (memory, sections)
        };
        Self {
            updates: Updates::new(&state, granules, stripes, granularity).unwrap(),
            memory: Span::anonymous(bytes).unwrap(),
            sections: [sections(), sections()],
        }
    }

    fn leave(&self) {
        self.updates.switch_to_locks(|| self.sections.iter().all(|(memory, _)| Sections::are_empty(memory)));
    }

    fn state(&self) -> u32 {
        self.updates.state[0].load(Ordering::SeqCst)
    }

    fn add(&self, rank: usize, at: usize, operands: &[u64]) {
        let operands: Vec<u8> = operands.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let what = Reduction { op: ReduceOp::Sum, ty: DataType::U64, operands: &operands };
        self.updates.many(&self.sections[rank].1, &self.memory, at as u64, at, what, None).unwrap();
    }
}

#[test]
fn whoever_is_inside_holds_nobody_up() {
    let shared = Shared::new(4096, 0);
    let inside = shared.sections[1].1.enter();
    shared.leave();
    assert_eq!(shared.state(), SWITCHING);
    shared.add(0, 0, &[1; 512]);
    drop(inside);
    shared.leave();
    assert_eq!(shared.state(), LOCKED);
    shared.add(0, 0, &[1; 512]);
    assert_eq!(shared.memory.word64(4088).unwrap().load(Ordering::SeqCst), 2);
}

#[test]
fn leaving_in_the_middle_loses_no_update() {
    const WORDS: usize = 6000;
    const ROUNDS: usize = 40;
    for _ in 0..20 {
        let shared = Shared::new(WORDS * 8, 0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, rank) = (&shared, thread % 2);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        for i in (0..WORDS).step_by(97) {
                            let add = || shared.memory.update_one(i * 8, ReduceOp::Sum, 1u64);
                            shared.updates.one(&shared.sections[rank].1, i as u64 * 8, add).unwrap();
                        }
                        if round * 4 > ROUNDS * thread {
                            shared.leave();
                        }
                        shared.add(rank, 0, &[1; WORDS]);
                    }
                });
            }
        });
        assert_eq!(shared.state(), LOCKED);
        for i in 0..WORDS {
            let wanted = 4 * ROUNDS * (1 + usize::from(i % 97 == 0));
            assert_eq!(
                shared.memory.word64(i * 8).unwrap().load(Ordering::SeqCst),
                wanted as u64,
                "word {i}"
            );
        }
    }
}

#[test]
fn what_is_worth_leaving() {
    let leaves = |granularity, bytes| Shared::new(4096, granularity).updates.should_switch(bytes);
    assert!(!leaves(0, SWITCH_AFTER - 1) && leaves(0, SWITCH_AFTER));
    assert!(!leaves(32, usize::MAX - 1));
    assert!(!leaves(64, 32) && leaves(64, 33));
    // Short ones do not count, long ones add up.
    let shared = Shared::new(4096, 0);
    assert!((0..1000).all(|_| !shared.updates.should_switch(LONG - 1)));
    assert!((1..SWITCH_AFTER.div_ceil(LONG)).all(|_| !shared.updates.should_switch(LONG)));
    assert!(shared.updates.should_switch(LONG));
    shared.leave();
    assert!((0..1000).all(|_| !shared.updates.should_switch(SWITCH_AFTER)));
}

#[test]
fn both_directions_cut_alike() {
    let updates = Shared::new(64, 0).updates;
    for (place, size, count) in [(0, 8, 6000), (8, 8, 6000), (4, 12, 5000), (16, 32, 2000), (3, 1, 40_000)] {
        let len = size * count;
        let (mut cuts, mut done) = (vec![0], 0);
        while done < len {
            done += updates.piece(place + done as u64, size, len - done);
            cuts.push(done);
        }
        let mut back = vec![len];
        while back[back.len() - 1] > 0 {
            back.push(updates.last_piece(place, size, back[back.len() - 1]));
        }
        back.reverse();
        assert_eq!(cuts, back, "elements of {size} from {place}");
    }
}

#[test]
fn elements_in_turns_of_direction_keep_their_operands() {
    const COUNT: usize = TURNS / 8 * 2 + 5;
    let shared = Shared::new((COUNT + 1) * 8, 0);
    let operands: Vec<u64> = (0..COUNT as u64).collect();
    for round in 1..4 {
        shared.add(0, 8, &operands);
        for (i, operand) in operands.iter().enumerate() {
            let sum = shared.memory.word64((i + 1) * 8).unwrap().load(Ordering::SeqCst);
            assert_eq!(sum, operand * round, "element {i} after round {round}");
        }
        if round == 1 {
            shared.leave();
        }
    }
}

#[test]
fn bad_operands_change_nothing() {
    let shared = Shared::new(64, 0);
    let many = |ty, offset, operands: &[u8], fetched: Option<&mut [u8]>| {
        let what = Reduction { op: ReduceOp::Sum, ty, operands };
        shared.updates.many(&shared.sections[0].1, &shared.memory, 0, offset, what, fetched)
    };
    for state in [ATOMIC, SWITCHING, LOCKED] {
        shared.updates.state[0].store(state, Ordering::SeqCst);
        assert!(many(DataType::U64, 0, &[1; 12], None).is_err());
        assert!(many(DataType::U64, 60, &[1; 8], None).is_err());
        assert!(many(DataType::U64, usize::MAX, &[1; 8], None).is_err());
        assert!(many(DataType::U64, 0, &[1; 16], Some(&mut [0; 8])).is_err());
        assert!(many(DataType::F64I32, 0, &[1; 16], None).is_err());
        assert!(many(DataType::U64, 0, &[], Some(&mut [])).is_ok());
    }
    assert_eq!(shared.memory.word64(0).unwrap().load(Ordering::SeqCst), 0);
}

proptest! {
    /// Every state computes what [`Span::update`] does, across the ends of granules and of what is locked at once.
    #[test]
    fn every_state_computes_the_same(
        state in prop::sample::select(vec![ATOMIC, SWITCHING, LOCKED]),
        ty in prop::sample::select(&DataType::ALL[..]),
        op in prop::sample::select(&ReduceOp::ALL[..]),
        granularity in prop::sample::select(vec![0, 33, 64, 100, 4096]),
        end in prop::sample::select(vec![GRANULE, AT_ONCE]),
        before in -20..200_isize,
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        fetch in any::<bool>(),
    ) {
        // Which NaN comes out, and what padding holds, is anybody's guess.
        let copied = matches!(op, ReduceOp::Replace | ReduceOp::NoOp);
        let padded = ty.fields().iter().map(|(_, len)| len).sum::<usize>() < ty.size();
        prop_assume!(reduce_valid(op, ty) && (ty.is_integer() || (copied && !padded)));
        let operands = &bytes[..bytes.len() - bytes.len() % ty.size()];
        let (start, len) = (end.wrapping_add_signed(-before), 2 * end);
        let (shared, twin) = (Shared::new(len, granularity), Span::anonymous(len).unwrap());
        let fill: Vec<u8> = (0..len).map(|i| (i * 31 + i / 256) as u8).collect();
        shared.memory.copy_in(0, &fill).unwrap();
        twin.copy_in(0, &fill).unwrap();
        shared.updates.state[0].store(state, Ordering::SeqCst);
        let (mut seen, mut wanted) = (vec![0; operands.len()], vec![0; operands.len()]);
        let what = Reduction { op, ty, operands };
        let fetched = fetch.then_some(&mut seen[..]);
        shared.updates.many(&shared.sections[0].1, &shared.memory, start as u64, start, what, fetched).unwrap();
        let fetched = fetch.then_some(&mut wanted[..]);
        twin.update(&Stripes::private().unwrap(), start as u64, op, ty, start, operands, fetched).unwrap();
        prop_assert_eq!(seen, wanted);
        let read = |span: &Span| {
            let mut bytes = vec![0; len];
            span.copy_out(0, &mut bytes).unwrap();
            bytes
        };
        prop_assert!(read(&shared.memory) == read(&twin));
    }
}
