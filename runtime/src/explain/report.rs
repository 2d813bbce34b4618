//! Reports of a rank's windows when they are freed: to standard error or a file, and as events.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use serde::Serialize;

use super::{Entry, Explanation};
use crate::engine::{Route, Routes};
use crate::{Class, Error, Result};

/// What `TRANSOM_EXPLAIN` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExplainSetting {
    Nothing,
    /// Who wants to know asks (`transom top`).
    Counts,
    /// Tables on standard error.
    Tables,
    /// Lines of JSON in the file of this name and the rank's number.
    Lines(PathBuf),
}

impl ExplainSetting {
    /// The meaning of a value: whatever is neither yes, no nor count is a file.
    pub fn parse(value: Option<&str>) -> Self {
        let value = value.map(str::trim).unwrap_or_default();
        match value.to_ascii_lowercase().as_str() {
            "" | "0" | "no" | "false" | "off" => Self::Nothing,
            "count" => Self::Counts,
            "1" | "yes" | "true" | "on" | "stderr" => Self::Tables,
            _ => Self::Lines(value.into()),
        }
    }

    /// Whether every window is counted.
    pub fn is_some(&self) -> bool {
        *self != Self::Nothing
    }
}

#[derive(Debug)]
enum Output {
    None,
    Tables,
    Lines(File),
}

/// Where a rank reports to, and what it has reported.
#[derive(Debug)]
pub(crate) struct Reporter {
    rank: usize,
    output: Output,
    /// Windows that had operations, and all of these.
    so_far: Mutex<(usize, Explanation)>,
}

/// A line of JSON.
#[derive(Serialize)]
struct JsonRow<'a> {
    rank: usize,
    window: u32,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<&'a str>,
    operation: &'static str,
    path: &'static str,
    reason: &'static str,
    operations: u64,
    bytes: u64,
}

/// Which window it is.
#[derive(Debug)]
pub(crate) struct WindowLabel<'a> {
    pub number: u32,
    /// Its name, which may be empty.
    pub name: &'a str,
    /// How ranks of the node reach it, if it is over memory of the program's.
    pub created: Option<String>,
}

impl fmt::Display for WindowLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.name.is_empty() { "" } else { " " };
        write!(f, "window {}{space}{}", self.number, self.name)?;
        match &self.created {
            Some(created) => write!(f, " (memory of the program's: {created})"),
            None => Ok(()),
        }
    }
}

impl Reporter {
    /// The reporter of a rank of the job.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(wanted: &ExplainSetting, rank: usize) -> Result<Self> {
        let output = match wanted {
            ExplainSetting::Nothing | ExplainSetting::Counts => Output::None,
            ExplainSetting::Tables => Output::Tables,
            ExplainSetting::Lines(file) => {
                let mut name = file.clone().into_os_string();
                name.push(format!(".{rank}"));
                let opened = OpenOptions::new().create(true).append(true).open(&name);
                Output::Lines(opened.map_err(|error| {
                    let message = format!(
                        "environment variable TRANSOM_EXPLAIN names a file that cannot be opened: {}: {error}",
                        name.display()
                    );
                    Error::new(Class::Argument, "init", message)
                })?)
            }
        };
        Ok(Self { rank, output, so_far: Mutex::new((0, Explanation::new())) })
    }

    /// The ways to the other ranks are known. `notes`: what is out of the ordinary about some.
    pub fn ways(&self, routes: &Routes, notes: &BTreeMap<usize, String>) {
        let mut ways: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for peer in (0..routes.len()).filter(|peer| *peer != self.rank) {
            let Route { transport, capabilities } = routes.route(peer);
            let note = notes.get(&peer).map(|note| format!("; {note}")).unwrap_or_default();
            let way = format!("{} ({}{note})", transport.name(), capabilities.provider);
            ways.entry(way).or_default().push(peer);
        }
        for (way, peers) in ways {
            let peers = ranges(&peers);
            tracing::info!(target: "transom::ways", rank = self.rank, peers, way);
            if matches!(self.output, Output::Tables) {
                self.print(&format!("rank {}, ways to other ranks: {way} to {peers}\n", self.rank));
            }
        }
    }

    /// A window goes.
    pub fn window(&self, window: &WindowLabel<'_>, explanation: &Explanation) {
        if explanation.is_empty() {
            return;
        }
        self.tell_events(window, explanation);
        match &self.output {
            Output::None => {}
            Output::Tables => {
                self.print(&format!("rank {}, {window}:\n{explanation}\n", self.rank));
                let mut so_far = self.so_far.lock();
                so_far.0 += 1;
                so_far.1.merge(explanation);
            }
            Output::Lines(file) => self.write(file, window, explanation),
        }
    }

    /// The job ends. One window has been told already.
    pub fn end(&self) {
        let (windows, explanation) = &*self.so_far.lock();
        if *windows > 1 {
            self.print(&format!("rank {}, all {windows} windows:\n{explanation}\n", self.rank));
        }
    }

    fn print(&self, text: &str) {
        // In one piece, so that ranks do not get between each other's lines.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn write(&self, mut file: &File, window: &WindowLabel<'_>, explanation: &Explanation) {
        let lines = explanation.entries().map(|entry| self.line(window, &entry));
        let text: serde_json::Result<Vec<String>> = lines.map(|line| serde_json::to_string(&line)).collect();
        let written = text.map_err(io::Error::from).and_then(|lines| {
            // Ranks of several jobs may have the file: each call of the system appends all it is given.
            file.write_all((lines.join("\n") + "\n").as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(rank = self.rank, window = window.number, %error, "an explanation could not be written");
        }
    }

    fn line<'a>(&self, window: &'a WindowLabel<'_>, entry: &Entry) -> JsonRow<'a> {
        JsonRow {
            rank: self.rank,
            window: window.number,
            name: window.name,
            created: window.created.as_deref(),
            operation: entry.kind.text(),
            path: entry.path.text(),
            reason: entry.reason.text(),
            operations: entry.count.operations,
            bytes: entry.count.bytes,
        }
    }

    fn tell_events(&self, window: &WindowLabel<'_>, explanation: &Explanation) {
        for entry in explanation.entries() {
            tracing::info!(
                target: "transom::explain",
                rank = self.rank,
                window = window.number,
                name = window.name,
                created = window.created.as_deref(),
                operation = entry.kind.text(),
                path = entry.path.text(),
                reason = entry.reason.text(),
                operations = entry.count.operations,
                bytes = entry.count.bytes,
            );
        }
    }
}

/// Ascending numbers, runs of them in short: `0-2, 5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| *b == *a + 1).filter_map(|run| Some((run.first()?, run.last()?)));
    let texts = runs.map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Count, Kind, Path, Reason};

    #[test]
    fn ranks_are_told_in_short() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn values_of_the_setting() {
        for off in [None, Some(""), Some("0"), Some("no")] {
            assert!(!ExplainSetting::parse(off).is_some(), "{off:?}");
        }
        assert_eq!(ExplainSetting::parse(Some(" YES ")), ExplainSetting::Tables);
        assert_eq!(ExplainSetting::parse(Some("count")), ExplainSetting::Counts);
        assert_eq!(ExplainSetting::parse(Some("1")), ExplainSetting::Tables);
        assert_eq!(
            ExplainSetting::parse(Some("/tmp/paths.json")),
            ExplainSetting::Lines("/tmp/paths.json".into())
        );
    }

    #[test]
    fn a_line_is_json_whatever_the_windows_name() {
        let reporter = Reporter::open(&ExplainSetting::Nothing, 3).unwrap();
        let label = WindowLabel { number: 2, name: "a \"halo\"", created: None };
        assert_eq!(label.to_string(), "window 2 a \"halo\"");
        let count = Count { operations: 5, bytes: 40 };
        let entry = Entry { kind: Kind::Put, path: Path::Direct, reason: Reason::Mapped, count };
        let line = serde_json::to_string(&reporter.line(&label, &entry)).unwrap();
        let expected = r#"{"rank":3,"window":2,"name":"a \"halo\"","operation":"put","path":"direct","reason":"mapped","operations":5,"bytes":40}"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_that_names_it() {
        let error = Reporter::open(&ExplainSetting::Lines("/nowhere/paths".into()), 1).unwrap_err();
        assert_eq!(error.class(), Class::Argument);
        assert!(error.to_string().contains("/nowhere/paths.1"), "{error}");
    }
}
