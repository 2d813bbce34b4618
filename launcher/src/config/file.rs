//! One file of settings.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, Item, Value};
use transom::settings::{Range as Values, Setting};

use crate::info::settings;

/// A file of settings, with what it has set.
#[derive(Debug)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its settings; `None`: there is no such file.
    pub entries: Option<Vec<Entry>>,
}

/// A setting in a file.
#[derive(Debug)]
pub struct Entry {
    /// Which.
    pub setting: &'static Setting,
    /// Its value, as its variable would have it.
    pub value: String,
    /// Where it stands, from 1.
    pub line: usize,
}

impl File {
    /// Reads a file, which may be missing unless it was asked for; says what is wrong with it, and where.
    pub fn read(path: PathBuf, asked: bool) -> Result<Self, String> {
        let entries = match std::fs::read_to_string(&path) {
            Ok(text) => Some(parse(&path, &text)?),
            // In the home directory of another user (HOME after sudo) this one has no file.
            Err(error) if !asked && (error.kind() == ErrorKind::NotFound || hidden(&path)) => None,
            Err(error) if asked => return Err(format!("TRANSOM_CONFIG: {}: {error}", path.display())),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        Ok(Self { path, entries })
    }

    /// What it says of a setting.
    pub fn get(&self, setting: &Setting) -> Option<&Entry> {
        self.entries.as_ref()?.iter().find(|entry| entry.setting.name == setting.name)
    }
}

/// Whether this user cannot even see what is in its directory.
fn hidden(path: &Path) -> bool {
    path.parent().is_some_and(|folder| std::fs::metadata(folder.join(".")).is_err())
}

/// A setting's name in files.
pub fn key(setting: &Setting) -> String {
    setting.name.trim_start_matches("TRANSOM_").to_ascii_lowercase()
}

fn parse(path: &Path, text: &str) -> Result<Vec<Entry>, String> {
    let line = |span: Option<Range<usize>>| {
        let before = text.get(..span.map_or(0, |span| span.start)).unwrap_or(text);
        before.matches('\n').count() + 1
    };
    let wrong = |line, what: String| format!("{} line {line}: {what}", path.display());
    let document =
        Document::parse(text).map_err(|error| wrong(line(error.span()), error.message().to_owned()))?;
    let mut entries = Vec::new();
    for (name, item) in document.as_table() {
        let line = line(document.key(name).and_then(|key| key.span()));
        let mut settings = settings::all().filter(|setting| setting.name != settings::CONFIG.name);
        let unknown = || wrong(line, format!("{name}: there is no such setting; transom config prints all"));
        let setting = settings.find(|setting| key(setting) == name).ok_or_else(unknown)?;
        let refused = |what: String| wrong(line, format!("{name}: {what} ({})", setting.range_text()));
        let value = value(setting, item).map_err(refused)?;
        setting.check(&value).map_err(|why| refused(format!("{value:?}: {why}")))?;
        entries.push(Entry { setting, value, line });
    }
    Ok(entries)
}

/// A value as its variable would have it.
fn value(setting: &Setting, item: &Item) -> Result<String, String> {
    let is_number = matches!(setting.range, Values::Number(..));
    let text = match item.as_value() {
        Some(Value::Integer(number)) if is_number => return Ok(number.value().to_string()),
        Some(Value::String(text)) if !is_number => Some(text.value().clone()),
        Some(Value::Array(array)) if setting.kind.contains("list") => Some(joined(array)?),
        _ => None,
    };
    let wanted = if is_number { "a whole number without quotes" } else { "text in quotes" };
    let text = text.ok_or_else(|| format!("is {}, and has to be {wanted}", name_of(item)))?;
    if text.contains('\0') { Err("has a zero byte".to_owned()) } else { Ok(text) }
}

/// What an item is, in words.
fn name_of(item: &Item) -> String {
    let name = item.type_name();
    format!("{} {name}", if name.starts_with(['a', 'i']) { "an" } else { "a" })
}

/// `["a", "b"]` is `a,b`.
fn joined(array: &Array) -> Result<String, String> {
    let words: Option<Vec<&str>> = array.iter().map(Value::as_str).collect();
    words
        .map(|words| words.join(","))
        .ok_or_else(|| "is a list, of which each has to be text in quotes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(&'static str, String, usize)>, String> {
        let entries = parse(Path::new("f"), text)?;
        Ok(entries.into_iter().map(|entry| (entry.setting.name, entry.value, entry.line)).collect())
    }

    #[test]
    fn settings_of_a_file() {
        let text = "# ours\ntcp_silence = 20\n\ntransport = [\"shm\",\n  \"tcp\"]\natomics = \"cpu\" # sure\nheap = 0\n";
        let expected = [
            ("TRANSOM_TCP_SILENCE", "20".to_owned(), 2),
            ("TRANSOM_TRANSPORT", "shm,tcp".to_owned(), 4),
            ("TRANSOM_ATOMICS", "cpu".to_owned(), 6),
            ("TRANSOM_HEAP", "0".to_owned(), 7),
        ];
        assert_eq!(read(text).unwrap(), expected);
        assert_eq!(
            read("transport = \"shm,tcp\"").unwrap(),
            [("TRANSOM_TRANSPORT", "shm,tcp".to_owned(), 1)]
        );
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, words) in [
            ("\ntcp_silense = 20", "f line 2: tcp_silense: there is no such setting"),
            ("TRANSOM_SPIN = 20", "f line 1: TRANSOM_SPIN: there is no such setting"),
            ("config = \"x\"", "f line 1: config: there is no such setting"),
            ("[tcp]\nsilence = 3", "f line 1: tcp: there is no such setting"),
            (
                "[spin]\nx = 3",
                "f line 1: spin: is a table, and has to be a whole number without quotes (microseconds, 0 or more)",
            ),
            ("spin = \"20\"", "f line 1: spin: is a string, and has to be a whole number"),
            ("spin = 1.5", "is a float, and has to be a whole number"),
            ("spin = -1", "spin: \"-1\": not a whole number (microseconds, 0 or more)"),
            ("#\n#\ntcp_silence = 0", "f line 3: tcp_silence: \"0\": the least is 1 (seconds, 1 or more)"),
            ("atomics = true", "is a boolean, and has to be text in quotes (auto, cpu or nic)"),
            ("atomics = \"gpu\"", "atomics: \"gpu\": not auto, cpu or nic"),
            ("atomics = [\"cpu\"]", "is an array, and has to be text"),
            ("transport = [\"shm\", 3]", "each has to be text"),
            ("transport = \"shm,udp\"", "\"udp\" is none of shm, verbs, ofi, tcp"),
            ("fan_out = 5000000000", "the most is 4294967295"),
            ("libfabric = \"a\\u0000b\"", "zero byte"),
            ("spin = 1\nspin = 2", "f line 2: "),
            ("spin =\n", "f line 1: "),
            ("spin = 1\n\nheap = \"", "f line 3: "),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(words), "{text:?}: {why}");
        }
    }
}
