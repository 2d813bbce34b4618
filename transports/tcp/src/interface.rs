//! Which addresses to listen on.

use std::net::{IpAddr, Ipv4Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use transom_transport::{TransportError, TransportResult};

use crate::card::ADDRESSES;
use crate::{NAME, Options};

/// The setting that chooses.
const VARIABLE: &str = "TRANSOM_TCP_INTERFACE";

/// Bridges to virtual machines and containers of this host: most often no other host is behind them.
const LOCAL_BRIDGES: [&str; 6] = ["docker", "virbr", "veth", "br-", "cni", "podman"];

/// A network interface's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name.
    pub name: String,
    /// The address.
    pub address: IpAddr,
    /// Bits of the address that name the network.
    pub prefix: u8,
}

impl Interface {
    /// Whether an address is in this one's network.
    pub(crate) fn covers(&self, address: IpAddr) -> bool {
        in_network(self.address, self.prefix, address)
    }

    fn is_local_bridge(&self) -> bool {
        LOCAL_BRIDGES.iter().any(|bridge| self.name.starts_with(bridge))
    }
}

fn in_network(network: IpAddr, prefix: u8, address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()) << 96, 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let ((network, width), (address, other)) = (bits(network), bits(address));
    let differ = |prefix: u8| (network ^ address).checked_shr(128 - u32::from(prefix)).unwrap_or(0);
    width == other && prefix <= width && differ(prefix) == 0
}

/// The addresses to listen on: those of the setting, or loopback only, or all usable ones.
pub(crate) fn choose(wanted: Option<&str>, loopback: bool) -> TransportResult<Vec<Interface>> {
    let wanted = wanted.map(str::trim).filter(|text| !text.is_empty());
    if loopback && wanted.is_none() {
        return Ok(vec![Interface { name: "lo".into(), address: Ipv4Addr::LOCALHOST.into(), prefix: 8 }]);
    }
    let all = up()?;
    let mut chosen = match wanted {
        Some(text) => named(&all, text),
        None => Ok(usable(&all)),
    };
    if chosen.as_ref().is_ok_and(Vec::is_empty) {
        chosen = Err("no network interface but loopback is up".into());
    }
    chosen.map_err(|why| {
        let all: Vec<String> = all.iter().map(|i| format!("{} ({})", i.name, i.address)).collect();
        let all = if all.is_empty() { "none".into() } else { all.join(", ") };
        let reason = format!("{why}; interfaces that are up: {all}");
        TransportError::Unavailable { transport: NAME, reason }
    })
}

/// The interfaces that a rank listens on, best first.
///
/// # Errors
/// There are none, or none as the options want them.
pub fn interfaces(options: &Options) -> TransportResult<Vec<Interface>> {
    choose(options.interface.as_deref(), options.loopback)
}

/// All but loopback: local bridges last, IPv4 first.
fn usable(all: &[Interface]) -> Vec<Interface> {
    let mut usable: Vec<_> = all.iter().filter(|i| !i.address.is_loopback()).cloned().collect();
    usable.sort_by_key(|i| (i.is_local_bridge(), i.address.is_ipv6()));
    usable.truncate(ADDRESSES);
    usable
}

/// Those that a list of names, addresses and networks names, in its order.
fn named(all: &[Interface], list: &str) -> Result<Vec<Interface>, String> {
    let mut chosen: Vec<Interface> = Vec::new();
    for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let before = chosen.len();
        let matches = all.iter().filter(|interface| is_meant(interface, item));
        chosen.extend(matches.filter(|interface| !chosen.contains(interface)).cloned().collect::<Vec<_>>());
        if chosen.len() == before && !all.iter().any(|interface| is_meant(interface, item)) {
            return Err(format!("no interface has the name, address or network {item} ({VARIABLE})"));
        }
    }
    chosen.truncate(ADDRESSES);
    Ok(chosen)
}

fn is_meant(interface: &Interface, item: &str) -> bool {
    if interface.name == item {
        return true;
    }
    let (network, prefix) = item.split_once('/').unwrap_or((item, ""));
    let Ok(network) = network.parse::<IpAddr>() else { return false };
    match prefix {
        "" => network == interface.address,
        bits => bits.parse().is_ok_and(|prefix| in_network(network, prefix, interface.address)),
    }
}

/// Addresses of interfaces that are up, without link-local ones.
fn up() -> TransportResult<Vec<Interface>> {
    let all = getifaddrs().map_err(|e| TransportError::errno("getifaddrs", e))?;
    let mut found = Vec::new();
    for entry in all.filter(|e| e.flags.contains(InterfaceFlags::IFF_UP)) {
        let (Some(address), Some(mask)) = (entry.address, entry.netmask) else { continue };
        let (address, prefix) =
            if let (Some(v4), Some(mask)) = (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
                (IpAddr::V4(v4.ip()), mask.ip().to_bits().leading_ones())
            } else if let (Some(v6), Some(mask)) = (address.as_sockaddr_in6(), mask.as_sockaddr_in6()) {
                (IpAddr::V6(v6.ip()), mask.ip().to_bits().leading_ones())
            } else {
                continue;
            };
        if !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            found.push(Interface { name: entry.interface_name, address, prefix: prefix as u8 });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Vec<Interface> {
        [
            ("lo", "127.0.0.1", 8),
            ("docker0", "172.17.0.1", 16),
            ("eth0", "fd00::2", 64),
            ("eth0", "10.1.0.2", 24),
            ("ib0", "10.2.0.2", 16),
        ]
        .map(|(name, address, prefix)| Interface {
            name: name.into(),
            address: address.parse().unwrap(),
            prefix,
        })
        .into()
    }

    fn addresses(chosen: &[Interface]) -> Vec<String> {
        chosen.iter().map(|interface| interface.address.to_string()).collect()
    }

    #[test]
    fn all_but_loopback_are_usable_bridges_last() {
        assert_eq!(addresses(&usable(&list())), ["10.1.0.2", "10.2.0.2", "fd00::2", "172.17.0.1"]);
        assert!(usable(&list()[..1]).is_empty());
        let many: Vec<_> = std::iter::repeat_n(list()[3].clone(), 20).collect();
        assert_eq!(usable(&many).len(), ADDRESSES);
    }

    #[test]
    fn interfaces_are_chosen_by_name_address_and_network() {
        let chosen = |text: &str| named(&list(), text).map(|chosen| addresses(&chosen));
        assert_eq!(chosen("eth0").unwrap(), ["fd00::2", "10.1.0.2"]);
        assert_eq!(chosen("ib0, lo").unwrap(), ["10.2.0.2", "127.0.0.1"]);
        assert_eq!(chosen("10.2.0.2").unwrap(), ["10.2.0.2"]);
        assert_eq!(chosen("10.0.0.0/8").unwrap(), ["10.1.0.2", "10.2.0.2"]);
        assert_eq!(chosen("fd00::/16,eth0").unwrap(), ["fd00::2", "10.1.0.2"]);
        for wrong in ["eth9", "10.3.0.0/16", "10.1.0.0/33", "10.1.0.0/x", "eth0,eth9", "10.1."] {
            assert!(chosen(wrong).unwrap_err().contains(VARIABLE), "{wrong}");
        }
    }

    #[test]
    fn networks_are_compared_by_their_bits() {
        let covers = |i: usize, address: &str| list()[i].covers(address.parse().unwrap());
        assert!(covers(3, "10.1.0.200") && !covers(3, "10.1.1.2") && !covers(3, "fd00::2"));
        assert!(covers(2, "fd00::ffff") && !covers(2, "fd00:0:0:1::2") && !covers(2, "10.1.0.2"));
        assert!(in_network(list()[3].address, 0, "1.2.3.4".parse().unwrap()));
    }

    #[test]
    fn ranks_of_one_host_listen_on_loopback_only() {
        assert_eq!(addresses(&choose(None, true).unwrap()), ["127.0.0.1"]);
        assert_eq!(addresses(&choose(Some("lo"), false).unwrap())[0], "127.0.0.1");
        let error = choose(Some("none7"), false).unwrap_err().to_string();
        assert!(error.contains("none7") && error.contains("127.0.0.1"), "{error}");
    }
}
