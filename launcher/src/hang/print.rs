//! What people read: the jobs, and what the ranks of one wait for.

use std::collections::BTreeSet;
use std::time::Duration;

use transom::waits::{Subject, Wait};

use super::analysis::{Finding, Why};
use super::stacks::{Place, Unseen};
use super::verdict::{doing, names, ranges};
use super::{RankView, Report, State, Summary};
use crate::info::page::Page;

/// Longest command line in a table, in characters.
const PROGRAM: usize = 60;
/// Lines of a function that are named, of ranks that are at several.
const LINES: usize = 3;

/// `12.3 s`, `4 min 10 s`, `2 h 5 min`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..=99 => format!("{:.1} s", time.as_secs_f64()),
        100..=5999 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(PROGRAM) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The list of jobs.
pub fn jobs(jobs: &[Summary]) -> String {
    if jobs.is_empty() {
        return "no job of yours runs on this host\n".into();
    }
    let mut page = Page::new();
    let mut table = page.table();
    table.add_row(["job", "ranks", "hosts", "running", "program"]);
    for job in jobs {
        let hosts = match &job.hosts[..] {
            [first, _, ..] => format!("{first} and {} more", job.hosts.len() - 1),
            hosts => hosts.join(","),
        };
        table.add_row([
            job.job.to_string(),
            job.ranks.to_string(),
            hosts,
            time(job.age),
            short(&job.program),
        ]);
    }
    page.add(&table);
    page.text
}

/// Which job it is, in a line.
pub fn title(Summary { job, ranks, hosts, program, age }: &Summary) -> String {
    let many = if *ranks == 1 { "1 rank".into() } else { format!("{ranks} ranks") };
    let on = match hosts.len() {
        1 => String::new(),
        hosts => format!(" on {hosts} hosts"),
    };
    format!("job {job}: {many}{on} of {}, running for {}", short(program), time(*age))
}

/// Ranks that do the same.
struct Row {
    ranks: Vec<u32>,
    host: String,
    state: &'static str,
    longest: Duration,
    waits: String,
    /// Where ranks are that compute: each may be at a line of its own.
    place: Option<Place>,
    lines: BTreeSet<u32>,
}

impl Row {
    fn text(&self) -> String {
        let Some(place) = &self.place else { return self.waits.clone() };
        let place_text = place.text();
        let mut text = if self.waits == "-" { place_text } else { format!("{}, {place_text}", self.waits) };
        for line in self.lines.iter().filter(|line| Some(**line) != place.line).take(LINES - 1) {
            text += &format!(",{line}");
        }
        text + if self.lines.len() > LINES { ",…" } else { "" }
    }
}

/// What the ranks of a job wait for, and who is to blame.
pub fn report(report: &Report, finding: &Finding) -> String {
    let mut page = Page::new();
    page.heading(&title(&report.summary));
    let mut table = page.table();
    let rows = rows(&report.ranks, finding);
    let several = report.summary.hosts.len() > 1;
    let head = ["rank", "host", "process", "for", "waits for"];
    let shown = |cells: [String; 5]| {
        cells.into_iter().enumerate().filter(move |(i, _)| several || *i != 1).map(|(_, c)| c)
    };
    table.add_row(shown(head.map(String::from)));
    for row in rows {
        let longest = if row.longest.is_zero() { "-".into() } else { time(row.longest) };
        let waits = row.text();
        table.add_row(shown([ranges(&row.ranks), row.host, row.state.into(), longest, waits]));
    }
    page.add(&table);
    for host in &report.silent {
        page.paragraph(&format!("host {host} has not answered: its ranks are not in the table"));
    }
    let is_forbidden =
        |rank: &&RankView| rank.places.iter().any(|sight| sight.place == Err(Unseen::Forbidden));
    let unread: Vec<u32> = report.ranks.iter().filter(is_forbidden).map(|rank| rank.rank).collect();
    if !unread.is_empty() {
        page.paragraph(&format!("no lines of {}: the kernel forbids reading their stacks", names(&unread)));
    }
    verdicts(&mut page, report, finding);
    page.text
}

fn verdicts(page: &mut Page, report: &Report, finding: &Finding) {
    if finding.verdicts.is_empty() {
        page.heading(match report.ranks.iter().any(|rank| !rank.waits.is_empty()) {
            true => "No rank is known that could end this waiting.",
            false => "No rank waits in Transom.",
        });
        return;
    }
    page.heading("Who holds it up");
    let mut table = page.table();
    for verdict in &finding.verdicts {
        table.add_row([format!("{}\n-> {}", verdict.text, verdict.advice)]);
    }
    page.add(&table);
}

/// Rows, of which ranks that wait for the same share one.
fn rows(ranks: &[RankView], finding: &Finding) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for rank in ranks {
        let (state, waits) = (word(rank.state), waits(rank, finding));
        let longest = rank.waits.iter().map(|(_, waited)| *waited).max().unwrap_or_default();
        // Of calls that block it stands behind each.
        let place = rank.place().filter(|_| rank.waits.is_empty());
        let function = |place: &Place| (place.function.clone(), place.file.clone());
        let same = |row: &&mut Row| {
            (row.state, &row.waits, &row.host) == (state, &waits, &rank.host)
                && row.place.as_ref().map(function) == place.map(function)
        };
        let line = place.and_then(|place| place.line);
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.ranks.push(rank.rank);
                row.longest = row.longest.max(longest);
                row.lines.extend(line);
            }
            None => rows.push(Row {
                ranks: vec![rank.rank],
                host: rank.host.clone(),
                state,
                longest,
                waits,
                place: place.cloned(),
                lines: line.into_iter().collect(),
            }),
        }
    }
    rows
}

fn word(state: State) -> &'static str {
    match state {
        State::Runs => "runs",
        State::Sleeps => "sleeps",
        State::Stopped => "STOPPED",
        State::Ended => "ended",
    }
}

fn waits(rank: &RankView, finding: &Finding) -> String {
    if rank.joining {
        return "init: all ranks to join the job".into();
    }
    if rank.waits.is_empty() {
        return match rank.state {
            State::Stopped | State::Ended => "-".into(),
            _ => format!("nothing: {}", doing(rank)),
        };
    }
    let one = |wait: &Wait| {
        let at = match rank.sight_of(wait) {
            Some(Ok(place)) => format!(", {}", place.text()),
            Some(Err(Unseen::Runs)) => " (no line: it is running)".into(),
            Some(Err(Unseen::Forbidden)) | None => String::new(),
        };
        one(rank, wait, finding) + &at
    };
    let texts: Vec<String> = rank.waits.iter().map(|(wait, _)| one(wait)).collect();
    texts.join("\n")
}

fn one(rank: &RankView, wait: &Wait, finding: &Finding) -> String {
    if let Subject::Collective { context, sequence } = wait.subject
        && let Some(absent) = finding.absent.get(&(context, sequence))
    {
        let absent: Vec<u32> = absent.iter().copied().collect();
        return format!("{}: {} to come", wait.call, names(&absent));
    }
    let mut text = format!("{}: {}", wait.call, wait.what);
    if let (Subject::Lock { .. }, Some(on)) = (wait.subject, finding.on.get(&rank.rank)) {
        let ranks: Vec<u32> = on.keys().copied().collect();
        text += match on.values().next() {
            Some(Why::Holds) => ", held by ",
            Some(Why::Ahead) => ", behind ",
            Some(Why::Maybe) => ", maybe held by ",
            _ => ", granted by ",
        };
        text += &names(&ranks);
    }
    text
}
