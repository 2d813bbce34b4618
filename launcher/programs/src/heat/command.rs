//! The program `heat`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use transom::Job;

use super::{Outputs, Plate, compute};
use crate::failure::Failure;
use crate::progress::Progress;

/// Longest side of a plate.
const SIDE: i64 = 65_535;

/// Compute how heat spreads over a plate, and draw it.
///
/// The plate's rows are divided among the ranks; in each step they put their outermost rows into their neighbours' windows,
/// between fences. The field is the same bit for bit for every number of ranks.
#[derive(Debug, Parser)]
#[command(name = "heat", version)]
pub struct Arguments {
    /// Cells in a row, and pixels of the picture
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=SIDE))]
    pub width: u32,
    /// Rows
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=SIDE))]
    pub height: u32,
    /// Steps; about 2000 make a picture of 800 by 600 glow
    #[arg(allow_negative_numbers = true)]
    pub steps: u64,
    /// Picture to be written, in PNG
    #[arg(short, long, value_name = "PNG")]
    pub output: PathBuf,
    /// File for the field's numbers: 64-bit floating point, little-endian, row by row
    #[arg(long, value_name = "RAW")]
    pub field: Option<PathBuf>,
}

/// Computes, and draws on rank 0. Collective.
///
/// # Errors
/// The outputs cannot be written; no memory; errors of the runtime.
pub fn main(job: &Job, arguments: Arguments) -> Result<(), Failure> {
    let outputs = Outputs::open(job, arguments.output, arguments.field)?;
    let plate = Plate { width: arguments.width as usize, height: arguments.height as usize };
    let progress = (job.rank() == 0).then(|| Progress::steps(arguments.steps));
    let (field, time) = compute(job, plate, arguments.steps, progress)?;
    let checksum = outputs.write(job, plate, field)?;
    if job.rank() == 0 {
        report(plate, arguments.steps, job.size(), time, checksum)?;
    }
    Ok(())
}

fn report(plate: Plate, steps: u64, ranks: usize, time: Duration, checksum: u32) -> Result<(), Failure> {
    let seconds = time.as_secs_f64();
    let rate = plate.cells() as f64 * steps as f64 / seconds.max(1e-9) / 1e6;
    let Plate { width, height } = plate;
    let plural = if ranks == 1 { "" } else { "s" };
    let line = format!(
        "{width}x{height} cells, {steps} steps, {ranks} rank{plural}: {seconds:.3} s, {rate:.1} million cell updates/s, \
         field crc32 {checksum:08x}"
    );
    match writeln!(io::stdout(), "{line}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Here(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
