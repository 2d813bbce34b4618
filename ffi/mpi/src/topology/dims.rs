//! Balanced grids (MPI-4.1 §8.5.2).

use std::ffi::c_int;

use super::cart::dimensions;
use super::int;
use crate::abi::ERR_DIMS;
use crate::failure::{Result, fail};
use crate::pointer::Pointer;

/// A search for the product of `k` numbers that are as close to each other as can be: the largest and the smallest first, then
/// the smaller ones as large as can be.
struct Search {
    /// All divisors of the number, the largest first.
    divisors: Vec<usize>,
    best: Vec<usize>,
}

impl Search {
    fn spread(&self) -> usize {
        self.best.last().zip(self.best.first()).map_or(usize::MAX, |(last, first)| last - first)
    }

    /// Looks for `k` factors of `rest`, none smaller than the ones `found` before them.
    fn go(&mut self, found: &mut Vec<usize>, rest: usize, k: u32) {
        let least = found.last().copied().unwrap_or(1);
        let first = found.first().copied();
        if k == 1 {
            let spread = rest - first.unwrap_or(rest);
            if rest >= least && spread < self.spread() {
                self.best = [&found[..], &[rest]].concat();
            }
            return;
        }
        for place in 0..self.divisors.len() {
            let factor = self.divisors[place];
            if factor < least {
                return;
            }
            if !rest.is_multiple_of(factor) || factor.checked_pow(k).is_none_or(|all| all > rest) {
                continue;
            }
            // What is left makes a factor of at least its root; a smaller factor here leaves more.
            let root = ((rest / factor) as f64).powf(1.0 / f64::from(k - 1)) as usize;
            if root.saturating_sub(first.unwrap_or(factor)) >= self.spread() {
                return;
            }
            found.push(factor);
            self.go(found, rest / factor, k - 1);
            found.pop();
        }
    }
}

/// `n` as a product of `k` numbers, the largest first.
fn balanced(n: usize, k: usize) -> Vec<usize> {
    let mut divisors: Vec<usize> =
        (1..).take_while(|d| d * d <= n).filter(|d| n.is_multiple_of(*d)).collect();
    divisors.extend(divisors.clone().into_iter().map(|d| n / d));
    divisors.sort_unstable_by(|a, b| b.cmp(a));
    divisors.dedup();
    let mut search = Search { divisors, best: Vec::new() };
    // More dimensions than factors of two: the others are 1.
    let real = u32::try_from(k).unwrap_or(u32::MAX).min(usize::BITS);
    search.go(&mut Vec::new(), n, real);
    search.best.reverse();
    search.best.resize(k, 1);
    search.best
}

/// `MPI_Dims_create`.
pub fn dims_create(nodes: c_int, n: c_int, widths: Pointer<c_int>) -> Result<()> {
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
        assert_eq!(balanced(34425, 3), [51, 27, 25]);
        assert_eq!(balanced(66600, 4), [37, 15, 12, 10]);
        assert_eq!(balanced(2, 100)[..3], [2, 1, 1]);
        assert_eq!(balanced(2_147_483_647, 3), [2_147_483_647, 1, 1]);
        assert_eq!(balanced(1 << 30, 7).iter().product::<usize>(), 1 << 30);
    }
}
