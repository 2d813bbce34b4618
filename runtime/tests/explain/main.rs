//! Operations are counted by the path that they took and the reason for it: known operations, exact counts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod atomics;
mod devices;
mod expected;
mod layouts;
#[path = "../common/listener.rs"]
mod listener;
mod reports;
#[macro_use]
#[path = "../common/tests.rs"]
mod tests;
mod transfers;

const RANKS: [usize; 3] = [1, 2, 3];

/// Exact counts, where a transport tells of itself how it moves bytes, are another test's.
macro_rules! over_shm_and_ofi {
    ($($all:tt)*) => {
        tests! { over_shm "shm" $($all)* }
        tests! { over_ofi "ofi" $($all)* }
    };
}

over_shm_and_ofi! {
    RANKS => transfers: transfers = explain_counts_operations_by_path,
        of_the_users_memory = explain_tells_that_the_users_memory_is_not_mapped,
        what_does_nothing = explain_counts_no_operation_that_is_not_done,
        of_threads = explain_loses_no_count_of_threads, unasked = explain_counts_nothing_unasked,
        in_epochs_of_a_lock = explain_tells_what_travels_with_a_lock;
    RANKS => atomics: of_one_element = explain_counts_atomics_by_path,
        without_instruction = explain_tells_which_atomics_take_a_lock,
        of_many_elements = explain_tells_which_accumulates_are_pulled;
    RANKS => layouts: transfers = explain_tells_which_layouts_are_packed,
        accumulates = explain_counts_accumulates_of_layouts;
}

#[test]
fn explain_tells_what_the_device_does_over_verbs() {
    devices::run("explain_tells_what_the_device_does_over_verbs");
}

#[test]
fn explain_writes_lines_of_json() {
    reports::lines("explain_writes_lines_of_json");
}

#[test]
fn explain_tells_events() {
    reports::events("explain_tells_events");
}
