//! What every job must be able to do, whatever its transport and however many ranks: each function is the program of one
//! rank. Run inside one process by `jobs.rs` here, as processes under the launcher by its `jobs.rs`.

#![allow(clippy::unwrap_used, reason = "tests")]

mod atomics;
mod collectives;
mod comm;
mod errors;
mod locks;
mod messages;
mod oracle;
mod passive;
mod receives;
mod requests;
mod transfers;
mod windows;

use oracle::programs::random;
pub use random::Random;
use transom::{Job, Result};

/// A rank's program.
pub type Program = fn(&Job) -> Result<()>;

/// Every program, by name.
pub const PROGRAMS: &[(&str, Program)] = &[
    ("ring_of_puts", transfers::ring_of_puts),
    ("sizes_and_offsets", transfers::sizes_and_offsets),
    ("put_flush_flag", transfers::put_flush_flag),
    ("flush_orders_get_after_put", transfers::flush_orders_get_after_put),
    ("target_itself_and_null_rank", transfers::target_itself_and_null_rank),
    ("large_transfers", transfers::large_transfers),
    ("every_operation_on_every_type", atomics::every_operation_on_every_type),
    ("mixed_updates_are_exact", atomics::mixed_updates_are_exact),
    ("large_accumulates_are_atomic", atomics::large_accumulates_are_atomic),
    ("results_of_aligned_and_misaligned_elements", atomics::results_of_aligned_and_misaligned_elements),
    ("results_stay_in_their_layouts", atomics::results_stay_in_their_layouts),
    ("exclusive_lock_loses_no_update", locks::exclusive_lock_loses_no_update),
    ("shared_and_exclusive_locks", locks::shared_and_exclusive_locks),
    ("locks_of_several_targets", locks::locks_of_several_targets),
    ("explicit_epochs", locks::explicit_epochs),
    ("zero_size_and_uneven_windows", windows::zero_size_and_uneven_windows),
    ("displacement_units", windows::displacement_units),
    ("windows_of_users_memory", windows::windows_of_users_memory),
    ("many_windows", windows::many_windows),
    ("memory_is_shared_within_a_host", windows::memory_is_shared_within_a_host),
    ("every_request_in_every_way", requests::every_request_in_every_way),
    ("many_requests_at_once", requests::many_requests_at_once),
    ("addresses_of_peers", windows::addresses_of_peers),
    ("collectives", windows::collectives),
    ("structs_as_elements", windows::structs_as_elements),
    ("splits", comm::splits),
    ("duplicates_and_names", comm::duplicates_and_names),
    ("communicators_of_groups", comm::communicators_of_groups),
    ("contexts_do_not_mix", comm::contexts_do_not_mix),
    ("windows_of_parts", comm::windows_of_parts),
    ("movements", collectives::movements),
    ("reductions", collectives::reductions),
    ("functions_in_the_order_of_ranks", collectives::functions_in_the_order_of_ranks),
    ("many_at_once", collectives::many_at_once),
    ("forms_match_apart", collectives::forms_match_apart),
    ("awaited", collectives::awaited),
    ("wrong_arguments", collectives::wrong_arguments),
    ("lengths_in_both_directions", messages::lengths_in_both_directions),
    ("one_way", messages::one_way),
    ("order_is_kept", messages::order_is_kept),
    ("probes", receives::probes),
    ("synchronous_sends", receives::synchronous_sends),
    ("cancelled_and_truncated", receives::cancelled_and_truncated),
    ("sends_that_are_taken_back", receives::sends_that_are_taken_back),
    ("thousands_outstanding", messages::thousands_outstanding),
    ("communicators_apart", messages::communicators_apart),
    ("awaited_messages", receives::awaited_messages),
    ("messages_to_oneself", messages::messages_to_oneself),
    ("receivers_that_compute", messages::receivers_that_compute),
    ("senders_of_changing_habits", messages::senders_of_changing_habits),
    ("unfinished_messages", receives::unfinished_messages),
    ("wrong_and_null_arguments", receives::wrong_and_null_arguments),
    ("passive_target_computes", passive::passive_target_computes),
    ("passive_target_computes_users_memory", passive::passive_target_computes_users_memory),
    ("errors_before_anything_is_sent", errors::before_anything_is_sent),
    ("errors_of_epochs", errors::of_epochs),
    ("errors_of_creation_are_the_same_everywhere", errors::of_creation_are_the_same_everywhere),
    ("an_early_end_releases_the_lock", errors::an_early_end_releases_the_lock),
    ("random_programs_match_a_sequential_model", oracle::random_programs),
];

/// The neighbours of a rank in a ring.
fn neighbours(job: &Job) -> (usize, usize) {
    let (rank, size) = (job.rank(), job.size());
    ((rank + size - 1) % size, (rank + 1) % size)
}
