//! How many users each range has, where users come with ranges that overlap.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges with the number of their users, which is not 0.
#[derive(Debug, Default)]
pub struct Users(BTreeMap<usize, (usize, usize)>);

impl Users {
    /// No users.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// One more user of `range`.
    pub fn add(&mut self, range: &Range<usize>) {
        self.split(range);
        for gap in self.gaps(range) {
            self.0.insert(gap.start, (gap.end, 0));
        }
        self.0.range_mut(range.clone()).for_each(|(_, (_, users))| *users += 1);
        self.join(range);
    }

    /// One user less. Returns the ranges that have none any more.
    pub fn remove(&mut self, range: &Range<usize>) -> Vec<Range<usize>> {
        self.split(range);
        self.0.range_mut(range.clone()).for_each(|(_, (_, users))| *users -= 1);
        let unused: Vec<_> = self.0.range(range.clone()).filter(|(_, (_, users))| *users == 0).collect();
        let unused: Vec<Range<usize>> = unused.into_iter().map(|(start, (end, _))| *start..*end).collect();
        for range in &unused {
            self.0.remove(&range.start);
        }
        self.join(range);
        unused
    }

    /// The parts of `range` without users.
    pub fn gaps(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for used in self.within(range) {
            if at < used.start {
                gaps.push(at..used.start);
            }
            at = used.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// The parts of `range` with users.
    pub fn within(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let before = self.0.range(..range.start).next_back();
        let from = before.filter(|(_, (end, _))| *end > range.start).map_or(range.start, |(start, _)| *start);
        let cut =
            |(start, (end, _)): (&usize, &(usize, usize))| (*start).max(range.start)..(*end).min(range.end);
        self.0.range(from..range.end).map(cut).filter(|part| !part.is_empty()).collect()
    }

    /// Whether some part of `range` has a user.
    pub fn any(&self, range: &Range<usize>) -> bool {
        !self.within(range).is_empty()
    }

    /// All that has users.
    pub fn all(&self) -> Vec<Range<usize>> {
        self.within(&(0..usize::MAX))
    }

    /// Has ranges begin and end where `range` does.
    fn split(&mut self, range: &Range<usize>) {
        for at in [range.start, range.end] {
            if let Some((_, (end, users))) = self.0.range_mut(..at).next_back()
                && *end > at
            {
                let rest = (std::mem::replace(end, at), *users);
                self.0.insert(at, rest);
            }
        }
    }

    /// Makes one of neighbours with as many users.
    fn join(&mut self, range: &Range<usize>) {
        let mut at = self.0.range(..range.start).next_back().map_or(range.start, |(start, _)| *start);
        while at <= range.end
            && let Some((start, (end, users))) = self.0.range(at..=range.end).next().map(|(s, v)| (*s, *v))
        {
            match self.0.get(&end).copied() {
                Some((next, same)) if same == users => {
                    self.0.remove(&end);
                    self.0.insert(start, (next, users));
                    at = start;
                }
                _ => at = end,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_users_are_counted_like_in_an_array() {
        const SIZE: usize = 64;
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        let (mut users, mut counts, mut live) = (Users::default(), [0; SIZE], Vec::new());
        for _ in 0..20_000 {
            if live.len() > 8 || random(2) == 0 && !live.is_empty() {
                let range: Range<usize> = live.swap_remove(random(live.len()));
                let unused = users.remove(&range);
                counts[range.clone()].iter_mut().for_each(|count| *count -= 1);
                let expected: Vec<usize> = range.filter(|at| counts[*at] == 0).collect();
                assert_eq!(unused.into_iter().flatten().collect::<Vec<_>>(), expected);
            } else {
                let start = random(SIZE - 1);
                let range = start..start + 1 + random(SIZE - start - 1);
                users.add(&range);
                counts[range.clone()].iter_mut().for_each(|count| *count += 1);
                live.push(range);
            }
            let part = random(SIZE / 2)..SIZE / 2 + random(SIZE / 2);
            let in_part = |used: bool| part.clone().filter(move |at| (counts[*at] > 0) == used);
            assert!(users.within(&part).into_iter().flatten().eq(in_part(true)));
            assert!(users.gaps(&part).into_iter().flatten().eq(in_part(false)));
            assert_eq!(users.any(&part), in_part(true).next().is_some());
            assert!(users.0.len() <= 2 * live.len() + 1);
        }
        live.iter().for_each(|range| drop(users.remove(range)));
        assert!(users.all().is_empty());
    }
}
