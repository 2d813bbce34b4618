//! Whether a program waits for its long nonblocking sends as soon as it has begun them, or computes meanwhile. Which way such a message
//! takes is decided when it is sent, and the shortest one needs a sender that waits; what comes of it the receiver's answers show.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::engine::Engine;

/// So many sends in a row that were waited for are a habit.
const HABIT: u32 = 2;

/// Sends in a row during which the program waited when they were answered.
#[derive(Debug, Default)]
pub(super) struct Habit(AtomicU32);

impl Habit {
    /// A send is answered. Threads that do so at once may lose one of theirs.
    fn note(&self, waited: bool) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(if waited { HABIT.min(before + 1) } else { 0 }, Ordering::Relaxed);
    }

    fn waits(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HABIT
    }
}

impl Engine {
    /// Whether the program has waited for its last sends, so that it will for the next.
    pub fn waits_for_sends(&self) -> bool {
        self.two_sided.habit.waits()
    }

    /// A nonblocking send that awaited an answer, a long or a synchronous one, has it.
    pub fn note_answer(&self) {
        self.two_sided.habit.note(self.progress.has_waiting_caller());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_habit_is_two_in_a_row_and_ends_with_one_that_computes() {
        let habit = Habit::default();
        for waited in [false, true, false, true] {
            habit.note(waited);
            assert!(!habit.waits());
        }
        for _ in 0..3 {
            habit.note(true);
            assert!(habit.waits());
        }
        habit.note(false);
        assert!(!habit.waits());
        habit.note(true);
        assert!(!habit.waits());
    }
}
