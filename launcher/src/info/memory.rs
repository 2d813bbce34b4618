//! What ranks of one node share memory with.

use std::io::{IoSliceMut, Write};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use transom_transport::Transport;

use super::host::read;

/// The facts, each found by trying, and whether the transport can be used.
pub fn facts() -> (Vec<(&'static str, String)>, bool) {
    let shm = transom_shm::Shm::new(1);
    let usable = shm.is_ok();
    let transport = match shm {
        Ok(shm) => format!("ready: {}", shm.capabilities().provider),
        Err(error) => format!("NOT AVAILABLE: {error}"),
    };
    let facts = vec![
        ("transport shm", transport),
        ("memory files", memory_files()),
        ("/proc of a peer", proc_of_peers()),
        ("cross-memory attach", cross_memory()),
        ("created windows", created_windows()),
    ];
    (facts, usable)
}

fn memory_files() -> String {
    let made = || -> std::io::Result<()> {
        let fd = memfd_create("transom-info", MFdFlags::MFD_CLOEXEC)?;
        std::fs::File::from(fd).write_all(&[1])
    };
    match made() {
        Ok(()) => "available (memfd_create)".into(),
        Err(error) => format!("not available: memfd_create: {error}"),
    }
}

fn proc_of_peers() -> String {
    if !std::path::Path::new("/proc/self/fd").exists() {
        return "not mounted: ranks pass their memory files over Unix sockets".into();
    }
    let mounts = read("/proc/self/mounts").unwrap_or_default();
    let mut options = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        (fields.next()? == "/proc").then(|| fields.nth(1).unwrap_or("").to_owned())
    });
    match options
        .next_back()
        .and_then(|o| Some(o.split(',').find_map(|o| o.strip_prefix("hidepid="))?.to_owned()))
    {
        None => "visible to ranks of the same user in the same PID namespace".into(),
        Some(level) => format!("visible to ranks of the same user (mounted with hidepid={level})"),
    }
}

fn created_windows() -> String {
    match transom_shm::InPlace::is_possible() {
        Ok(true) => "shared in place".into(),
        Ok(false) => "shared in place, where a process has one thread; else by cross-memory attach (other threads cannot be \
                      made to wait: needs Linux 6.4, and root or vm.unprivileged_userfaultfd=1)"
            .into(),
        Err(reason) => format!("by cross-memory attach: {reason}"),
    }
}

/// Tried on a process of this user's: what is refused is refused before the address is looked at, and none is there.
fn cross_memory() -> String {
    let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let tried = child.map(|mut child| {
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        let nowhere = [RemoteIoVec { base: 0, len: 1 }];
        let tried = process_vm_readv(pid, &mut [IoSliceMut::new(&mut [0])], &nowhere);
        drop(child.stdin.take());
        let _ = child.wait();
        tried
    });
    let yama = read("/proc/sys/kernel/yama/ptrace_scope");
    match (tried, yama.as_deref()) {
        (Ok(Err(Errno::EFAULT)), None) => "available (no Yama in this kernel)".into(),
        (Ok(Err(Errno::EFAULT)), Some("0")) => "available (ptrace_scope 0)".into(),
        (Ok(Err(Errno::EFAULT)), Some("1")) => "available (ptrace_scope 1: ranks permit each other)".into(),
        (Ok(Err(Errno::EFAULT)), Some(other)) => format!("for administrators only (ptrace_scope {other})"),
        (Ok(Err(error)), yama) => {
            let yama = yama.map(|scope| format!(", ptrace_scope {scope}")).unwrap_or_default();
            format!("refused ({error}{yama}): memory that is only the program's goes by messages")
        }
        (Ok(Ok(_)), _) => "available".into(),
        (Err(error), _) => format!("could not be tried: cat: {error}"),
    }
}
