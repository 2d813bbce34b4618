//! One-sided communication between two ranks, beside its limits: `transom run -n 2 rma-bench`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use transom_benches::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    transom::run(|job| {
        let output = transom_benches::run(job, &options).map_err(|e| format!("{e:#}"))?;
        print!("{output}");
        Ok::<(), String>(())
    })
}
