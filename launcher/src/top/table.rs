//! The page that people read.

use std::collections::BTreeMap;
use std::time::Duration;

use super::rates::{Rate, Rates};
use crate::cli::{Sort, TopArgs};
use crate::hang::print::{time, title};
use crate::hang::verdict::ranges;
use crate::hang::{RankView, Report, State};
use crate::info::page::Page;

/// Jobs of more ranks have a line for each host, unless lines of ranks are asked for.
const FEW: usize = 16;

/// Ranks in a line: those of a host, or one.
#[derive(Debug, Default)]
struct Line {
    ranks: Vec<u32>,
    host: String,
    /// How many are in which state, the more unusual first.
    states: BTreeMap<What, usize>,
    longest: Duration,
    cpu: Option<f64>,
    memory: u64,
    rate: Option<Rate>,
}

/// What a rank does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Stopped,
    Ended,
    Starts,
    Waits(String),
    Sleeps,
    Runs,
    Done,
}

impl What {
    fn of(rank: &RankView) -> Self {
        match rank.state {
            State::Stopped => Self::Stopped,
            State::Ended => Self::Ended,
            _ if rank.joining => Self::Starts,
            _ if rank.left => Self::Done,
            _ if !rank.waits.is_empty() => Self::Waits(
                rank.waits.iter().map(|(wait, _)| wait.call.as_str()).collect::<Vec<_>>().join(", "),
            ),
            State::Sleeps => Self::Sleeps,
            State::Runs => Self::Runs,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Stopped => "STOPPED".into(),
            Self::Ended => "ended".into(),
            Self::Starts => "joins the job".into(),
            Self::Waits(calls) => format!("waits in {calls}"),
            Self::Sleeps => "sleeps".into(),
            Self::Runs => "runs".into(),
            Self::Done => "has left the job".into(),
        }
    }
}

/// The whole page.
pub fn page(report: &Report, rates: &Rates, args: &TopArgs) -> String {
    let mut page = Page::new();
    page.heading(&title(&report.summary));
    let per_rank = args.ranks || report.ranks.len() <= FEW;
    let mut lines = lines(report, rates, per_rank);
    sort(&mut lines, args.sort);
    add_lines(&mut page, &lines, per_rank, report.summary.hosts.len() > 1);
    for host in &report.silent {
        page.paragraph(&format!("host {host} has not answered: its ranks are not in the table"));
    }
    add_paths(&mut page, report, rates);
    page.text
}

fn lines(report: &Report, rates: &Rates, per_rank: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for rank in &report.ranks {
        let known = if per_rank { None } else { lines.iter().position(|line| line.host == rank.host) };
        let index = known.unwrap_or(lines.len());
        if known.is_none() {
            lines.push(Line { host: rank.host.clone(), ..Line::default() });
        }
        let line = &mut lines[index];
        line.ranks.push(rank.rank);
        *line.states.entry(What::of(rank)).or_default() += 1;
        line.longest =
            rank.waits.iter().map(|(_, waited)| *waited).max().unwrap_or_default().max(line.longest);
        line.memory = line.memory.saturating_add(rank.load.resident);
        if let Some(rates) = rates.of(rank.rank) {
            *line.cpu.get_or_insert(0.0) += rates.cpu;
            if let Some(rate) = rates.total() {
                line.rate.get_or_insert_default().add(rate);
            }
        }
    }
    lines
}

fn sort(lines: &mut [Line], by: Sort) {
    let rate = |line: &Line| line.rate.map_or((-1.0, -1.0), |rate| (rate.bytes, rate.operations));
    // Each is stable, so that equal ones stay in the order of ranks.
    match by {
        Sort::Rank => {}
        Sort::Cpu => lines.sort_by(|a, b| b.cpu.unwrap_or(-1.0).total_cmp(&a.cpu.unwrap_or(-1.0))),
        Sort::Memory => lines.sort_by_key(|line| std::cmp::Reverse(line.memory)),
        Sort::Rate => lines.sort_by(|a, b| {
            let (a, b) = (rate(a), rate(b));
            b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
        }),
        Sort::Wait => lines.sort_by_key(|line| std::cmp::Reverse(line.longest)),
    }
}

fn add_lines(page: &mut Page, lines: &[Line], per_rank: bool, hosts: bool) {
    let mut table = page.table();
    let ranks = if per_rank { "rank" } else { "ranks" };
    let counted = lines.iter().any(|line| line.rate.is_some());
    let head = ["host", ranks, "cpu", "memory", "op/s", "B/s", "for", "state"].map(String::from);
    let shown = |cells: [String; 8]| {
        let wanted = move |index: usize| match index {
            0 => hosts || !per_rank,
            4 | 5 => counted,
            _ => true,
        };
        cells.into_iter().enumerate().filter(move |(index, _)| wanted(*index)).map(|(_, cell)| cell)
    };
    table.add_row(shown(head));
    for line in lines {
        let states = line.states.iter().map(|(what, count)| match per_rank {
            true => what.text(),
            false => format!("{count} {}", several(what, *count)),
        });
        let dash = || "-".to_owned();
        table.add_row(shown([
            line.host.clone(),
            ranges(&line.ranks),
            line.cpu.map_or_else(dash, |cpu| format!("{:.0} %", cpu * 100.0)),
            with_unit(line.memory as f64, "B"),
            line.rate.map_or_else(dash, |rate| with_unit(rate.operations, "")),
            line.rate.map_or_else(dash, |rate| with_unit(rate.bytes, "")),
            if line.longest.is_zero() { dash() } else { time(line.longest) },
            states.collect::<Vec<_>>().join(", "),
        ]));
    }
    page.add(&table);
}

/// The same for several ranks.
fn several(what: &What, count: usize) -> String {
    match what {
        _ if count == 1 => what.text(),
        What::Starts => "join the job".into(),
        What::Waits(calls) => format!("wait in {calls}"),
        What::Sleeps => "sleep".into(),
        What::Runs => "run".into(),
        What::Done => "have left the job".into(),
        What::Stopped | What::Ended => what.text(),
    }
}

/// Operations by path, of all ranks; or why there are none.
fn add_paths(page: &mut Page, report: &Report, rates: &Rates) {
    let mut ways: BTreeMap<&str, usize> = BTreeMap::new();
    for way in report.ranks.iter().flat_map(|rank| &rank.load.ways) {
        *ways.entry(&way.transport).or_default() += 1;
    }
    let count = |ranks: usize| if ranks == 1 { "1 rank".to_owned() } else { format!("{ranks} ranks") };
    let ways: Vec<String> = ways.iter().map(|(name, ranks)| format!("{name} at {}", count(*ranks))).collect();
    page.heading(&match ways.is_empty() {
        true => "Operations".to_owned(),
        false => format!("Operations (transports: {})", ways.join(", ")),
    });
    if !report.ranks.iter().any(|rank| rank.load.traffic.is_some()) {
        page.paragraph(match report.ranks.iter().any(|rank| rank.joined) {
            true => "not counted: start the job with TRANSOM_EXPLAIN=count, or make windows with the hint transom_explain=true",
            false => "no rank has joined a job of Transom's",
        });
        return;
    }
    let mut sums: BTreeMap<&str, (Rate, [u64; 2])> = BTreeMap::new();
    for rank in &report.ranks {
        let now = rates.of(rank.rank).and_then(|rates| rates.paths.as_ref());
        for traffic in rank.load.traffic.iter().flatten() {
            let (rate, [operations, bytes]) = sums.entry(&traffic.path).or_default();
            rate.add(now.and_then(|paths| paths.get(&traffic.path)).copied().unwrap_or_default());
            *operations = operations.saturating_add(traffic.operations);
            *bytes = bytes.saturating_add(traffic.bytes);
        }
    }
    if sums.is_empty() {
        page.paragraph("none so far on the windows that are counted");
        return;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, (a, _)), (_, (b, _))| {
        b.bytes.total_cmp(&a.bytes).then(b.operations.total_cmp(&a.operations))
    });
    let mut table = page.table();
    table.add_row(["path", "op/s", "B/s", "operations", "bytes"]);
    for (path, (rate, [operations, bytes])) in sums {
        let [a, b, c, d] =
            [rate.operations, rate.bytes, operations as f64, bytes as f64].map(|value| with_unit(value, ""));
        table.add_row([path, &a, &b, &c, &d]);
    }
    page.add(&table);
}

/// Three digits: `0`, `12.3 k`, `1.00 GB`.
fn with_unit(value: f64, unit: &str) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let mut scaled = value;
    let mut prefix = 0;
    while scaled >= 999.5 && prefix + 1 < PREFIXES.len() {
        scaled /= 1000.0;
        prefix += 1;
    }
    let digits = match scaled {
        _ if scaled == scaled.trunc() && prefix == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {}{unit}", PREFIXES[prefix]).trim_end().to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use transom::waits::{Subject, Traffic, Wait};

    use super::*;
    use crate::hang::{Load, Summary};

    pub fn rank(rank: u32, host: &str, at_ms: u64, cpu_ms: u64) -> RankView {
        let [at, cpu] = [at_ms, cpu_ms].map(Duration::from_millis);
        RankView {
            rank,
            host: host.into(),
            pid: 100,
            state: State::Runs,
            sleeps_in: None,
            joined: true,
            answered: true,
            left: false,
            joining: false,
            held: Vec::new(),
            waits: Vec::new(),
            places: Vec::new(),
            load: Load { at, cpu, resident: 12_300_000, ..Load::default() },
        }
    }

    pub fn counted(counts: &[(&str, u64, u64)]) -> Option<Vec<Traffic>> {
        let traffic = |(path, operations, bytes): &(&str, u64, u64)| Traffic {
            path: (*path).into(),
            operations: *operations,
            bytes: *bytes,
        };
        Some(counts.iter().map(traffic).collect())
    }

    pub fn report(ranks: Vec<RankView>) -> Report {
        let mut hosts: Vec<String> = ranks.iter().map(|rank| rank.host.clone()).collect();
        hosts.dedup();
        let age = Duration::from_secs(60);
        let count = ranks.len() as u32;
        let summary = Summary { job: 7, ranks: count, hosts, program: "./heat \"a\\b\"".into(), age };
        Report { summary, ranks, silent: Vec::new() }
    }

    fn args(sort: Sort) -> TopArgs {
        TopArgs { job: None, once: true, ranks: false, sort, metrics: false }
    }

    fn waiting(mut rank: RankView) -> RankView {
        let wait = Wait {
            thread: 1,
            call: "fence".into(),
            what: "others".into(),
            since_ms: 0,
            on: Vec::new(),
            subject: Subject::Other,
        };
        rank.waits.push((wait, Duration::from_secs(3)));
        rank
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [(0.0, "0"), (7.0, "7"), (7.25, "7.25"), (999.4, "999"), (999.6, "1.00 k")] {
            assert_eq!(with_unit(value, ""), text);
        }
        assert_eq!(with_unit(12_345_678.0, "B"), "12.3 MB");
        assert!(with_unit(f64::MAX, "B").len() > 3);
    }

    #[test]
    fn many_ranks_are_summed_by_host_and_few_are_not() {
        let at = |ms| {
            let ranks = (0..40).map(|number| {
                let mut rank = rank(number, if number < 20 { "a" } else { "b" }, ms, ms / 2);
                rank.load.traffic = counted(&[("direct", ms, 8 * ms)]);
                if number == 3 { waiting(rank) } else { rank }
            });
            report(ranks.collect())
        };
        let rates = Rates::between(&at(1000), &at(2000));
        let text = page(&at(2000), &rates, &args(Sort::Rank));
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines[1],
            "host ranks cpu memory op/s B/s for state".split(' ').collect::<Vec<_>>(),
            "{text}"
        );
        assert!(
            lines[2]
                .join(" ")
                .starts_with("a 0-19 1000 % 246 MB 20.0 k 160 k 3.0 s 1 waits in fence, 19 run"),
            "{text}"
        );
        assert!(lines[3].join(" ").starts_with("b 20-39 1000 %"), "{text}");
        assert!(text.contains("direct  40.0 k  320 k  80.0 k"), "{text}");
        let few = report(at(2000).ranks.into_iter().take(2).collect());
        let text = page(&few, &rates, &args(Sort::Rank));
        assert!(text.contains("rank  cpu"), "{text}");
    }

    #[test]
    fn what_is_sorted_by_stands_first() {
        let (mut one, mut two) = (rank(0, "a", 1000, 10), waiting(rank(1, "a", 1000, 500)));
        one.load.resident = 20_000_000;
        one.state = State::Stopped;
        two.load.traffic = counted(&[("tcp", 5, 5)]);
        let before = report(vec![rank(0, "a", 0, 0), rank(1, "a", 0, 0)]);
        let now = report(vec![one, two]);
        let rates = Rates::between(&before, &now);
        for (sort, first) in
            [(Sort::Rank, "0"), (Sort::Cpu, "1"), (Sort::Memory, "0"), (Sort::Rate, "1"), (Sort::Wait, "1")]
        {
            let text = page(&now, &rates, &args(sort));
            let line = text.lines().nth(2).unwrap();
            assert_eq!(line.split_whitespace().next(), Some(first), "{sort:?} {text}");
            assert!(text.contains("STOPPED") && text.contains("waits in fence"), "{text}");
        }
    }

    #[test]
    fn a_job_that_does_not_count_is_told_how_to() {
        let text = page(&report(vec![rank(0, "a", 1, 1)]), &Rates::default(), &args(Sort::Rank));
        assert!(text.contains("TRANSOM_EXPLAIN=count") && !text.contains("op/s"), "{text}");
    }
}
