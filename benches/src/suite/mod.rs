//! The suite: measurements by name, in rounds, with all samples kept; tables, files, a page, comparisons and cost models.
//!
//! Follow a run in this order: [`options`], [`catalogue`], [`runner`], `measure`, [`samples`], [`row`]; then [`table`], [`html`],
//! [`compare`], [`model`]. [`rivals`] measures other MPIs beside, by a program of its own, and uses all that comes after [`row`].

pub mod catalogue;
pub mod compare;
pub mod files;
pub mod html;
pub mod interrupt;
pub mod kept;
pub mod measure;
pub mod model;
pub mod options;
mod output;
mod place;
mod progress;
mod request;
pub mod rivals;
pub mod row;
pub mod runner;
pub mod samples;
pub mod sizes;
pub mod stage;
pub mod statistics;
pub mod table;

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use transom::Job;

use crate::machine;
use kept::Part;
pub use options::Options;
use output::Outputs;
use request::Request;
use row::{Machine, Report};
use stage::Stage;

/// Exit code when it could not be measured, read or written as asked.
pub const USAGE: u8 = 2;
/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Carries out what is asked for, and gives the exit code, the same at all ranks; rank 0 prints to `out`. Collective.
///
/// # Errors
/// The runtime's, which other ranks need not know of.
pub fn run(job: &Job, options: &Options, out: &mut impl io::Write) -> anyhow::Result<u8> {
    let first = job.rank() == 0;
    if options.list {
        if first {
            // A reader that went away has seen what it wanted.
            let _ = write!(out, "{}", catalogue::list());
        }
        return Ok(0);
    }
    let prepared = Request::new(job, options).and_then(|request| {
        let is_written = first && options.part.is_none();
        Ok((request, if is_written { Some(Outputs::new(options)?) } else { None }))
    });
    let (request, mut outputs) = match agreed(job, prepared)? {
        Some(prepared) => prepared,
        None => return Ok(USAGE),
    };
    let report = match &options.from {
        Some(_) => outputs.as_mut().and_then(|outputs| outputs.from.take()),
        None => Some(measure(job, options, &request)?).filter(|_| first),
    };
    let code = match (outputs, report) {
        (Some(outputs), Some(report)) => outputs.write(options, &report, out),
        (None, Some(report)) => kept::hand_over(&report, out),
        _ => 0,
    };
    let mut code = [if interrupt::is_asked() { INTERRUPTED } else { code }];
    job.broadcast(0, &mut code)?;
    Ok(code[0])
}

/// What each rank has, if none was refused; else rank 0 says why the first was, once. Collective.
fn agreed<T>(job: &Job, own: Result<T, String>) -> anyhow::Result<Option<T>> {
    let refusal = own.as_ref().err().map_or("", String::as_str);
    let refusals = job.allgather(refusal.as_bytes())?;
    let Some(rank) = refusals.iter().position(|refusal| !refusal.is_empty()) else { return Ok(own.ok()) };
    if job.rank() == 0 {
        let place = if rank == 0 { String::new() } else { format!(" (on rank {rank})") };
        eprintln!("bench: {}{place}", String::from_utf8_lossy(&refusals[rank]));
    }
    Ok(None)
}

/// Measures. Collective; the report is rank 0's.
fn measure(job: &Job, options: &Options, request: &Request) -> anyhow::Result<Report> {
    if !options.unbound {
        machine::bind(job.rank(), options.by_rank)
            .map_err(|error| anyhow::anyhow!("binding to a core (--unbound does without): {error}"))?;
    }
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let start = Instant::now();
    let mut stage = Stage::new(job, options, request.extent)?;
    let part = Part::new(options);
    let outcome = runner::run(&mut stage, &request.entries, &request.hosts, &part)?;
    stage.end()?;
    Ok(Report {
        format: files::FORMAT.into(),
        version: files::VERSION,
        began,
        seconds: start.elapsed().as_secs_f64(),
        complete: outcome.complete,
        starts: 1,
        machine: describe(job, request.hosts.clone()),
        settings: settings(options, request),
        rows: outcome.rows,
    })
}

fn describe(job: &Job, hosts: Vec<String>) -> Machine {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (transport, below) = job.transport(1).unwrap_or(("none", ""));
    Machine {
        cpu: machine::model(),
        kernel: format!("Linux {}", kernel.trim()),
        hosts,
        transport: format!("{transport}: {below}"),
        cores: machine::cores(),
    }
}

fn settings(options: &Options, request: &Request) -> BTreeMap<String, String> {
    let names = if options.names.is_empty() { "all".to_owned() } else { options.names.join(" ") };
    let own = [
        ("measurements", names),
        ("window", options.window.name().to_owned()),
        ("window bytes", sizes::show(request.extent.window)),
        ("sync", options.sync.name().to_owned()),
        ("rounds", options.rounds().to_string()),
        ("jobs", if options.part.is_some() { "one a round" } else { "one" }.to_owned()),
        ("warm-up", options.warm_up.to_string()),
        ("cache", format!("{:?}", options.cache).to_lowercase()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    // What the runtime was told decides as much as what this program was.
    let of_runtime = |name: &str| transom::settings::SETTINGS.iter().any(|setting| setting.name == name);
    own.chain(std::env::vars().filter(|(name, _)| of_runtime(name))).collect()
}
