//! Balanced grids (MPI-4.1 §8.5.2).

use std::ffi::c_int;

use super::cart::dimensions;
use super::int;
use crate::abi::ERR_DIMS;
use crate::failure::{Result, fail};
use crate::place::Place;

/// `n` as a product of `k` numbers, the largest first, which is as small as can be.
fn balanced(n: usize, k: usize) -> Vec<usize> {
    if k == 1 {
        return vec![n];
    }
    for largest in (1..=n).filter(|d| n.is_multiple_of(*d)) {
        if largest.checked_pow(u32::try_from(k).unwrap_or(u32::MAX)).is_some_and(|all| all < n) {
            continue;
        }
        let rest = balanced(n / largest, k - 1);
        if rest[0] <= largest {
            return [vec![largest], rest].concat();
        }
    }
    let mut all = vec![1; k];
    all[0] = n;
    all
}

/// `MPI_Dims_create`.
pub fn dims_create(nodes: c_int, n: c_int, widths: Place<c_int>) -> Result<()> {
    let n = dimensions(n)?;
    let given = widths.list(n)?;
    if nodes < 1 || given.iter().any(|width| *width < 0) {
        return fail(ERR_DIMS, format!("{nodes} ranks in a grid of {given:?}"));
    }
    let fixed =
        given.iter().filter(|width| **width > 0).fold(1i64, |all, width| all.saturating_mul((*width).into()));
    let free = given.iter().filter(|width| **width == 0).count();
    let rest = i64::from(nodes) / fixed;
    if rest * fixed != i64::from(nodes) || free == 0 && rest != 1 {
        return fail(ERR_DIMS, format!("{nodes} is no multiple of {fixed}"));
    }
    if free == 0 {
        return Ok(());
    }
    let mut found = balanced(usize::try_from(rest).unwrap_or(1), free).into_iter();
    for (i, width) in given.into_iter().enumerate() {
        if width == 0 {
            widths.set_at(i, int(found.next().unwrap_or(1)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_square_as_can_be() {
        assert_eq!(balanced(12, 2), [4, 3]);
        assert_eq!(balanced(64, 3), [4, 4, 4]);
        assert_eq!(balanced(36, 3), [4, 3, 3]);
        assert_eq!(balanced(7, 2), [7, 1]);
        assert_eq!(balanced(1, 3), [1, 1, 1]);
    }
}
