//! Running a program as ranks: arguments, errors and exit codes, each said once.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use transom::Job;

use crate::failure::Failure;

/// Exit code for arguments that make no sense.
const USAGE: u8 = 2;

/// Joins the job, parses the arguments and runs `body`. Rank 0 alone prints help, usage errors, and failures that all
/// ranks know of; all ranks exit with the same code.
pub fn main<A: Parser>(body: impl FnOnce(&Job, A) -> Result<(), Failure>) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut code = ExitCode::SUCCESS;
    let ended = transom::run(|job| {
        let first = job.rank() == 0;
        match A::try_parse_from(arguments) {
            Ok(arguments) => match body(job, arguments) {
                Err(Failure::Agreed(message)) => {
                    code = ExitCode::FAILURE;
                    if first {
                        eprintln!("{}: {message}", A::command().get_name());
                    }
                    Ok(())
                }
                result => result,
            },
            Err(error) => {
                code = if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
                if first {
                    // A reader that went away has seen what it wanted.
                    let _ = error.print();
                }
                Ok(())
            }
        }
    });
    if ended == ExitCode::SUCCESS { code } else { ended }
}
