//! Tables, and comma-separated values.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde::{Deserialize, Serialize};
use transom::Job;

use crate::Options;
use crate::machine;
use crate::passive::Passive;
use crate::samples::Samples;

/// What a figure is given in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Time of one operation.
    Time,
    /// Operations a second, where a sample's operation is so many.
    Rate(usize),
    /// Bytes a second, where an operation moves so many.
    Bandwidth(usize),
    /// A part of a whole, in hundredths: the more the better.
    Percent,
}

impl Unit {
    /// The unit for a figure of about `nanoseconds`, and the function that gives a time in it.
    pub(crate) fn scale(self, nanoseconds: f64) -> (&'static str, impl Fn(f64) -> f64) {
        let (name, factor, inverse) = match self {
            Self::Percent => ("%", 1.0, false),
            Self::Time if nanoseconds < 1000.0 => ("ns", 1.0, false),
            Self::Time if nanoseconds < 1e7 => ("µs", 1e-3, false),
            Self::Time => ("ms", 1e-6, false),
            Self::Rate(count) => ("M/s", count as f64 * 1e3, true),
            Self::Bandwidth(bytes) if (bytes as f64) < 0.1 * nanoseconds => {
                ("MB/s", bytes as f64 * 1e3, true)
            }
            Self::Bandwidth(bytes) => ("GB/s", bytes as f64, true),
        };
        (name, move |time: f64| if inverse { factor / time } else { factor * time })
    }
}

/// One measured figure.
#[derive(Debug)]
pub struct Row {
    /// Kind of window.
    pub window: &'static str,
    /// The operation.
    pub name: &'static str,
    /// Bytes of each transfer.
    pub size: usize,
    /// What it is given in.
    pub unit: Unit,
    /// While the target waits in the runtime.
    pub waits: Samples,
    /// While the target computes.
    pub computes: Samples,
    /// Name of the limit.
    pub limit: String,
    /// The limit's own figures.
    pub bound: Samples,
}

impl Row {
    /// Size of a transfer, for the table.
    fn size(&self) -> String {
        crate::suite::sizes::show(self.size)
    }

    /// How many times as long as the limit: the median of pairs of samples, and best to best.
    fn ratios(&self) -> [f64; 2] {
        let pairs = self.waits.ratio_to(&self.bound).unwrap_or(f64::NAN);
        [pairs, self.waits.best() / self.bound.best()]
    }

    fn cells(&self) -> Vec<String> {
        let (unit, scale) = self.unit.scale(self.waits.median());
        let of = |samples: &Samples, time: f64| match samples.is_empty() {
            true => "–".to_owned(),
            false => number(scale(time)),
        };
        let both = |samples: &Samples| [of(samples, samples.median()), of(samples, samples.best())];
        let [ratio, best] = self.ratios().map(number);
        let mut cells = vec![self.window.into(), self.name.into(), self.size(), unit.into()];
        cells.extend(both(&self.waits));
        cells.extend(both(&self.computes));
        cells.extend(both(&self.bound));
        cells.extend([ratio, best, self.limit.clone()]);
        cells
    }

    fn csv(&self) -> String {
        let field = |time: f64| if time.is_finite() { format!("{time:.2}") } else { String::new() };
        let both = |samples: &Samples| [field(samples.median()), field(samples.best())];
        let [ratio, best] = self.ratios().map(field);
        let mut fields = vec![self.window.into(), quoted(self.name), self.size.to_string()];
        fields.extend([both(&self.waits), both(&self.computes), both(&self.bound)].concat());
        fields.extend([ratio, best, quoted(&self.limit)]);
        fields.join(",")
    }
}

pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Three significant digits.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value {
        v if v < 0.1 => 3,
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

pub(crate) fn table(
    header: &[&str],
    text_columns: &[usize],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header);
    for lines in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(lines);
    }
    let mut window = String::new();
    for (i, mut row) in rows.enumerate() {
        // The kind of window once, and a line above.
        if row[0] == window {
            row[0].clear();
        } else {
            window.clone_from(&row[0]);
            if i > 0 {
                table.add_row(vec![""; header.len()]);
            }
        }
        table.add_row(row);
    }
    for (i, column) in table.column_iter_mut().enumerate() {
        let text = text_columns.contains(&i);
        column.set_cell_alignment(if text { CellAlignment::Left } else { CellAlignment::Right });
    }
    table.trim_fmt()
}

/// The report of figures beside their limits.
pub fn figures(job: &Job, options: &Options, rows: &[Row]) -> String {
    if options.csv {
        let mut csv = String::from(
            "window,operation,bytes,waits_median_ns,waits_best_ns,computes_median_ns,computes_best_ns,\
             limit_median_ns,limit_best_ns,times_limit_median,times_limit_best,limit\n",
        );
        rows.iter().for_each(|row| csv += &(row.csv() + "\n"));
        return csv;
    }
    const HEADER: [&str; 13] = [
        "window",
        "operation",
        "size",
        "unit",
        "target\nwaits\nmedian",
        "\n\nbest",
        "target\ncomputes\nmedian",
        "\n\nbest",
        "\nlimit\nmedian",
        "\n\nbest",
        "times\nlimit\nmedian",
        "\n\nbest",
        "limit",
    ];
    let mut text = machine::describe(job) + "\n";
    text += &table(&HEADER, &[0, 1, 3, 12], rows.iter().map(Row::cells));
    text += "\ntimes limit: how many times as long as the limit's it took, while the target waits: median over pairs of \
             samples taken one after the other, and best to best\n";
    text
}

/// The report of passive progress.
pub fn passive(job: &Job, options: &Options, compute: Duration, rows: &[Passive]) -> String {
    if options.csv {
        let mut csv = String::from("window,operation,count,first_ns,median_ns,max_ns\n");
        for row in rows {
            let numbers = [row.first, row.later.median(), row.later.worst()].map(|n| format!("{n:.0}"));
            let _ = writeln!(csv, "{},{},{},{}", row.window, quoted(row.name), row.count, numbers.join(","));
        }
        return csv;
    }
    let micro = |time: f64| number(time / 1e3);
    let cells = |row: &Passive| {
        let times = [row.first, row.later.median(), row.later.worst()].map(micro);
        let mut cells = vec![row.window.into(), row.name.into(), row.count.to_string()];
        cells.extend(times);
        cells
    };
    let mut text = machine::describe(job);
    let _ = writeln!(text, "\nµs an operation, epoch included, while its target computes for {compute:?}");
    text +=
        &table(&["window", "operation", "count", "first", "median", "max"], &[0, 1], rows.iter().map(cells));
    text + "\n"
}
