//! Lists of ranks that take no memory where they are regular.

use std::sync::{Arc, OnceLock};

/// Distinct job ranks in an order.
#[derive(Debug, Clone)]
pub(super) enum Members {
    /// `first`, `first + step`, …: all ranks of a job, and most parts of it that programs make.
    Regular { first: usize, step: isize, len: usize },
    /// Any others.
    List(Arc<List>),
}

#[derive(Debug)]
pub(super) struct List {
    ranks: Box<[usize]>,
    /// Places in `ranks`, ordered by the rank there: made when it is first asked who is where.
    order: OnceLock<Box<[usize]>>,
}

impl List {
    fn place(&self, rank: usize) -> Option<usize> {
        let order = self.order.get_or_init(|| {
            let mut order: Vec<usize> = (0..self.ranks.len()).collect();
            order.sort_unstable_by_key(|place| self.ranks[*place]);
            order.into()
        });
        order.binary_search_by_key(&rank, |place| self.ranks[*place]).ok().map(|at| order[at])
    }
}

impl Members {
    /// The ranks from 0 to `size`.
    pub fn all(size: usize) -> Self {
        Self::Regular { first: 0, step: 1, len: size }
    }

    /// Distinct ranks, as a regular range if they are one.
    pub fn of(ranks: Vec<usize>) -> Self {
        let first = ranks.first().copied().unwrap_or(0);
        let second = ranks.get(1).copied().unwrap_or(first + 1);
        let step = second.wrapping_sub(first).cast_signed();
        let regular = Self::Regular { first, step, len: ranks.len() };
        if ranks.iter().enumerate().all(|(place, rank)| regular.get(place) == Some(*rank)) {
            return regular;
        }
        Self::List(Arc::new(List { ranks: ranks.into(), order: OnceLock::new() }))
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Regular { len, .. } => *len,
            Self::List(list) => list.ranks.len(),
        }
    }

    /// The rank at a place.
    #[inline]
    pub fn get(&self, place: usize) -> Option<usize> {
        match self {
            Self::Regular { first, step, len } => {
                (place < *len).then(|| first.wrapping_add_signed(step.wrapping_mul(place.cast_signed())))
            }
            Self::List(list) => list.ranks.get(place).copied(),
        }
    }

    /// The place of a rank.
    #[inline]
    pub fn place(&self, rank: usize) -> Option<usize> {
        match self {
            Self::Regular { first, step, len } => {
                let distance = rank.wrapping_sub(*first).cast_signed();
                let place = if *step == 1 { distance } else { distance.checked_div(*step)? };
                let whole = place.wrapping_mul(*step) == distance;
                usize::try_from(place).ok().filter(|place| whole && place < len)
            }
            Self::List(list) => list.place(rank),
        }
    }

    /// The ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Members {}
