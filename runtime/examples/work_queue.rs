//! A queue of work: tasks of different lengths, of which each rank takes the next when it is done with one. The numbers 1 to 3,000
//! are halved if even, else tripled and increased, until they are 1: which takes the most steps?

use transom::{Max, Result, Sum};

const TASKS: i64 = 3000;
// Rank 0's words: how many tasks are taken, the steps of all, the longest; and behind them the steps of each task.
const TAKEN: usize = 0;
const TOTAL: usize = 1;
const LONGEST: usize = 2;
const STEPS: usize = 3;

fn work(number: i64) -> i64 {
    let next = |number: &i64| match number {
        1 => None,
        number if number % 2 == 0 => Some(number / 2),
        number => Some(3 * number + 1),
    };
    std::iter::successors(Some(number), next).count() as i64 - 1
}

fn main() -> std::process::ExitCode {
    transom::run(|job| -> Result<()> {
        let window = job.allocate::<i64>(if job.rank() == 0 { STEPS + TASKS as usize } else { 0 })?; // zeros
        window.lock_all(|epoch| {
            loop {
                let task = epoch.fetch_add(0, TAKEN, 1)?;
                if task >= TASKS {
                    return Ok(());
                }
                let steps = work(task + 1);
                epoch.put_value(0, STEPS + task as usize, steps)?;
                epoch.accumulate(0, TOTAL, Sum, &[steps])?;
                epoch.accumulate(0, LONGEST, Max, &[steps * 10000 + task + 1])?;
            }
        })?;
        job.barrier()?;
        if job.rank() == 0 {
            let words = window.local().to_vec()?;
            println!("{TASKS} numbers took {} steps", words[TOTAL]);
            let longest = words[LONGEST];
            println!("27 took {}, the most took {}: {}", words[STEPS + 26], longest % 10000, longest / 10000);
        }
        window.free()
    })
}
