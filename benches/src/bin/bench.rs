//! The suite: `transom bench`, or `transom run -n 2 bench`; and what is no job's program: beside other MPIs, and between jobs.

#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

use clap::Parser;
use nix::sys::signal::Signal;
use transom_benches::suite::{self, Options, USAGE, interrupt, kept, rivals};

fn main() -> ExitCode {
    let options = Options::try_parse();
    let beside = options.as_ref().ok().filter(|options| options.beside.rivals.is_some());
    // What ends a rank is its launcher's business.
    let ends = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    if let Err(error) = interrupt::listen(if beside.is_some() { &ends } else { &ends[..1] }) {
        eprintln!("bench: noting Ctrl-C: {error}");
        return ExitCode::FAILURE;
    }
    if let Some(options) = beside {
        return ExitCode::from(rivals::run(options, &mut io::stdout()));
    }
    if let Ok(options @ Options { parts: Some(folder), .. }) = &options {
        return ExitCode::from(kept::between(options, folder, &mut io::stdout()));
    }
    let mut code = 0;
    let ended = transom::run(|job| {
        code = match &options {
            Ok(options) => {
                suite::run(job, options, &mut io::stdout()).map_err(|error| format!("{error:#}"))?
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
