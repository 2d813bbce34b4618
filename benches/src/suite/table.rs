//! Tables for people, and comma-separated values.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, TableComponent, presets};

use super::compare::Compared;
use super::model::Fit;
use super::rivals::table as beside;
use super::row::{Report, Row};
use super::sizes;
use super::statistics::{median, quantile};
use crate::report::{Unit, number, quoted};

/// Parts of the samples that are shown.
const QUANTILES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];

/// The figures.
pub fn figures(report: &Report) -> String {
    if beside::is_beside(report) {
        return beside::figures(report);
    }
    let header = [
        "measurement",
        "size",
        "ranks",
        "unit",
        "mean",
        "median",
        "p99",
        "p99.9",
        "max",
        "disturbed",
        "limit",
        "times\nlimit",
        "",
        "data",
    ];
    let mut table = new_table(&header, &[0, 3, 12, 13]);
    let mut group = "";
    for row in &report.rows {
        if row.head.group != group && !group.is_empty() {
            table.add_row(vec![""; header.len()]);
        }
        group = &row.head.group;
        table.add_row(cells(row));
    }
    let mut text = table.trim_fmt() + "\n";
    text += "mean: of all samples; median, p99, p99.9, max: without disturbed ones, slower to the right; disturbed: samples in which the \
             system took the core away (* too many to leave out); times limit: how many times as long as without a runtime\n";
    text
}

pub(super) fn new_table(header: &[&str], text_columns: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for lines in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(lines);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        let text = text_columns.contains(&i);
        column.set_cell_alignment(if text { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

/// What a row is called.
pub fn name(row: &Row) -> String {
    let pair = row.head.pair.map_or_else(String::new, |(from, to)| format!(" {from} → {to}"));
    let threads =
        row.head.sync.split_once(", ").map_or_else(String::new, |(_, threads)| format!(", {threads}"));
    row.head.name.clone() + &threads + &pair
}

/// What a row is called, and whose it is, where there are several libraries.
pub fn of_library(row: &Row) -> String {
    [name(row).as_str(), row.library.as_str()].join(" ").trim_end().to_owned()
}

/// What a row is about beside its name: window, synchronisation and library.
pub fn manner(row: &Row) -> String {
    let parts = [&row.head.window, &row.head.sync, &row.library];
    parts.into_iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

/// Bytes of a transfer, if it is one.
pub fn size(row: &Row) -> String {
    if row.head.bytes == 0 { String::new() } else { sizes::show(row.head.bytes) }
}

fn cells(row: &Row) -> Vec<String> {
    let sorted = row.sorted();
    let (unit, scale) = row.head.unit.scale(row.median());
    let mut cells = vec![name(row), size(row), row.head.ranks.to_string(), unit.into(), mean(row)];
    cells.extend(QUANTILES.map(|q| number(scale(tail(&sorted, q, row.head.unit)))));
    let star = if row.mixed { "*" } else { "" };
    cells.push(format!("{}/{}{star}", row.disturbed, row.taken));
    let none = || "–".to_owned();
    cells.push(row.bound().map_or_else(none, |bound| number(scale(bound))));
    let ratios = row.ratios();
    cells.push(if ratios.is_empty() { none() } else { number(median(&ratios)) });
    let fairness = (!row.fairness.is_empty()).then(|| format!("fairness {}", number(median(&row.fairness))));
    cells.push(fairness.or_else(|| Some(row.limit.as_ref()?.name.clone())).unwrap_or_default());
    cells.push(match row.valid {
        Some(true) => "right".into(),
        Some(false) => "WRONG".into(),
        None => String::new(),
    });
    cells
}

/// The mean, in the unit of the median.
pub fn mean(row: &Row) -> String {
    let (_, scale) = row.head.unit.scale(row.median());
    if row.mean().is_nan() { "–".into() } else { number(scale(row.mean())) }
}

/// A quantile on the bad side: long times, or small parts of a whole.
pub fn tail(sorted: &[f64], q: f64, unit: Unit) -> f64 {
    quantile(sorted, if unit == Unit::Percent { 1.0 - q } else { q })
}

/// The figures as comma-separated values, times in nanoseconds.
pub fn csv(report: &Report) -> String {
    if beside::is_beside(report) {
        return beside::csv(report);
    }
    let mut csv = String::from(
        "measurement,group,window,sync,bytes,ranks,from,to,unit,work,median,p99,p99.9,max,samples,disturbed,mixed,limit_median,\
         times_limit,limit,fairness,data,mean\n",
    );
    for row in &report.rows {
        let head = &row.head;
        let (unit, work) = match head.unit {
            Unit::Time => ("ns", 1),
            Unit::Rate(count) => ("ns", count),
            Unit::Bandwidth(bytes) => ("ns", bytes),
            Unit::Percent => ("%", 1),
        };
        let sorted = row.sorted();
        let pair = head.pair.map_or_else(|| ",".to_owned(), |(from, to)| format!("{from},{to}"));
        let quantiles = QUANTILES.map(|q| field(tail(&sorted, q, head.unit))).join(",");
        let valid = row.valid.map_or("", |right| if right { "right" } else { "wrong" });
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{},{pair},{unit},{work},{quantiles},{},{},{},{},{},{},{},{valid},{}",
            head.name,
            head.group,
            head.window,
            head.sync,
            head.bytes,
            head.ranks,
            row.taken,
            row.disturbed,
            row.mixed,
            field(row.bound().unwrap_or(f64::NAN)),
            field(median(&row.ratios())),
            row.limit.as_ref().map_or_else(String::new, |limit| quoted(&limit.name)),
            field(median(&row.fairness)),
            field(row.mean()),
        );
    }
    csv
}

/// A figure of comma-separated values; nothing if there is none.
pub(super) fn field(value: f64) -> String {
    if value.is_finite() { format!("{value:.3}") } else { String::new() }
}

/// The cost models.
pub fn model(fits: &[Fit]) -> String {
    if fits.is_empty() {
        return String::new();
    }
    let mut table = new_table(
        &["cost model", "here", "residual", "rows", "p = 10^3", "p = 10^6", "foMPI, Cray XE6 (2013)"],
        &[0, 1, 6],
    );
    for fit in fits {
        let predicted = fit.predicted.map_or_else(|| [String::new(), String::new()], |both| both.map(time));
        let residual = if fit.points > 1 { format!("{:.0} %", fit.residual * 100.0) } else { String::new() };
        let [thousand, million] = predicted;
        let cells = [
            fit.name.into(),
            formula(fit),
            residual,
            fit.points.to_string(),
            thousand,
            million,
            fit.fompi.into(),
        ];
        table.add_row(cells.to_vec());
    }
    table.trim_fmt()
        + "\nleast squares of relative residuals; s: bytes, p: ranks, no more than cores; foMPI: Gerstenberger, Besta, Hoefler, SC13 (as in \
           CACM 61(10), 2018)\n"
}

/// `1.2 µs + 0.16 ns · s`.
pub fn formula(fit: &Fit) -> String {
    let Some(slope) = fit.slope else { return time(fit.constant) };
    let sign = if slope < 0.0 { "-" } else { "+" };
    format!("{} {sign} {} · {}", time(fit.constant), time(slope.abs()), fit.variable)
}

/// A time in the unit that suits it.
pub fn time(nanoseconds: f64) -> String {
    let sign = if nanoseconds < 0.0 { "-" } else { "" };
    let time = nanoseconds.abs();
    match time {
        t if t < 1.0 => format!("{sign}{t:.3} ns"),
        t if t < 1e3 => format!("{sign}{} ns", number(t)),
        t if t < 1e6 => format!("{sign}{} µs", number(t / 1e3)),
        t => format!("{sign}{} ms", number(t / 1e6)),
    }
}

/// The unit, the old and the new figure of a comparison; nothing where it is of several sizes.
pub fn both(row: &Compared<'_>) -> [String; 3] {
    if row.sizes > 1 {
        return Default::default();
    }
    let (unit, scale) = row.new.head.unit.scale(row.new.median());
    [unit.into(), number(scale(row.old)), number(scale(median(&row.new.medians())))]
}

/// The size of what is compared, or how many sizes are.
pub fn compared_size(row: &Compared<'_>) -> String {
    if row.sizes > 1 { format!("all {}", row.sizes) } else { size(row.new) }
}

/// `+3.1 %`.
pub fn change(row: &Compared<'_>) -> String {
    if row.change.is_finite() { format!("{:+.1} %", (row.change - 1.0) * 100.0) } else { String::new() }
}

/// Two runs side by side.
pub fn compared(rows: &[Compared<'_>]) -> String {
    let mut table =
        new_table(&["measurement", "size", "ranks", "unit", "old", "new", "time", "verdict"], &[0, 3, 7]);
    for row in rows {
        let (new, verdict) = (row.new, row.verdict.name().into());
        let [unit, old, figure] = both(row);
        table.add_row(vec![
            of_library(new),
            compared_size(row),
            new.head.ranks.to_string(),
            unit,
            old,
            figure,
            change(row),
            verdict,
        ]);
    }
    let count = |name: &str| rows.iter().filter(|row| row.verdict.name() == name).count();
    let [slower, faster] = ["slower", "faster"].map(count);
    let summary = format!("{slower} slower, {faster} faster, of {} rows\n", rows.len());
    table.trim_fmt() + "\n" + &summary
}
