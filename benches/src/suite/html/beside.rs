//! The table of libraries side by side.

use std::fmt::Write;

use super::escaped;
use super::tables::table;
use crate::report::number;
use crate::suite::rivals::figure::Figure;
use crate::suite::rivals::table::{Line, figure, libraries, lines, quartiles, remarks, unit};
use crate::suite::row::{Report, Row};
use crate::suite::statistics::median;
use crate::suite::table::{name, size};

/// The table, and what must be known to read it.
pub fn figures(report: &Report) -> String {
    let libraries = libraries(report);
    let mut header = vec!["measurement", "size", "unit"];
    header.extend(&libraries);
    header.extend(["limit", "× limit", "× best", "quartiles", "best"]);
    let rows = lines(report);
    let mut html = table(&header, rows.iter().map(cells));
    let of = Figure::of_report(report).legend();
    let _ = write!(html, "<p>Figures: {of}, in which the libraries took turns.");
    html += " × limit, × best: how many times as long as without a library, and as \
             the best of the others, Transom takes: median and quartiles over rounds, less is better.</p>\n";
    remarks(report).lines().for_each(|remark| html += &format!("<p>{}</p>\n", escaped(remark)));
    html
}

fn cells(line: &Line<'_>) -> Vec<String> {
    let own = line.first;
    let mut cells = vec![escaped(&name(own)), size(own), unit(line).into()];
    let cell = |row: &Row| match row.valid {
        Some(false) => format!("<b class=\"bad\">{}</b>", escaped(&figure(line, row))),
        _ => escaped(&figure(line, row)),
    };
    cells.extend(line.rows.iter().map(|row| row.map_or_else(String::new, cell)));
    let (_, scale) = own.head.unit.scale(line.figure.of(own));
    cells.push(own.bound().map_or_else(String::new, |bound| number(scale(bound))));
    let some = |values: &[f64]| if values.is_empty() { String::new() } else { number(median(values)) };
    cells.push(some(&own.ratios()));
    let class = match line.is_ahead() {
        Some(true) => "good",
        Some(false) => "bad",
        None => "",
    };
    cells.push(match line.ratios[..] {
        [] => String::new(),
        _ => format!("<b class=\"{class}\">{}</b>", some(&line.ratios)),
    });
    cells.push(quartiles(&line.ratios));
    cells.push(line.best.map_or_else(String::new, |best| escaped(&best.library)));
    cells
}
