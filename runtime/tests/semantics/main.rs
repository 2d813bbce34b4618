//! The standard's semantics: rules 1 to 6, what a correct program must obey, the advice to users, and the examples, in both
//! memory models, with allocated and created windows, over each transport.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod advice;
mod completion;
mod copies;
mod correctness;
#[path = "../common/each.rs"]
mod each;
mod examples;
mod setting;
#[macro_use]
#[path = "../common/tests.rs"]
mod tests;

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

tests! {
    RANKS => completion: rule_1 = rule_1_buffers_are_free_after_complete_fence_and_unlock,
        rule_2 = rule_2_complete_at_the_target_by_the_matching_fence,
        rule_3 = rule_3_complete_at_the_target_by_the_matching_wait,
        rule_4 = rule_4_complete_at_the_target_by_unlock_while_it_computes;
    RANKS => copies: rule_5 = rule_5_stores_are_published_by_the_owners_calls,
        rule_6 = rule_6_puts_are_loaded_after_the_owners_calls,
        overlapping_windows = rule_6_overlapping_windows_meet_by_two_fences;
    RANKS => correctness: correctness_1 = correctness_1_loads_before_and_after_an_update,
        correctness_2 = correctness_2_concurrent_accumulates,
        correctness_2_different_operations = correctness_2_concurrent_accumulates_of_different_operations,
        correctness_3 = correctness_3_disjoint_stores_and_puts_under_a_lock,
        correctness_3_by_fences = correctness_3_disjoint_stores_and_puts_between_fences;
    RANKS => advice: advice_fence = advice_fence, advice_pscw = advice_pscw, advice_lock = advice_lock,
        advice_changing_mode = advice_changing_mode;
    RANKS => examples: example_11_11 = example_11_11_unlock_publishes, example_11_12 = example_11_12_lock_refreshes,
        example_11_13 = example_11_13_lock_does_not_publish, example_11_14 = example_11_14_wait_does_not_publish,
        example_11_14_with_a_put = example_11_14_a_local_put_is_published,
        example_11_15 = example_11_15_post_does_not_refresh;
}
