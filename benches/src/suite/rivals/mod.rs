//! Other MPIs beside Transom: the same measurements, by one program in C, in turns.
//!
//! Follow a run in this order: `options`, `catalogue`, `library`, `launch`, `rounds`, `parse`; then [`table`].

mod catalogue;
pub mod figure;
mod launch;
mod library;
mod options;
mod parse;
mod process;
mod rounds;
pub mod table;

use std::io::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use options::Choice;

use super::options::Options;
use super::output::Outputs;
use super::row::{Machine, Report};
use super::{INTERRUPTED, USAGE, files, interrupt};
use crate::kind::Kind;
use crate::machine;
use crate::operation::Sync;
use figure::Figure;
use launch::Launch;
use library::Library;
pub use library::{RUST, TRANSOM};
use process::End;
use rounds::Rounds;

/// Rounds, unless the user says: each starts every library.
const ROUNDS: u32 = 7;
/// The most sizes that the program takes.
const SIZES: usize = 32;

/// Measures what is asked for, prints to `out`, and gives the exit code.
pub fn run(options: &Options, out: &mut impl Write) -> u8 {
    if options.list {
        // A reader that went away has seen what it wanted.
        let _ = write!(out, "{}", catalogue::list());
        return 0;
    }
    match measure(options) {
        Ok((outputs, report, failed)) => {
            let code = outputs.write(options, &report, out);
            match code {
                _ if interrupt::is_asked() => INTERRUPTED,
                // What was not measured as asked.
                0 if failed => USAGE,
                code => code,
            }
        }
        Err(_) if interrupt::is_asked() => {
            eprintln!("bench: ended before anything was measured");
            INTERRUPTED
        }
        Err(why) => {
            eprintln!("bench: {why}");
            USAGE
        }
    }
}

/// What came of it, and whether something failed.
fn measure(options: &Options) -> Result<(Outputs, Report, bool), String> {
    if std::env::var_os("TRANSOM_LOCAL_SIZE").is_some() {
        return Err("--rivals starts jobs itself, and is no job's program: transom bench --rivals DIR".into());
    }
    let words = options.beside.rivals.as_deref().unwrap_or_default();
    let (folders, mut names) = options::split(words);
    names.extend(options.names.iter().cloned());
    let measurements = catalogue::select(&names, options.beside.ranks as usize)?;
    if !matches!(options.window, Kind::Allocated | Kind::Created) || options.sync != Sync::Flush {
        return Err(
            "--rivals measures allocated and created windows, by flushes: no other --window, no --sync"
                .into(),
        );
    }
    if options.sizes.as_ref().is_some_and(|sizes| sizes.0.len() > SIZES) {
        return Err(format!("--rivals takes at most {SIZES} sizes"));
    }
    let rivals = library::find(&folders)?;
    let transom = library::transom(options.beside.transom.as_deref())?;
    let outputs = Outputs::new(options)?;
    let folder = tempfile::Builder::new().prefix("transom-rivals-").tempdir();
    let folder =
        folder.map_err(|error| format!("making a folder in {}: {error}", std::env::temp_dir().display()))?;
    let launch = Launch::new(&options.beside, folder.path())?;
    let (libraries, left_out) = build(transom, rivals, &launch, options, folder.path())?;
    let count = options.rounds.unwrap_or(if options.quick { 2 } else { ROUNDS });
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let start = Instant::now();
    let mut rounds = Rounds::new(options, &libraries, &launch, &measurements, folder.path());
    let complete = rounds.run(count);
    let failed = left_out || rounds.failures().next().is_some();
    let mut settings = settings(options, &names, &launch, count);
    settings.extend(rounds.versions.iter().cloned());
    let rows = rounds.sorted();
    if rows.is_empty() {
        return Err("nothing was measured".into());
    }
    let report = Report {
        format: files::FORMAT.into(),
        version: files::VERSION,
        began,
        seconds: start.elapsed().as_secs_f64(),
        complete,
        // Each round starts each library anew.
        starts: count,
        machine: describe(&launch),
        settings,
        rows,
    };
    Ok((outputs, report, failed))
}

/// The program for each of them. Of rivals that cannot be measured is said why; gives whether one should have been.
fn build(
    mut transom: Library,
    rivals: Vec<Library>,
    launch: &Launch,
    options: &Options,
    folder: &std::path::Path,
) -> Result<(Vec<Library>, bool), String> {
    let sources = rounds::sources(folder);
    std::fs::create_dir_all(&sources).map_err(|error| format!("writing {}: {error}", sources.display()))?;
    library::write_sources(&sources)?;
    transom.build(&sources, None).map_err(|end| match end {
        End::Badly(why) => format!("{TRANSOM}: the program in C is not built: {why}"),
        End::Well | End::Interrupted => "interrupted".into(),
    })?;
    let shared = transom.program.clone();
    let mut libraries = vec![transom];
    let mut left_out = false;
    for mut rival in rivals {
        if let Some(why) = launch.refuses(&rival, options.window.name()) {
            eprintln!("bench: {} is left out: {why}", rival.name);
            continue;
        }
        match rival.build(&sources, Some(&shared)) {
            Ok(()) => libraries.push(rival),
            Err(End::Badly(why)) => {
                eprintln!("bench: {} is left out: {why}", rival.name);
                left_out = true;
            }
            Err(_) => return Err("interrupted".into()),
        }
    }
    match libraries.len() {
        1 if left_out => Err("no rival is left to measure".into()),
        _ => Ok((libraries, left_out)),
    }
}

fn describe(launch: &Launch) -> Machine {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let own = || nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
    Machine {
        cpu: machine::model(),
        kernel: format!("Linux {}", kernel.trim()),
        hosts: launch.hosts().map_or_else(|| vec![own(); launch.ranks()], |hosts| hosts.to_vec()),
        transport: launch.network().name().into(),
        cores: machine::cores(),
    }
}

fn settings(
    options: &Options,
    names: &[String],
    launch: &Launch,
    rounds: u32,
) -> std::collections::BTreeMap<String, String> {
    let names = if names.is_empty() { "all".to_owned() } else { names.join(" ") };
    [
        ("measurements", names),
        ("window", options.window.name().to_owned()),
        ("sync", Sync::Flush.name().to_owned()),
        ("rounds", rounds.to_string()),
        ("ranks", launch.ranks().to_string()),
        ("network", launch.network().name().to_owned()),
        (figure::SETTING, Figure::chosen(options.beside.mean).name().to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
