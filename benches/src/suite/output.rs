//! What rank 0 writes: the table, files, the page, the comparison.

use std::io::Write;

use super::compare::{Compared, Verdict, compare};
use super::files::{self, Pending};
use super::options::Options;
use super::rivals::{RUST, TRANSOM};
use super::row::{Report, Row};
use super::{USAGE, html, model, table};

/// Files to be read and written, as far as that can be known before anything is measured.
#[derive(Debug)]
pub struct Outputs {
    json: Option<Pending>,
    html: Option<Pending>,
    old: Vec<Report>,
    /// What stands for measuring.
    pub from: Option<Report>,
}

impl Outputs {
    /// Reads what is to be read, and sees to it that the others can be written.
    ///
    /// # Errors
    /// One cannot, in words.
    pub fn new(options: &Options) -> Result<Self, String> {
        let old = options.compare.iter().map(|path| files::read(path)).collect::<Result<_, _>>()?;
        let from = options.from.as_deref().map(files::read).transpose()?;
        let pending = |path: &Option<std::path::PathBuf>| path.as_deref().map(Pending::new).transpose();
        Ok(Self { json: pending(&options.json)?, html: pending(&options.html)?, old, from })
    }

    /// Writes all of it, and gives the exit code.
    pub fn write(self, options: &Options, report: &Report, out: &mut impl Write) -> u8 {
        let fits = model::fits(&report.rows, report.machine.cores);
        let compared = if self.old.is_empty() { Ok(None) } else { compare(&self.old, report).map(Some) };
        let text = if options.csv { table::csv(report) } else { text(report, &fits) };
        // A reader that went away has seen what it wanted.
        let _ = out.write_all(text.as_bytes());
        let mut code = u8::from(report.rows.iter().any(is_wrong));
        let mut refuse = |why: &str| {
            eprintln!("bench: {why}");
            code = USAGE;
        };
        let rows = compared.unwrap_or_else(|why| {
            refuse(&why);
            None
        });
        let json = self.json.map(|file| {
            let text = serde_json::to_string(report).map_err(|error| error.to_string())?;
            file.write(&text)
        });
        let page = self.html.map(|file| file.write(&html::page(report, &fits, rows.as_deref())));
        for why in [json, page].into_iter().flatten().filter_map(Result::err) {
            refuse(&why);
        }
        if let Some(rows) = &rows {
            let _ = write!(out, "\n{}", table::compared(rows));
        }
        code.max(u8::from(rows.is_some_and(|rows| rows.iter().any(is_slower))))
    }
}

/// Whether Transom's data was wrong: what others do is told, and no failure.
fn is_wrong(row: &Row) -> bool {
    row.valid == Some(false) && ["", TRANSOM, RUST].contains(&row.library.as_str())
}

fn is_slower(row: &Compared<'_>) -> bool {
    row.verdict == Verdict::Slower
}

fn text(report: &Report, fits: &[model::Fit]) -> String {
    let machine = &report.machine;
    let mut text = format!(
        "{}, {} cores, {}; {} ranks; transport {}\n",
        machine.cpu,
        machine.cores,
        machine.kernel,
        machine.hosts.len(),
        machine.transport
    );
    let setting = |name: &str| report.settings.get(name).map_or("", String::as_str);
    text +=
        &format!("window {}, sync {}, {} rounds\n", setting("window"), setting("sync"), setting("rounds"));
    text += &table::figures(report);
    let model = table::model(fits);
    if !model.is_empty() {
        text += "\n";
        text += &model;
    }
    if !report.complete {
        text += "not to its end: rounds that were not measured are missing\n";
    }
    text
}
