//! Which device, port and identifier to use.

use std::env;
use std::sync::Arc;

use ibverbs::{Access, Attributes, Context, Gid, GidKind, Mtu, TransportKind, VerbsError, device_names};
use transom_transport::devices::may_be_there;
use transom_transport::{TransportError, TransportResult};

use crate::NAME;

/// The port used: devices with several show each as a device of its own, or are named with commas.
pub(crate) const PORT: u8 = 1;

/// The kind of network that a device is on: numbers that ranks tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    InfiniBand = 0,
    /// RoCE.
    Ethernet = 1,
    /// RDMA over TCP. Differs in more than its packets: a completed write may not be at the target yet, a message without a
    /// receive breaks the connection, there are no atomics, and no datagrams.
    Iwarp = 2,
}

/// A device, opened, and what of it is used.
#[derive(Debug)]
pub(crate) struct Device {
    pub context: Arc<Context>,
    pub attributes: Attributes,
    pub gid: Gid,
    pub lid: u16,
    pub network: Network,
    pub mtu: Mtu,
    /// Longest message of one work request.
    pub max_message: usize,
}

/// The names of this host's RDMA devices.
///
/// # Errors
/// There is no verbs library, or no device; says how to get it.
pub fn devices() -> TransportResult<Vec<String>> {
    device_names().map_err(|e| unavailable(e.to_string()))
}

/// Whether [`devices`] may find any: libibverbs is not opened where the kernel shows none.
pub fn may_have_devices() -> bool {
    // Another library may have devices of its own.
    env::var_os("TRANSOM_IBVERBS").is_some() || may_be_there(&[("infiniband_verbs", "uverbs")])
}

pub(crate) fn unavailable(reason: String) -> TransportError {
    TransportError::Unavailable { transport: NAME, reason }
}

impl Device {
    /// What memory must allow that reads arrive in: on iWARP they come as the peer's writes (RFC 5040 §5.2).
    pub fn sink(&self) -> Access {
        match self.network {
            Network::Iwarp => Access::LOCAL_WRITE | Access::REMOTE_WRITE,
            _ => Access::LOCAL_WRITE,
        }
    }

    /// Linux' soft-iWARP, `siw`.
    pub fn is_soft_iwarp(&self) -> bool {
        const VENDOR: u32 = 0x62_6d74;
        self.network == Network::Iwarp && self.attributes.vendor == VENDOR
    }

    /// The device named, or of several with commas this rank's; else the first that can be used.
    pub fn choose(wanted: Option<&str>, rank: usize) -> TransportResult<Self> {
        let names = devices()?;
        if let Some(wanted) = wanted {
            let list: Vec<&str> = wanted.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
            let Some(name) = (!list.is_empty()).then(|| list[rank % list.len()]) else {
                return Err(unavailable("TRANSOM_VERBS_DEVICE names no device".into()));
            };
            if !names.iter().any(|known| known == name) {
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                return Err(unavailable(format!("no RDMA device is named {name}; there are: {known}")));
            }
            return Self::open(name);
        }
        let (mut why, mut last) = (Vec::new(), None);
        for name in &names {
            match Self::open(name) {
                Ok(device) if device.network == Network::Iwarp => last = last.or(Some(device)),
                Ok(device) => return Ok(device),
                Err(error) => why.push(format!("{name}: {error}")),
            }
        }
        if let Some(device) = last {
            return Ok(device);
        }
        Err(unavailable(if why.is_empty() { "no RDMA device on this host".into() } else { why.join("; ") }))
    }

    pub fn open(name: &str) -> TransportResult<Self> {
        let failed = |e: VerbsError| unavailable(format!("device {name}: {e}"));
        let context = Context::open(name).map_err(failed)?;
        let attributes = context.attributes().map_err(failed)?;
        let port = context.port(PORT).map_err(failed)?;
        if !port.active {
            return Err(unavailable(format!("port {PORT} of device {name} is down")));
        }
        let network = match context.transport() {
            TransportKind::InfiniBand if port.ethernet => Network::Ethernet,
            TransportKind::InfiniBand => Network::InfiniBand,
            TransportKind::Iwarp => Network::Iwarp,
            TransportKind::Other => {
                return Err(unavailable(format!("device {name} is neither InfiniBand, RoCE nor iWARP")));
            }
        };
        let gids = context.gids(PORT).map_err(failed)?;
        let gid = best(&gids).ok_or_else(|| {
            unavailable(format!(
                "device {name} has no global identifier: does its interface have an address?"
            ))
        })?;
        let max_message = port.max_message as usize;
        Ok(Self { attributes, gid, lid: port.lid, network, mtu: port.mtu, max_message, context })
    }
}

/// The identifier to be reached by: RoCE version 2 over IPv4, which is routed; then over IPv6; then what there is.
pub(crate) fn best(gids: &[Gid]) -> Option<Gid> {
    let rank = |gid: &Gid| match gid.kind {
        GidKind::RoceV2 if is_ipv4(gid) => 0,
        GidKind::InfiniBand => 1,
        GidKind::RoceV2 if !is_link_local(gid) => 2,
        GidKind::RoceV1 if !is_link_local(gid) => 3,
        GidKind::RoceV2 => 4,
        GidKind::RoceV1 => 5,
    };
    gids.iter().filter(|gid| gid.bytes != [0; 16]).min_by_key(|gid| rank(gid)).copied()
}

/// An IPv4 address as IPv6 has it (RFC 4291 §2.5.5.2).
fn is_ipv4(gid: &Gid) -> bool {
    gid.bytes[..10] == [0; 10] && gid.bytes[10..12] == [0xff; 2]
}

fn is_link_local(gid: &Gid) -> bool {
    gid.bytes[..2] == [0xfe, 0x80]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routable_identifiers_come_first() {
        let gid = |index, kind, bytes| Gid { index, kind, bytes };
        let mut v4 = [0; 16];
        v4[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1]);
        let mut local = [1; 16];
        local[..2].copy_from_slice(&[0xfe, 0x80]);
        let all = [
            gid(0, GidKind::RoceV1, local),
            gid(1, GidKind::RoceV2, local),
            gid(2, GidKind::RoceV1, v4),
            gid(3, GidKind::RoceV2, v4),
            gid(4, GidKind::RoceV2, [0; 16]),
        ];
        assert_eq!(best(&all).unwrap().index, 3);
        assert_eq!(best(&all[..3]).unwrap().index, 2);
        assert_eq!(best(&all[..2]).unwrap().index, 1);
        assert_eq!(best(&all[4..]).map(|gid| gid.index), None);
    }
}
