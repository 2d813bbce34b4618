//! Runs of which each round is a job of its own: what is kept from job to job.
//!
//! Some operations take a fifth longer in one process than in the next, for all of its life: where code and memory came to lie decides.
//! Rounds of one process do not show that. So `transom bench` starts a job for each round, on whatever hosts: rank 0 of each writes its
//! report to standard output, which the launcher puts into a file here. Between the jobs this program, which is none then, adds that to what
//! is kept and leaves the options of the next job; when all is measured it writes the figures.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::catalogue::{self, select};
use super::files::{self, Pending};
use super::options::Options;
use super::output::Outputs;
use super::row::{Report, Row};
use super::{INTERRUPTED, USAGE, interrupt};

/// In the folder of a run: all that was measured, what the last job wrote, and the options of the next.
const KEPT: &str = "kept.json";
const PART: &str = "part.json";
const NEXT: &str = "next";

/// Which rounds this job measures, and in what time.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The rounds.
    pub rounds: Range<u32>,
    /// What is left of the time limit.
    pub time: Option<Duration>,
}

/// Between two jobs, in no job: leaves the options of the next, or writes all that was measured to `out`. Gives the exit code.
pub fn between(options: &Options, folder: &Path, out: &mut impl io::Write) -> u8 {
    if options.list {
        // A reader that went away has seen what it wanted.
        let _ = write!(out, "{}", catalogue::list());
        return 0;
    }
    match step(options, folder) {
        Ok(Some((outputs, report))) => match outputs.write(options, &report, out) {
            _ if interrupt::is_asked() => INTERRUPTED,
            code => code,
        },
        Ok(None) if interrupt::is_asked() => INTERRUPTED,
        Ok(None) => 0,
        Err(why) => {
            eprintln!("bench: {why}");
            USAGE
        }
    }
}

/// What is to be written, if no job is to follow.
fn step(options: &Options, folder: &Path) -> Result<Option<(Outputs, Report)>, String> {
    options.extent(&select(&options.names)?)?;
    let [kept, part, next] = [KEPT, PART, NEXT].map(|name| folder.join(name));
    // Whoever finds none starts no job.
    match fs::remove_file(&next) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!("removing {}: {error}", next.display()));
        }
        _ => {}
    }
    if options.from.is_some() {
        let mut outputs = Outputs::new(options)?;
        return Ok(outputs.from.take().map(|report| (outputs, report)));
    }
    let is_something = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let read = |path: &Path| is_something(path).then(|| files::read(path)).transpose();
    let mut report = match (read(&kept)?, read(&part)?) {
        (Some(kept), Some(part)) => Some(kept.and(part)),
        (None, one) | (one, None) => one,
    };
    let goes_on = |report: &Report| report.starts < options.rounds() && report.complete;
    let is_over = options.over || interrupt::is_asked() || !report.as_ref().is_none_or(goes_on);
    if is_over {
        let Some(mut report) = report.take() else { return Ok(None) };
        report.complete &= report.starts >= options.rounds();
        return Ok(Some((Outputs::new(options)?, report)));
    }
    let (starts, seconds) = report.as_ref().map_or((0, 0.0), |report| (report.starts, report.seconds));
    match &report {
        // Before anything is measured: whether all can be read and written.
        None => drop(Outputs::new(options)?),
        Some(report) => {
            let text = serde_json::to_string(report).map_err(|error| error.to_string())?;
            Pending::new(&kept)?.write(&text)?;
            fs::remove_file(&part).map_err(|error| format!("removing {}: {error}", part.display()))?;
        }
    }
    let written = fs::write(&next, format!("--part\n{starts}\n--spent\n{seconds}\n"));
    written.map_err(|error| format!("writing {}: {error}", next.display()))?;
    Ok(None)
}

/// What a job of one round writes, for [`between`]. Gives the exit code.
pub fn hand_over(report: &Report, out: &mut impl io::Write) -> u8 {
    let written = serde_json::to_string(report).map_err(io::Error::from);
    match written.and_then(|text| writeln!(out, "{text}")).and_then(|()| out.flush()) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("bench: handing over what was measured: {error}");
            USAGE
        }
    }
}

impl Part {
    /// All rounds, or the one that this job is for.
    pub fn new(options: &Options) -> Self {
        let all = options.rounds();
        let rounds = options.part.map_or(0..all, |part| part.min(all)..part.saturating_add(1).min(all));
        let spent = Duration::try_from_secs_f64(options.spent).unwrap_or(Duration::MAX);
        Self { rounds, time: options.time_limit.map(|limit| limit.saturating_sub(spent)) }
    }
}

impl Report {
    /// With what a later job of the same run measured.
    pub fn and(mut self, later: Self) -> Self {
        for row in later.rows {
            match self.rows.iter_mut().find(|own| own.key() == row.key()) {
                Some(own) => own.append(row),
                None => self.rows.push(row),
            }
        }
        self.seconds += later.seconds;
        self.starts += later.starts;
        self.complete &= later.complete;
        self
    }
}

impl Row {
    fn append(&mut self, later: Self) {
        self.rounds.extend(later.rounds);
        self.means.extend(later.means);
        self.repeats = later.repeats;
        self.taken += later.taken;
        self.disturbed += later.disturbed;
        self.mixed |= later.mixed;
        if let (Some(own), Some(limit)) = (&mut self.limit, later.limit) {
            own.times.extend(limit.times);
        }
        self.fairness.extend(later.fairness);
        self.valid = later.valid.map(|right| right && self.valid.unwrap_or(true)).or(self.valid);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::suite::files::tests::{report, row};

    #[test]
    fn round_by_round() {
        let of = |bytes, time: f64| row(bytes, vec![vec![time]]);
        let first = report(vec![of(8, 1.0), of(64, 2.0)]);
        let mut wrong = of(8, 3.0);
        wrong.valid = Some(false);
        let both = first.and(report(vec![wrong, of(4096, 4.0)]));
        assert_eq!(both.rows.iter().map(|row| row.rounds.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!((both.rows[0].valid, both.rows[0].taken, both.starts), (Some(false), 2, 20));
        assert_eq!(both.rows[0].limit.as_ref().unwrap().times.len(), 2);
    }

    #[test]
    fn one_round_a_job() {
        let part = |more: &[&str]| {
            let words = [&["bench", "--rounds", "3", "--time-limit", "5"], more].concat();
            Part::new(&Options::parse_from(words))
        };
        assert_eq!(part(&[]), Part { rounds: 0..3, time: Some(Duration::from_secs(5)) });
        let second = part(&["--part", "1", "--spent", "4"]);
        assert_eq!(second, Part { rounds: 1..2, time: Some(Duration::from_secs(1)) });
        assert_eq!(part(&["--part", "2", "--spent", "9"]).time, Some(Duration::ZERO));
    }

    /// A run of two rounds, each by a job that writes what the test has it write.
    struct Run(tempfile::TempDir);

    impl Run {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn between(&self, more: &[&str]) -> (u8, String) {
            let folder = self.0.path().to_str().unwrap();
            let words =
                [&["bench", "put-latency", "--rounds", "2", "--csv", "--parts", folder], more].concat();
            let mut out = Vec::new();
            let code = between(&Options::parse_from(words), self.0.path(), &mut out);
            (code, String::from_utf8(out).unwrap())
        }

        fn next(&self) -> Option<Vec<String>> {
            let text = fs::read_to_string(self.0.path().join(NEXT)).ok()?;
            Some(text.lines().map(str::to_owned).collect())
        }

        fn job(&self, complete: bool, time: f64) {
            let report = Report { starts: 1, complete, ..report(vec![row(8, vec![vec![time]])]) };
            let mut file = fs::File::create(self.0.path().join(PART)).unwrap();
            assert_eq!(hand_over(&report, &mut file), 0);
        }
    }

    #[test]
    fn jobs_follow_until_all_rounds_are_measured() {
        let run = Run::new();
        assert_eq!(run.between(&[]), (0, String::new()));
        assert_eq!(run.next().unwrap(), ["--part", "0", "--spent", "0"]);
        run.job(true, 10.0);
        assert_eq!(run.between(&[]), (0, String::new()));
        assert_eq!(run.next().unwrap(), ["--part", "1", "--spent", "2"]);
        run.job(true, 30.0);
        let json = run.0.path().join("new.json");
        let (code, text) = run.between(&["--json", json.to_str().unwrap()]);
        assert!(code == 0 && text.contains("put-latency"), "{code} {text}");
        let report = files::read(&json).unwrap();
        assert!(report.complete && report.starts == 2 && run.next().is_none());
        assert_eq!(report.rows[0].rounds, [[10.0], [30.0]]);
    }

    #[test]
    fn what_was_measured_until_the_end_is_told() {
        let run = Run::new();
        // A job that measured nothing.
        assert_eq!(run.between(&["--over"]), (0, String::new()));
        run.job(false, 10.0);
        let json = run.0.path().join("new.json");
        let (code, text) = run.between(&["--json", json.to_str().unwrap()]);
        assert!(code == 0 && text.contains("put-latency") && run.next().is_none(), "{code} {text}");
        assert!(!files::read(&json).unwrap().complete);
    }

    #[test]
    fn nothing_is_started_that_cannot_be_kept() {
        let run = Run::new();
        for wrong in [&["--json", "/nonexistent/a.json"][..], &["--compare", "/nonexistent/b"], &["nonsense"]]
        {
            assert_eq!((run.between(wrong).0, run.next()), (USAGE, None), "{wrong:?}");
        }
        fs::write(run.0.path().join(PART), "something else").unwrap();
        assert_eq!((run.between(&[]).0, run.next()), (USAGE, None));
    }
}
