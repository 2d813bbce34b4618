//! Windows: shared and dynamic ones, what they say of themselves, their errors, and puts that notify.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

mod attributes;
mod dynamic;
#[path = "../common/each.rs"]
mod each;
mod notify;
mod pages;
mod shared;
#[macro_use]
#[path = "../common/tests.rs"]
mod tests;

tests! {
    RANKS => dynamic: regions_on_one_page = dynamic_regions_on_one_page;
    [2] => dynamic: ten_thousand_regions = dynamic_ten_thousand_regions;
    RANKS => dynamic: detach_and_attach_again = dynamic_detach_and_attach_again,
        attach_while_others_access = dynamic_attach_while_others_access,
        copies_of_attached_memory = dynamic_copies_of_attached_memory;
    RANKS => notify: sizes_and_numbers = notify_sizes_and_numbers, numbers_are_apart = notify_numbers_are_apart,
        wait_refreshes = notify_wait_refreshes;
    RANKS => attributes: attributes = attributes, hints = hints, errors = errors_say_what_to_do;
    [1, 2, 3] => pages: any_pages = memory_of_any_pages, of_shared_windows = pages_of_shared_windows;
    RANKS => shared: contiguous = shared_contiguous, noncontiguous = shared_noncontiguous, empty = shared_empty,
        loads_in_a_lock = loads_in_a_lock_of_shared_memory,
        operations_go_by_the_transport = operations_on_shared, refused = shared_where_it_cannot_be;
}

#[test]
fn allocated_memory_is_not_shared_over_ofi() {
    tests::run(
        "ofi",
        "allocated_memory_is_not_shared_over_ofi",
        &RANKS,
        shared::not_where_all_is_told_to_go_by_a_network,
    );
}
