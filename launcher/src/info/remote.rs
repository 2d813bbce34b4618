//! Asking another host: `transom info` there, by the command that starts agents there.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::settings;
use crate::cli::InfoArgs;
use crate::config::NO_FILES;
use crate::run::plan::Route;

/// Has the host print its page to this process's standard output.
pub fn print(route: &Route, host: &str, args: &InfoArgs) -> Result<(), String> {
    let exe = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}"))?;
    let line = command_line(&exe.to_string_lossy(), &environment(), args);
    let mut command = match route {
        Route::Rsh(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("", String::as_str));
            command.args(words);
            command
        }
        _ => {
            let mut command = Command::new("ssh");
            let seconds = args.reach.connect_timeout.as_secs().max(1);
            command.args(["-x", "-T", "-o", "BatchMode=yes", "-o"]).arg(format!("ConnectTimeout={seconds}"));
            command
        }
    };
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.arg(host).arg(line).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}; is transom installed there?")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// What `transom run` would give to ranks and bears on what is printed.
fn environment() -> Vec<String> {
    let matters = |name: &str| {
        let begins = ["TRANSOM_", "FI_"].iter().any(|prefix| name.starts_with(prefix));
        (begins || ["LD_LIBRARY_PATH", "COLUMNS"].contains(&name))
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let mut all: Vec<String> = std::env::vars_os()
        .filter_map(text)
        .filter(|(name, _)| matters(name) && name != settings::CONFIG.name)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if let Some((width, _)) = terminal_size::terminal_size_of(std::io::stdout()) {
        all.push(format!("COLUMNS={}", width.0));
    }
    // Files count here, not there.
    all.push(format!("{}={NO_FILES}", settings::CONFIG.name));
    all
}

/// For any login shell: the same file as here if the host has it, else `transom` from its PATH; `@` stands for either.
fn command_line(exe: &str, environment: &[String], args: &InfoArgs) -> String {
    let script = "if [ -x \"$0\" ]; then e=$0; else e=transom; fi; \
                  for a; do shift; [ \"$a\" = @ ] && a=$e; set -- \"$@\" \"$a\"; done; exec env \"$@\"";
    let mut words = vec![script.to_owned(), exe.to_owned()];
    words.extend_from_slice(environment);
    words.extend(["@".to_owned(), "info".to_owned()]);
    words.extend(args.atomics.iter().map(|provider| format!("--atomics={provider}")));
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    format!("exec sh -c {}", quoted.join(" "))
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\n', " ").replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gives_every_word_back() {
        let args =
            InfoArgs { atomics: vec!["tcp;ofi_rxm".into(), "it's $HOME".into()], ..Default::default() };
        let line = command_line("/bin/echo", &["A=x y'z\"".into(), "B=@@ *".into()], &args);
        let out = Command::new("sh").args(["-c", &line]).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert_eq!(text, "info --atomics=tcp;ofi_rxm --atomics=it's $HOME\n", "{line}");
    }
}
