//! Limits: what the same two processes do without a runtime in between.

mod address;
mod asleep;
mod attach;
mod cache_line;
mod choice;
pub mod memory;
mod tcp;
mod verbs;

use std::net::IpAddr;
use std::time::Duration;

use anyhow::bail;
use transom::Communicator;

use crate::operation::Transfers;
use crate::windows::Extent;

use asleep::Asleep;
use attach::Attach;
use cache_line::CacheLine;
pub use choice::{Beside, Way, limits_of, repetitions};
use memory::Memory;
pub use tcp::Exchange;
use tcp::Tcp;
use verbs::Device;
pub use verbs::{Requests, Verb};

/// What a figure is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// A plain 8-byte store.
    Store,
    /// A store and one locked instruction, which orders it before every later load.
    LockedStore,
    /// An uncontended atomic addition.
    AtomicAdd,
    /// Two of them.
    TwoAtomicAdds,
    /// A copy from one private mapping to another.
    Copy(Transfers),
    /// A copy the other way.
    CopyBack(Transfers),
    /// An addition of so many bytes of doubles, in a plain loop.
    AddLoop(usize),
    /// `process_vm_writev`.
    AttachWrite(Transfers),
    /// `process_vm_readv`.
    AttachRead(Transfers),
    /// A cache line that goes to the other rank's core and back.
    CacheLine,
    /// Messages to the other rank, and its answer, over raw TCP.
    Tcp(Exchange),
    /// 8 bytes to a thread of the other rank, which sleeps beside a computation, and its answer, over raw TCP.
    TcpAsleep,
    /// Requests to the other rank's RDMA device.
    Verbs(Requests),
}

impl Limit {
    /// For the table.
    pub fn name(self) -> String {
        match self {
            Self::Store => "store".into(),
            Self::LockedStore => "store + locked instruction".into(),
            Self::AtomicAdd => "lock xadd".into(),
            Self::TwoAtomicAdds => "2 × lock xadd".into(),
            Self::Copy(_) | Self::CopyBack(_) => "memcpy".into(),
            Self::AddLoop(_) => "plain f64 loop".into(),
            Self::AttachWrite(_) => "process_vm_writev".into(),
            Self::AttachRead(_) => "process_vm_readv".into(),
            Self::CacheLine => "cache line there and back".into(),
            Self::Tcp(exchange) => exchange.name(),
            Self::TcpAsleep => "TCP: a thread asleep".into(),
            Self::Verbs(requests) => requests.name(),
        }
    }
}

const UNREACHED: &str = "rank 0 does not reach rank 1 for the raw TCP limit: give --address";

/// All that measuring limits needs. Both ranks have one, and call [`Limits::sample`] with the same arguments.
#[derive(Debug)]
pub struct Limits {
    origin: bool,
    memory: Memory,
    attach: Attach,
    cache_line: CacheLine,
    /// Where they reach each other by TCP.
    tcp: Option<Tcp>,
    /// The same, where that is how the runtime's ranks reach each other.
    asleep: Option<Asleep>,
    /// Where the ranks reach each other by RDMA.
    device: Option<Device>,
}

impl Limits {
    /// Connects the two ranks. Collective. `way` is the way between them, and `address` where rank 0 reaches rank 1 by TCP, if that
    /// is known.
    ///
    /// # Errors
    /// No memory, or no connection between the ranks.
    pub fn new(
        pair: &Communicator,
        way: Way,
        address: Option<IpAddr>,
        extent: Extent,
    ) -> anyhow::Result<Self> {
        let bytes = extent.spread.max(extent.window);
        Ok(Self {
            origin: pair.rank() == 0,
            memory: Memory::new(bytes, extent.window)?,
            attach: Attach::new(pair, bytes)?,
            cache_line: CacheLine::new(pair)?,
            tcp: Tcp::connect(pair, address)?,
            asleep: if way == Way::Network { Asleep::connect(pair, address)? } else { None },
            device: if way == Way::Device { Some(Device::connect(pair, bytes)?) } else { None },
        })
    }

    /// Whether a limit can be measured here.
    pub fn has(&self, limit: Limit) -> bool {
        match limit {
            Limit::Tcp(_) => self.tcp.is_some(),
            Limit::TcpAsleep => self.asleep.is_some() && self.tcp.is_some(),
            Limit::Verbs(_) => self.device.is_some(),
            _ => true,
        }
    }

    /// Time of `count` operations, at rank 0. Rank 1 does its part.
    ///
    /// # Errors
    /// A system call or a request failed.
    pub fn sample(&mut self, limit: Limit, count: u64) -> anyhow::Result<Duration> {
        match limit {
            Limit::CacheLine => self.cache_line.sample(self.origin, count),
            Limit::Tcp(exchange) => match &mut self.tcp {
                Some(tcp) => tcp.sample(self.origin, exchange, count),
                None => bail!(UNREACHED),
            },
            Limit::TcpAsleep => match (&mut self.asleep, &mut self.tcp) {
                (Some(asleep), Some(tcp)) => asleep.sample(tcp, self.origin, count),
                _ => bail!(UNREACHED),
            },
            _ if !self.origin => Ok(Duration::ZERO),
            Limit::AttachWrite(transfers) => self.attach.write(transfers, count),
            Limit::AttachRead(transfers) => self.attach.read(transfers, count),
            Limit::Verbs(requests) => match &mut self.device {
                Some(device) => device.sample(requests, count),
                None => bail!("the ranks reach each other without RDMA"),
            },
            _ => Ok(self.memory.sample(limit, count)),
        }
    }

    /// Frees what is shared. Collective.
    ///
    /// # Errors
    /// As [`transom::Window::free`].
    pub fn free(self) -> transom::Result<()> {
        self.cache_line.free()
    }
}
