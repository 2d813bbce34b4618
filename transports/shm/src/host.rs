//! Where a rank is, as far as the kernel tells: which ranks to try to share memory with, and which may talk by the loopback.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of a [`Place`].
pub const PLACE_BYTES: usize = size_of::<Place>();

/// Where a rank is. Zero: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Place {
    /// The boot of a kernel.
    machine: u64,
    /// The network namespace.
    network: u64,
    /// The PID namespace.
    pids: u32,
    /// What the launcher takes for a host: a machine, or namespaces that stand for one.
    node: u32,
}

impl Place {
    /// This process's place.
    pub fn here() -> Self {
        let inode = |namespace| fs::metadata(namespace).map_or(0, |m| hash((m.dev(), m.ino())));
        Self {
            machine: host_identity(),
            network: network_cookie().unwrap_or_else(|| inode("/proc/self/ns/net")),
            pids: inode("/proc/self/ns/pid") as u32,
            node: node(),
        }
    }

    /// The place that a peer has sent.
    pub fn parse(bytes: &[u8; PLACE_BYTES]) -> Self {
        zerocopy::transmute!(*bytes)
    }

    /// As peers are told.
    pub fn to_bytes(self) -> [u8; PLACE_BYTES] {
        zerocopy::transmute!(self)
    }

    /// Whether ranks at both may be able to share memory, and are meant to: on one machine, of one host of the launcher's (or all
    /// that it would see is the same at both). That there is a way is for trying to find out.
    pub fn may_share(&self, other: &Self) -> bool {
        let may_be = |own: u64, other: u64| own == other || own == 0 || other == 0;
        let same_view = self.network == other.network && self.pids == other.pids && self.pids != 0;
        may_be(self.machine, other.machine) && (may_be(self.node.into(), other.node.into()) || same_view)
    }

    /// Whether both are certainly of one host.
    pub fn is_of_one_host(&self, other: &Self) -> bool {
        let known = self.machine != 0 && self.node != 0;
        known && (self.machine, self.node) == (other.machine, other.node)
    }

    /// Whether both may be on one machine.
    pub fn is_of_one_machine(&self, other: &Self) -> bool {
        self.machine == other.machine || self.machine == 0 || other.machine == 0
    }

    /// Whether ranks at both reach each other by the loopback; none if the kernel does not tell.
    pub fn shares_loopback(&self, other: &Self) -> Option<bool> {
        let known = [self.machine, self.network, other.machine, other.network].iter().all(|part| *part != 0);
        known.then_some(self.machine == other.machine && self.network == other.network)
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish().max(1)
}

/// A number that is the same for two processes on one machine: that of the kernel's boot, 0 if it does not tell.
pub fn host_identity() -> u64 {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(0, hash)
}

/// The number of this process's network namespace, which needs no /proc (Linux 5.14).
fn network_cookie() -> Option<u64> {
    let socket = socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).ok()?;
    let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `len` bytes to `cookie`, and what it has written to `len` (getsockopt(2)).
    let failed = unsafe {
        libc::getsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &mut len,
        )
    };
    (failed == 0 && cookie != 0).then_some(cookie)
}

/// asm-generic/socket.h.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The launcher's number for this host, and one more: Transom's, or Slurm's.
fn node() -> u32 {
    let number = |name| std::env::var(name).ok()?.trim().parse::<u32>().ok();
    number("TRANSOM_HOST_NUMBER")
        .or_else(|| number("SLURM_NODEID"))
        .map_or(0, |number| number.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { machine: 1, network: 2, pids: 3, node: 4 };

    #[test]
    fn who_may_share_memory() {
        assert!(HERE.may_share(&HERE));
        // Containers of one host of the launcher's.
        assert!(HERE.may_share(&Place { network: 9, pids: 9, ..HERE }));
        assert!(HERE.may_share(&Place { network: 0, pids: 0, machine: 0, ..HERE }));
        // Two agents on one machine, and namespaces that stand for hosts.
        assert!(HERE.may_share(&Place { node: 9, ..HERE }));
        assert!(!HERE.may_share(&Place { node: 9, network: 9, ..HERE }));
        assert!(!HERE.may_share(&Place { node: 9, pids: 0, ..HERE }));
        assert!(!HERE.may_share(&Place { machine: 9, ..HERE }));
        assert!(HERE.may_share(&Place { node: 0, network: 9, ..HERE }));
        assert!(HERE.is_of_one_host(&Place { network: 9, pids: 0, ..HERE }));
        assert!(!HERE.is_of_one_host(&Place { node: 9, ..HERE }));
        let unknown = Place { node: 0, ..HERE };
        assert!(!unknown.is_of_one_host(&unknown));
    }

    #[test]
    fn who_may_talk_by_the_loopback() {
        assert_eq!(HERE.shares_loopback(&Place { node: 9, pids: 9, ..HERE }), Some(true));
        assert_eq!(HERE.shares_loopback(&Place { network: 9, ..HERE }), Some(false));
        assert_eq!(HERE.shares_loopback(&Place { machine: 9, ..HERE }), Some(false));
        assert_eq!(HERE.shares_loopback(&Place { network: 0, ..HERE }), None);
    }

    #[test]
    fn this_process_is_at_one_place() {
        let here = Place::here();
        assert_eq!(Place::parse(&here.to_bytes()), here);
        assert_eq!(here.shares_loopback(&Place::here()), Some(true));
    }
}
