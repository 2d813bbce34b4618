//! Epochs: assertions, groups, and every order of calls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/all.rs"]
mod all;
#[path = "../common/each.rs"]
mod each;
mod fences;
mod locks;
mod model;
mod pscw;
#[path = "../common/random.rs"]
mod random;
#[macro_use]
#[path = "../common/tests.rs"]
mod tests;
mod turns;
mod walk;

use transom::{Class, Result};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

fn class<T>(result: Result<T>) -> Class {
    result.map(drop).unwrap_err().class()
}

tests! {
    RANKS => fences: as_calls = fence_with_every_assertion, as_scopes = scopes_of_fences_with_every_assertion;
    [2] => fences: assertions_that_differ = assertions_that_differ, a_free_meets_a_fence = a_free_that_meets_a_fence;
    RANKS => fences: windows_that_are_dropped = windows_that_are_dropped_leave_no_signals,
        wrong_assertions = wrong_assertions_are_errors;
    RANKS => pscw: groups_of_all_sizes = pscw_groups_of_all_sizes, all_to_all = pscw_all_ranks_to_all,
        empty_groups = pscw_empty_groups, epochs_run_ahead = pscw_epochs_without_access_run_ahead,
        polling_by_test = pscw_polling_by_test, without_posts = pscw_with_nocheck,
        wrong_groups = pscw_wrong_groups_are_errors;
    RANKS => locks: without_a_check = lock_with_nocheck, refused_by_a_hint = lock_refused_by_no_locks,
        with_operations_of_all_kinds = lock_with_operations_of_all_kinds, one_in_another = lock_in_another;
    [1, 2, 3] => turns: by_fences = fences_of_operations_that_go_different_ways,
        by_starts_and_posts = pscw_of_operations_that_go_different_ways;
    RANKS => walk: random_orders_of_calls = random_orders_of_calls_follow_the_standard;
}

#[test]
fn pscw_of_more_ranks_than_lines_over_shm() {
    tests::run("shm", "pscw_of_more_ranks_than_lines_over_shm", &[66], pscw::more_ranks_than_lines);
}
