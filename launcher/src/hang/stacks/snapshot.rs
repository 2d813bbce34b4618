//! Registers and the top of the stack of a thread of another process, as /proc has them: nothing is stopped, and nobody notices.

use std::fs::{File, read_to_string};
use std::io;
use std::os::unix::fs::FileExt;

use framehop::UnwindRegsNative;

use super::Thread;

/// Bytes of a stack that are copied: enough for the calls of Transom and of what it uses.
const STACK: usize = 128 << 10;

/// A thread that does not run, at some moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The instruction that is next.
    pub at: u64,
    /// What unwinding begins with: the kernel tells no more of them than these.
    pub registers: UnwindRegsNative,
    stack_at: u64,
    stack: Vec<u8>,
}

impl Snapshot {
    /// A word of its stack.
    pub fn word(&self, address: u64) -> Option<u64> {
        let start = usize::try_from(address.checked_sub(self.stack_at)?).ok()?;
        let bytes = self.stack.get(start..start.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Where its words are, from an address on.
    pub fn addresses(&self, from: u64) -> impl Iterator<Item = u64> + use<> {
        (from..self.end()).step_by(8)
    }

    /// Behind the last of them.
    pub fn end(&self) -> u64 {
        self.stack_at.saturating_add(self.stack.len() as u64)
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(at: u64, stack: u64) -> UnwindRegsNative {
    // The base pointer is not known, and no frame is at 0: who needs it is not unwound, or has it looked for.
    UnwindRegsNative::new(at, stack, 0)
}

#[cfg(target_arch = "aarch64")]
fn registers(_: u64, stack: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(0, stack, 0)
}

/// A thread that sleeps or is stopped, in a process with that memory; none if it runs.
///
/// # Errors
/// It has ended, or its kernel does not let it be looked at.
pub fn take(thread: Thread, memory: &File) -> io::Result<Option<Snapshot>> {
    let path = format!("/proc/{}/task/{}", thread.process, thread.thread);
    let switches = || Ok::<_, io::Error>(switches(&read_to_string(format!("{path}/status"))?));
    // proc_pid_syscall(5): whose thread is not asleep has no such addresses.
    let call = || read_to_string(format!("{path}/syscall"));
    let (switched, called) = (switches()?, call()?);
    let mut words = called.split_whitespace().rev();
    let mut address = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let Some((at, stack_at)) = address().zip(address()) else { return Ok(None) };
    let stack = top(memory, stack_at);
    // Who has run since has been switched to and from, even if it sleeps in the same call again.
    let is_whole = call()? == called && switches()? == switched && switched.is_some();
    let registers = registers(at, stack_at);
    Ok(is_whole.then_some(Snapshot { at, registers, stack_at, stack }))
}

/// How often a thread has been taken off its processor, of proc_pid_status(5): by itself, and by others.
fn switches(status: &str) -> Option<(u64, u64)> {
    let count = |name: &str| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok();
    Some((count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?))
}

/// What can be read from an address on: the stack may end before.
fn top(memory: &File, address: u64) -> Vec<u8> {
    let mut bytes = vec![0; STACK];
    let mut done = 0;
    while done < STACK
        && let Some(from) = address.checked_add(done as u64)
        && let Ok(count @ 1..) = memory.read_at(&mut bytes[done..], from)
    {
        done += count;
    }
    bytes.truncate(done);
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, ChildStdout, Command, Stdio};
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    /// A shell that runs a script as its child, says its number, and how it has ended. (A child of this process would be reaped here.)
    fn grandchild(script: &str) -> (Child, BufReader<ChildStdout>, i32) {
        let outer = "bash -c \"$1\" & echo $!; wait $!; echo $?";
        let mut command = Command::new("sh");
        let mut shell = command.args(["-c", outer, "sh", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(shell.stdout.take().unwrap());
        let number = line(&mut output).parse().unwrap();
        (shell, output, number)
    }

    fn line(output: &mut BufReader<ChildStdout>) -> String {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn state(process: i32) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    fn wait_for(process: i32, expected: char) {
        while state(process) != Some(expected) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// What a look at a process's first thread finds.
    fn look(process: i32) -> io::Result<Option<Snapshot>> {
        let memory = File::open(format!("/proc/{process}/mem"))?;
        take(Thread { process, thread: process, waits: false }, &memory)
    }

    #[test]
    fn what_is_stopped_stays_so() {
        let (mut shell, mut output, process) = grandchild("kill -STOP $$; exit 7");
        wait_for(process, 'T');
        let at = look(process).unwrap().unwrap().at;
        for _ in 0..100 {
            let found = look(process).unwrap().unwrap();
            assert!(found.word(found.stack_at).is_some() && found.at == at && at != 0);
            assert_eq!(state(process), Some('T'));
        }
        kill(Pid::from_raw(process), Signal::SIGCONT).unwrap();
        assert_eq!(line(&mut output), "7");
        shell.wait().unwrap();
    }

    /// Signals with a name and without one, that come at any moment.
    #[test]
    fn signals_are_delivered_all_the_same() {
        for signal in ["USR1", "RTMIN+3"] {
            for _ in 0..20 {
                let script = format!("trap 'exit 7' {signal}; kill -STOP $$; while :; do :; done");
                let (mut shell, mut output, process) = grandchild(&script);
                wait_for(process, 'T');
                kill(Pid::from_raw(process), Signal::SIGCONT).unwrap();
                let looks = std::thread::spawn(move || {
                    let looks = std::iter::from_fn(|| look(process).ok());
                    looks.inspect(|_| std::thread::yield_now()).count()
                });
                let sent = Command::new("bash").args(["-c", &format!("kill -s {signal} {process}")]).status();
                assert!(sent.unwrap().success());
                assert_eq!(line(&mut output), "7");
                looks.join().unwrap();
                shell.wait().unwrap();
            }
        }
    }

    #[test]
    fn what_runs_is_said_to_run() {
        let (mut shell, mut output, process) =
            grandchild("trap 'exit 7' USR1; kill -STOP $$; while :; do :; done");
        wait_for(process, 'T');
        kill(Pid::from_raw(process), Signal::SIGCONT).unwrap();
        wait_for(process, 'R');
        let ran = (0..100).filter(|_| look(process).unwrap().is_none()).count();
        assert!(ran > 50, "{ran}");
        kill(Pid::from_raw(process), Signal::SIGUSR1).unwrap();
        assert_eq!(line(&mut output), "7");
        shell.wait().unwrap();
    }

    #[test]
    fn what_has_ended_is_nowhere() {
        assert!(look(i32::MAX - 1).is_err());
    }

    #[test]
    fn counts_of_switches() {
        let status =
            "Name:\tvoluntary_ctxt_switches:\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t77\n";
        assert_eq!(switches(status), Some((5, 77)));
        assert_eq!(switches("Name:\tx\n"), None);
    }
}
