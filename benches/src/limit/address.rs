//! A TCP connection between two ranks, whose addresses nobody has told them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use std::{fs, io};

use anyhow::Context;
use nix::ifaddrs::getifaddrs;
use transom::Communicator;

/// How long an address may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Connects rank 0 to rank 1: at `address`, or at one of those that rank 1 has. None if it cannot be reached. Collective.
pub fn connect(pair: &Communicator, address: Option<IpAddr>) -> anyhow::Result<Option<TcpStream>> {
    let listener =
        (pair.rank() == 1).then(|| listen(address)).transpose().context("listening for the raw TCP limit")?;
    let port = listener.as_ref().map_or(Ok(0), |listener| listener.local_addr().map(|at| at.port()))?;
    let (ports, networks) = (pair.allgather(&[port])?, pair.allgather(network().as_bytes())?);
    let candidates = pair.allgather(own_addresses().join(" ").as_bytes())?;
    let mut stream = None;
    if pair.rank() == 0 {
        let given = address.map(|address| vec![address]);
        let found = || addresses(networks[0] == networks[1], &String::from_utf8_lossy(&candidates[1]));
        let places = given.unwrap_or_else(found).into_iter().map(|ip| SocketAddr::new(ip, ports[1][0]));
        stream = places.into_iter().find_map(|at| TcpStream::connect_timeout(&at, PATIENCE).ok());
    }
    let mut reached = [u8::from(stream.is_some())];
    pair.broadcast(0, &mut reached)?;
    match listener {
        Some(listener) if reached == [1] => Ok(Some(listener.accept()?.0)),
        _ => Ok(stream),
    }
}

fn listen(address: Option<IpAddr>) -> io::Result<TcpListener> {
    let any = match address {
        Some(address) if address.is_loopback() => address,
        Some(IpAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
        _ => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    TcpListener::bind((any, 0))
}

/// Whether both ranks are on one machine, perhaps in containers of it. Collective.
pub fn are_of_one_machine(pair: &Communicator) -> anyhow::Result<bool> {
    let machines = pair.allgather(machine().as_bytes())?;
    Ok(machines[0] == machines[1] && !machines[0].is_empty())
}

fn machine() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// What ranks have in common that reach each other by loopback.
fn network() -> String {
    let boot = machine();
    let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{}{}", boot.trim(), namespace.display())
}

fn own_addresses() -> Vec<String> {
    let interfaces = getifaddrs().into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()));
    addresses.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_string()).collect()
}

fn addresses(same_network: bool, listed: &str) -> Vec<IpAddr> {
    let loopback = same_network.then_some(IpAddr::from(Ipv4Addr::LOCALHOST));
    loopback.into_iter().chain(listed.split(' ').filter_map(|ip| ip.parse().ok())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_within_one_network_only() {
        let other: IpAddr = [10, 0, 0, 1].into();
        assert_eq!(addresses(true, "10.0.0.1"), [Ipv4Addr::LOCALHOST.into(), other]);
        assert_eq!(addresses(false, "10.0.0.1 nonsense"), [other]);
        assert_eq!(addresses(false, ""), Vec::<IpAddr>::new());
    }

    #[test]
    fn ranks_of_one_process_reach_each_other() {
        let reached = transom::local(2, |job| Ok(connect(&job, None).unwrap().is_some()));
        assert_eq!(reached.unwrap(), [true, true]);
    }
}
