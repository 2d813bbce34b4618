//! A distributed counter: each rank draws 1,000 tickets from one word at rank 0. No two ranks draw the same, and rank 0 does nothing
//! for it.

use transom::{Result, Sum};

const DRAWS: usize = 1000;
// Rank 0's words.
const TICKET: usize = 0;
const SUM: usize = 1;
const WORDS: usize = 2;

fn main() -> std::process::ExitCode {
    transom::run(|job| -> Result<()> {
        let window = job.allocate::<i64>(if job.rank() == 0 { WORDS } else { 0 })?; // zeros
        window.lock_all(|epoch| {
            let mut sum = 0;
            for _ in 0..DRAWS {
                sum += epoch.fetch_add(0, TICKET, 1)?;
            }
            epoch.accumulate(0, SUM, Sum, &[sum])
        })?;
        job.barrier()?; // all have drawn
        if job.rank() == 0 {
            let words = window.local().to_vec()?;
            println!("{} tickets, which sum up to {}", words[TICKET], words[SUM]);
        }
        window.free()
    })
}
