//! Epochs: assertions, groups, and every order of calls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/child.rs"]
mod child;
#[path = "../common/each.rs"]
mod each;
mod fences;
mod locks;
mod model;
mod pscw;
#[path = "../common/random.rs"]
mod random;
#[macro_use]
#[path = "../common/macros.rs"]
mod macros;
#[path = "../common/tests.rs"]
mod tests;
mod walk;

use transom::{Class, Result};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

fn class<T>(result: Result<T>) -> Class {
    result.map(drop).unwrap_err().class()
}

tests! {
    RANKS, fences::as_calls => fence_with_every_assertion_over_shm, fence_with_every_assertion_over_ofi;
    RANKS, fences::as_scopes =>
        scopes_of_fences_with_every_assertion_over_shm, scopes_of_fences_with_every_assertion_over_ofi;
    [2], fences::assertions_that_differ => assertions_that_differ_over_shm, assertions_that_differ_over_ofi;
    [2], fences::a_free_meets_a_fence => a_free_that_meets_a_fence_over_shm, a_free_that_meets_a_fence_over_ofi;
    RANKS, fences::windows_that_are_dropped =>
        windows_that_are_dropped_leave_no_signals_over_shm, windows_that_are_dropped_leave_no_signals_over_ofi;
    RANKS, fences::wrong_assertions => wrong_assertions_are_errors_over_shm, wrong_assertions_are_errors_over_ofi;
    RANKS, pscw::groups_of_all_sizes => pscw_groups_of_all_sizes_over_shm, pscw_groups_of_all_sizes_over_ofi;
    RANKS, pscw::all_to_all => pscw_all_ranks_to_all_over_shm, pscw_all_ranks_to_all_over_ofi;
    RANKS, pscw::empty_groups => pscw_empty_groups_over_shm, pscw_empty_groups_over_ofi;
    RANKS, pscw::epochs_run_ahead =>
        pscw_epochs_without_access_run_ahead_over_shm, pscw_epochs_without_access_run_ahead_over_ofi;
    RANKS, pscw::polling_by_test => pscw_polling_by_test_over_shm, pscw_polling_by_test_over_ofi;
    RANKS, pscw::without_posts => pscw_with_nocheck_over_shm, pscw_with_nocheck_over_ofi;
    RANKS, pscw::wrong_groups => pscw_wrong_groups_are_errors_over_shm, pscw_wrong_groups_are_errors_over_ofi;
    RANKS, locks::without_a_check => lock_with_nocheck_over_shm, lock_with_nocheck_over_ofi;
    RANKS, locks::refused_by_a_hint => lock_refused_by_no_locks_over_shm, lock_refused_by_no_locks_over_ofi;
    RANKS, walk::random_orders_of_calls =>
        random_orders_of_calls_follow_the_standard_over_shm, random_orders_of_calls_follow_the_standard_over_ofi;
}

#[test]
fn pscw_of_more_ranks_than_lines_over_shm() {
    tests::run("shm", "pscw_of_more_ranks_than_lines_over_shm", &[66], pscw::more_ranks_than_lines);
}
