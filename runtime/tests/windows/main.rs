//! Windows: shared and dynamic ones, what they say of themselves, their errors, and puts that notify.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod attributes;
#[path = "../common/child.rs"]
mod child;
mod dynamic;
#[path = "../common/each.rs"]
mod each;
mod notify;
mod shared;
#[macro_use]
#[path = "../common/macros.rs"]
mod macros;
#[path = "../common/tests.rs"]
mod tests;

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

tests! {
    RANKS, dynamic::regions_on_one_page =>
        dynamic_regions_on_one_page_over_shm, dynamic_regions_on_one_page_over_ofi;
    [2], dynamic::ten_thousand_regions =>
        dynamic_ten_thousand_regions_over_shm, dynamic_ten_thousand_regions_over_ofi;
    RANKS, dynamic::detach_and_attach_again =>
        dynamic_detach_and_attach_again_over_shm, dynamic_detach_and_attach_again_over_ofi;
    RANKS, dynamic::attach_while_others_access =>
        dynamic_attach_while_others_access_over_shm, dynamic_attach_while_others_access_over_ofi;
    RANKS, dynamic::copies_of_attached_memory =>
        dynamic_copies_of_attached_memory_over_shm, dynamic_copies_of_attached_memory_over_ofi;
    RANKS, notify::sizes_and_numbers => notify_sizes_and_numbers_over_shm, notify_sizes_and_numbers_over_ofi;
    RANKS, notify::numbers_are_apart => notify_numbers_are_apart_over_shm, notify_numbers_are_apart_over_ofi;
    RANKS, notify::wait_refreshes => notify_wait_refreshes_over_shm, notify_wait_refreshes_over_ofi;
    RANKS, attributes::attributes => attributes_over_shm, attributes_over_ofi;
    RANKS, attributes::hints => hints_over_shm, hints_over_ofi;
    RANKS, attributes::errors => errors_say_what_to_do_over_shm, errors_say_what_to_do_over_ofi;
    RANKS, shared::contiguous => shared_contiguous_over_shm, shared_contiguous_over_ofi;
    RANKS, shared::noncontiguous => shared_noncontiguous_over_shm, shared_noncontiguous_over_ofi;
    RANKS, shared::empty => shared_empty_over_shm, shared_empty_over_ofi;
    RANKS, shared::operations_go_by_the_transport => operations_on_shared_over_shm, operations_on_shared_over_ofi;
    RANKS, shared::refused => shared_where_it_cannot_be_over_shm, shared_where_it_cannot_be_over_ofi;
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
