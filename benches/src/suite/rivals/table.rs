//! Libraries side by side: a line of each measurement and size, a column of each library.

use std::fmt::Write;

use comfy_table::Table;

use super::catalogue::CONTROLS;
use super::figure::Figure;
use super::library::{RUST, TRANSOM};
use super::rounds::is_of_visibility;
use crate::report::{Unit, number};
use crate::suite::row::{Report, Row};
use crate::suite::statistics::{median, quantile, sorted};
use crate::suite::table::{field, name, new_table, size};

/// A measurement of one size, by all libraries.
#[derive(Debug)]
pub struct Line<'a> {
    /// What its figures are.
    pub figure: Figure,
    /// Of Transom, or of the first that has it.
    pub first: &'a Row,
    /// Each library's row, in the order of [`libraries`].
    pub rows: Vec<Option<&'a Row>>,
    /// The rival that is ahead of the others.
    pub best: Option<&'a Row>,
    /// How many times as long as at that rival it takes Transom, by round.
    pub ratios: Vec<f64>,
}

impl Line<'_> {
    /// Whether Transom is ahead in three quarters of the rounds, or behind; neither where rounds differ.
    pub fn is_ahead(&self) -> Option<bool> {
        let sorted = sorted(self.ratios.clone());
        match [0.25, 0.75].map(|part| quantile(&sorted, part)) {
            [_, most] if most < 1.0 => Some(true),
            [least, _] if least > 1.0 => Some(false),
            _ => None,
        }
    }
}

/// Whether there is more than Transom.
pub fn is_beside(report: &Report) -> bool {
    report.rows.iter().any(|row| !row.library.is_empty())
}

/// Those that were measured, Transom first.
pub fn libraries(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !names.contains(&row.library.as_str()) {
            names.push(&row.library);
        }
    }
    // A stable sort keeps the order of the others.
    names.sort_by_key(|name| (*name != TRANSOM, *name != RUST));
    names
}

/// All lines.
pub fn lines(report: &Report) -> Vec<Line<'_>> {
    let libraries = libraries(report);
    let is_one = |a: &Row, b: &Row| a.head == b.head;
    let kind = Figure::of_report(report);
    report.rows.chunk_by(is_one).map(|rows| line(rows, &libraries, kind)).collect()
}

fn line<'a>(rows: &'a [Row], libraries: &[&str], kind: Figure) -> Line<'a> {
    let find = |name: &&str| rows.iter().find(|row| row.library == *name);
    let columns: Vec<Option<&Row>> = libraries.iter().map(find).collect();
    let own = rows.iter().find(|row| row.library == TRANSOM);
    let is_of_library =
        |row: &&Row| row.head.unit != Unit::Percent && !CONTROLS.contains(&row.head.name.as_str());
    let is_rival = |row: &&Row| ![TRANSOM, RUST].contains(&row.library.as_str());
    let rivals = rows.iter().filter(is_rival).filter(is_of_library);
    let best = rivals.min_by(|a, b| kind.of(a).total_cmp(&kind.of(b)));
    let ratios = own.zip(best).map_or_else(Vec::new, |(own, best)| kind.ratios(own, best));
    Line { figure: kind, first: own.unwrap_or(&rows[0]), rows: columns, best, ratios }
}

/// A library's figure: in the line's unit, or how many of how many puts were seen; wrong data is marked.
pub fn figure(line: &Line<'_>, row: &Row) -> String {
    let mark = if row.valid == Some(false) { "!" } else { "" };
    if is_of_visibility(row) {
        let all = row.rounds.concat();
        return format!("{}/{}{mark}", all.iter().filter(|seen| **seen > 0.0).count(), all.len());
    }
    let (_, scale) = line.first.head.unit.scale(line.figure.of(line.first));
    number(scale(line.figure.of(row))) + mark
}

/// What a line's figures are given in.
pub fn unit(line: &Line<'_>) -> &'static str {
    match is_of_visibility(line.first) {
        true => "puts",
        false => line.first.head.unit.scale(line.figure.of(line.first)).0,
    }
}

/// `0.52–0.61`: the middle half of some values.
pub fn quartiles(values: &[f64]) -> String {
    let sorted = sorted(values.to_vec());
    if sorted.len() < 4 {
        return String::new();
    }
    format!("{}–{}", number(quantile(&sorted, 0.25)), number(quantile(&sorted, 0.75)))
}

/// The table for people.
pub fn figures(report: &Report) -> String {
    let libraries = libraries(report);
    let mut header = vec!["measurement", "size", "unit"];
    header.extend(&libraries);
    let has_limits = report.rows.iter().any(|row| row.bound().is_some());
    header.extend(if has_limits { &["limit", "times\nlimit"][..] } else { &[] });
    header.extend(["times\nbest", "quartiles", "best"]);
    let mut table: Table = new_table(&header, &[0, 2, header.len() - 1]);
    let mut group = "";
    for line in lines(report) {
        let head = &line.first.head;
        if head.group != group && !group.is_empty() {
            table.add_row(vec![""; header.len()]);
        }
        group = &head.group;
        table.add_row(cells(&line, has_limits));
    }
    let mut text = table.trim_fmt() + "\n";
    text += Figure::of_report(report).legend();
    text += ", in which libraries take turns; times limit: how many times as long Transom takes as without a library;\n\
             times best: as the best of the others, median and quartiles over rounds, less is better\n";
    text + &remarks(report)
}

fn cells(line: &Line<'_>, has_limits: bool) -> Vec<String> {
    let none = || "–".to_owned();
    let mut cells = vec![name(line.first), size(line.first), unit(line).into()];
    cells.extend(line.rows.iter().map(|row| row.map_or_else(none, |row| figure(line, row))));
    if has_limits {
        let (_, scale) = line.first.head.unit.scale(line.figure.of(line.first));
        cells.push(line.first.bound().map_or_else(none, |bound| number(scale(bound))));
        let ratios = line.first.ratios();
        cells.push(if ratios.is_empty() { none() } else { number(median(&ratios)) });
    }
    cells.push(if line.ratios.is_empty() { none() } else { number(median(&line.ratios)) });
    cells.push(quartiles(&line.ratios));
    cells.push(line.best.map_or_else(String::new, |best| best.library.clone()));
    cells
}

/// What a reader of the figures must know: whose data was wrong, and in how many Transom is ahead.
pub fn remarks(report: &Report) -> String {
    let mut text = String::new();
    let compared: Vec<Option<bool>> =
        lines(report).iter().filter(|line| !line.ratios.is_empty()).map(Line::is_ahead).collect();
    if !compared.is_empty() {
        let [ahead, behind] =
            [true, false].map(|is| compared.iter().filter(|other| **other == Some(is)).count());
        let _ = writeln!(
            text,
            "of {} lines Transom is ahead of the best of the others in {ahead}, behind in {behind}; in the rest rounds differ",
            compared.len()
        );
    }
    for row in report.rows.iter().filter(|row| row.valid == Some(false)) {
        let (library, size) = (&row.library, size(row));
        let _ = if is_of_visibility(row) {
            writeln!(
                text,
                "! {library}: puts of {size} were not yet at the target when their flush had returned: its times of them are not those of \
                 completed puts"
            )
        } else {
            writeln!(text, "! {library}: {} {size}: the data was wrong", row.head.name)
        };
    }
    text
}

/// The figures as comma-separated values, times in nanoseconds.
pub fn csv(report: &Report) -> String {
    let libraries = libraries(report);
    let mut csv = format!(
        "measurement,group,window,bytes,unit,work,{},limit,times_limit,best,times_best,times_best_quarter,times_best_three_quarters,wrong\n",
        libraries.join(",")
    );
    for line in lines(report) {
        let head = &line.first.head;
        let (unit, work) = match head.unit {
            Unit::Percent => ("%", 1),
            Unit::Time => ("ns", 1),
            Unit::Rate(work) | Unit::Bandwidth(work) => ("ns", work),
        };
        let value = |row: &Row| match is_of_visibility(row) {
            true => row.rounds.concat().iter().sum::<f64>() / row.rounds.concat().len() as f64,
            false => line.figure.of(row),
        };
        let own: Vec<String> =
            line.rows.iter().map(|row| row.map_or_else(String::new, |row| field(value(row)))).collect();
        let sorted = sorted(line.ratios.clone());
        let wrong = line.rows.iter().flatten().filter(|row| row.valid == Some(false));
        let wrong: Vec<&str> = wrong.map(|row| row.library.as_str()).collect();
        let _ = writeln!(
            csv,
            "{},{},{},{},{unit},{work},{},{},{},{},{},{},{},{}",
            head.name,
            head.group,
            head.window,
            head.bytes,
            own.join(","),
            field(line.first.bound().unwrap_or(f64::NAN)),
            field(median(&line.first.ratios())),
            line.best.map_or("", |best| &best.library),
            field(median(&line.ratios)),
            field(quantile(&sorted, 0.25)),
            field(quantile(&sorted, 0.75)),
            wrong.join(" "),
        );
    }
    csv
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::files::tests::{report, row};
    use crate::suite::rivals::figure::SETTING;

    fn of(library: &str, times: &[f64]) -> Row {
        Row { library: library.into(), ..row(8, times.iter().map(|time| vec![*time; 3]).collect()) }
    }

    #[test]
    fn the_best_rival_round_by_round() {
        let rivals = [of("b", &[20.0, 40.0, 60.0, 80.0]), of("a", &[10.0, 10.0, 99.0, 99.0])];
        let mut rows = vec![of(TRANSOM, &[10.0, 20.0, 30.0, 80.0])];
        rows.extend(rivals);
        // A round in which it failed is not compared with another.
        rows[1].rounds[2].clear();
        let report = report(rows);
        let lines = lines(&report);
        assert_eq!((lines.len(), libraries(&report)), (1, vec![TRANSOM, "b", "a"]));
        assert_eq!(lines[0].best.unwrap().library, "b");
        assert_eq!((&lines[0].ratios[..], lines[0].is_ahead()), (&[0.5, 0.5, 1.0][..], None));
        let csv = csv(&report);
        let fields: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(fields[6..9], ["25.000", "40.000", "54.500"], "{csv}");
        assert_eq!((fields[11], fields[12]), ("b", "0.500"), "{csv}");
    }

    #[test]
    fn means_have_what_the_system_did() {
        let of = |library: &str, means: &[f64]| Row {
            means: means.iter().copied().map(Some).collect(),
            ..of(library, &[1.0, 2.0])
        };
        let mut report = report(vec![of(TRANSOM, &[10.0, 30.0]), of("b", &[20.0, 20.0])]);
        assert_eq!(
            (lines(&report)[0].figure, &lines(&report)[0].ratios[..]),
            (Figure::Median, &[1.0, 1.0][..])
        );
        report.settings.insert(SETTING.into(), Figure::Mean.name().into());
        let text = figures(&report);
        let lines = lines(&report);
        assert_eq!(
            (&lines[0].ratios[..], figure(&lines[0], lines[0].first)),
            (&[0.5, 1.5][..], "20.0".into())
        );
        assert!(text.contains("means over rounds of all samples"), "{text}");
        let csv = csv(&report);
        assert_eq!(csv.lines().nth(1).unwrap().split(',').nth(6), Some("20.000"), "{csv}");
    }

    #[test]
    fn wrong_data_is_told() {
        let mut other = of("b", &[1.0]);
        (other.valid, other.head.name) = (Some(false), "get-latency".into());
        let mut seen = of("b", &[0.0]);
        (seen.valid, seen.head.name, seen.head.unit) = (Some(false), "put-visible".into(), Unit::Percent);
        seen.rounds = vec![vec![100.0, 0.0, 0.0]];
        let text = figures(&report(vec![of(TRANSOM, &[1.0]), other, seen]));
        assert!(text.contains("! b: get-latency 8 B: the data was wrong"), "{text}");
        assert!(
            text.contains("1/3!") && text.contains("! b: puts of 8 B were not yet at the target"),
            "{text}"
        );
    }
}
