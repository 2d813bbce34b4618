//! Shared-memory transport: peers on one node.
//!
//! - Memory that Transom allocates lies in anonymous memory files ([memfd_create(2)]) that peers open through
//!   `/proc/PID/fd` and map: a put is a copy, an atomic is the CPU's. Nothing has a name, so nothing is left behind.
//! - The program's own memory becomes a part of such a file where it is ([`InPlace`]).
//! - Where it cannot, it is reached by cross-memory attach ([process_vm_writev(2)]), with no work at the
//!   target.
//! - Messages go through a bounded queue of many producers in the receiver's memory file; a receiver that sleeps is
//!   woken through a pipe.
//!
//! Permission to open `/proc/PID/fd` and to attach is the kernel's ptrace check: same user and user namespace, a number in this PID
//! namespace, nothing that forbids it. So both are tried, with each peer. Peers that cannot open a rank's files get their
//! descriptors from it ([`Meeting`]), all of them at once: what it allocates from then on is in one of these.
//!
//! [memfd_create(2)]: https://man7.org/linux/man-pages/man2/memfd_create.2.html
//! [process_vm_writev(2)]: https://man7.org/linux/man-pages/man2/process_vm_readv.2.html

mod address;
mod arena;
mod attach;
mod deaths;
mod doorbell;
mod file;
mod host;
mod in_place;
mod meeting;
mod peer;
mod queue;
mod shared;
mod shm;

pub use attach::{Direction, copy_own};
pub use host::{PLACE_BYTES, Place, host_identity};
pub use in_place::{Caution, InPlace, Quiet};
pub use meeting::{Call, Meeting, Passed};
pub use shared::{allocate_shared, map_shared};
pub use shm::Shm;
