//! Registers and the top of the stack of a thread of another process.

use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use framehop::UnwindRegsNative;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::Thread;

/// Bytes of a stack that are copied: enough for the calls of Transom and of what it uses.
const STACK: usize = 128 << 10;
/// Time for a thread to stop: it does so at once unless it is deep in the kernel.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_micros(50);
/// Looks at a thread that wakes while it is looked at.
const TRIES: usize = 5;

/// A thread at some moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The instruction that is next.
    pub at: u64,
    /// What unwinding begins with.
    pub registers: UnwindRegsNative,
    /// Whether its program would not notice that it is stopped for a moment.
    pub can_be_stopped: bool,
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
}

#[cfg(target_arch = "x86_64")]
fn sleeping(at: u64, stack: u64) -> UnwindRegsNative {
    // The base pointer is not known, and no address is 0: who needs it is not unwound.
    UnwindRegsNative::new(at, stack, 0)
}

#[cfg(target_arch = "aarch64")]
fn sleeping(_: u64, stack: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(0, stack, 0)
}

/// The next instruction, the stack's top, and all that unwinding needs, of a stopped thread.
#[cfg(target_arch = "x86_64")]
fn registers(thread: Pid) -> nix::Result<(u64, u64, UnwindRegsNative)> {
    let all = ptrace::getregs(thread)?;
    Ok((all.rip, all.rsp, UnwindRegsNative::new(all.rip, all.rsp, all.rbp)))
}

#[cfg(target_arch = "aarch64")]
fn registers(thread: Pid) -> nix::Result<(u64, u64, UnwindRegsNative)> {
    let all = ptrace::getregs(thread)?;
    Ok((all.pc, all.sp, UnwindRegsNative::new(all.regs[30], all.sp, all.regs[29])))
}

/// Calls of the kernel that go on after a stop. Some others do not (signal(7)), and are not for us to end.
const GO_ON: &[i64] = &[
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_futex,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_wait4,
    libc::SYS_waitid,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_pause,
];

/// Whether a call goes on after a stop, by what proc_pid_syscall(5) says of it. A socket may have a time limit, and then it does not.
fn goes_on(thread: Thread, call: &str) -> bool {
    let mut words = call.split_whitespace();
    let number = words.next().and_then(|number| number.parse().ok());
    let is_socket = |word: &str| {
        let file = u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(u32::MAX);
        let link = std::fs::read_link(format!("/proc/{}/fd/{file}", thread.process));
        link.map_or(true, |link| link.as_os_str().as_encoded_bytes().starts_with(b"socket:"))
    };
    match number {
        // In none, or stopped on its way out of one.
        Some(-1) => true,
        Some(libc::SYS_read) => !words.next().is_none_or(is_socket),
        Some(number) => GO_ON.contains(&number),
        None => false,
    }
}

/// A thread that sleeps or is stopped, without touching it: proc_pid_syscall(5) has where it is, not all of its registers.
pub fn asleep(thread: Thread) -> Option<Snapshot> {
    let path = format!("/proc/{}/task/{}/syscall", thread.process, thread.thread);
    let memory = memory(thread)?;
    for _ in 0..TRIES {
        let before = read_to_string(&path).ok()?;
        let mut words = before.split_whitespace().rev();
        let mut address = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (at, stack_at) = (address()?, address()?);
        let stack = top(&memory, stack_at);
        if read_to_string(&path).ok()? == before {
            let (registers, can_be_stopped) = (sleeping(at, stack_at), goes_on(thread, &before));
            return Some(Snapshot { at, registers, can_be_stopped, stack_at, stack });
        }
    }
    None
}

/// Stops a thread for the time of a copy. None if it is being debugged, or this process may not.
pub fn stopped(thread: Thread) -> Option<Snapshot> {
    // Whom a thread traces is let go, with the signal that it was about to get, when that thread ends (ptrace(2)): however that comes.
    std::thread::spawn(move || trace(thread)).join().ok()?
}

fn trace(thread: Thread) -> Option<Snapshot> {
    let memory = memory(thread)?;
    let traced = Pid::from_raw(thread.thread);
    ptrace::seize(traced, Options::empty()).ok()?;
    ptrace::interrupt(traced).ok()?;
    let give_up = Instant::now() + PATIENCE;
    let status = loop {
        // An error is also a signal that has no name.
        match waitpid(traced, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).ok()? {
            WaitStatus::StillAlive if Instant::now() < give_up => std::thread::sleep(PAUSE),
            status => break status,
        }
    };
    let (at, stack_at, registers) = registers(traced).ok()?;
    let stack = top(&memory, stack_at);
    if matches!(status, WaitStatus::PtraceEvent(..)) {
        let _ = ptrace::detach(traced, None);
    }
    Some(Snapshot { at, registers, can_be_stopped: true, stack_at, stack })
}

fn memory(thread: Thread) -> Option<File> {
    File::open(format!("/proc/{}/mem", thread.process)).ok()
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

    use nix::sys::signal::{Signal, kill};

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

    fn main_thread(process: i32) -> Thread {
        Thread { process, thread: process, waits: false }
    }

    #[test]
    fn what_is_stopped_stays_so() {
        let (mut shell, mut output, process) = grandchild("kill -STOP $$; exit 7");
        wait_for(process, 'T');
        for _ in 0..10 {
            let found = stopped(main_thread(process)).unwrap();
            assert!(found.word(found.stack_at).is_some() && found.at != 0);
            // It goes back to where it was by itself.
            wait_for(process, 'T');
            assert_eq!(asleep(main_thread(process)).unwrap().at, found.at);
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
                    let looks = std::iter::from_fn(|| stopped(main_thread(process)));
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
    fn what_has_ended_is_nowhere() {
        let thread = main_thread(i32::MAX - 1);
        assert!(asleep(thread).is_none() && stopped(thread).is_none());
    }
}
