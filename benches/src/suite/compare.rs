//! Two runs side by side, with a verdict that knows the noise.

use std::collections::HashMap;

use super::row::{Report, Row};
use super::statistics::{mann_whitney, median, shift, spread};
use crate::report::Unit;

/// The least change that is one.
const LEAST: f64 = 0.05;
/// The same where rounds are of one job: one process may differ from the next by so much.
const LEAST_OF_JOB: f64 = 0.6;
/// A row's probability of a false alarm: there are hundreds of rows in a run.
const ALPHA: f64 = 0.0005;
/// Changes are larger than so many times the spread between rounds, and between old runs.
const SPREADS: f64 = 2.0;
/// The same for sizes together, whose middle one that changes by itself does not move.
const SPREADS_TOGETHER: f64 = 1.0;
/// The least change of a part of a whole, in hundredths of the whole.
const POINTS: f64 = 5.0;
/// Sizes of a measurement that are judged together, at least.
const SIZES: usize = 3;
/// Rounds below which no test says anything.
const FEWEST: usize = 8;

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It takes less time.
    Faster,
    /// It takes more.
    Slower,
    /// It may take as long as before.
    NoChange,
    /// Too few rounds to tell.
    TooFew,
}

impl Verdict {
    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoChange => "no change",
            Self::TooFew => "too few rounds",
        }
    }
}

/// A row of both, or all sizes of a measurement together.
#[derive(Debug)]
pub struct Compared<'a> {
    /// The new row; of several sizes the first.
    pub new: &'a Row,
    /// Rows that are judged together.
    pub sizes: usize,
    /// The median of the old ones; there is none of several sizes.
    pub old: f64,
    /// How many times as long it takes (or how many times as many hundredths).
    pub change: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// What is judged: times by round of each old run and of the new one, and how many times as long as the limit these were. Several
/// sizes are one series, of how many times as long each took as its old median.
#[derive(Debug, Default)]
struct Series {
    old: Vec<Rounds>,
    new: Rounds,
}

#[derive(Debug, Default)]
struct Rounds {
    times: Vec<f64>,
    ratios: Vec<f64>,
}

impl Rounds {
    fn of(row: &Row) -> Self {
        Self { times: row.medians(), ratios: row.ratios() }
    }

    /// The middle of rows in each round.
    fn together(rows: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> &Vec<f64>| {
            let rounds = rows.iter().map(|row| of(row).len()).min().unwrap_or(0);
            let round =
                |i| median(&rows.iter().filter_map(|row| of(row).get(i).copied()).collect::<Vec<_>>());
            (0..rounds).map(round).collect()
        };
        Self { times: middle(|row| &row.times), ratios: middle(|row| &row.ratios) }
    }

    fn scaled(mut self, time: f64, ratio: f64) -> Self {
        self.times.iter_mut().for_each(|value| *value /= time);
        self.ratios.iter_mut().for_each(|value| *value /= ratio);
        self
    }
}

impl Series {
    fn of(old: &[&Row], new: &Row) -> Self {
        Self { old: old.iter().map(|row| Rounds::of(row)).collect(), new: Rounds::of(new) }
    }

    /// Sizes of one measurement, as many old runs of each as all have. (Of runs that have not all sizes, some stand beside others.)
    fn together(sizes: &[(&[&Row], &Row)]) -> Self {
        let centre = |old: &[&Row], of: fn(&Row) -> Vec<f64>| {
            median(&old.iter().flat_map(|row| of(row)).collect::<Vec<_>>())
        };
        let scaled: Vec<(f64, f64)> =
            sizes.iter().map(|(old, _)| (centre(old, Row::medians), centre(old, Row::ratios))).collect();
        let relative = |row: &Row, (time, ratio): (f64, f64)| Rounds::of(row).scaled(time, ratio);
        let runs = sizes.iter().map(|(old, _)| old.len()).min().unwrap_or(0);
        let run = |i: usize| {
            let rows: Vec<Rounds> =
                sizes.iter().zip(&scaled).map(|((old, _), scale)| relative(old[i], *scale)).collect();
            Rounds::together(&rows)
        };
        let new: Vec<Rounds> = sizes.iter().zip(&scaled).map(|((_, new), by)| relative(new, *by)).collect();
        Self { old: (0..runs).map(run).collect(), new: Rounds::together(&new) }
    }

    fn all(&self, of: fn(&Rounds) -> &Vec<f64>) -> Vec<f64> {
        self.old.iter().flat_map(of).copied().collect()
    }
}

/// Rows of `new` that some of `old` have, too, and behind the sizes of a measurement all of them together.
///
/// # Errors
/// There is none.
pub fn compare<'a>(old: &'a [Report], new: &'a Report) -> Result<Vec<Compared<'a>>, String> {
    let mut known: HashMap<String, Vec<&Row>> = HashMap::new();
    for row in old.iter().flat_map(|report| &report.rows) {
        known.entry(row.key()).or_default().push(row);
    }
    let starts = old.iter().map(|report| report.starts).sum::<u32>().min(new.starts) as usize;
    let least = if starts < FEWEST { LEAST_OF_JOB } else { LEAST };
    let with = |row: &'a Row| known.get(&row.key()).map(|old| (old.as_slice(), row));
    let both: Vec<(&[&Row], &Row)> = new.rows.iter().filter_map(with).collect();
    if both.is_empty() {
        return Err(
            "the files to compare with have no row of this run: other sizes, windows or ranks?".into()
        );
    }
    let mut compared = Vec::new();
    for sizes in both.chunk_by(|(_, one), (_, next)| one.is_of_measurement(next)) {
        compared.extend(sizes.iter().map(|(old, new)| judge(&Series::of(old, new), new, 1, least)));
        let (_, first) = sizes[0];
        if sizes.len() >= SIZES && first.head.unit != Unit::Percent {
            compared.push(judge(&Series::together(sizes), first, sizes.len(), least));
        }
    }
    Ok(compared)
}

fn judge<'a>(series: &Series, row: &'a Row, sizes: usize, least: f64) -> Compared<'a> {
    let (all, own) = (series.all(|run| &run.times), &series.new.times);
    // What the machine did to the limit, too, is not the runtime's doing.
    let (plain, relative) = (shift(&all, own), shift(&series.all(|run| &run.ratios), &series.new.ratios));
    let change = match relative {
        r if !r.is_finite() => plain,
        r if (r - 1.0).signum() != (plain - 1.0).signum() => 1.0,
        r if (r - 1.0).abs() < (plain - 1.0).abs() => r,
        _ => plain,
    };
    let verdict = if all.len() < FEWEST || own.len() < FEWEST {
        Verdict::TooFew
    } else {
        let between: Vec<f64> = series.old.iter().map(|run| median(&run.times)).collect();
        let within: Vec<f64> = series.old.iter().map(|run| spread(&run.times)).collect();
        let noise = [spread(own), median(&within), if between.len() > 2 { spread(&between) } else { 0.0 }];
        let noise = noise.into_iter().filter(|noise| noise.is_finite()).fold(0.0, f64::max);
        let spreads = if sizes > 1 { SPREADS_TOGETHER } else { SPREADS };
        let least = least.max(spreads * noise);
        let is_part = row.head.unit == Unit::Percent;
        let is_alike = is_part && (median(own) - median(&all)).abs() < POINTS;
        let probability = if is_alike { 1.0 } else { mann_whitney(&all, own) };
        verdict(change, least, probability, is_part)
    };
    let old = if sizes > 1 { f64::NAN } else { median(&all) };
    Compared { new: row, sizes, old, change: plain, verdict }
}

fn verdict(change: f64, least: f64, probability: f64, more_is_better: bool) -> Verdict {
    // As many times less is as much.
    let grown = change > 1.0 + least;
    if !(grown || change < 1.0 / (1.0 + least)) || probability > ALPHA {
        return Verdict::NoChange;
    }
    if grown == more_is_better { Verdict::Faster } else { Verdict::Slower }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::files::tests::{report, row};

    /// Uniform numbers in 0..1, always the same.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Ten rounds of samples with a long tail, each round a little off, as those of a busy machine.
        fn rounds(&mut self, time: f64) -> Vec<Vec<f64>> {
            let mut round = || {
                let off = 1.0 + 0.02 * (self.next() + self.next() - 1.0);
                (0..50).map(|_| time * off * (1.0 - 0.05 * self.next().ln())).collect()
            };
            (0..10).map(|_| round()).collect()
        }
    }

    fn verdicts(random: &mut Random, slowdown: f64) -> Vec<Verdict> {
        let mut rows =
            |factor: f64| report((0..200).map(|i| row(i, random.rounds(100.0 * factor))).collect());
        let (old, new) = ([rows(1.0)], rows(slowdown));
        compare(&old, &new).unwrap().iter().filter(|row| row.sizes == 1).map(|row| row.verdict).collect()
    }

    #[test]
    fn finds_a_tenth_and_gives_no_false_alarm() {
        let mut random = Random(1);
        let alarms = (0..20).flat_map(|_| verdicts(&mut random, 1.0)).filter(|v| *v != Verdict::NoChange);
        assert_eq!(alarms.count(), 0);
        let found = verdicts(&mut random, 1.1).iter().filter(|v| **v == Verdict::Slower).count();
        assert!(found > 190, "{found} of 200");
        let found = verdicts(&mut random, 1.0 / 1.1).iter().filter(|v| **v == Verdict::Faster).count();
        assert!(found > 190, "{found} of 200");
    }

    /// Each size has too much noise for a verdict of its own, and one has changed otherwise.
    #[test]
    fn sizes_together_say_what_none_does() {
        let mut random = Random(5);
        let mut of = |time: f64| {
            let mut noisy = |bytes| {
                let rounds = random.rounds(time).into_iter().map(|round| {
                    let off = 1.0 + 0.16 * (random.next() - 0.5);
                    round.into_iter().map(|sample| sample * off).collect()
                });
                row(bytes, rounds.collect())
            };
            let mut rows: Vec<Row> = (1..=8).map(|i| noisy(8 << i)).collect();
            rows.push(row(1 << 20, random.rounds(100.0)));
            report(rows)
        };
        let (old, alike, slower) = ([of(100.0)], of(100.0), of(110.0));
        let together = |new: &Report| {
            let rows = compare(&old, new).unwrap();
            let last = rows.last().unwrap();
            assert_eq!((rows.len(), last.sizes), (10, 9));
            (rows.iter().filter(|row| row.verdict == Verdict::Slower).count(), last.verdict)
        };
        assert_eq!(together(&alike), (0, Verdict::NoChange));
        let (found, verdict) = together(&slower);
        assert!(found < 9 && verdict == Verdict::Slower, "{found} {verdict:?}");
    }

    /// One process may be a fifth slower than the next for all of its life.
    #[test]
    fn rounds_of_one_job_say_less() {
        let mut random = Random(4);
        let mut of = |time: f64| report(vec![row(8, random.rounds(time))]);
        let (old, mut new, mut slower) = ([of(100.0)], of(125.0), of(200.0));
        assert_eq!(compare(&old, &new).unwrap()[0].verdict, Verdict::Slower);
        (new.starts, slower.starts) = (1, 1);
        assert_eq!(compare(&old, &new).unwrap()[0].verdict, Verdict::NoChange);
        assert_eq!(compare(&old, &slower).unwrap()[0].verdict, Verdict::Slower);
    }

    #[test]
    fn what_the_limit_does_too_is_no_change() {
        let mut random = Random(2);
        let (old, mut new) = (row(8, random.rounds(100.0)), row(8, random.rounds(120.0)));
        if let Some(limit) = &mut new.limit {
            limit.times.iter_mut().for_each(|time| *time *= 1.2);
        }
        let (old, new) = ([report(vec![old])], report(vec![new]));
        assert_eq!(compare(&old, &new).unwrap()[0].verdict, Verdict::NoChange);
    }

    #[test]
    fn more_of_a_whole_is_better() {
        let mut random = Random(3);
        let mut of = |time: f64| {
            let mut row = row(8, random.rounds(time));
            (row.head.unit, row.limit) = (Unit::Percent, None);
            report(vec![row])
        };
        let (old, new) = ([of(50.0)], of(70.0));
        assert_eq!(compare(&old, &new).unwrap()[0].verdict, Verdict::Faster);
    }

    #[test]
    fn nothing_to_tell() {
        let old = [report(vec![row(8, vec![vec![1.0]; 3])])];
        let verdict = |new: &Report| compare(&old, new).map(|rows| rows[0].verdict);
        assert_eq!(verdict(&report(vec![row(8, vec![vec![9.0]; 10])])), Ok(Verdict::TooFew));
        assert!(verdict(&report(vec![row(16, vec![vec![9.0]; 10])])).is_err());
    }
}
