//! What is asked for, checked: each rank comes to the same.

use transom::Job;

use super::catalogue::{Entry, What, select};
use super::options::Options;
use super::sizes::show;
use crate::kind::Kind;
use crate::windows::Extent;

/// Measurements that can be made.
#[derive(Debug)]
pub struct Request {
    /// The measurements.
    pub entries: Vec<Entry>,
    /// Bytes of windows.
    pub extent: Extent,
    /// The host of each rank.
    pub hosts: Vec<String>,
}

impl Request {
    /// Collective.
    ///
    /// # Errors
    /// It cannot be measured, in words.
    pub fn new(job: &Job, options: &Options) -> Result<Self, String> {
        let own = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        let hosts = job.allgather(own.as_bytes()).map_err(|error| error.to_string())?;
        let hosts = hosts.iter().map(|host| String::from_utf8_lossy(host).into_owned()).collect();
        let entries = select(&options.names)?;
        let extent = options.extent(&entries)?;
        if options.from.is_some() {
            return Ok(Self { entries, extent, hosts });
        }
        let ranks = job.size();
        if ranks < 2 {
            return Err("measures between ranks, but this job has 1: transom run -n 2 bench".into());
        }
        let shares = (1..ranks).all(|rank| job.transport(rank).is_some_and(|(name, _)| name == "shm"));
        if options.window == Kind::Shared && job.rank() == 0 && !shares {
            return Err("--window shared: not all ranks reach each other by shared memory".into());
        }
        room(extent)?;
        let entries = pairs(entries, options, ranks)?;
        if entries.iter().all(|entry| options.sizes().iter().all(|bytes| !fits(entry.what, *bytes))) {
            let sizes = options.sizes().iter().map(|bytes| show(*bytes)).collect::<Vec<_>>().join(", ");
            return Err(format!("nothing to measure by {sizes}: sums are of doubles, 8 B each"));
        }
        Ok(Self { entries, extent, hosts })
    }
}

/// Whether this host has memory for its ranks' windows and buffers.
fn room(extent: Extent) -> Result<(), String> {
    // Two sets of windows of words and doubles with the origin's buffers, and what limits add; of these windows there are two generations
    // for a moment.
    const OF_WINDOW: usize = 24;
    // The same of windows that bursts go to, what they go to at the limits, and the buffers that they come from.
    const OF_SPREAD: usize = 8;
    const OF_BURST: usize = 4;
    let local = std::env::var("TRANSOM_LOCAL_SIZE").ok().and_then(|ranks| ranks.parse().ok()).unwrap_or(1);
    let Extent { window, spread, burst } = extent;
    let parts = [(window, OF_WINDOW), (spread, OF_SPREAD), (burst, OF_BURST)];
    let rank =
        parts.iter().fold(0_usize, |sum, (bytes, times)| sum.saturating_add(bytes.saturating_mul(*times)));
    let needed = rank.saturating_mul(local);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    match available {
        Some(available) if needed >> 10 > available => Err(format!(
            "windows of {} need {} MiB for the ranks of this host, which has {} MiB left: smaller --sizes, --burst or --window-size",
            show(spread.max(window)),
            needed >> 20,
            available >> 10
        )),
        _ => Ok(()),
    }
}

/// Without message rates where one rank has no partner, unless they were asked for.
fn pairs(entries: Vec<Entry>, options: &Options, ranks: usize) -> Result<Vec<Entry>, String> {
    let is_rate = |entry: &Entry| matches!(entry.what, What::Rate(_));
    if let Some(pairs) = options.pairs.filter(|pairs| *pairs as usize > ranks / 2) {
        return Err(format!("--pairs {pairs} wants {} ranks, this job has {ranks}", 2 * u64::from(pairs)));
    }
    let odd = options.pairs.is_none() && !ranks.is_multiple_of(2);
    match odd {
        true if options.names.is_empty() => Ok(entries.into_iter().filter(|entry| !is_rate(entry)).collect()),
        true if entries.iter().any(is_rate) => {
            let most = ranks / 2;
            Err(format!(
                "of {ranks} ranks one has no partner for message rates: an even number, or --pairs {most}"
            ))
        }
        _ => Ok(entries),
    }
}

fn fits(what: What, bytes: usize) -> bool {
    match what {
        What::Latency(verb) | What::Bandwidth(verb) => verb.is_of_a_word() || verb.moves(bytes),
        _ => true,
    }
}
