//! What users of other implementations complain of, as tests: each stands for an entry of the list of complaints, whose
//! number it has, with the reports that it comes from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "../common/all.rs"]
mod all;
mod atomicity;
mod devices;
mod explain;
mod progress;
#[path = "../common/random.rs"]
mod random;
#[path = "../suite/requests.rs"]
mod requests;
#[path = "../common/resident.rs"]
mod resident;
#[path = "../common/tests.rs"]
mod tests;
mod types;
mod windows;

const RANKS: [usize; 3] = [2, 3, 5];

/// `name, sizes, program;` makes one test, over both transports in turn.
macro_rules! complaints {
    ($($(#[$attr:meta])* $name:ident, $sizes:expr, $program:path;)*) => { $(
        $(#[$attr])*
        #[test]
        fn $name() {
            for transport in ["shm", "tcp"] {
                tests::run(transport, stringify!($name), &$sizes, $program);
            }
        }
    )* };
}

complaints! {
    /// 1: ompi#3750, polling with flush_local or fetch_and_op makes no progress.
    complaint_01_spin_on_fetch_and_op_while_the_peer_computes, RANKS, progress::spin_on_fetch_and_op;
    /// 2: ompi#10559, flush hangs between ranks of one node.
    complaint_02_flush_between_ranks_of_one_node, RANKS, progress::flush_on_one_node;
    /// 3: ompi#7631, deadlock when half the ranks are in a barrier and half in lock_all.
    complaint_03_half_in_a_barrier_half_in_lock_all, RANKS, progress::half_in_a_barrier;
    /// 4: ompi#6549, #6816, a mix of exclusive and shared locks hangs.
    complaint_04_random_mix_of_exclusive_and_shared_locks, RANKS, progress::random_locks;
    /// 5: ompi#4434, polling window 1 starves window 2.
    complaint_05_polling_one_window_starves_no_other, RANKS, progress::polling_one_window;
    /// 5: mpich#5565, several threads with several windows, one target idle.
    complaint_05_threads_with_windows_of_their_own_and_an_idle_target, RANKS, progress::threads_and_windows;
    /// 6: ompi#9447, post deadlocks with 72 ranks over a table of 32; ompi#8677, empty group.
    complaint_06_post_to_more_ranks_than_any_table_and_to_none, [40], progress::large_groups;
    /// 9: mpich#1801, #1910, #1741, ompi#1869, requests not completed by flush; test blocks; rget not done after wait.
    complaint_09_every_request_by_wait_test_flush_unlock, RANKS, requests::every_request_in_every_way;
    /// 9, a thousand at once, some of them dropped.
    complaint_09_many_requests_at_once, RANKS, requests::many_requests_at_once;
    /// 10: ompi#4688, fetch_and_op is not atomic with accumulate.
    complaint_10_fetch_and_op_is_atomic_with_accumulate, RANKS, atomicity::mixed_sums;
    /// 11: ompi#6536, atomics of CPU and network card on one word: wrong sums.
    complaint_11_one_path_to_a_word_for_the_owner_and_others, RANKS, atomicity::one_path_with_the_owner;
    /// 12: ompi#3571, an exclusive lock loses updates.
    complaint_12_exclusive_lock_loses_no_update, RANKS, atomicity::counter_under_a_lock;
    /// 13: ompi#6275, accumulate broken when registrations are exhausted at window 918.
    complaint_13_two_thousand_windows_with_accumulates, [2], atomicity::two_thousand_windows;
    /// 14: ompi#10633, get_accumulate corrupts data.
    complaint_14_get_accumulate_against_an_oracle, RANKS, atomicity::get_accumulate_against_an_oracle;
    /// 15: ompi#385 and ARMCI-MPI, indexed types lose updates.
    complaint_15_strided_accumulates_lose_no_update, RANKS, atomicity::strided_accumulates;
    /// 15, with an indexed type.
    complaint_15_accumulates_of_indexed_types_lose_no_update, RANKS, types::indexed_accumulates;
    /// 16: mpich#2268, a fetch with NO_OP became a plain get, and saw half of a 16-byte value.
    complaint_16_no_torn_value_of_16_bytes, RANKS, types::no_torn_values;
    /// 17: mpich#3831, one mutex for all of a window.
    complaint_17_accumulates_to_disjoint_parts_of_one_window, RANKS, atomicity::disjoint_parts_of_one_window;
    /// 18: ompi#6868, software atomics that nobody is told of.
    complaint_18_software_atomics_are_told, RANKS, explain::software_atomics_are_told;
    /// 31: ompi#10573, a get at a hundredth of the speed of two-sided communication.
    complaint_31_gets_are_no_messages, RANKS, devices::gets_are_no_messages;
    /// 23: ucx#9361, mpi-forum#59, no efficient way to notify the target.
    complaint_23_put_and_notification_in_one_call, RANKS, windows::notification;
    /// 24: ompi#12892, #7384, dynamic windows: detach, two regions on a page, a limit of 64 regions.
    complaint_24_dynamic_windows_of_many_regions_on_shared_pages, RANKS, windows::dynamic_regions;
    /// 25: ompi#6740, registration fails at one rank and all others deadlock. (Here the memory is not to be had.)
    complaint_25_a_failure_at_one_rank_is_one_error_at_all, RANKS, windows::failure_at_one_rank;
    /// 28: ompi#13070, #13171, mpich#2273, mpi4py#354, windows leak.
    complaint_28_ten_thousand_windows_leak_nothing, [2], windows::ten_thousand_times;
    /// 29: mpich#4631, ompi#4166, SIGBUS when /dev/shm or /tmp is small.
    complaint_29_memory_that_is_not_there_is_an_error_at_creation, RANKS, types::memory_that_is_not_there;
    /// 30: mpi4py#166, windows of size zero fail across nodes.
    complaint_30_windows_of_size_zero, RANKS, windows::zero_size_windows;
}

/// 19: mpich#3513, #3514, no atomics by hardware over UCX.
#[test]
fn complaint_19_atomics_are_the_devices() {
    const NAME: &str = "complaint_19_atomics_are_the_devices";
    tests::run("verbs", NAME, &[2, 4], devices::atomics_are_the_devices);
}

/// 31, over verbs.
#[test]
fn complaint_31_gets_are_no_messages_over_verbs() {
    const NAME: &str = "complaint_31_gets_are_no_messages_over_verbs";
    tests::run("verbs", NAME, &[2], devices::gets_are_no_messages);
}
