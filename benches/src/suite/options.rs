//! Options of `bench`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum, ValueHint};

use super::catalogue::{Entry, What};
use super::measure::{LINK, RATE};
use super::rivals::Choice;
use super::sizes::{self, Sizes};
use crate::kind::Kind;
use crate::operation::{Sync, WORD};
use crate::windows::{Extent, Windows};

const AFTER_HELP: &str = "\
Sizes are lists (8,64K,4M) or ranges of which each is double the last (8:4M).
Exit code: 0, or with --compare 0 when nothing is slower and 1 when something is; 1 when data was wrong; 2 when it could not be
measured as asked; 130 after Ctrl-C, with what was measured until then.";

/// What the network gives one-sided programs: latency, bandwidth, message rate, synchronisation, contention, overlap, beside what the
/// machine does without a runtime.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench", version, after_help = AFTER_HELP)]
pub struct Options {
    /// Measurements and groups of them, see --list [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// List the measurements
    #[arg(long)]
    pub list: bool,

    /// A few samples of a few sizes: to see that it works, in seconds
    #[arg(long)]
    pub quick: bool,

    /// Whose memory windows are over
    #[arg(long, value_enum, default_value = "allocated")]
    pub window: Kind,

    /// What completes operations, in measurements of latency and bandwidth, and what exchanges halos
    #[arg(long, value_enum, default_value = "flush")]
    pub sync: Sync,

    /// Bytes of transfers [default: 1 B to 4 MiB]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,

    /// Bytes of each rank's part of random-access's table, as a power of two [default: 512 KiB]; large ones show what pages cost
    /// (TRANSOM_PAGES)
    #[arg(long, value_name = "BYTES", value_parser = sizes::parse)]
    pub table: Option<usize>,

    /// Bytes of a window [default: 4 MiB, or what the sizes need; where bursts go to, what all of one need]
    #[arg(long, value_name = "BYTES", value_parser = sizes::parse)]
    pub window_size: Option<usize>,

    /// Operations that are completed together, in measurements of bandwidth [default: 64, or as many as move 16 MiB]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub burst: Option<u32>,

    /// Samples of each measurement, over all rounds [default: what 15 ms a round allow, at most 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub iterations: Option<u64>,

    /// Repetitions before the samples of a round, which do not count
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub warm_up: u64,

    /// Rounds through all measurements: what changes in the machine meanwhile shows in all of them [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,

    /// Pairs of ranks that measure message rates at once [default: all ranks are in one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,

    /// Threads of rank 0 that put at once: 1, 2, 4 and so on up to so many [default: its cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,

    /// Check the data in each round, not only in the first
    #[arg(long)]
    pub validate: bool,

    /// Begin no more rounds after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time_limit: Option<Duration>,

    /// What caches hold when a sample begins
    #[arg(long, value_enum, default_value = "warm")]
    pub cache: Cache,

    /// Comma-separated values instead of the table, times in nanoseconds
    #[arg(long)]
    pub csv: bool,

    /// Write all samples to a file, for --compare and --from
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write a page with diagrams to a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Compare with files of --json; more than once: with all of them together
    #[arg(long, value_name = "OLD.json", value_hint = ValueHint::FilePath)]
    pub compare: Vec<PathBuf>,

    /// Do not measure, but take the samples from a file of --json
    #[arg(long, value_name = "NEW.json", value_hint = ValueHint::FilePath)]
    pub from: Option<PathBuf>,

    /// In no job, between those of a run of which each measures a round, as `transom bench` starts them: the folder of that run.
    #[arg(long, hide = true, value_name = "DIR")]
    pub parts: Option<PathBuf>,

    /// With --parts: no job follows.
    #[arg(long, hide = true, requires = "parts")]
    pub over: bool,

    /// Measure this round alone, and write all samples to standard output.
    #[arg(long, hide = true, value_name = "ROUND", conflicts_with = "parts")]
    pub part: Option<u32>,

    /// Seconds of the time limit that jobs before have spent.
    #[arg(long, hide = true, value_name = "SECONDS", default_value_t = 0.0, requires = "part")]
    pub spent: f64,

    /// Let the system move ranks between cores. By default each is bound to one; its progress thread never is
    #[arg(long)]
    pub unbound: bool,

    /// Bind ranks by their number in the job: hosts may be one machine.
    #[arg(long, hide = true)]
    pub by_rank: bool,

    /// Rank 1's address, as rank 0 reaches it, for the raw TCP limit [default: found out]
    #[arg(long, value_name = "IP")]
    pub address: Option<IpAddr>,

    /// Other MPIs.
    #[command(flatten)]
    pub beside: Choice,
}

/// What caches hold when a sample begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cache {
    /// What the last sample left
    Warm,
    /// Other memory, at the origin and in caches that the cores share: a sample is one repetition
    Dirty,
}

impl Options {
    /// The sizes to measure.
    pub fn sizes(&self) -> Vec<usize> {
        match &self.sizes {
            Some(sizes) => sizes.0.clone(),
            None if self.quick => vec![8, 4096, 65536],
            // In fours, and the word that other programs are measured by.
            None => [1, 4, 8].into_iter().chain((4..=22).step_by(2).map(|power| 1 << power)).collect(),
        }
    }

    /// How many operations of so many bytes are completed together.
    pub fn burst(&self, bytes: usize) -> usize {
        self.burst.map_or_else(|| Windows::burst(bytes), |count| count as usize)
    }

    /// Bytes of windows, if the sizes fit into them.
    ///
    /// # Errors
    /// They do not.
    pub fn extent(&self, entries: &[Entry]) -> Result<Extent, String> {
        let longest = self.sizes().into_iter().max().unwrap_or(1);
        let bytes = self.window_size.unwrap_or(longest.max(4 << 20));
        if longest > bytes {
            let (longest, bytes) = (sizes::show(longest), sizes::show(bytes));
            return Err(format!(
                "transfers of {longest} do not fit into a window of {bytes} (--window-size)"
            ));
        }
        let of_entry = |entry: &Entry| match entry.what {
            What::Bandwidth(_) | What::Bidirectional => self
                .sizes()
                .into_iter()
                .map(|bytes| bytes.saturating_mul(self.burst(bytes)))
                .max()
                .unwrap_or(0),
            What::MatrixBandwidth => LINK.saturating_mul(self.burst(LINK)),
            What::Rate(_) => RATE * WORD,
            _ => 0,
        };
        let burst = entries.iter().map(of_entry).max().unwrap_or(0);
        Ok(Extent { window: bytes, spread: self.window_size.unwrap_or(burst.max(bytes)), burst })
    }

    /// Rounds through all measurements.
    pub fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 10 })
    }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() && number <= 1e9 => Ok(duration),
        _ => Err("must be more than 0 and at most 1000000000 seconds".to_owned()),
    }
}
