//! Every setting, with its value here.

use std::env;

use transom::settings::{SETTINGS, Setting};

use super::page::Page;

/// The launcher's own.
const RSH: Setting = Setting {
    name: "TRANSOM_RSH",
    kind: "command",
    default: "ssh",
    meaning: "how run and info start something on another host; called as COMMAND HOST COMMANDLINE",
};
const FAN_OUT: Setting = Setting {
    name: "TRANSOM_FAN_OUT",
    kind: "number",
    default: "32",
    meaning: "hosts that are reached from one; if there are more, agents start agents; 0: all are reached from the launcher's",
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
    SETTINGS.iter().chain([&RSH, &FAN_OUT])
}

/// Prints the section.
pub fn print(page: &mut Page) {
    let all: Vec<&Setting> = all().collect();
    let mut facts = Vec::new();
    for setting in &all {
        let (mark, value) = match env::var_os(setting.name) {
            None => ("", setting.default.to_owned()),
            Some(set) => {
                let wrong = wrong(setting, set.to_str()).map(|why| format!(" <- INVALID: {why}"));
                let value = format!(
                    "{}{}  (default: {})",
                    set.to_string_lossy(),
                    wrong.unwrap_or_default(),
                    setting.default
                );
                ("* ", value)
            }
        };
        facts.push((
            format!("{mark}{}", setting.name),
            format!("{value}\n[{}] {}", setting.kind, setting.meaning),
        ));
    }
    page.facts(facts);
    page.paragraph("* set here; the others have their defaults. Ranks get the environment of `transom run`.");
    let known = |name: &str| {
        all.iter().any(|s| s.name == name) || NO_SETTINGS.iter().any(|other| name.starts_with(other))
    };
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("TRANSOM_") && !known(&name) {
            page.paragraph(&format!("{name} is set, and this version has no such setting: misspelt?"));
        }
    }
}

/// Why the runtime would refuse a value.
fn wrong(setting: &Setting, value: Option<&str>) -> Option<&'static str> {
    let Some(value) = value else { return Some("no text") };
    match setting.kind {
        "microseconds" | "seconds" | "number" | "bytes" => {
            value.trim().parse::<u64>().is_err().then_some("not a whole number")
        }
        "list of shm, verbs, ofi, tcp" => value
            .split(',')
            .any(|name| !["shm", "verbs", "ofi", "tcp"].contains(&name.trim()))
            .then_some("known are shm, verbs, ofi and tcp"),
        "auto, cpu or nic" => {
            (!["auto", "cpu", "nic"].contains(&value.trim())).then_some("known are auto, cpu and nic")
        }
        "command" => value.trim().is_empty().then_some("no command"),
        _ => None,
    }
}
