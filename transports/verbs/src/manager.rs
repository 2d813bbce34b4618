//! Connections by rdma_cm(7): for devices without datagrams (iWARP), and fabrics where those do not get through. A rank
//! listens at an IP address of its device; requests and answers are the private data of connections.
//!
//! What happens to connections then is in `managed`. Events come by a descriptor of their own. A rank that sleeps is woken by it; one that polls looks at it now and then,
//! and each time while it waits for an answer itself.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use ibverbs::{ConnectionEvent, ConnectionId, EventChannel, VerbsError};
use nix::ifaddrs::getifaddrs;
use transom_transport::TransportResult;

use crate::device::unavailable;
use crate::wire::Address;

/// For an address or a route to be found, in milliseconds; then the request is made again.
pub(crate) const RESOLVE: u16 = 2000;
/// Requests that may wait to be looked at.
const WAITING: u16 = 1024;
/// Polls per look at the events.
const POLLS: u32 = 16;

/// On iWARP a peer that refuses an operation ends the connection, as one does that has gone.
pub(crate) const BROKEN: &str = "its connection has ended: so has the process, or the way to it is cut, or it refused an operation (iWARP does not tell)";

/// One rank's use of rdma_cm.
#[derive(Debug)]
pub(crate) struct Manager {
    /// Queue pairs that this rank has asked for, and those that peers have, by peer.
    pub outbound: HashMap<usize, ConnectionId>,
    pub inbound: HashMap<usize, ConnectionId>,
    _listener: ConnectionId,
    /// Where it listens.
    address: SocketAddr,
    polls: u32,
    channel: Arc<EventChannel>,
    pub device: String,
}

impl Manager {
    /// Listens at an address of the device.
    pub fn new(device: &str) -> TransportResult<Self> {
        let failed = |e: VerbsError| unavailable(format!("device {device} connects by rdma_cm: {e}"));
        let channel = EventChannel::new().map_err(failed)?;
        let (listener, address) = listen(&channel, device).map_err(failed)?.ok_or_else(|| {
            let what = "no IP address of this host belongs to it, and rdma_cm connects by these: see rdma link, ip address";
            unavailable(format!("device {device}: {what}"))
        })?;
        Ok(Self {
            outbound: HashMap::new(),
            inbound: HashMap::new(),
            _listener: listener,
            address,
            polls: 0,
            channel,
            device: device.to_owned(),
        })
    }

    /// The address that it listens at, without the port.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Readable when there is an event.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// What peers are told: the address, as IPv6 has it, and the port.
    pub fn address(&self) -> ([u8; 16], u16) {
        let ip = match self.address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        (ip.octets(), self.address.port())
    }

    /// The next thing that has happened.
    pub fn event(&self) -> Result<Option<ConnectionEvent>, VerbsError> {
        self.channel.next()
    }

    /// Whether to look at the events in this poll.
    pub fn is_due(&mut self, now: bool) -> bool {
        self.polls = self.polls.wrapping_add(1);
        now || self.polls.is_multiple_of(POLLS)
    }

    /// Closes a connection in order.
    pub fn leave(&mut self, peer: usize) {
        if let Some(id) = self.outbound.remove(&peer)
            && let Err(error) = id.disconnect()
        {
            tracing::debug!(peer, %error, "a connection does not end in order");
        }
    }

    /// Forgets a connection that is broken.
    pub fn part(&mut self, peer: usize) {
        self.outbound.remove(&peer);
    }

    /// Begins to ask a peer.
    pub fn ask(&mut self, peer: usize, to: &Address) -> Result<(), VerbsError> {
        let id = ConnectionId::new(&self.channel)?;
        let mut from = self.address;
        from.set_port(0);
        id.resolve_address(from, self.of_peer(to), RESOLVE)?;
        self.outbound.insert(peer, id);
        Ok(())
    }

    fn of_peer(&self, address: &Address) -> SocketAddr {
        let (ip, port) = (Ipv6Addr::from(address.gid), address.number as u16);
        match (ip.to_ipv4_mapped(), self.address) {
            (Some(v4), _) => SocketAddr::new(v4.into(), port),
            // A link-local address is one of the link that this side is on, too.
            (None, SocketAddr::V6(own)) if ip.is_unicast_link_local() => {
                SocketAddrV6::new(ip, port, 0, own.scope_id()).into()
            }
            _ => SocketAddr::new(ip.into(), port),
        }
    }

    /// Whose connection an event is about, and whether this rank has asked for it.
    pub fn whose(&self, key: usize) -> Option<(usize, bool)> {
        let find = |all: &HashMap<usize, ConnectionId>| {
            all.iter().find(|(_, id)| id.key() == key).map(|(peer, _)| *peer)
        };
        find(&self.outbound).map(|peer| (peer, true)).or_else(|| Some((find(&self.inbound)?, false)))
    }
}

/// Listens at the best address of a device. Which address is which device's, rdma_cm knows: it is bound to see.
fn listen(
    channel: &Arc<EventChannel>,
    device: &str,
) -> Result<Option<(ConnectionId, SocketAddr)>, VerbsError> {
    let mut addresses = own_addresses();
    addresses.sort_by_key(preference);
    for mut address in addresses {
        let id = ConnectionId::new(channel)?;
        // Refused for addresses that are no RDMA device's.
        if id.bind(address).is_ok() && id.device().as_deref() == Some(device) {
            id.listen(WAITING)?;
            address.set_port(id.port());
            return Ok(Some((id, address)));
        }
    }
    Ok(None)
}

fn own_addresses() -> Vec<SocketAddr> {
    let all = getifaddrs().into_iter().flatten().filter_map(|interface| interface.address);
    let address = |address: nix::sys::socket::SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
    };
    all.filter_map(address).filter(|address| !address.ip().is_loopback()).collect()
}

/// IPv4 first, then IPv6 that is routed.
fn preference(address: &SocketAddr) -> u8 {
    match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) if !v6.ip().is_unicast_link_local() => 1,
        SocketAddr::V6(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routed_addresses_come_first() {
        let mut all: Vec<SocketAddr> =
            ["[fe80::1%3]:0", "[2001:db8::1]:0", "10.0.0.1:0"].map(|text| text.parse().unwrap()).to_vec();
        all.sort_by_key(preference);
        let texts: Vec<String> = all.iter().map(|address| address.ip().to_string()).collect();
        assert_eq!(texts, ["10.0.0.1", "2001:db8::1", "fe80::1"]);
    }
}
