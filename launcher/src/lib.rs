//! The command `transom`: `run` starts the ranks of a job on one or several hosts, `bench` measures between them, `info` says what this host has, and
//! `doctor` tries what a job relies on.
//!
//! `transom run` starts one `transom agent` on each host (itself, by ssh, or by a batch system's command) and talks to it over the
//! agent's standard input and output: nothing listens on any port. An agent starts its host's ranks, answers
//! their PMI-1 requests, passes output up and signals down, and kills all of them when the launcher is gone.
//!
//! Follow a job in this order: [`cli`] (or [`mod@bench`]), [`hosts`] (or [`allocation`]), [`run`], [`frames`], [`agent`], [`exec_rank`].
#![forbid(unsafe_code)]

pub mod agent;
pub mod agree;
pub mod allocation;
pub mod bench;
pub mod cli;
pub mod config;
pub mod doctor;
pub mod exec_rank;
mod facts;
pub mod frames;
pub mod hang;
pub mod hosts;
pub mod info;
pub mod link;
pub mod liveness;
pub mod manual;
pub mod mpi;
pub mod nonblocking;
pub mod process;
pub mod program;
pub mod ranks;
mod room;
pub mod run;
pub mod slurm;
pub mod top;
pub mod tree;

use std::ffi::OsString;
use std::process::ExitCode;

/// Says something to the user. A closed standard error is no reason to fail (`eprintln!` would panic).
pub(crate) fn tell(message: &str) {
    say(&format!("transom: {message}\n"));
}

/// Writes to standard error.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The hidden commands come first: two are started once a host and once a rank, and must be quick.
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some("exec-rank") => exec_rank::main(&args[2..]),
        Some("stacks") => room::with_stack(|args| hang::stacks::child::main(&args[2..]), args),
        Some("agent") => room::with_stack(|args| agent::main(&args[2..]), args),
        _ => room::with_stack(cli::main, args),
    }
}
