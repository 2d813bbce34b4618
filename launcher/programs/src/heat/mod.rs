//! Heat that spreads over a plate: an explicit finite-difference scheme with a 5-point stencil, in double precision.
//!
//! Rows are divided among the ranks. In each step every rank puts its outermost rows into its neighbours' windows, between
//! fences, and computes its inner rows meanwhile. Each cell is computed by the same operations in the same order whatever
//! the number of ranks, so that the field is the same bit for bit.

pub mod command;
mod output;
mod plate;
mod scene;
mod stepping;
mod target;

use std::time::{Duration, Instant};

use transom::Job;

pub use output::{Outputs, checksum};
pub use plate::Plate;

use crate::failure::Failure;
use crate::progress::Progress;
use stepping::{Halos, step};

/// Computes `steps` steps of this rank's rows, and says how long it took. Collective.
///
/// # Errors
/// No memory, and errors of the runtime.
pub fn compute(
    job: &Job,
    plate: Plate,
    steps: u64,
    mut progress: Option<Progress>,
) -> Result<(Vec<f64>, Duration), Failure> {
    let rows = plate.rows(job.rank(), job.size());
    let cells = rows.len() * plate.width;
    enough_memory(job, cells)?;
    let (mut field, rates) = scene::paint(plate, rows);
    let mut next = field.clone();
    let halos = Halos::new(job, plate)?;
    job.barrier()?;
    let begin = Instant::now();
    for number in 0..steps {
        step(&halos, number, &rates, &field, &mut next)?;
        std::mem::swap(&mut field, &mut next);
        if let Some(progress) = &mut progress {
            progress.show(number + 1);
        }
    }
    job.barrier()?;
    let time = begin.elapsed();
    halos.free()?;
    Ok((field, time))
}

/// Whether the hosts have memory for the field, the next one and the rates: found by making a window of that size, which
/// fails on all ranks alike, and which nobody touches.
fn enough_memory(job: &Job, cells: usize) -> Result<(), Failure> {
    match job.allocate::<[f64; 3]>(cells) {
        Ok(window) => Ok(window.free()?),
        Err(error) if error.class() == transom::Class::NoMemory => Err(Failure::Agreed(error.to_string())),
        Err(error) => Err(error.into()),
    }
}
