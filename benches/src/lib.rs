//! Microbenchmarks of one-sided communication, each beside its limit: what the same machine does, in the same run,
//! without a runtime in between.
//!
//! The program is `bench`, the suite ([`suite`]); this library is what it is made of, so that a test can run all of it.

#![forbid(unsafe_code)]

pub mod area;
pub mod kind;
pub mod limit;
pub mod machine;
pub mod operation;
pub mod pair;
pub mod repeat;
pub mod report;
pub mod suite;
pub mod windows;
