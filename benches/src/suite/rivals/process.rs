//! Programs that are run to their end, or to the end of their time.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::suite::interrupt;

/// How often is looked whether it has ended: seldom, as that takes time from a core that measures.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long a launcher has to end its ranks.
const GRACE: Duration = Duration::from_secs(3);
/// What of an error is repeated.
const LONGEST: usize = 200;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With code 0.
    Well,
    /// With another code, or by a signal, or in no time: in words.
    Badly(String),
    /// By Ctrl-C.
    Interrupted,
}

/// Runs a command in a process group of its own, and gives what it wrote to standard output.
///
/// Both of its outputs are files in `folder`: what it leaves running cannot hold them open for the reader.
///
/// # Errors
/// It cannot be started, in words.
pub fn run(mut command: Command, folder: &Path, limit: Duration) -> Result<(String, End), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let [out, err] = ["stdout", "stderr"].map(|name| folder.join(name));
    let create =
        |path: &Path| File::create(path).map_err(|error| format!("writing {}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("{program} does not start: {error}"))?;
    let end = wait(&mut child, limit);
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let text = read(&out);
    let end = match end {
        End::Badly(how) => End::Badly(format!("{how}{}", said(&read(&err), &text))),
        other => other,
    };
    Ok((text, end))
}

fn wait(child: &mut Child, limit: Duration) -> End {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return End::Well,
            Ok(Some(status)) => return End::Badly(format!("ended with {status}")),
            Ok(None) => {}
            Err(error) => return End::Badly(format!("cannot be waited for: {error}")),
        }
        if interrupt::is_asked() {
            end(child);
            return End::Interrupted;
        }
        if start.elapsed() > limit {
            end(child);
            return End::Badly(format!("had not ended after {} s", limit.as_secs_f64()));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Ends it and what it has started: launchers are asked first, as their ranks may be in groups of their own.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).map(Pid::from_raw);
    let signal = |signal| group.is_ok_and(|group| killpg(group, signal).is_ok());
    signal(Signal::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(INTERVAL);
    }
    // What is left of the group, whether its first process has ended or not.
    signal(Signal::SIGKILL);
    let _ = child.wait();
    let killed = Instant::now();
    while killed.elapsed() < GRACE && group.is_ok_and(|group| killpg(group, None).is_ok()) {
        std::thread::sleep(INTERVAL);
    }
}

/// `: the first line that says something`.
fn said(err: &str, out: &str) -> String {
    let is_own = |line: &&str| line.starts_with("bench ");
    let line = |text: &str| -> Option<String> {
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_own(line));
        let telling =
            lines().find(|line| line.to_lowercase().contains("error")).or_else(|| lines().next())?;
        Some(telling.chars().take(LONGEST).collect())
    };
    line(err).or_else(|| line(out)).map_or_else(String::new, |line| format!(": {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (String, End) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, folder.path(), limit).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn how_programs_end() {
        assert_eq!(shell("echo a; echo b >&2", LONG), ("a\n".into(), End::Well));
        let (text, End::Badly(why)) = shell("echo a; echo; echo 'an Error here' >&2; exit 3", LONG) else {
            panic!()
        };
        assert!(text.starts_with("a\n") && why.contains("status: 3: an Error here"), "{why}");
        let folder = tempfile::tempdir().unwrap();
        let missing = run(Command::new("/nonexistent/mpiexec"), folder.path(), LONG).unwrap_err();
        assert!(missing.contains("/nonexistent/mpiexec"), "{missing}");
    }

    #[test]
    fn what_takes_too_long_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("echo kept; sleep 1000 & echo $! >{}; wait", file.display());
        let (text, End::Badly(why)) = shell(&script, Duration::from_millis(500)) else { panic!() };
        assert!(text == "kept\n" && why.contains("had not ended after 0.5 s"), "{text} {why}");
        let child = fs::read_to_string(&file).unwrap();
        let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
    }
}
