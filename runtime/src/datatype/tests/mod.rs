//! Tests of datatypes: the standard's examples, and random types against a type map written out.

mod arrays;
mod errors;
mod large;
mod packing;
mod random;
mod recipe;
mod reference;
mod standard;

use super::{Datatype, Run};

/// Offsets and lengths.
fn runs(ty: &Datatype, count: usize) -> Vec<(i64, usize)> {
    ty.runs(count).unwrap().map(|Run { offset, bytes }| (offset, bytes)).collect()
}

/// Size, lower bound, extent, true lower bound, true extent.
fn numbers(ty: &Datatype) -> (usize, i64, i64, i64, i64) {
    (ty.size(), ty.lower_bound(), ty.extent(), ty.true_lower_bound(), ty.true_extent())
}
