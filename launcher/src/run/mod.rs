//! `transom run`: starts an agent on each host, and sees the job through to one exit code.

mod agents;
mod asked;
mod bindings;
mod ending;
mod events;
mod files;
mod job;
mod output;
pub(crate) mod plan;
mod report;
mod signals;
mod start;
mod stdin;

use std::fs::File;
use std::io;
use std::process::ExitCode;

use bytes::Bytes;
use tokio::sync::oneshot;
use transom_transport::limits;

use crate::cli::{RunArgs, USAGE};
use crate::frames::{Frame, ToLauncher};
use crate::hang::Question;
use crate::room;
use output::Places;

/// What the launcher's one loop hears of.
#[derive(Debug)]
pub enum Event {
    /// From the agent of that number.
    Agent(usize, Frame<ToLauncher>),
    /// The channel to an agent has ended, with the reason if it broke.
    AgentEof(usize, Option<io::Error>),
    /// A question of a command of the same user, and where the answer goes.
    Asked(Question, oneshot::Sender<String>),
    /// A signal for this process.
    Signal(i32),
    /// Some of this process's standard input.
    Stdin(Bytes),
    /// There is no more of it.
    StdinEof,
    /// Output of an agent's ranks was written: the agent's number, and the bytes of credit it gets back.
    Written(usize, u32),
    /// This process's standard output cannot be written any more.
    OutputClosed(io::Error),
    /// All output was written.
    WriterDone,
}

/// Runs a job.
pub fn main(args: RunArgs) -> ExitCode {
    let plan = match plan::Plan::new(&args) {
        Ok(plan) => plan,
        Err(message) => return refuse(&message),
    };
    if let Err(message) = room::for_files("this command", plan.branches.len() as u64) {
        return refuse(&message);
    }
    let files = args.output_dir.as_deref().map(|folder| files::Files::create(folder, plan.size));
    let files = match files.transpose() {
        Ok(files) => files,
        Err(message) => return refuse(&message),
    };
    let out = match args.stdout_file.as_deref().map(File::create).transpose() {
        Ok(out) => out,
        Err(error) => return refuse(&format!("a file for the ranks' output: {error}")),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&limits::no_process(&error, 1)),
    };
    let code = runtime.block_on(job::Job::run(args, plan, Places { files, out }));
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => refuse(&limits::no_process(&error, 2)),
    }
}

fn refuse(message: &str) -> ExitCode {
    crate::tell(message);
    ExitCode::from(USAGE)
}
