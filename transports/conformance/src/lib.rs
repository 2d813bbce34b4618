//! The tests that every transport passes.
