//! The limit of windows over the user's memory on one node: cross-memory attach, one system call a transfer.

use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

use anyhow::Context;
use memmap2::{MmapMut, MmapRaw};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use transom::Communicator;

/// Memory of both ranks, and the address of the other's.
#[derive(Debug)]
pub struct Attach {
    local: Vec<u8>,
    /// Accessed by the other rank only.
    _exposed: MmapRaw,
    peer: Pid,
    base: usize,
}

impl Attach {
    /// Collective.
    pub fn new(pair: &Communicator, bytes: usize) -> anyhow::Result<Self> {
        let mut exposed = MmapMut::map_anon(bytes)?;
        exposed.fill(1); // its pages are there
        let exposed = MmapRaw::from(exposed);
        let own = [u64::from(std::process::id()), exposed.as_mut_ptr() as u64];
        let all = pair.allgather(&own)?;
        let (pid, base) = (all[1 - pair.rank()][0], all[1 - pair.rank()][1]);
        Ok(Self {
            local: vec![2; bytes],
            _exposed: exposed,
            peer: Pid::from_raw(pid as i32),
            base: base as usize,
        })
    }

    /// Writes `bytes` to the other rank, `count` times.
    pub fn write(&self, bytes: usize, count: u64) -> anyhow::Result<Duration> {
        let remote = [RemoteIoVec { base: self.base, len: bytes }];
        let start = Instant::now();
        for _ in 0..count {
            let local = [IoSlice::new(&self.local[..bytes])];
            process_vm_writev(self.peer, &local, &remote).context("process_vm_writev")?;
        }
        Ok(start.elapsed())
    }

    /// Reads `bytes` of the other rank, `count` times.
    pub fn read(&mut self, bytes: usize, count: u64) -> anyhow::Result<Duration> {
        let remote = [RemoteIoVec { base: self.base, len: bytes }];
        let start = Instant::now();
        for _ in 0..count {
            let mut local = [IoSliceMut::new(&mut self.local[..bytes])];
            process_vm_readv(self.peer, &mut local, &remote).context("process_vm_readv")?;
        }
        Ok(start.elapsed())
    }
}
