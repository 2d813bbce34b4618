//! A histogram whose bins are spread over the ranks. Each rank counts its samples for itself, and adds its counts to each rank's bins by
//! one accumulate.

use transom::{Result, Sum};

const SAMPLES: usize = 20000;
const BINS: usize = 12;

fn main() -> std::process::ExitCode {
    transom::run(|job| -> Result<()> {
        let (rank, size) = (job.rank(), job.size());
        let bins = |rank: usize| BINS * rank / size..BINS * (rank + 1) / size;
        let window = job.allocate::<i64>(bins(rank).len())?; // zeros

        // The sum of three dice of 0 to 99 that have fallen 20,000 times; by the minimal standard generator of random numbers.
        let mut state = rank + 1;
        let mut die = || {
            state = state * 16807 % 2_147_483_647;
            state % 100
        };
        let mut counts = [0; BINS];
        for _ in 0..SAMPLES {
            let sum: usize = (0..3).map(|_| die()).sum();
            counts[sum * BINS / 298] += 1;
        }
        window.fence(|epoch| {
            (0..size).try_for_each(|target| epoch.accumulate(target, 0, Sum, &counts[bins(target)]))
        })?;
        let mut all = [0; BINS];
        window.fence(|epoch| {
            let targets = (0..size).filter(|_| rank == 0);
            targets.into_iter().try_for_each(|target| epoch.read(target, 0, &mut all[bins(target)]))
        })?;
        for (bin, count) in all.iter().enumerate().filter(|_| rank == 0) {
            let marks = "#".repeat(*count as usize * 200 / (size * SAMPLES));
            println!("{}", format!("bin {bin:2}: {count:6} {marks}").trim_end());
        }
        window.free()
    })
}
