//! The figures: which operations are measured, how often, and what each is compared with.

use std::time::Duration;

use transom::Job;

use crate::Options;
use crate::limit::{Limit, Way, limits_of, repetitions};
use crate::operation::{MOST_BYTES, Operation, Sync, Verb, WORD};
use crate::options::Kind;
use crate::pair::{Pair, Target};
use crate::report::{self, Row, Unit};
use crate::samples::Samples;
use crate::windows::{Extent, Windows};

const MIB: usize = 1 << 20;
/// Puts before a flush, where the rate is measured.
const RATE: usize = 1000;
/// Puts before a flush, where streaming is measured.
const STREAM: usize = 16;

/// How long a sample takes at most. A device's work waits for nobody, so that a short sample tells as much as a long
/// one; what interrupts it is in fewer of them.
fn sample_time(way: Way) -> Duration {
    Duration::from_millis(if way == Way::Device { 2 } else { 20 })
}

/// How many samples are taken, of so many operations each.
fn rounds(way: Way, operations: u64) -> usize {
    match way {
        Way::Device if operations > 4 => 99,
        _ => 9,
    }
}

/// One line of the table, before it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    name: &'static str,
    operation: Operation,
    unit: Unit,
}

impl Figure {
    const fn new(name: &'static str, operation: Operation, unit: Unit) -> Self {
        Self { name, operation, unit }
    }

    fn all() -> Vec<Self> {
        let put = Operation::new(Verb::Put, WORD);
        let of_word = |verb| Operation::new(verb, WORD);
        let mut all = vec![
            Self::new("put, flush", put, Unit::Time),
            Self::new("get, flush", of_word(Verb::Get), Unit::Time),
            Self::new("fetch_and_op", of_word(Verb::FetchAndOp), Unit::Time),
            Self::new("compare_and_swap", of_word(Verb::CompareAndSwap), Unit::Time),
            Self::new("accumulate, flush", of_word(Verb::Accumulate), Unit::Time),
            Self::new("exclusive lock, put, unlock", put.by(Sync::Lock), Unit::Time),
            Self::new("fence, put, fence", put.by(Sync::Fence), Unit::Time),
            Self::new("put × 1000, flush", put.times(RATE, MOST_BYTES), Unit::Rate(RATE)),
        ];
        let sizes = || (12..=22).step_by(2).map(|power| 1 << power);
        let bandwidth = |name, verb| {
            sizes().map(move |bytes| Self::new(name, Operation::new(verb, bytes), Unit::Bandwidth(bytes)))
        };
        all.extend(bandwidth("put, flush", Verb::Put));
        all.extend(sizes().take(5).map(|bytes| {
            let puts = Operation::new(Verb::Put, bytes).times(STREAM, MOST_BYTES);
            Self::new("put × 16, flush", puts, Unit::Bandwidth(bytes * STREAM))
        }));
        all.extend(bandwidth("get, flush", Verb::Get));
        let sum = Operation::new(Verb::Accumulate, MIB);
        all.push(Self::new("accumulate f64, flush", sum, Unit::Bandwidth(MIB)));
        all
    }

    /// Bytes that one operation of the figure moves.
    fn bytes(&self) -> usize {
        self.operation.moved()
    }

    /// Operations in a sample.
    fn count(&self, way: Way, quick: bool) -> u64 {
        if quick {
            return 3;
        }
        let (small, bytes) = match way {
            Way::Mapped => (100_000, 64 * MIB),
            Way::Attached => (2_000, 32 * MIB),
            Way::Device | Way::Network => (300, 16 * MIB),
        };
        let small = if self.operation.sync == Sync::Fence { small.min(2_000) } else { small };
        small.min(bytes / self.bytes()).max(4) as u64
    }

    /// Measures the figure beside a limit. Collective.
    fn measure(
        &self,
        pair: &mut Pair,
        windows: &mut Windows,
        (way, limit): (Way, Limit),
        quick: bool,
    ) -> anyhow::Result<Row> {
        let operation = self.operation;
        let times = repetitions(operation, limit);
        let most = (self.count(way, quick), sample_time(way));
        let limits = pair.calibrate(most, |pair, count| pair.sample_limit(limit, count * times))?;
        let count =
            pair.calibrate(most, |pair, count| pair.sample(windows, operation, count, Target::Waits))?;
        let [mut waits, mut computes, mut bound] = [const { Samples::new() }; 3];
        for _ in 0..if quick { 2 } else { rounds(way, count) } {
            bound.push(pair.sample_limit(limit, limits * times)?, limits);
            waits.push(pair.sample(windows, operation, count, Target::Waits)?, count);
            if operation.sync != Sync::Fence {
                computes.push(pair.sample(windows, operation, count, Target::Computes)?, count);
            }
        }
        let (name, unit, size) = (self.name, self.unit, operation.bytes);
        Ok(Row { window: "", name, size, unit, waits, computes, limit: limit.name(), bound })
    }
}

/// Measures all figures and returns the report, at rank 0.
pub(crate) fn run(job: &Job, options: &Options) -> anyhow::Result<String> {
    let mut pair = Pair::new(
        job,
        Way::of(job, Kind::Allocated, 1 - job.rank()),
        options.address,
        Extent::of(MOST_BYTES),
    )?;
    let mut rows = Vec::new();
    for kind in options.kinds() {
        let mut windows = Windows::new(job, kind, Extent::of(MOST_BYTES))?;
        let way = Way::of(job, kind, 1);
        let wanted = |figure: &Figure| {
            options.wants(figure.name) && figure.bytes() <= options.most.unwrap_or(usize::MAX)
        };
        for figure in Figure::all().into_iter().filter(wanted) {
            for limit in limits_of(way, figure.operation) {
                let row = figure.measure(&mut pair, &mut windows, (way, limit), options.quick)?;
                rows.push(Row { window: kind.name(), ..row });
            }
        }
        windows.free()?;
    }
    pair.free()?;
    Ok(if job.rank() == 0 { report::figures(job, options, &rows) } else { String::new() })
}
