//! What ranks tell each other: addresses, requests for connections, keys of regions.
//!
//! Numbers as the machine has them: all ranks are of one architecture.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::device::Network;

/// Begins addresses and requests, with the version of both.
const MAGIC: u64 = u64::from_le_bytes(*b"tsmverb2");

/// How to ask a rank for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Address {
    magic: u64,
    /// Chosen by the rank at random: who knows it may connect.
    pub secret: u64,
    /// The port's global identifier; where rdma_cm connects, its IP address (IPv4 as RFC 4291 §2.5.5.2 has it).
    pub gid: [u8; 16],
    /// Number of the datagram queue pair, and its key; where rdma_cm connects, the port that is listened at.
    pub number: u32,
    pub queue_key: u32,
    /// The port's local identifier, on InfiniBand.
    pub lid: u16,
    /// [`Network`].
    pub network: u8,
    /// The port's largest packet, as verbs count them.
    pub mtu: u8,
    /// 1 where rdma_cm connects, 0 where datagrams do.
    pub managed: u8,
    reserved: [u8; 3],
}

impl Address {
    pub fn new(
        secret: u64,
        gid: [u8; 16],
        (number, queue_key): (u32, u32),
        lid: u16,
        network: Network,
        mtu: u8,
        managed: bool,
    ) -> Self {
        let (network, managed) = (network as u8, managed.into());
        Self { magic: MAGIC, secret, gid, number, queue_key, lid, network, mtu, managed, reserved: [0; 3] }
    }

    /// The address in bytes that a rank has published; nothing if they are none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok().filter(|address| address.magic == MAGIC && address.managed <= 1)
    }

    /// Why there is no way from here to there; nothing if there may be one.
    pub fn obstacle(&self, peer: &Self) -> Option<&'static str> {
        if peer.network != self.network {
            return Some("it is on another kind of network (TRANSOM_VERBS_DEVICE chooses the device)");
        }
        (peer.managed != self.managed)
            .then_some("it connects in another way (TRANSOM_VERBS_CONNECT must be the same everywhere)")
    }
}

/// What it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A queue pair wants a partner.
    Request = 1,
    /// It has one.
    Accept = 2,
    /// It will have none for now.
    Refuse = 3,
    /// The queue pair will not be used any more.
    Leave = 4,
}

/// A request for a connection or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Hello {
    magic: u64,
    /// The secret of the rank that it is for.
    pub secret: u64,
    /// The sender's secret.
    pub own_secret: u64,
    /// Sender and receiver.
    pub from: u32,
    pub to: u32,
    /// The sender's queue pair, and its first packet's number.
    pub number: u32,
    pub sequence: u32,
    /// The asking rank's count of such requests to this peer: later ones replace earlier ones.
    pub attempt: u32,
    kind: u8,
    /// Reads and atomics that the sender answers at a time.
    pub depth: u8,
    reserved: [u8; 2],
}

impl Hello {
    /// Bytes of each.
    pub const BYTES: usize = size_of::<Self>();

    /// An empty one.
    pub fn new(kind: Kind, (secret, own_secret): (u64, u64), (from, to): (u32, u32), attempt: u32) -> Self {
        let kind = kind as u8;
        let (number, sequence, depth) = (0, 0, 0);
        Self {
            magic: MAGIC,
            secret,
            own_secret,
            from,
            to,
            number,
            sequence,
            attempt,
            kind,
            depth,
            reserved: [0; 2],
        }
    }

    /// With the sender's queue pair, and how many reads and atomics it answers.
    pub fn of(mut self, number: u32, sequence: u32, depth: u8) -> Self {
        (self.number, self.sequence, self.depth) = (number, sequence, depth);
        self
    }

    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::read_from_bytes(bytes).ok().filter(|hello| hello.magic == MAGIC)
    }

    pub fn kind(&self) -> Option<Kind> {
        [Kind::Request, Kind::Accept, Kind::Refuse, Kind::Leave]
            .into_iter()
            .find(|kind| *kind as u8 == self.kind)
    }
}

/// What a peer grants with its answer, where receives are counted (`peer_receives`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Grant {
    /// Where it counts receives that were given back, and the key to read that.
    pub address: u64,
    pub key: u32,
    /// Receives posted for the asking rank, when the count was this.
    pub receives: u32,
    pub count: u32,
    reserved: u32,
}

impl Grant {
    /// Bytes of each.
    pub const BYTES: usize = size_of::<Self>();

    pub fn new(address: u64, key: u32, receives: u32, count: u32) -> Self {
        Self { address, key, receives, count, reserved: 0 }
    }
}

/// A region's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Key {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes.
    pub len: u64,
    /// The device's key.
    pub key: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_and_nonsense_is_none() {
        let address = Address::new(7, [3; 16], (11, 13), 0, Network::Ethernet, 5, false);
        assert_eq!(Address::parse(address.as_bytes()), Some(address));
        assert!(size_of::<Address>() <= 200);
        for len in 0..size_of::<Address>() {
            assert_eq!(Address::parse(&address.as_bytes()[..len]), None);
        }
        assert_eq!(Address::parse(&[0; size_of::<Address>()]), None);
        assert_eq!(address.obstacle(&address), None);
        for (network, managed, word) in
            [(Network::Iwarp, false, "network"), (Network::Ethernet, true, "TRANSOM_VERBS_CONNECT")]
        {
            let other = Address::new(7, [3; 16], (11, 13), 0, network, 5, managed);
            assert!(address.obstacle(&other).unwrap().contains(word));
        }
    }

    #[test]
    fn strange_datagrams_are_none() {
        let hello = Hello::new(Kind::Accept, (1, 2), (3, 4), 5);
        assert_eq!(Hello::parse(hello.as_bytes()).unwrap().kind(), Some(Kind::Accept));
        assert_eq!(Hello::parse(&[1; Hello::BYTES]), None);
        let mut bytes = hello.as_bytes().to_vec();
        bytes[44] = 9;
        assert_eq!(Hello::parse(&bytes).unwrap().kind(), None);
    }
}
