//! The limit of windows over the user's memory on one node: cross-memory attach, one system call a transfer.

use std::io::{IoSlice, IoSliceMut};
use std::time::{Duration, Instant};

use anyhow::Context;
use memmap2::{MmapMut, MmapRaw};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use transom::Communicator;

use crate::area::Buffer;
use crate::operation::Transfers;

/// Memory of both ranks, and the address of the other's.
#[derive(Debug)]
pub struct Attach {
    local: Buffer<u8>,
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
            local: Buffer::new(bytes, 2),
            _exposed: exposed,
            peer: Pid::from_raw(pid as i32),
            base: base as usize,
        })
    }

    /// Writes to the other rank, `count` times.
    pub fn write(&self, transfers: Transfers, count: u64) -> anyhow::Result<Duration> {
        let (len, mut offsets) = (transfers.bytes, transfers.offsets());
        let start = Instant::now();
        for _ in 0..count {
            let at = offsets.step();
            let remote = [RemoteIoVec { base: self.base + at, len }];
            let local = [IoSlice::new(&self.local[at..at + len])];
            process_vm_writev(self.peer, &local, &remote).context("process_vm_writev")?;
        }
        Ok(start.elapsed())
    }

    /// Reads from the other rank, `count` times.
    pub fn read(&mut self, transfers: Transfers, count: u64) -> anyhow::Result<Duration> {
        let (len, mut offsets) = (transfers.bytes, transfers.offsets());
        let start = Instant::now();
        for _ in 0..count {
            let at = offsets.step();
            let remote = [RemoteIoVec { base: self.base + at, len }];
            let mut local = [IoSliceMut::new(&mut self.local[at..at + len])];
            process_vm_readv(self.peer, &mut local, &remote).context("process_vm_readv")?;
        }
        Ok(start.elapsed())
    }
}
