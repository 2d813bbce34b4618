//! Rounds: of each group of measurements all libraries in turns, so that what changes in the machine meanwhile shows in each of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::catalogue::{Measurement, VISIBLE, is_of_suite};
use super::launch::Launch;
use super::library::{Library, RUST, TRANSOM};
use super::parse::{Line, Output, parse};
use super::process::{End, run};
use crate::report::Unit;
use crate::suite::files;
use crate::suite::interrupt;
use crate::suite::options::Options;
use crate::suite::progress::Progress;
use crate::suite::row::{Bound, Head, Row};
use crate::suite::samples::Round;

/// What the limits are called in messages.
const LIMITS: &str = "limits";
/// Samples of a round by the suite itself.
const OF_SUITE: &str = "20";
/// Groups whose operations flushes complete, and those that need no window.
const FLUSHED: [&str; 7] = ["latency", "bandwidth", "types", "rate", "passive", "overlap", "correctness"];
const NO_WINDOW: [&str; 10] = [
    "fence",
    "put-fence",
    "pscw",
    "barrier",
    "ping-pong",
    "message-exchange",
    "broadcast",
    "allreduce",
    "iallreduce",
    "all-to-all",
];

/// All that is to be measured, and what was.
#[derive(Debug)]
pub struct Rounds<'a> {
    /// As asked.
    pub options: &'a Options,
    /// Transom first.
    pub libraries: &'a [Library],
    /// How they are started.
    pub launch: &'a Launch,
    /// What is measured, each group in one piece.
    pub measurements: &'a [Measurement],
    /// Bytes of transfers.
    pub sizes: Vec<usize>,
    /// For outputs.
    pub folder: &'a Path,
    /// Rows with samples.
    pub rows: Vec<Row>,
    /// What libraries call themselves.
    pub versions: Vec<(String, String)>,
    /// Libraries and groups that failed.
    failed: HashSet<(String, &'static str)>,
    /// What is left out, for the end: until then there is a progress bar.
    notes: Vec<String>,
}

impl<'a> Rounds<'a> {
    /// Nothing measured yet.
    pub fn new(
        options: &'a Options,
        libraries: &'a [Library],
        launch: &'a Launch,
        measurements: &'a [Measurement],
        folder: &'a Path,
    ) -> Self {
        let sizes = match &options.sizes {
            Some(sizes) => sizes.0.clone(),
            None if options.quick => vec![8, 4096],
            None => vec![8, 4096, 65536, 1 << 20],
        };
        let (rows, versions) = (Vec::new(), Vec::new());
        let (failed, notes) = (HashSet::new(), Vec::new());
        Self { options, libraries, launch, measurements, sizes, folder, rows, versions, failed, notes }
    }

    /// Measures; gives whether all rounds came to their end.
    pub fn run(&mut self, rounds: u32) -> bool {
        let started = Instant::now();
        let groups: Vec<&[Measurement]> = self.measurements.chunk_by(|a, b| a.group == b.group).collect();
        let steps = rounds as usize * groups.len() * self.libraries.len();
        let mut progress = Progress::new(true, steps, 0);
        let mut complete = true;
        'all: for round in 0..rounds as usize {
            for group in &groups {
                for library in self.libraries {
                    progress.step(&format!("{} {}", library.name, group[0].group));
                    let is_over = self.options.time_limit.is_some_and(|limit| started.elapsed() > limit);
                    complete = !is_over && !interrupt::is_asked();
                    if !complete {
                        break 'all;
                    }
                    // Limits are those of the moment in which Transom is measured.
                    if library.name == TRANSOM {
                        self.by_suite(round, group, library);
                    }
                    self.measure(round, group, library);
                }
            }
        }
        drop(progress);
        self.notes.iter().for_each(|note| eprintln!("bench: {note}"));
        complete && !interrupt::is_asked()
    }

    /// Libraries of which something failed.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.failed.iter().map(|(library, _)| library.as_str()).filter(|name| *name != LIMITS)
    }

    fn measure(&mut self, round: usize, group: &[Measurement], library: &Library) {
        let key = (library.name.clone(), group[0].group);
        if self.failed.contains(&key) {
            return;
        }
        let mut command = self.launch.command(library, &library.program);
        command.arg(self.options.window.name()).arg(self.size_list());
        command.arg(if self.options.quick { "quick" } else { "full" });
        command.arg(self.options.burst.unwrap_or(0).to_string());
        command.args(group.iter().map(|one| one.name));
        let (output, why) = self.start(command, &library.program);
        for line in output.lines {
            self.add(round, library, line);
        }
        if let Some(name) =
            output.library.filter(|_| self.versions.iter().all(|(known, _)| *known != library.name))
        {
            self.versions.push((library.name.clone(), name));
        }
        for (name, why) in output.without {
            self.say(format!("{}: {name} is left out: {why}", library.name));
        }
        if let Some(why) = why {
            self.say(format!("{}: {} is left out from round {} on: {why}", library.name, key.1, round + 1));
            self.failed.insert(key);
        }
    }

    /// What a command wrote, and why it is not all, if it is not.
    fn start(&self, command: Command, program: &Path) -> (Output, Option<String>) {
        let folder = program.parent().unwrap_or(self.folder);
        let (text, end) = match run(command, folder, self.options.beside.rival_timeout) {
            Ok(ended) => ended,
            Err(why) => return (Output::default(), Some(why)),
        };
        match (parse(&text), end) {
            (Err(why), _) => (Output::default(), Some(why)),
            (Ok(output), End::Badly(why)) => (output, Some(why)),
            (Ok(output), End::Well) if !output.complete => (output, Some("its output has no end".into())),
            (Ok(output), _) => (output, None),
        }
    }

    fn size_list(&self) -> String {
        self.sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }

    /// Adds the samples of a round to their row.
    fn add(&mut self, round: usize, library: &Library, line: Line) {
        let Some(measurement) = self.measurements.iter().find(|one| one.name == line.name) else { return };
        let head = self.head(measurement, line.bytes, line.unit);
        let row = self.row(&library.name, head);
        // Rounds in which it failed have none.
        row.rounds.resize(round, Vec::new());
        row.means.resize(round, None);
        row.repeats = line.repeats;
        Round::new(line.samples, line.fairness).add_to(row);
        row.valid = line.data.map(|right| right && row.valid.unwrap_or(true)).or(row.valid);
    }

    /// The row of a library, made if there is none.
    fn row(&mut self, library: &str, head: Head) -> &mut Row {
        let is_it = |row: &Row| {
            row.library == library && (&row.head.name, row.head.bytes) == (&head.name, head.bytes)
        };
        let at = self.rows.iter().position(is_it).unwrap_or(self.rows.len());
        if at == self.rows.len() {
            self.rows.push(Row { library: library.into(), ..Row::new(head, None) });
        }
        &mut self.rows[at]
    }

    fn head(&self, measurement: &Measurement, bytes: usize, unit: Unit) -> Head {
        let window = if NO_WINDOW.contains(&measurement.name) { "" } else { self.options.window.name() };
        let sync = if FLUSHED.contains(&measurement.group) { "flush" } else { "" };
        let [name, group, window, sync] =
            [measurement.name, measurement.group, window, sync].map(str::to_owned);
        Head { name, group, window, sync, bytes, ranks: self.launch.ranks(), pair: None, unit }
    }

    /// Adds what the suite measures of the group, started as a job: limits, and the same operations called from Rust.
    fn by_suite(&mut self, round: usize, group: &[Measurement], library: &Library) {
        let names: Vec<&str> = group.iter().filter(|one| is_of_suite(one)).map(|one| one.name).collect();
        let key = (LIMITS.to_owned(), group[0].group);
        let bench = std::env::current_exe();
        let (false, false, Ok(bench)) = (names.is_empty(), self.failed.contains(&key), bench) else { return };
        let json = self.folder.join("limits.json");
        let mut command = self.launch.command(library, &bench);
        command.args(names).args([
            "--rounds",
            "1",
            "--iterations",
            OF_SUITE,
            "--warm-up",
            "1",
            "--csv",
            "--by-rank",
        ]);
        command
            .args(["--sizes", &self.size_list(), "--window", self.options.window.name(), "--json"])
            .arg(&json);
        if let Some(burst) = self.options.burst {
            command.args(["--burst", &burst.to_string()]);
        }
        let _ = std::fs::remove_file(&json);
        let ended = run(command, self.folder, self.options.beside.rival_timeout);
        let report = match ended {
            Ok((_, End::Interrupted)) => return,
            Ok((_, End::Badly(why))) | Err(why) => Err(why),
            Ok((_, End::Well)) => files::read(&json),
        };
        match report {
            Ok(report) => self.keep(round, report.rows),
            Err(why) => {
                self.say(format!("{LIMITS}: those of {} are left out: {why}", key.1));
                self.failed.insert(key);
            }
        }
    }

    /// Keeps limits as those of Transom's rows, and samples as those of Rust.
    fn keep(&mut self, round: usize, rows: Vec<Row>) {
        let ranks = self.launch.ranks();
        for mut measured in rows.into_iter().filter(|row| row.head.ranks == ranks) {
            let Some(measurement) = self.measurements.iter().find(|one| one.name == measured.head.name)
            else {
                continue;
            };
            let head = self.head(measurement, measured.head.bytes, measured.head.unit);
            if let Some(limit) = measured.limit.filter(|limit| !limit.times.is_empty()) {
                let row = self.row(TRANSOM, head.clone());
                let bound = row.limit.get_or_insert_with(|| Bound { name: limit.name, times: Vec::new() });
                bound.times.extend(limit.times);
            }
            let row = self.row(RUST, head);
            row.rounds.resize(round, Vec::new());
            row.rounds.append(&mut measured.rounds);
            row.means.resize(round, None);
            row.means.append(&mut measured.means);
            row.repeats = measured.repeats;
            row.taken += measured.taken;
            row.disturbed += measured.disturbed;
            row.mixed |= measured.mixed;
            row.valid = measured.valid.map(|right| right && row.valid.unwrap_or(true)).or(row.valid);
        }
    }

    /// Says something once.
    fn say(&mut self, what: String) {
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    /// The rows with samples: of each measurement and size one of each library.
    pub fn sorted(self) -> Vec<Row> {
        let place = |row: &Row| {
            let measurement = self.measurements.iter().position(|one| one.name == row.head.name);
            let library = self.libraries.iter().position(|one| one.name == row.library);
            // Rust is none of them, and stands behind Transom.
            (measurement, row.head.bytes, library.map_or(1, |at| 2 * at))
        };
        let mut rows: Vec<Row> = self.rows.iter().filter(|row| row.taken > 0).cloned().collect();
        rows.sort_by_key(place);
        rows
    }
}

/// Whether a row says which puts were found at the target.
pub fn is_of_visibility(row: &Row) -> bool {
    row.head.name == VISIBLE
}

/// Where a library's program is built.
pub fn sources(folder: &Path) -> PathBuf {
    folder.join("rivals")
}
