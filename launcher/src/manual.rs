//! Manual pages and shell completions, made from the command line's definition.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::cli::{Cli, USAGE};
use crate::info::settings;

/// The paragraph of a command's help that is a section of its own.
const EXIT_CODE: &str = "Exit code: ";

/// Prints the completions of a shell.
pub fn completions(shell: Shell) -> ExitCode {
    // What clap_complete writes to must not fail; a closed pipe may.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "transom", &mut script);
    ended(io::stdout().write_all(&script), "standard output")
}

/// Writes a page for the command and one for each of its commands into a folder.
pub fn pages(folder: &Path) -> ExitCode {
    ended(write_pages(folder), &folder.display().to_string())
}

fn ended(result: io::Result<()>, place: &str) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    crate::tell(&format!("{place}: {error}"));
    ExitCode::from(USAGE)
}

fn write_pages(folder: &Path) -> io::Result<()> {
    let mut transom = Cli::command().disable_help_subcommand(true);
    transom.build();
    fs::create_dir_all(folder)?;
    for command in std::iter::once(&transom).chain(transom.get_subcommands()) {
        let name = command.get_display_name().unwrap_or("transom");
        fs::write(folder.join(format!("{name}.1")), page(&transom, command)?)?;
    }
    Ok(())
}

/// A page in the order that pages have. What stands after a command's help is its notes and its exit status.
fn page(transom: &Command, command: &Command) -> io::Result<Vec<u8>> {
    let source = format!("Transom {}", transom.get_version().unwrap_or_default());
    // No date, since pages are the same whenever they are made; an empty one would be left out, and the others taken for it.
    let man = Man::new(command.clone()).date(" ").source(source).manual("Transom's manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    notes(&mut rest, command);
    if command.get_name() == "run" {
        environment(&mut rest);
    }
    see_also(&mut rest, transom, command);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn notes(roff: &mut Roff, command: &Command) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (status, notes): (Vec<_>, Vec<_>) =
        help.split("\n\n").filter(|text| !text.is_empty()).partition(|text| text.starts_with(EXIT_CODE));
    for (heading, texts) in [("NOTES", notes), ("EXIT STATUS", status)] {
        if !texts.is_empty() {
            roff.control("SH", [heading]);
        }
        for text in texts {
            // Lines are filled, but for those with an indent.
            roff.text([roman(text.trim_start_matches(EXIT_CODE))]);
        }
    }
}

fn environment(roff: &mut Roff) {
    roff.control("SH", ["ENVIRONMENT"]);
    for setting in settings::all() {
        roff.control("TP", []);
        roff.text([bold(setting.name), roman(" ("), italic(setting.range_text()), roman(")")]);
        roff.text([roman(format!("{} [default: {}]", setting.meaning, setting.default))]);
    }
}

fn see_also(roff: &mut Roff, transom: &Command, command: &Command) {
    let others = std::iter::once(transom).chain(transom.get_subcommands());
    let names = others.filter_map(|other| other.get_display_name().or(Some(other.get_name())));
    let own = command.get_display_name().unwrap_or(command.get_name());
    roff.control("SH", ["SEE ALSO"]);
    let mut text = Vec::new();
    for name in names.filter(|name| *name != own) {
        text.extend([roman(if text.is_empty() { "" } else { ", " }), bold(name), roman("(1)")]);
    }
    roff.text(text);
}
