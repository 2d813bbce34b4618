//! Settings from files: which files there are, which of their settings count, and `transom config`, which prints it.
//!
//! All else of Transom knows settings as environment variables only. So a command that needs what the files say executes itself once
//! more with these variables; ranks of all hosts have them from there.

mod file;

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use transom::settings::Setting;

use crate::cli::{ConfigArgs, USAGE};
use crate::info::page::Page;
use crate::info::settings::{self, CONFIG};
use file::{Entry, File, key};

/// Value of TRANSOM_CONFIG with which no file is read.
pub(crate) const NO_FILES: &str = "none";
const FILE_NAME: &str = "transom.toml";

/// Reads the files, the one that counts first.
fn files() -> Result<Vec<File>, String> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let named = variable(CONFIG.name);
    if named.as_ref().is_some_and(|name| name == NO_FILES) {
        return Ok(Vec::new());
    }
    // XDG Base Directory Specification 0.8: a path that is not absolute does not count.
    let xdg = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let folder = xdg.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    let mut files = Vec::new();
    if let Some(folder) = folder {
        files.push(File::read(folder.join(FILE_NAME), false)?);
    }
    let asked = named.is_some();
    files.push(File::read(named.map_or_else(|| CONFIG.default.into(), PathBuf::from), asked)?);
    Ok(files)
}

/// What counts of the files.
fn get<'a>(files: &'a [File], setting: &Setting) -> Option<(&'a File, &'a Entry)> {
    files.iter().find_map(|file| Some((file, file.get(setting)?)))
}

/// Has this command's environment be what environment and files say; does not return if that changes it. Fails if a file is wrong.
pub fn apply() -> Result<(), String> {
    let files = files()?;
    let unset = settings::all().filter(|setting| env::var_os(setting.name).is_none());
    let missing: Vec<_> =
        unset.filter_map(|setting| Some((setting.name, &get(&files, setting)?.1.value))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let exe = env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
    let mut args = env::args_os();
    let mut command = Command::new(&exe);
    command.arg0(args.next().unwrap_or_else(|| OsString::from("transom"))).args(args).envs(missing);
    Err(format!("{}: {}", exe.display(), command.exec()))
}

/// `transom config`.
pub fn main(args: &ConfigArgs) -> ExitCode {
    let text = files().and_then(|files| match &args.explain {
        Some(name) => explain(&files, name),
        None => Ok(table(&files)),
    });
    match text {
        Ok(text) => {
            crate::info::print(&text);
            let wrong = |setting: &Setting| settings::wrong(setting, &env::var_os(setting.name)?);
            ExitCode::from(u8::from(settings::all().any(|setting| wrong(setting).is_some())))
        }
        Err(message) => {
            crate::tell(&message);
            ExitCode::from(USAGE)
        }
    }
}

fn table(files: &[File]) -> String {
    let mut page = Page::new();
    page.heading("Files");
    if files.is_empty() {
        page.paragraph("none is read (TRANSOM_CONFIG=none)");
    }
    let state = |file: &File| match file.entries.as_ref().map(Vec::len) {
        None => "not there".to_owned(),
        Some(1) => "1 setting".to_owned(),
        Some(count) => format!("{count} settings"),
    };
    page.facts(files.iter().map(|file| (file.path.display().to_string(), state(file))).collect());
    page.heading("Settings");
    page.facts(settings::all().map(|setting| settings::row(setting, value(files, setting))).collect());
    page.paragraph(
        "* set, by the environment, else by the first file that has it; the others have their defaults. In files names are in small \
         letters without TRANSOM_ (transom config --help).",
    );
    settings::unknown(&mut page);
    page.text
}

/// Mark and value of a setting, with where it comes from.
fn value(files: &[File], setting: &Setting) -> (&'static str, String) {
    let default = setting.default;
    match (env::var_os(setting.name), get(files, setting)) {
        (Some(set), _) => {
            ("* ", format!("{}  (environment; default: {default})", settings::shown(setting, &set)))
        }
        (None, Some((file, entry))) => {
            let place = format!("{} line {}", file.path.display(), entry.line);
            ("* ", format!("{}  ({place}; default: {default})", entry.value))
        }
        (None, None) => ("", format!("{default}  (default)")),
    }
}

/// All of one setting.
fn explain(files: &[File], name: &str) -> Result<String, String> {
    let named = |setting: &&Setting| setting.name == name || key(setting) == name;
    let unknown = || format!("--explain {name}: there is no such setting; transom config prints all");
    let setting = settings::all().find(named).ok_or_else(unknown)?;
    let mut page = Page::new();
    page.heading(setting.name);
    let mut counts = true;
    let mut one = |value: Option<String>| match value {
        Some(value) if std::mem::take(&mut counts) => format!("{value}  <- counts"),
        Some(value) => value,
        None => "-".to_owned(),
    };
    let mut facts = vec![
        ("meaning".to_owned(), setting.meaning.to_owned()),
        ("values".to_owned(), setting.range_text()),
        ("environment".to_owned(), one(env::var_os(setting.name).map(|set| settings::shown(setting, &set)))),
    ];
    if setting.name != CONFIG.name {
        facts.insert(2, ("name in files".to_owned(), key(setting)));
        for file in files {
            let value = file.get(setting).map(|entry| format!("{} (line {})", entry.value, entry.line));
            facts.push((file.path.display().to_string(), one(value)));
        }
    }
    facts.push(("default".to_owned(), one(Some(setting.default.to_owned()))));
    page.facts(facts);
    Ok(page.text)
}
