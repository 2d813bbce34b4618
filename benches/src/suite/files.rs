//! Files of figures: read, and written whole or not at all.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::row::Report;

/// What kind of file it is, and its version.
pub const FORMAT: &str = "transom-bench";
/// As this program writes it.
pub const VERSION: u32 = 1;

/// A file that is to be written: beside it there is one already, which takes its place when it is whole.
#[derive(Debug)]
pub struct Pending {
    file: NamedTempFile,
    path: PathBuf,
}

impl Pending {
    /// Makes sure that it can be written, before anything is measured.
    ///
    /// # Errors
    /// It cannot, in words.
    pub fn new(path: &Path) -> Result<Self, String> {
        if path.is_dir() {
            return Err(format!("cannot write {}: it is a directory", path.display()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // What the umask leaves of it.
        let permissions = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().prefix(".bench-").permissions(permissions).tempfile_in(folder);
        let file = file.map_err(|error| refused("write", path, &error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Writes it.
    ///
    /// # Errors
    /// No space, in words; what was there before is still there.
    pub fn write(mut self, text: &str) -> Result<(), String> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.as_file().sync_all());
        let written = written.and_then(|()| self.file.persist(&self.path).map_err(|error| error.error));
        written.map(drop).map_err(|error| refused("write", &self.path, &error))
    }
}

/// Reads a file of `--json`.
///
/// # Errors
/// There is none, or something else is in it, in words.
pub fn read(path: &Path) -> Result<Report, String> {
    let text = fs::read_to_string(path).map_err(|error| refused("read", path, &error))?;
    parse(&text).map_err(|why| format!("{}: {why}", path.display()))
}

fn parse(text: &str) -> Result<Report, String> {
    let foreign = "not a file of bench --json";
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("{foreign}: {error}"))?;
    if value.get("format").and_then(|format| format.as_str()) != Some(FORMAT) {
        return Err(foreign.to_owned());
    }
    let version = value.get("version").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let version = version.map_or("none".to_owned(), |version| version.to_string());
        return Err(format!("version {version} of bench --json, this bench reads {VERSION}"));
    }
    serde_json::from_value(value).map_err(|error| format!("damaged: {error}"))
}

/// `cannot read old.json: no such file or directory`.
fn refused(what: &str, path: &Path, error: &std::io::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    let reason = reason.split(" at path").next().unwrap_or_default();
    format!("cannot {what} {}: {reason}", path.display())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::Unit;
    use crate::suite::row::{Bound, Head, Machine, Row};

    /// A row of put latency, of the given rounds.
    pub fn row(bytes: usize, rounds: Vec<Vec<f64>>) -> Row {
        let [name, group, window, sync] = ["put-latency", "latency", "allocated", "flush"].map(str::to_owned);
        let head = Head { name, group, window, sync, bytes, ranks: 2, pair: None, unit: Unit::Time };
        let limit = Bound { name: "memcpy".into(), times: vec![5.0; rounds.len()] };
        let taken = rounds.concat().len() as u64;
        Row { rounds, taken, limit: Some(limit), valid: Some(true), ..Row::new(head, None) }
    }

    /// A file of such rows.
    pub fn report(rows: Vec<Row>) -> Report {
        Report {
            format: FORMAT.into(),
            version: VERSION,
            began: 1,
            seconds: 2.0,
            complete: true,
            starts: 10,
            machine: Machine { cpu: "a <b> & \"c\"".into(), ..Machine::default() },
            settings: [("window".to_owned(), "allocated".to_owned())].into(),
            rows,
        }
    }

    #[test]
    fn written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.json");
        let report = report(vec![row(8, vec![vec![1.5, 2.5], vec![]])]);
        Pending::new(&path).unwrap().write(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), report);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, why) in [
            ("", "not a file"),
            ("{}", "not a file"),
            ("[1]", "not a file"),
            (r#"{"format":"transom-bench","version":9}"#, "version 9"),
            (r#"{"format":"transom-bench","version":1}"#, "damaged"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(read(Path::new("/nonexistent/old.json")).unwrap_err().contains("no such file"));
        assert!(Pending::new(Path::new("/nonexistent/page.html")).unwrap_err().starts_with("cannot write"));
        assert!(Pending::new(Path::new("/tmp")).unwrap_err().contains("directory"));
    }
}
