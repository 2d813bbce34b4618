//! Tables of the page.

use std::fmt::Write;

use super::escaped;
use crate::report::{Unit, number};
use crate::suite::compare::{Compared, Verdict};
use crate::suite::model::Fit;
use crate::suite::row::{Report, Row};
use crate::suite::sizes;
use crate::suite::statistics::median;
use crate::suite::table::{both, change, compared_size, formula, manner, mean, name, of_library, tail, time};

/// A table in a box that scrolls by itself where the page is narrow. Cells are HTML.
pub fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    header.iter().for_each(|cell| html += &format!("<th>{}</th>", escaped(cell)));
    html += "</tr></thead><tbody>\n";
    for row in rows {
        html += "<tr>";
        row.iter().for_each(|cell| html += &format!("<td>{cell}</td>"));
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// All figures.
pub fn figures(rows: &[Row]) -> String {
    let header = [
        "measurement",
        "how",
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
        "× limit",
        "fairness",
        "data",
    ];
    table(&header, rows.iter().map(cells))
}

fn cells(row: &Row) -> Vec<String> {
    let (unit, scale) = row.head.unit.scale(row.median());
    let sorted = row.sorted();
    let size = if row.head.bytes == 0 { String::new() } else { sizes::show(row.head.bytes) };
    let mut cells = vec![
        escaped(&name(row)),
        escaped(&manner(row)),
        size,
        row.head.ranks.to_string(),
        unit.into(),
        mean(row),
    ];
    cells.extend([0.5, 0.99, 0.999, 1.0].map(|q| number(scale(tail(&sorted, q, row.head.unit)))));
    cells.push(format!("{}/{}{}", row.disturbed, row.taken, if row.mixed { "*" } else { "" }));
    let limit = row.limit.as_ref().zip(row.bound());
    cells.push(limit.map_or_else(String::new, |(limit, bound)| {
        format!("{} <small>{}</small>", number(scale(bound)), escaped(&limit.name))
    }));
    let some = |values: &[f64]| if values.is_empty() { String::new() } else { number(median(values)) };
    cells.extend([some(&row.ratios()), some(&row.fairness)]);
    let data = row.valid.map_or("", |right| if right { "right" } else { "<b class=\"bad\">WRONG</b>" });
    cells.push(data.into());
    cells
}

/// The cost models.
pub fn model(fits: &[Fit]) -> String {
    let cells = |fit: &Fit| {
        let [thousand, million] =
            fit.predicted.map_or_else(|| [String::new(), String::new()], |p| p.map(time));
        let residual = if fit.points > 1 { format!("{:.0} %", fit.residual * 100.0) } else { String::new() };
        vec![escaped(fit.name), formula(fit), residual, thousand, million, escaped(fit.fompi)]
    };
    table(&["cost", "here", "residual", "p = 10³", "p = 10⁶", "foMPI"], fits.iter().map(cells))
}

/// Two runs side by side.
pub fn compared(rows: &[Compared<'_>]) -> String {
    let cells = |row: &Compared<'_>| {
        let [unit, old, new] = both(row);
        let class = match row.verdict {
            Verdict::Slower => "bad",
            Verdict::Faster => "good",
            Verdict::NoChange | Verdict::TooFew => "",
        };
        vec![
            escaped(&of_library(row.new)),
            compared_size(row),
            unit,
            old,
            new,
            change(row),
            format!("<b class=\"{class}\">{}</b>", row.verdict.name()),
        ]
    };
    table(&["measurement", "size", "unit", "old", "new", "time", "verdict"], rows.iter().map(cells))
}

/// Origins down, targets across: the better, the greener.
pub fn heat(rows: &[&Row], report: &Report) -> Option<String> {
    let pairs: Vec<((usize, usize), &Row)> =
        rows.iter().filter_map(|row| Some((row.head.pair?, *row))).collect();
    let times: Vec<f64> = pairs.iter().map(|(_, row)| row.median()).collect();
    let (best, worst) = times.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    let mut ranks: Vec<usize> = pairs.iter().flat_map(|((from, to), _)| [*from, *to]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let unit = pairs.first()?.1.head.unit;
    let (unit_name, scale) = unit.scale(median(&times));
    let mut html = String::from("<div class=\"scroll\"><table class=\"heat\"><thead><tr><th></th>");
    ranks.iter().for_each(|to| html += &format!("<th>→ {to}</th>"));
    html += "</tr></thead><tbody>\n";
    for from in &ranks {
        let host = report.machine.hosts.get(*from).map_or("", String::as_str);
        let _ = write!(html, "<tr><th>{from} <small>{}</small></th>", escaped(host));
        for to in &ranks {
            let Some((_, row)) = pairs.iter().find(|(pair, _)| pair == &(*from, *to)) else {
                html += "<td></td>";
                continue;
            };
            // From green at the best to red at the worst; all is green where all is within a tenth.
            let part = (row.median() / best).ln() / (worst / best).ln().max(0.1);
            let hue = 140.0 * (1.0 - part.clamp(0.0, 1.0));
            let figure = number(scale(row.median()));
            let _ = write!(html, "<td style=\"background:hsl({hue:.0} 70% 45% / .45)\">{figure}</td>");
        }
        html += "</tr>\n";
    }
    let what = if unit == Unit::Time { "time" } else { "bandwidth" };
    Some(html + &format!("</tbody></table></div><p>{what} in {unit_name}, origin → target</p>\n"))
}
