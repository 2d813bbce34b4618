//! The tests that every transport passes.
//!
//! A transport's crate instantiates them with [`conformance_tests!`], which makes a `#[test]` of each. Every test gets
//! three ranks in this process, connected to each other and to themselves, and a bounded time.

// Tests say what is wrong by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod hostile;
pub mod lists;
pub mod litmus;
pub mod messages;
pub mod sleeping;
pub mod transfers;

mod random;
mod rank;
mod ranks;
mod watchdog;

pub use random::Random;
pub use rank::{Rank, Sleeper};
pub use ranks::{Ranks, TIMEOUT};
pub use watchdog::{run, within};

use std::sync::Arc;

use transom_transport::{Transport, TransportError, TransportResult};

/// Opens so many ranks, not connected yet; gives nothing if that is not possible here and the tests are to be skipped.
pub type Open = fn(usize) -> Option<Vec<Arc<dyn Transport>>>;

/// A rank that was opened. Nothing where the transport is not available, unless `variable` is 1: then the test fails.
pub fn opened<T: Transport + 'static>(
    made: TransportResult<T>,
    variable: &str,
) -> Option<Arc<dyn Transport>> {
    let required = std::env::var(variable).is_ok_and(|value| value == "1");
    match made {
        Ok(transport) => Some(Arc::new(transport)),
        Err(TransportError::Unavailable { reason, .. }) if !required => {
            println!("skipped: {reason}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A transport to test.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Opens ranks.
    pub open: Open,
    /// It refuses accesses with wrong keys and outside of regions. (Shared memory leaves that to the kernel, which asks
    /// only whose process it is.)
    pub checks_keys: bool,
    /// Calls fail after it was abandoned. (Where nothing is ever under way, abandoning does nothing.)
    pub abandons: bool,
}

/// Makes a `#[test]` of every test here, for one [`Subject`].
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        $crate::conformance_tests!($subject; messages:
            every_size_arrives_in_order, a_flood_loses_nothing, the_sink_may_send, two_threads_send,
            several_at_once, to_itself, too_long_is_refused
        );
        $crate::conformance_tests!($subject; transfers:
            round_trips_to_allocated_memory, round_trips_to_user_memory, complete_means_visible, many_outstanding,
            two_threads_put, sixty_four_mebibytes, nothing_to_transfer
        );
        $crate::conformance_tests!($subject; lists: lists_arrive, wrong_lists_are_refused);
        $crate::conformance_tests!($subject; sleeping:
            wakes_for_messages, wakes_for_transfers, wakes_while_others_send, wakes_for_messages_alone,
            own_transfers_wake_nobody_who_waits_for_messages, idle_is_quiet,
            a_first_message_finds_a_sleeper
        );
        $crate::conformance_tests!($subject; hostile:
            outside_is_refused_here, outside_is_refused_there, wrong_keys_are_refused, freed_regions_are_refused,
            malformed_addresses, malformed_keys, strange_ranks, abandoned_buffers_stay_untouched,
            gets_are_abandoned_in_their_midst, a_peer_that_vanishes
        );
    };
    ($subject:expr; $module:ident: $($test:ident),*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::run(stringify!($module::$test), $subject, $crate::$module::$test);
                }
            )*
        }
    };
}
