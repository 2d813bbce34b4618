//! The program `wordcount`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Parser;
use transom::Job;

use crate::count::{Options, Run, count};
use crate::failure::Failure;
use crate::report::{print_table, print_tsv};
use crate::words::Input;

/// Count the words of files, in a hash table that is spread over the memory of all ranks.
///
/// A word is a run of ASCII letters, in lower case. Each rank reads an equal share of the bytes of all files. Words are
/// inserted by compare_and_swap and counted by fetch_and_op in the windows of the ranks that their hashes choose; no rank
/// serves another.
#[derive(Debug, Parser)]
#[command(name = "wordcount", version)]
pub struct Arguments {
    /// Print `COUNT<TAB>WORD` lines by falling count, then by word, and nothing else
    #[arg(long)]
    pub tsv: bool,
    /// Only the first K words [default: 20, or all with --tsv]
    #[arg(long, value_name = "K")]
    pub top: Option<usize>,
    /// Occurrences of a word that a rank counts by one fetch_and_op [default: 1 where memory is shared, 64 over a network]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub combine: Option<u32>,
    /// Files to be read, the same on all hosts
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Counts, and prints on rank 0. Collective.
///
/// # Errors
/// A file cannot be read, the result not be written; errors of the runtime.
pub fn main(job: &Job, arguments: Arguments) -> Result<(), Failure> {
    let input = Input::agree(job, arguments.files)?;
    let options = Options { combine: arguments.combine, heap: None, progress: true };
    let Some(run) = count(job, &input, options)? else { return Ok(()) };
    match print(job, &input, &run, arguments.tsv, arguments.top) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::Here(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

fn print(job: &Job, input: &Input, run: &Run, tsv: bool, top: Option<usize>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let printed = match tsv {
        true => print_tsv(&mut out, run, top),
        false => print_table(&mut out, job, input, run, top),
    };
    printed.and_then(|()| out.flush())
}
