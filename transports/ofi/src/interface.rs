//! Which address to listen on.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use transom_transport::{TransportError, TransportResult};

use crate::NAME;

/// Names the interface, or begins its address.
pub(crate) const VARIABLE: &str = "TRANSOM_OFI_INTERFACE";

/// Bridges to virtual machines and containers of this host: no other host is behind them.
const LOCAL_BRIDGES: [&str; 5] = ["docker", "virbr", "veth", "br-", "cni"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Interface {
    name: String,
    address: IpAddr,
}

/// The address of this host that peers shall use, as text for `fi_getinfo`.
pub(crate) fn listen_address(loopback: bool) -> TransportResult<String> {
    let wanted = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    if loopback && wanted.is_none() {
        return Ok("127.0.0.1".into());
    }
    let interfaces = interfaces()?;
    let chosen = match &wanted {
        Some(text) => named(&interfaces, text),
        None => first(&interfaces),
    };
    chosen.map(|interface| interface.address.to_string()).ok_or_else(|| {
        let all: Vec<String> = interfaces.iter().map(|i| format!("{} ({})", i.name, i.address)).collect();
        let why = match wanted {
            Some(text) => {
                format!("no interface is named {text} or has an address that begins so ({VARIABLE})")
            }
            None => "no network interface but loopback is up".into(),
        };
        let all = if all.is_empty() { "none".into() } else { all.join(", ") };
        let reason = format!("{why}; interfaces that are up: {all}");
        TransportError::Unavailable { transport: NAME, reason }
    })
}

fn named<'a>(interfaces: &'a [Interface], text: &str) -> Option<&'a Interface> {
    let by_name = interfaces.iter().find(|i| i.name == text);
    by_name.or_else(|| interfaces.iter().find(|i| i.address.to_string().starts_with(text)))
}

fn first(interfaces: &[Interface]) -> Option<&Interface> {
    let reachable =
        |i: &&Interface| !i.address.is_loopback() && !LOCAL_BRIDGES.iter().any(|b| i.name.starts_with(b));
    let of_version_4 = interfaces.iter().filter(reachable).find(|i| i.address.is_ipv4());
    of_version_4.or_else(|| interfaces.iter().find(reachable))
}

/// Interfaces that are up, version 4 addresses of an interface before version 6, without link-local ones.
fn interfaces() -> TransportResult<Vec<Interface>> {
    let all = getifaddrs().map_err(|e| TransportError::errno("getifaddrs", e))?;
    let mut found = Vec::new();
    for entry in all.filter(|e| e.flags.contains(InterfaceFlags::IFF_UP)) {
        let Some(storage) = entry.address else { continue };
        let address = if let Some(v4) = storage.as_sockaddr_in() {
            IpAddr::V4(v4.ip())
        } else if let Some(v6) = storage.as_sockaddr_in6() {
            IpAddr::V6(v6.ip())
        } else {
            continue;
        };
        if !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            found.push(Interface { name: entry.interface_name, address });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Interface> {
        [
            ("lo", "127.0.0.1"),
            ("docker0", "172.17.0.1"),
            ("eth6", "fd00::2"),
            ("eth0", "10.1.0.2"),
            ("ib0", "10.2.0.2"),
        ]
        .map(|(name, address)| Interface { name: name.into(), address: address.parse().unwrap() })
        .into()
    }

    #[test]
    fn first_is_neither_loopback_nor_bridge() {
        assert_eq!(first(&list()).unwrap().name, "eth0");
        assert_eq!(first(&list()[..3]).unwrap().name, "eth6");
        assert_eq!(first(&list()[..2]), None);
    }

    #[test]
    fn interface_is_found_by_name_or_address() {
        assert_eq!(named(&list(), "ib0").unwrap().name, "ib0");
        assert_eq!(named(&list(), "10.2.").unwrap().name, "ib0");
        assert_eq!(named(&list(), "lo").unwrap().name, "lo");
        assert_eq!(named(&list(), "eth9"), None);
    }
}
