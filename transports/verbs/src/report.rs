//! What a device is and how much of it there is, for people.

use std::net::Ipv6Addr;

use ibverbs::{Atomics, Context, Gid, GidKind, TransportKind, VerbsError};
use transom_transport::{AtomicScope, TransportResult};

use crate::device::{Device, PORT, best, unavailable};
use crate::manager::Manager;

/// A device, as `transom info` and `transom doctor` show it.
#[derive(Debug, Clone)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Version of its firmware.
    pub firmware: String,
    /// Why the transport cannot use it; nothing if it can.
    pub unusable: Option<String>,
    /// Whether its port is up.
    pub active: bool,
    /// `Ethernet` (RoCE), `InfiniBand` or `iWARP`.
    pub link: &'static str,
    /// The identifier that peers are given: index, kind and address.
    pub gid: Option<String>,
    /// What connections are made by; of rdma_cm, with the address that peers are given.
    pub connects: String,
    /// Whether a completed write has been acknowledged by the target's device. If not, as on iWARP, the transport reads
    /// behind writes to know.
    pub acknowledges: bool,
    /// Payload of a packet, in bytes.
    pub mtu: u32,
    /// Longest message, in bytes.
    pub max_message: u64,
    /// Queue pairs.
    pub max_qp: u32,
    /// Work requests of a queue pair.
    pub max_qp_wr: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Reads and atomics under way at a queue pair.
    pub max_rd_atomic: u32,
    /// What its atomics exclude.
    pub atomics: AtomicScope,
}

/// Describes a device that [`crate::devices`] names, whether it can be used or not.
///
/// # Errors
/// It cannot be opened or asked.
pub fn describe(name: &str) -> TransportResult<DeviceReport> {
    let failed = |e: VerbsError| unavailable(format!("device {name}: {e}"));
    let context = Context::open(name).map_err(failed)?;
    let attributes = context.attributes().map_err(failed)?;
    let port = context.port(PORT).map_err(failed)?;
    let gid = best(&context.gids(PORT).map_err(failed)?);
    let iwarp = context.transport() == TransportKind::Iwarp;
    let manager = if iwarp { Some(Manager::new(name)) } else { None };
    let unusable = Device::open(name).err().or_else(|| manager.as_ref()?.as_ref().err().cloned());
    let connects = match &manager {
        Some(Ok(manager)) => format!("rdma_cm at {}", manager.ip()),
        Some(Err(_)) => "rdma_cm".to_owned(),
        None => "datagrams".to_owned(),
    };
    Ok(DeviceReport {
        name: name.to_owned(),
        firmware: attributes.firmware.clone(),
        unusable: unusable.map(|error| error.to_string()),
        active: port.active,
        link: match port.ethernet {
            _ if iwarp => "iWARP",
            true => "Ethernet",
            false => "InfiniBand",
        },
        gid: gid.map(|gid| words(&gid, iwarp)),
        connects,
        acknowledges: !iwarp,
        mtu: port.mtu.bytes(),
        max_message: port.max_message.into(),
        max_qp: attributes.max_qp,
        max_qp_wr: attributes.max_qp_wr,
        max_cqe: attributes.max_cqe,
        max_mr: attributes.max_mr,
        max_rd_atomic: attributes.max_qp_rd_atom.min(attributes.max_qp_init_rd_atom),
        atomics: scope(attributes.atomics),
    })
}

/// Verbs' word for it in the seam's.
pub(crate) fn scope(atomics: Atomics) -> AtomicScope {
    match atomics {
        Atomics::None => AtomicScope::None,
        Atomics::Hca => AtomicScope::Device,
        Atomics::Global => AtomicScope::System,
    }
}

fn words(gid: &Gid, iwarp: bool) -> String {
    if iwarp {
        // Its first bytes are the interface's hardware address.
        let bytes: Vec<String> = gid.bytes[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        return bytes.join(":");
    }
    let address = Ipv6Addr::from(gid.bytes);
    let address = address.to_ipv4_mapped().map_or_else(|| address.to_string(), |v4| v4.to_string());
    let kind = match gid.kind {
        GidKind::InfiniBand => "InfiniBand",
        GidKind::RoceV1 => "RoCE v1",
        GidKind::RoceV2 => "RoCE v2",
    };
    format!("{address} (index {}, {kind})", gid.index)
}
