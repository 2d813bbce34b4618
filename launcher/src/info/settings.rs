//! Every setting, with its value here.

use std::env;
use std::ffi::OsStr;

use transom::settings::{Range, SETTINGS, Setting};

use super::page::Page;

/// The launcher's own.
const RSH: Setting = Setting {
    name: "TRANSOM_RSH",
    kind: "command",
    range: Range::Form(|command| !command.is_empty()),
    default: "ssh",
    meaning: "how run and info start something on another host; called as COMMAND HOST COMMANDLINE",
};
const FAN_OUT: Setting = Setting {
    name: "TRANSOM_FAN_OUT",
    kind: "number",
    range: Range::Number(0, u32::MAX as u64),
    default: "32",
    meaning: "hosts that are reached from one; if there are more, agents start agents; 0: all are reached from the launcher's",
};
const HOST_TIMEOUT: Setting = Setting {
    name: "TRANSOM_HOST_TIMEOUT",
    kind: "seconds",
    range: Range::Number(0, 1_000_000_000),
    default: "10",
    meaning: "how long another host of a job may give no sign of life before the job is ended; 0: for ever",
};
const ALLOCATION: Setting = Setting {
    name: "TRANSOM_ALLOCATION",
    kind: "auto, none, slurm, flux, lsf, pbs, sge or kubernetes",
    range: Range::Word(&crate::allocation::WORDS),
    default: "auto",
    meaning: "whose job run takes hosts and number of ranks from when none are named: any that it is in, none, or this system's \
              (sge: Grid Engine; kubernetes: the MPI operator)",
};

/// Where the others are: no setting of a file.
pub(crate) const CONFIG: Setting = Setting {
    name: "TRANSOM_CONFIG",
    kind: "path, or none",
    range: Range::Text,
    default: "/etc/transom.toml",
    meaning: "the system's file of settings, which the user's own comes before; none: no file is read, nor is the user's",
};

/// Variables that the launcher sets for ranks, and tests for themselves.
const NO_SETTINGS: [&str; 8] = [
    "TRANSOM_HOST_COUNT",
    "TRANSOM_HOST_NUMBER",
    "TRANSOM_LOCAL_RANK",
    "TRANSOM_LOCAL_SIZE",
    "TRANSOM_TERMINAL_WIDTH",
    "TRANSOM_WAITS_FD",
    "TRANSOM_NETNS",
    "TRANSOM_TEST_",
];

/// Whether a job may use a transport.
pub fn names_transport(name: &str) -> bool {
    env::var("TRANSOM_TRANSPORT").map_or(true, |list| list.split(',').any(|word| word.trim() == name))
}

/// Those of the runtime and the launcher's own.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().chain([&RSH, &FAN_OUT, &HOST_TIMEOUT, &ALLOCATION, &CONFIG])
}

/// Prints the section.
pub fn print(page: &mut Page) {
    let value = |setting: &Setting| match env::var_os(setting.name) {
        None => ("", setting.default.to_owned()),
        Some(set) => ("* ", format!("{}  (default: {})", shown(setting, &set), setting.default)),
    };
    page.facts(all().map(|setting| row(setting, value(setting))).collect());
    page.paragraph(
        "* set here, by the environment or a file (transom config says which); the others have their defaults. Ranks get the \
         environment of `transom run`.",
    );
    unknown(page);
}

/// A setting with its value, what it may be, and what it means.
pub(crate) fn row(setting: &Setting, (mark, value): (&str, String)) -> (String, String) {
    let text = format!("{value}\n[{}] {}", setting.range_text(), setting.meaning);
    (format!("{mark}{}", setting.name), text)
}

/// A variable's value, and what is wrong with it.
pub(crate) fn shown(setting: &Setting, value: &OsStr) -> String {
    let wrong = wrong(setting, value).map(|why| format!(" <- INVALID: {why}"));
    format!("{}{}", value.to_string_lossy(), wrong.unwrap_or_default())
}

/// Says which variables look like settings, and are none.
pub(crate) fn unknown(page: &mut Page) {
    let known =
        |name: &str| all().any(|s| s.name == name) || NO_SETTINGS.iter().any(|other| name.starts_with(other));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("TRANSOM_") && !known(&name) {
            page.paragraph(&format!("{name} is set, and this version has no such setting: misspelt?"));
        }
    }
}

/// Why the runtime would refuse a value.
pub(crate) fn wrong(setting: &Setting, value: &OsStr) -> Option<String> {
    value.to_str().map_or(Err("no text".to_owned()), |value| setting.check(value)).err()
}
