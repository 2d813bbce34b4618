//! Connections by rdma_cm, on every device of this machine that has an IP address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ibverbs::{
    Access, ConnectionEvent, ConnectionEventKind as Kind, ConnectionId, EventChannel, Operation, Parameters,
    QueuePair, VerbsError,
};
use nix::ifaddrs::getifaddrs;

use crate::support::{PLAN, PORT, Side, names, readable};

const TIMEOUT: Duration = Duration::from_secs(30);

fn access() -> Access {
    Access::REMOTE_READ | Access::REMOTE_WRITE
}

/// What listens at an address of a device; nothing for devices without one.
fn listener(channel: &Arc<EventChannel>, device: &str) -> Option<(ConnectionId, SocketAddr)> {
    let interfaces = getifaddrs().unwrap().filter_map(|interface| interface.address);
    let addresses =
        interfaces.filter_map(|address| Some(SocketAddr::V4((*address.as_sockaddr_in()?).into())));
    for mut address in addresses.filter(|address| !address.ip().is_loopback()) {
        let id = ConnectionId::new(channel).unwrap();
        if id.bind(address).is_ok() && id.device().as_deref() == Some(device) {
            id.listen(1).unwrap();
            assert_ne!(id.port(), 0);
            address.set_port(id.port());
            return Some((id, address));
        }
    }
    None
}

/// The next event, which must be of this kind.
fn next(channel: &Arc<EventChannel>, wanted: &[Kind]) -> ConnectionEvent {
    let start = Instant::now();
    loop {
        if let Some(event) = channel.next().unwrap() {
            assert!(wanted.contains(&event.kind), "{event:?}, not {wanted:?}");
            return event;
        }
        assert!(start.elapsed() < TIMEOUT, "no {wanted:?}");
        readable(channel, Duration::from_millis(100));
    }
}

fn parameters<'a>(pair: &QueuePair, data: &'a [u8]) -> Parameters<'a> {
    Parameters {
        number: pair.number(),
        shared: false,
        data,
        responder_depth: 4,
        initiator_depth: 4,
        retries: 6,
        receiver_not_ready_retries: 7,
    }
}

fn ready(pair: &QueuePair, id: &ConnectionId) -> Result<(), VerbsError> {
    pair.ready_to_receive_from(id, 12)?;
    pair.ready_to_send_to(id, 14, 6)
}

/// Connects two sides of one device. On iWARP the kernel moves queue pairs on.
fn connect(device: &str, asking: &Side, asked: &Side) -> Option<[ConnectionId; 2]> {
    let [ours, theirs] = [(); 2].map(|()| EventChannel::new().unwrap());
    assert!(theirs.next().unwrap().is_none());
    let (_listener, address) = listener(&theirs, device)?;
    let iwarp = asking.context.transport() == ibverbs::TransportKind::Iwarp;

    let id = ConnectionId::new(&ours).unwrap();
    let mut from = address;
    from.set_port(0);
    id.resolve_address(from, address, 2000).unwrap();
    assert_eq!(next(&ours, &[Kind::AddressResolved]).id, id.key());
    assert_eq!(id.device().as_deref(), Some(device));
    id.resolve_route(2000).unwrap();
    next(&ours, &[Kind::RouteResolved]);
    asking.pair.initialise_for(&id, access()).unwrap();
    id.connect(&parameters(&asking.pair, b"may I?")).unwrap();

    let request = next(&theirs, &[Kind::Request]);
    assert!(request.data.starts_with(b"may I?"), "{:?}", request.data);
    let accepted = request.asking.unwrap();
    asked.pair.initialise_for(&accepted, access()).unwrap();
    if !iwarp {
        ready(&asked.pair, &accepted).unwrap();
    }
    accepted.accept(&parameters(&asked.pair, b"you may")).unwrap();

    let answer = next(&ours, &[Kind::Response, Kind::Established]);
    assert!(answer.data.starts_with(b"you may"), "{:?}", answer.data);
    assert_eq!(answer.kind == Kind::Established, iwarp);
    if !iwarp {
        ready(&asking.pair, &id).unwrap();
        id.establish().unwrap();
    }
    assert_eq!(next(&theirs, &[Kind::Established]).id, accepted.key());
    Some([id, accepted])
}

#[test]
fn queue_pairs_are_connected_and_parted() {
    let Some(names) = names() else { return };
    for name in names {
        let [a, b] = [(); 2].map(|()| Side::new(&name, &PLAN));
        assert!(a.context.port(PORT).unwrap().active, "{name}");
        let Some([asking, asked]) = connect(&name, &a, &b) else {
            println!("skipped: device {name} has no IPv4 address here");
            continue;
        };
        a.memory.set(0, 4711);
        let (address, key) = (b.memory.address(1), b.memory.region().remote_key());
        a.carry_out(Operation::Write { address, key }, &[a.memory.part(0, 8)]);
        a.carry_out(Operation::Read { address, key }, &[a.memory.part(2, 8)]);
        assert_eq!((b.memory.get(1), a.memory.get(2)), (4711, 4711), "{name}");
        asking.disconnect().unwrap();
        drop((asking, asked));
    }
}

/// A request that is dropped is refused; so is one to a port that nobody listens at.
#[test]
fn refusals_are_told() {
    let Ok(names) = ibverbs::device_names() else { return };
    for name in names {
        let [ours, theirs] = [(); 2].map(|()| EventChannel::new().unwrap());
        let Some((listener, address)) = listener(&theirs, &name) else { continue };
        let side = Side::new(&name, &PLAN);
        let mut from = address;
        from.set_port(0);
        let ask = |pair: &QueuePair| {
            let id = ConnectionId::new(&ours).unwrap();
            id.resolve_address(from, address, 2000).unwrap();
            next(&ours, &[Kind::AddressResolved]);
            id.resolve_route(2000).unwrap();
            next(&ours, &[Kind::RouteResolved]);
            pair.initialise_for(&id, access()).unwrap();
            (id.connect(&parameters(pair, &[])), id)
        };
        let (asked, first) = ask(&side.pair);
        asked.unwrap();
        next(&theirs, &[Kind::Request]).asking.unwrap().reject().unwrap();
        assert_eq!(next(&ours, &[Kind::Failed]).id, first.key(), "{name}");
        drop((first, listener));
        let side = Side::new(&name, &PLAN);
        // Soft-iWARP says so at once.
        if let (Ok(()), second) = ask(&side.pair) {
            assert_eq!(next(&ours, &[Kind::Failed]).id, second.key(), "{name}");
        }
    }
}
