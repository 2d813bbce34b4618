//! What ranks of one node share memory with.

use std::io::{IoSliceMut, Write};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
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
        return "not available: /proc is not mounted".into();
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

fn cross_memory() -> String {
    let source = [7_u8; 8];
    let mut copy = [0; 8];
    let there = [RemoteIoVec { base: source.as_ptr() as usize, len: source.len() }];
    match process_vm_readv(nix::unistd::getpid(), &mut [IoSliceMut::new(&mut copy)], &there) {
        Ok(8) if copy == source => {}
        Ok(_) => return "not available: the copy is not whole; windows of user memory go by messages".into(),
        Err(error) => return format!("not available: {error}; windows of user memory go by messages"),
    }
    match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
        None => "available (no Yama in this kernel)".into(),
        Some("0") => "available (ptrace_scope 0)".into(),
        Some("1") => "available (ptrace_scope 1: ranks permit each other)".into(),
        Some(other) => format!("for administrators only, or not at all (ptrace_scope {other})"),
    }
}
