//! The suite: `transom bench`, or `transom run -n 2 bench`.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

use clap::Parser;
use transom_benches::suite::{self, Options, USAGE, interrupt};

fn main() -> ExitCode {
    if let Err(error) = interrupt::listen() {
        eprintln!("bench: noting Ctrl-C: {error}");
        return ExitCode::FAILURE;
    }
    let mut code = 0;
    let ended = transom::run(|job| {
        code = match Options::try_parse() {
            Ok(options) => {
                suite::run(job, &options, &mut io::stdout()).map_err(|error| format!("{error:#}"))?
            }
            Err(error) => {
                if job.rank() == 0 {
                    // A reader that went away has seen what it wanted.
                    let _ = error.print();
                }
                if error.use_stderr() { USAGE } else { 0 }
            }
        };
        Ok::<(), String>(())
    });
    if ended == ExitCode::SUCCESS { ExitCode::from(code) } else { ended }
}
