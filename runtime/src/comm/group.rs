//! Groups: ordered sets of the job's ranks, and their algebra (MPI-4.1 §7.3).

use super::members::Members;
use crate::{Class, Error, NULL_RANK, Result};

/// An ordered set of processes of a job (MPI-4.1 §7.2.1). Local: nothing is sent.
///
/// All ranks of a job, and every regular part of it, take no memory per rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    members: Members,
    /// This process's rank in the job.
    own: usize,
}

/// How alike two groups or communicators are (MPI-4.1 §7.3.1, §7.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The same members in the same order; of communicators: the same communicator.
    Identical,
    /// Of communicators: the same members in the same order, but another context.
    Congruent,
    /// The same members in another order.
    Similar,
    /// Other members.
    Unequal,
}

/// Ranks from `first` to `last` inclusive, every `stride`th (MPI-4.1 §7.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RankRange {
    /// The first rank.
    pub first: usize,
    /// The last rank, if the stride meets it.
    pub last: usize,
    /// The step, negative for descending ranks, not 0.
    pub stride: isize,
}

impl RankRange {
    fn ranks(self, operation: &'static str) -> Result<impl Iterator<Item = usize>> {
        let Self { first, last, stride } = self;
        if stride == 0 || (stride > 0 && first > last) || (stride < 0 && first < last) {
            let message = format!("the range from {first} to {last} is never met in steps of {stride}");
            return Err(Error::new(Class::Argument, operation, message));
        }
        let count = first.abs_diff(last) / stride.unsigned_abs();
        Ok((0..=count).map(move |i| {
            let distance = i * stride.unsigned_abs();
            if stride > 0 { first + distance } else { first - distance }
        }))
    }
}

impl Group {
    /// All ranks of a job of `size`, in one of them.
    pub(crate) fn all(size: usize, own: usize) -> Self {
        Self { members: Members::all(size), own }
    }

    /// Distinct job ranks.
    pub(crate) fn of(&self, ranks: Vec<usize>) -> Self {
        Self { members: Members::of(ranks), own: self.own }
    }

    /// Number of members (`MPI_Group_size`).
    #[inline]
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// This process's rank in the group (`MPI_Group_rank`), if it is a member.
    pub fn rank(&self) -> Option<usize> {
        self.members.place(self.own)
    }

    /// The rank in the job of a member, if there is such a one.
    #[inline]
    pub fn job_rank(&self, rank: usize) -> Option<usize> {
        self.members.get(rank)
    }

    /// The rank in this group of a rank of the job, if it is a member.
    #[inline]
    pub fn rank_of(&self, job_rank: usize) -> Option<usize> {
        self.members.place(job_rank)
    }

    /// The members' job ranks, in order.
    pub fn job_ranks(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter()
    }

    fn member(&self, operation: &'static str, rank: usize) -> Result<usize> {
        self.members.get(rank).ok_or_else(|| {
            let message = format!("the group has {} ranks, and no rank {rank}", self.size());
            Error::new(Class::Rank, operation, message).at_rank(self.own)
        })
    }

    /// The job ranks of distinct members.
    fn distinct(
        &self,
        operation: &'static str,
        ranks: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<usize>> {
        let mut seen = vec![false; self.size()];
        let mut members = Vec::new();
        for rank in ranks {
            members.push(self.member(operation, rank)?);
            if std::mem::replace(&mut seen[rank], true) {
                let message = format!("rank {rank} is named twice: ranks must be distinct");
                return Err(Error::new(Class::Rank, operation, message).at_rank(self.own));
            }
        }
        Ok(members)
    }

    /// The ranks in `other` of ranks in this group (`MPI_Group_translate_ranks`): `None` for those that are no members
    /// there. The null rank is itself everywhere.
    ///
    /// # Errors
    /// [`Class::Rank`]: a rank that this group does not have.
    pub fn translate_ranks(&self, ranks: &[usize], other: &Self) -> Result<Vec<Option<usize>>> {
        let translate = |rank: &usize| match *rank {
            NULL_RANK => Ok(Some(NULL_RANK)),
            rank => Ok(other.members.place(self.member("translate_ranks", rank)?)),
        };
        ranks.iter().map(translate).collect()
    }

    /// How alike two groups are (`MPI_Group_compare`): identical, similar or unequal.
    pub fn compare(&self, other: &Self) -> Comparison {
        if self.members == other.members {
            return Comparison::Identical;
        }
        let same = self.size() == other.size() && self.job_ranks().all(|r| other.rank_of(r).is_some());
        if same { Comparison::Similar } else { Comparison::Unequal }
    }

    /// The members of this group, then those of `other` that are not in this one (`MPI_Group_union`).
    pub fn union(&self, other: &Self) -> Self {
        let more = other.job_ranks().filter(|rank| self.rank_of(*rank).is_none());
        self.of(self.job_ranks().chain(more).collect())
    }

    /// The members of this group that are in `other`, too (`MPI_Group_intersection`).
    pub fn intersection(&self, other: &Self) -> Self {
        self.of(self.job_ranks().filter(|rank| other.rank_of(*rank).is_some()).collect())
    }

    /// The members of this group that are not in `other` (`MPI_Group_difference`).
    pub fn difference(&self, other: &Self) -> Self {
        self.of(self.job_ranks().filter(|rank| other.rank_of(*rank).is_none()).collect())
    }

    /// The members with these ranks, in this order (`MPI_Group_incl`). None of them make the empty group.
    ///
    /// # Errors
    /// [`Class::Rank`]: a rank that the group does not have, or one twice.
    pub fn incl(&self, ranks: &[usize]) -> Result<Self> {
        Ok(self.of(self.distinct("incl", ranks.iter().copied())?))
    }

    /// The members but those with these ranks (`MPI_Group_excl`).
    ///
    /// # Errors
    /// As [`Group::incl`].
    pub fn excl(&self, ranks: &[usize]) -> Result<Self> {
        Ok(self.difference(&self.of(self.distinct("excl", ranks.iter().copied())?)))
    }

    fn in_ranges(&self, operation: &'static str, ranges: &[RankRange]) -> Result<Self> {
        let mut ranks = Vec::new();
        for range in ranges {
            // Before the range is walked through: it may be absurdly long.
            self.member(operation, range.first)?;
            for rank in range.ranks(operation)? {
                self.member(operation, rank)?;
                ranks.push(rank);
            }
        }
        Ok(self.of(self.distinct(operation, ranks)?))
    }

    /// The members in these ranges of ranks, in this order (`MPI_Group_range_incl`).
    ///
    /// # Errors
    /// [`Class::Rank`]: a rank that the group does not have, or one twice. [`Class::Argument`]: a range without end.
    pub fn range_incl(&self, ranges: &[RankRange]) -> Result<Self> {
        self.in_ranges("range_incl", ranges)
    }

    /// The members but those in these ranges of ranks (`MPI_Group_range_excl`).
    ///
    /// # Errors
    /// As [`Group::range_incl`].
    pub fn range_excl(&self, ranges: &[RankRange]) -> Result<Self> {
        Ok(self.difference(&self.in_ranges("range_excl", ranges)?))
    }

    /// A number that depends on the members and their order, the same at every rank.
    pub(crate) fn digest(&self) -> u64 {
        self.job_ranks().fold(digest(b"group"), |sum, rank| fnv(sum, &(rank as u64).to_le_bytes()))
    }
}

/// A number that depends on the bytes, the same at every rank (FNV-1a).
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    fnv(0xcbf2_9ce4_8422_2325, bytes)
}

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JOB: usize = 12;

    fn group(ranks: &[usize]) -> Group {
        Group::all(JOB, 3).of(ranks.to_vec())
    }

    fn ranks(group: &Group) -> Vec<usize> {
        group.job_ranks().collect()
    }

    /// Some ranks in some order.
    fn some() -> impl Strategy<Value = Vec<usize>> {
        let all: Vec<usize> = (0..JOB).collect();
        (Just(all).prop_shuffle(), 0..=JOB, 1..4usize, any::<bool>()).prop_map(
            |(mut all, len, step, regular)| {
                if regular {
                    all.sort_unstable();
                    all = all.into_iter().step_by(step).collect();
                }
                all.truncate(len);
                all
            },
        )
    }

    proptest! {
        #[test]
        fn algebra_is_that_of_lists(a in some(), b in some()) {
            let (x, y) = (group(&a), group(&b));
            prop_assert_eq!(ranks(&x), a.clone());
            let in_b: Vec<usize> = a.iter().copied().filter(|r| b.contains(r)).collect();
            let not_in_b: Vec<usize> = a.iter().copied().filter(|r| !b.contains(r)).collect();
            let more = b.iter().copied().filter(|r| !a.contains(r));
            prop_assert_eq!(ranks(&x.union(&y)), a.iter().copied().chain(more).collect::<Vec<_>>());
            prop_assert_eq!(ranks(&x.intersection(&y)), in_b);
            prop_assert_eq!(ranks(&x.difference(&y)), not_in_b);
            for rank in 0..JOB + 2 {
                prop_assert_eq!(x.rank_of(rank), a.iter().position(|r| *r == rank));
                prop_assert_eq!(x.job_rank(rank), a.get(rank).copied());
            }
            let places: Vec<usize> = (0..a.len()).collect();
            let translated: Vec<_> = a.iter().map(|r| b.iter().position(|s| s == r)).collect();
            prop_assert_eq!(x.translate_ranks(&places, &y).unwrap(), translated);
            let (mut c, mut d) = (a.clone(), b.clone());
            c.sort_unstable();
            d.sort_unstable();
            let expected = match (a == b, c == d) {
                (true, _) => Comparison::Identical,
                (_, true) => Comparison::Similar,
                _ => Comparison::Unequal,
            };
            prop_assert_eq!(x.compare(&y), expected);
            prop_assert_eq!(x.digest() == y.digest(), a == b);
        }

        #[test]
        fn choosing_is_that_of_lists(a in some(), chosen in some()) {
            let x = group(&a);
            let valid = chosen.iter().all(|r| *r < a.len());
            match x.incl(&chosen) {
                Ok(part) => {
                    let expected: Vec<usize> = chosen.iter().map(|r| a[*r]).collect();
                    prop_assert_eq!(ranks(&part), expected);
                    let rest: Vec<usize> =
                        (0..a.len()).filter(|r| !chosen.contains(r)).map(|r| a[r]).collect();
                    prop_assert_eq!(ranks(&x.excl(&chosen).unwrap()), rest);
                }
                Err(error) => prop_assert!(!valid && error.class() == Class::Rank),
            }
        }

        #[test]
        fn ranges_are_loops(first in 0..JOB, last in 0..JOB, stride in -4isize..5) {
            let all = Group::all(JOB, 0);
            let mut expected = Vec::new();
            let mut at = first as isize;
            while stride != 0 && (if stride > 0 { at <= last as isize } else { at >= last as isize }) {
                expected.push(at as usize);
                at += stride;
            }
            let range = [RankRange { first, last, stride }];
            match all.range_incl(&range) {
                Ok(part) => {
                    prop_assert_eq!(ranks(&part), expected.clone());
                    let rest: Vec<usize> = (0..JOB).filter(|r| !expected.contains(r)).collect();
                    prop_assert_eq!(ranks(&all.range_excl(&range).unwrap()), rest);
                }
                Err(error) => prop_assert!(expected.is_empty() && error.class() == Class::Argument),
            }
        }
    }

    #[test]
    fn regular_groups_take_no_memory() {
        let all = Group::all(1 << 30, 5);
        let range = |first, last, stride| RankRange { first, last, stride };
        assert!(matches!(group(&[7, 5, 3]).members, Members::Regular { first: 7, step: -2, len: 3 }));
        assert!(matches!(group(&[7, 5, 4]).members, Members::List(_)));
        assert_eq!(all.rank(), Some(5));
        for wrong in [range(1 << 31, 1 << 40, 1), range(0, usize::MAX, 1)] {
            assert_eq!(Group::all(4, 0).range_incl(&[wrong]).unwrap_err().class(), Class::Rank);
        }
    }

    #[test]
    fn wrong_ranks_are_errors() {
        let all = Group::all(4, 0);
        let class = |result: Result<Group>| result.unwrap_err().class();
        assert_eq!(class(all.incl(&[4])), Class::Rank);
        assert_eq!(class(all.incl(&[1, 1])), Class::Rank);
        assert_eq!(class(all.excl(&[0, usize::MAX])), Class::Rank);
        let twice = [RankRange { first: 0, last: 2, stride: 1 }, RankRange { first: 2, last: 3, stride: 1 }];
        assert_eq!(class(all.range_incl(&twice)), Class::Rank);
        assert_eq!(all.translate_ranks(&[9], &all).unwrap_err().class(), Class::Rank);
        assert_eq!(all.translate_ranks(&[NULL_RANK], &all).unwrap(), [Some(NULL_RANK)]);
        assert_eq!(all.incl(&[]).unwrap().size(), 0);
    }
}
