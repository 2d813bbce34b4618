//! The page from its head to its end.

use jiff::Timestamp;

use super::{beside, chart, escaped, tables};
use crate::suite::compare::Compared;
use crate::suite::model::Fit;
use crate::suite::rivals::table::is_beside;
use crate::suite::row::{Report, Row};
use crate::suite::table::manner;

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn page(report: &Report, fits: &[Fit], compared: Option<&[Compared<'_>]>) -> String {
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";
    html += &format!("<title>transom bench: {}</title>\n", escaped(&report.machine.transport));
    html += &format!("<style>\n{STYLE}</style></head><body>\n<h1>transom bench</h1>\n");
    html += &about(report);
    if let Some(rows) = compared {
        html += &format!("<h2>Compared</h2>\n{}", tables::compared(rows));
    }
    if is_beside(report) {
        html += &format!("<h2>Beside other MPIs</h2>\n{}", beside::figures(report));
    }
    html += &diagrams(report);
    html += &matrices(report);
    if !fits.is_empty() {
        html += &format!("<h2>Cost model</h2>\n{}", tables::model(fits));
        html += "<p>Least squares of relative residuals; s: bytes, p: ranks. foMPI: R. Gerstenberger, M. Besta, T. Hoefler: \
                 Enabling Highly-Scalable Remote Memory Access Programming with MPI-3 One Sided, SC13 (constants as in \
                 Communications of the ACM 61(10), 2018; Cray XE6).</p>\n";
    }
    html += &format!("<h2>All figures</h2>\n{}", tables::figures(&report.rows));
    html += "<p>Percentiles are of samples. Disturbed: samples in which the system took the core away, left out unless marked by \
             *. × limit: how many times as long as without a runtime.</p>\n";
    html + "</body></html>\n"
}

fn about(report: &Report) -> String {
    let machine = &report.machine;
    let mut hosts = machine.hosts.clone();
    hosts.dedup();
    let mut items = vec![
        ("CPU", format!("{}, {} cores", machine.cpu, machine.cores)),
        ("kernel", machine.kernel.clone()),
        ("transport", machine.transport.clone()),
        ("ranks", machine.hosts.len().to_string()),
        ("hosts", hosts.join(", ")),
        ("began", utc(report.began)),
        ("took", format!("{:.0} s{}", report.seconds, if report.complete { "" } else { ", not to its end" })),
    ];
    items.extend(report.settings.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let item =
        |(name, value): (&str, String)| format!("<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&value));
    format!("<dl>{}</dl>\n", items.into_iter().map(item).collect::<String>())
}

/// `2026-11-23 06:30 UTC`; nothing for what is no time.
fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
}

/// A diagram for each measurement of several sizes or numbers of ranks, in groups.
fn diagrams(report: &Report) -> String {
    let mut html = String::new();
    let mut group = "";
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.head.pair.is_none()).collect();
    for rows in rows.chunk_by(|a, b| a.head.name == b.head.name) {
        let Some(svg) = chart::draw(rows) else { continue };
        if rows[0].head.group != group {
            html += if group.is_empty() { "" } else { "</div>\n" };
            group = &rows[0].head.group;
            html += &format!("<h2>{}</h2>\n<div class=\"charts\">\n", escaped(group));
        }
        let title = escaped(&rows[0].head.name);
        // Libraries are lines of one diagram.
        let how = escaped(&manner(&Row { library: String::new(), ..rows[0].clone() }));
        html += &format!("<figure><figcaption>{title} <small>{how}</small></figcaption>{svg}</figure>\n");
    }
    html + if group.is_empty() { "" } else { "</div>\n" }
}

fn matrices(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.head.pair.is_some()).collect();
    let mut html = String::new();
    for rows in rows.chunk_by(|a, b| a.head.name == b.head.name) {
        if let Some(heat) = tables::heat(rows, report) {
            html += &format!("<h2>{}</h2>\n{heat}", escaped(&rows[0].head.name));
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::files::tests::{report, row};
    use crate::suite::model::fits;

    #[test]
    fn needs_nothing_from_elsewhere() {
        let mut rows: Vec<Row> = [8, 64, 4096].map(|bytes| row(bytes, vec![vec![100.0, 120.0]])).into();
        let mut pair = row(8, vec![vec![100.0]]);
        (pair.head.name, pair.head.pair) = ("matrix-latency".into(), Some((0, 1)));
        rows.push(pair);
        let report = report(rows);
        let page = page(&report, &fits(&report.rows, 2), None);
        for outside in ["http:", "https:", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for part in
            ["<svg", "prefers-color-scheme", "viewport", "a &lt;b&gt; &amp; &quot;c&quot;", "hsl(140", "SC13"]
        {
            assert!(page.contains(part), "{part}");
        }
        assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    }

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(1_709_210_096), "2024-02-29 12:34 UTC");
        assert_eq!(utc(1_795_415_399), "2026-11-23 06:29 UTC");
        assert_eq!(utc(u64::MAX), "");
    }
}
