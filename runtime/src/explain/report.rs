//! What a rank's windows came to, told when they go: to standard error or a file, and as events.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use parking_lot::Mutex;
use serde::Serialize;

use super::{Entry, Explanation};
use crate::{Class, Error, Result};

/// What `TRANSOM_EXPLAIN` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    /// Tables on standard error.
    Tables,
    /// Lines of JSON in the file of this name and the rank's number.
    Lines(PathBuf),
}

impl Wanted {
    /// The meaning of a value: whatever is neither yes nor no is a file.
    pub fn parse(value: Option<&str>) -> Self {
        let value = value.map(str::trim).unwrap_or_default();
        match value.to_ascii_lowercase().as_str() {
            "" | "0" | "no" | "false" | "off" => Self::Nothing,
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
enum Sink {
    None,
    Tables,
    Lines(File),
}

/// Where a rank reports to, and what it has reported.
#[derive(Debug)]
pub(crate) struct Reporter {
    rank: usize,
    sink: Sink,
    /// Windows that had operations, and all of these.
    so_far: Mutex<(usize, Explanation)>,
}

/// A line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    rank: usize,
    window: u32,
    name: &'a str,
    operation: &'static str,
    path: &'static str,
    reason: &'static str,
    operations: u64,
    bytes: u64,
}

impl Reporter {
    /// The reporter of a rank of the job.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(wanted: &Wanted, rank: usize) -> Result<Self> {
        let sink = match wanted {
            Wanted::Nothing => Sink::None,
            Wanted::Tables => Sink::Tables,
            Wanted::Lines(file) => {
                let mut name = file.clone().into_os_string();
                name.push(format!(".{rank}"));
                let opened = OpenOptions::new().create(true).append(true).open(&name);
                Sink::Lines(opened.map_err(|error| {
                    let message = format!(
                        "environment variable TRANSOM_EXPLAIN names a file that cannot be opened: {}: {error}",
                        name.display()
                    );
                    Error::new(Class::Argument, "init", message)
                })?)
            }
        };
        Ok(Self { rank, sink, so_far: Mutex::new((0, Explanation::new())) })
    }

    /// A window goes.
    pub fn window(&self, number: u32, name: &str, explanation: &Explanation) {
        if explanation.is_empty() {
            return;
        }
        self.tell_events(number, name, explanation);
        match &self.sink {
            Sink::None => {}
            Sink::Tables => {
                let space = if name.is_empty() { "" } else { " " };
                self.print(&format!("rank {}, window {number}{space}{name}:\n{explanation}\n", self.rank));
                let mut so_far = self.so_far.lock();
                so_far.0 += 1;
                so_far.1.merge(explanation);
            }
            Sink::Lines(file) => self.write(file, number, name, explanation),
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

    fn write(&self, mut file: &File, window: u32, name: &str, explanation: &Explanation) {
        let lines = explanation.entries().map(|entry| self.line(window, name, &entry));
        let text: serde_json::Result<Vec<String>> = lines.map(|line| serde_json::to_string(&line)).collect();
        let written = text.map_err(io::Error::from).and_then(|lines| {
            // Ranks of several jobs may have the file: each call of the system appends all it is given.
            file.write_all((lines.join("\n") + "\n").as_bytes())
        });
        if let Err(error) = written {
            tracing::warn!(rank = self.rank, window, %error, "an explanation could not be written");
        }
    }

    fn line<'a>(&self, window: u32, name: &'a str, entry: &Entry) -> Line<'a> {
        Line {
            rank: self.rank,
            window,
            name,
            operation: entry.kind.text(),
            path: entry.path.text(),
            reason: entry.reason.text(),
            operations: entry.count.operations,
            bytes: entry.count.bytes,
        }
    }

    fn tell_events(&self, window: u32, name: &str, explanation: &Explanation) {
        for entry in explanation.entries() {
            tracing::info!(
                target: "transom::explain",
                rank = self.rank,
                window,
                name,
                operation = entry.kind.text(),
                path = entry.path.text(),
                reason = entry.reason.text(),
                operations = entry.count.operations,
                bytes = entry.count.bytes,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Count, Kind, Path, Reason};

    #[test]
    fn values_of_the_setting() {
        for off in [None, Some(""), Some("0"), Some("no")] {
            assert!(!Wanted::parse(off).is_some(), "{off:?}");
        }
        assert_eq!(Wanted::parse(Some(" YES ")), Wanted::Tables);
        assert_eq!(Wanted::parse(Some("1")), Wanted::Tables);
        assert_eq!(Wanted::parse(Some("/tmp/paths.json")), Wanted::Lines("/tmp/paths.json".into()));
    }

    #[test]
    fn a_line_is_json_whatever_the_windows_name() {
        let reporter = Reporter::open(&Wanted::Nothing, 3).unwrap();
        let count = Count { operations: 5, bytes: 40 };
        let entry = Entry { kind: Kind::Put, path: Path::Direct, reason: Reason::Mapped, count };
        let line = serde_json::to_string(&reporter.line(2, "a \"halo\"", &entry)).unwrap();
        let expected = r#"{"rank":3,"window":2,"name":"a \"halo\"","operation":"put","path":"direct","reason":"mapped","operations":5,"bytes":40}"#;
        assert_eq!(line, expected);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error_that_names_it() {
        let error = Reporter::open(&Wanted::Lines("/nowhere/paths".into()), 1).unwrap_err();
        assert_eq!(error.class(), Class::Argument);
        assert!(error.to_string().contains("/nowhere/paths.1"), "{error}");
    }
}
