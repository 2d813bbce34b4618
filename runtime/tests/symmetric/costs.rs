//! What a window costs.

use std::time::Instant;

use transom::{Job, Result, Window};

use super::resident::resident;

/// Resident memory of this process, KiB (proc(5)), and the number of its mappings.
fn process() -> (usize, usize) {
    (resident(), std::fs::read_to_string("/proc/self/maps").unwrap().lines().count())
}

const WINDOWS: usize = 2000;

/// What 2,000 windows cost a rank, untouched, and how long a window takes.
pub fn costs(job: &Job) -> Result<()> {
    job.allocate::<u64>(1)?.free()?;
    job.barrier()?;
    let before = process();
    job.barrier()?;
    let windows = (0..WINDOWS).map(|_| job.allocate::<u64>(1)).collect::<Result<Vec<_>>>()?;
    job.barrier()?;
    let after = process();
    job.barrier()?;
    windows.into_iter().try_for_each(Window::free)?;
    let mut times = Vec::new();
    for bytes in [8, 16 << 20] {
        job.barrier()?;
        let start = Instant::now();
        for _ in 0..300 {
            job.allocate::<u64>(bytes / 8)?.free()?;
        }
        times.push(start.elapsed() / 300);
    }
    if job.rank() == 0 {
        let each = |kib: usize| (kib << 10) / (WINDOWS * job.size());
        println!(
            "bytes {} maps {}",
            each(after.0.saturating_sub(before.0)),
            after.1.saturating_sub(before.1)
        );
        println!("{} ranks: make and free 8 B {:?}, 16 MiB {:?}", job.size(), times[0], times[1]);
    }
    Ok(())
}
