//! A distributed hash table: ranks insert words, numbers here, by compare-and-swap of a slot's key, and count them by accumulate.

use transom::{Epoch, Max, Result, Sum};

// Each rank's.
const WORDS: usize = 1000;
const SLOTS: usize = 2048;
const EMPTY: i64 = 0;
// A rank's window: keys, their counts, and at rank 0 what is found in the end.
const COUNTS: usize = SLOTS;
const DIFFERENT: usize = 2 * SLOTS;
const MOST: usize = DIFFERENT + 1;
const ALL: usize = MOST + 1;

/// Counts a word: from its first slot on, the first that is empty or has it.
fn insert(epoch: &Epoch<'_, '_, i64>, word: usize, size: usize) -> Result<()> {
    let (owner, mut slot) = (word % size, word / size * 7919 % SLOTS);
    let word = word as i64;
    loop {
        let found = epoch.compare_and_swap(owner, slot, EMPTY, word)?;
        if found == EMPTY || found == word {
            return epoch.accumulate(owner, COUNTS + slot, Sum, &[1]);
        }
        slot = (slot + 1) % SLOTS;
    }
}

fn main() -> std::process::ExitCode {
    transom::run(|job| -> Result<()> {
        let window = job.allocate::<i64>(ALL)?; // zeros
        // The minimal standard generator of random numbers.
        let next = |state: &usize| Some(state * 16807 % 2_147_483_647);
        let words = std::iter::successors(next(&(job.rank() + 1)), next).take(WORDS);
        window.lock_all(|epoch| {
            words.into_iter().try_for_each(|number| insert(epoch, number % 500 + 1, job.size()))
        })?;
        job.barrier()?; // all is inserted

        // Each rank looks at its own part. Of words that are as frequent the smallest is wanted.
        let table = window.local().to_vec()?;
        let (keys, counts) = table[..DIFFERENT].split_at(COUNTS);
        let found = keys.iter().zip(counts).filter(|(key, _)| **key != EMPTY);
        let orders: Vec<i64> = found.map(|(key, count)| count * 1000 + 999 - key).collect();
        window.lock_all(|epoch| {
            epoch.accumulate(0, DIFFERENT, Sum, &[orders.len() as i64])?;
            epoch.accumulate(0, MOST, Max, &[orders.iter().max().copied().unwrap_or(0)])
        })?;
        job.barrier()?;
        if job.rank() == 0 {
            let (different, most) = (window.local().get(DIFFERENT)?, window.local().get(MOST)?);
            println!("{} words, {different} different", job.size() * WORDS);
            println!("{} is there {} times", 999 - most % 1000, most / 1000);
        }
        window.free()
    })
}
