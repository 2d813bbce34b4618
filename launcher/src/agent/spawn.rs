//! Starts a rank's process.
//!
//! [`Command`] passes descriptors on by a hook between fork and exec, and forks for that: the agent's page tables are copied for each
//! rank, and then each page that one of them writes. posix_spawn(3) copies nothing.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;

/// A new process, leader of a process group, and this end of its standard streams.
#[derive(Debug)]
pub(super) struct Spawned {
    pub pid: Pid,
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Starts program, arguments and variables of a command (all variables; of its other properties none). Its standard input is empty
/// unless it `reads` ours. `passed` are its descriptors from `first` on.
pub(super) fn spawn(command: &Command, reads: bool, first: RawFd, passed: &[OwnedFd]) -> io::Result<Spawned> {
    let (stdin, input): (OwnedFd, _) = match reads {
        true => {
            let (theirs, ours) = io::pipe()?;
            (theirs.into(), Some(ours.into()))
        }
        false => (File::open("/dev/null")?.into(), None),
    };
    let (stdout, its_output) = io::pipe()?;
    let (stderr, its_errors) = io::pipe()?;
    let mut actions = PosixSpawnFileActions::init()?;
    for (from, to) in [stdin.as_raw_fd(), its_output.as_raw_fd(), its_errors.as_raw_fd()].into_iter().zip(0..)
    {
        actions.add_dup2(from, to)?;
    }
    let passed: Vec<RawFd> = passed.iter().map(AsRawFd::as_raw_fd).collect();
    for (from, to) in moves(&passed, first) {
        actions.add_dup2(from, to)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_pgroup(Pid::from_raw(0))?;
    // As `Command` has it: programs do not expect to ignore SIGPIPE, which Rust's do.
    attributes.set_sigmask(&SigSet::empty())?;
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK
            | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    let program = command.get_program();
    let args: Vec<CString> =
        std::iter::once(program).chain(command.get_args()).map(string).collect::<io::Result<_>>()?;
    let variables = command.get_envs().filter_map(|(name, value)| {
        let parts = [name.as_bytes(), b"=", value?.as_bytes()];
        Some(string(OsStr::from_bytes(&parts.concat())))
    });
    let variables: Vec<CString> = variables.collect::<io::Result<_>>()?;
    let pid = posix_spawn(program, &actions, &attributes, &args, &variables)?;
    Ok(Spawned { pid, stdin: input, stdout: stdout.into(), stderr: stderr.into() })
}

/// What is copied to what number, one after the other, so that `passed` are at `first` and behind it: first to numbers that are
/// nobody's, since those from `first` on may be other ones of them.
fn moves(passed: &[RawFd], first: RawFd) -> Vec<(RawFd, RawFd)> {
    let beyond = first + passed.len() as RawFd;
    let free: Vec<RawFd> = (beyond..).filter(|fd| !passed.contains(fd)).take(passed.len()).collect();
    let away = passed.iter().copied().zip(free.iter().copied());
    away.chain(free.iter().copied().zip(first..)).collect()
}

fn string(of: &OsStr) -> io::Result<CString> {
    CString::new(of.as_bytes()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn descriptors_come_to_their_places_whatever_their_numbers() {
        for passed in [&[3][..], &[3, 4, 5], &[5, 3, 4], &[4, 3], &[9, 4, 3], &[6, 7, 8], &[]] {
            let mut table: Vec<Option<RawFd>> =
                (0..20).map(|fd| passed.contains(&fd).then_some(fd)).collect();
            for (from, to) in moves(passed, 3) {
                table[to as usize] = table[from as usize];
            }
            let found: Vec<RawFd> = table[3..].iter().take(passed.len()).map(|fd| fd.unwrap()).collect();
            assert_eq!(found, passed);
        }
    }

    #[test]
    fn a_process_has_its_streams_variables_and_descriptors() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "read line; echo \"$line $WHAT\" >&2; cat <&3; exec ps -o pgid= $$"]);
        command.env_clear().env("WHAT", "is told").env("PATH", std::env::var_os("PATH").unwrap());
        let passed: OwnedFd = File::open("/proc/self/comm").unwrap().into();
        let Spawned { pid, stdin, stdout, stderr } = spawn(&command, true, 3, &[passed]).unwrap();
        io::Write::write_all(&mut File::from(stdin.unwrap()), b"what is read\n").unwrap();
        let read = |from: OwnedFd| {
            let mut text = String::new();
            File::from(from).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read(stderr), "what is read is told\n");
        let own = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(read(stdout).split_whitespace().collect::<Vec<_>>(), [own.trim(), &pid.to_string()]);
        nix::sys::wait::waitpid(pid, None).unwrap();
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = spawn(&Command::new("/nowhere/at/all"), false, 3, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
