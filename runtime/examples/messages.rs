//! Half round trips of messages between two ranks of one process, by length, over the transport that
//! `TRANSOM_TRANSPORT` names: `TRANSOM_TRANSPORT=shm cargo run --release -p transom --example messages`.

use std::time::{Duration, Instant};

use transom::{ANY_TAG, Job, Result};

/// Median and least half round trip of some.
fn half_round_trips(job: &Job, len: usize, rounds: usize) -> Result<(Duration, Duration)> {
    let other = 1 - job.rank();
    let mut data = vec![1u8; len];
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        if job.rank() == 0 {
            job.send(other, 0, &data)?;
            job.recv_into(other, 0, &mut data)?;
        } else {
            job.recv_into(other, ANY_TAG, &mut data)?;
            job.send(other, 0, &data)?;
        }
        times.push(start.elapsed() / 2);
    }
    times.sort_unstable();
    Ok((times[rounds / 2], times[0]))
}

fn main() -> Result<()> {
    transom::local(2, |job| {
        for (len, rounds) in [(8, 20_000), (4096, 10_000), (65_536, 2000), (1 << 20, 400), (8 << 20, 50)] {
            half_round_trips(&job, len, rounds / 10)?;
            let (median, least) = half_round_trips(&job, len, rounds)?;
            if job.rank() == 0 {
                println!("{len:>8} B: median {median:?}, least {least:?}");
            }
        }
        Ok(())
    })
    .map(drop)
}
