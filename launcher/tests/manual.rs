//! Manual pages and completions have every command and every flag.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use clap::CommandFactory;
use transom_launcher::cli::Cli;

/// Names of the commands, and with each its long flags.
fn commands() -> Vec<(String, Vec<String>)> {
    let cli = Cli::command();
    let flags = |command: &clap::Command| {
        let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
        shown.filter_map(|flag| flag.get_long()).map(|name| format!("--{name}")).collect()
    };
    cli.get_subcommands().map(|command| (command.get_name().to_owned(), flags(command))).collect()
}

fn completions(shell: &str) -> String {
    let out = common::output(Command::new(common::TRANSOM).args(["completions", shell]));
    assert!(out.status.success(), "{shell}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let out = common::output(Command::new(common::TRANSOM).arg("man").arg(&pages));
    assert!(out.status.success() && out.stdout.is_empty() && out.stderr.is_empty(), "{out:?}");
    let there: BTreeSet<String> =
        pages.read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let names = commands().into_iter().map(|(name, _)| format!("transom-{name}.1"));
    assert_eq!(there, names.chain(["transom.1".to_owned()]).collect());
    for (name, flags) in commands() {
        let page = std::fs::read_to_string(pages.join(format!("transom-{name}.1"))).unwrap();
        for flag in flags {
            assert!(page.contains(&flag.replace('-', "\\-")), "{name}: {flag}");
        }
    }
    let run = std::fs::read_to_string(pages.join("transom-run.1")).unwrap();
    for part in [".SH NOTES", ".SH \"EXIT STATUS\"", ".SH ENVIRONMENT", "TRANSOM\\_TRANSPORT"] {
        assert!(run.contains(part) || run.contains(&part.replace('\\', "")), "{part}: {run}");
    }
    let refused = common::output(Command::new(common::TRANSOM).args(["man", "/dev/null/pages"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/dev/null/pages"));
}

#[test]
fn flags_are_completed() {
    for shell in ["zsh", "fish"] {
        let script = completions(shell);
        for (name, flags) in commands() {
            for flag in flags {
                let written = if shell == "fish" { flag.replace("--", "-l ") } else { flag };
                assert!(script.contains(&written), "{shell}, {name}: {written}");
            }
        }
    }
    for (words, wanted) in [
        ("--h", vec!["--hosts", "--hostfile", "--host-timeout", "--help"]),
        ("--bi", vec!["--bind"]),
        ("--no-such", vec![]),
    ] {
        // What bash does when TAB is pressed.
        let press = format!(
            "{}\nCOMP_WORDS=(transom run {words}); COMP_CWORD=2; _transom transom {words} run\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            completions("bash")
        );
        let out = common::output(Command::new("bash").args(["--norc", "-c", &press]));
        let said = String::from_utf8(out.stdout).unwrap();
        let said: BTreeSet<&str> = said.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(said, wanted.into_iter().collect(), "{words}");
    }
}
