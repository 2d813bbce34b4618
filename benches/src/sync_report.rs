//! The table of synchronisation against the number of ranks, with a fit.

use std::fmt::Write;

use anyhow::anyhow;
use transom::Job;

use crate::Options;
use crate::machine;
use crate::report::{number, quoted, table};
use crate::samples::Samples;
use crate::sync::Line;

/// The report of synchronisation against the number of ranks.
///
/// # Errors
/// The times have no fit.
pub(crate) fn report(
    job: &Job,
    options: &Options,
    sizes: &[usize],
    lines: &[Line],
) -> anyhow::Result<String> {
    if options.csv {
        let mut csv = String::from("operation,ranks,median_ns,best_ns\n");
        for (line, (ranks, samples)) in
            lines.iter().flat_map(|line| line.times.iter().map(move |t| (line, t)))
        {
            let name = quoted(line.name);
            let _ = writeln!(csv, "{name},{ranks},{:.0},{:.0}", samples.median(), samples.best());
        }
        return Ok(csv);
    }
    let numbers: Vec<String> = sizes.iter().map(|ranks| format!("p = {ranks}")).collect();
    let header: Vec<&str> = ["window", "operation"]
        .into_iter()
        .chain(numbers.iter().map(String::as_str))
        .chain(["a", "b", "residual"])
        .collect();
    let cores = machine::cores();
    // Two regimes have no line in common.
    let oversubscribed = sizes.iter().filter(|ranks| **ranks > cores).count() > 1;
    let from = if oversubscribed { cores + 1 } else { 0 };
    let rows: anyhow::Result<Vec<Vec<String>>> = lines.iter().map(|line| cells(line, from)).collect();
    let mut text = machine::describe(job);
    let _ = writeln!(text, "\nµs a call, median, in parts of a job of {} ranks", job.size());
    text += &table(&header, &[0, 1], rows?.into_iter());
    text += "\na + b·log2(p) by least squares, in µs; residual: root mean square";
    if oversubscribed {
        let _ = write!(
            text,
            ", over p > {cores}: the {cores} cores have more ranks than they can run, so blocked ranks sleep in the \
             kernel after 20 µs, and its scheduler is part of every collective figure"
        );
    }
    text.push('\n');
    Ok(text)
}

/// A line's times, and the fit of those on at least `from` ranks.
fn cells(line: &Line, from: usize) -> anyhow::Result<Vec<String>> {
    let micro = |samples: &Samples| samples.median() / 1e3;
    let fitted = line.times.iter().filter(|(ranks, _)| *ranks >= from);
    let points: Vec<(f64, f64)> =
        fitted.map(|(ranks, samples)| ((*ranks as f64).log2(), micro(samples))).collect();
    let mut cells = vec!["allocated".to_owned(), line.name.to_owned()];
    cells.extend(line.times.iter().map(|(_, samples)| number(micro(samples))));
    // One point has no line.
    if points.len() < 2 {
        cells.extend(["–"; 3].map(str::to_owned));
        return Ok(cells);
    }
    let (b, a): (f64, f64) = linreg::linear_regression_of(&points).map_err(|e| anyhow!("no fit: {e}"))?;
    let squares: f64 = points.iter().map(|(x, y)| (y - a - b * x).powi(2)).sum();
    cells.extend([a, b, (squares / points.len() as f64).sqrt()].map(signed));
    Ok(cells)
}

/// [`number`] for one that may be negative.
fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", number(-value)) } else { number(value) }
}
