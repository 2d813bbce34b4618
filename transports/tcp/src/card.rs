//! A rank's business card: what peers need to reach it, and to prove that they belong to the job.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What cards begin with: a mark, and the version of cards and of all that travels.
const MARK: [u8; 4] = *b"TCP\x02";
/// Bytes of a card that the job's bootstrap takes.
const MOST: usize = 200;
/// Most addresses of a card.
pub(crate) const ADDRESSES: usize = 8;

/// A rank's secret, which the job's ranks know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret(pub [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// A running kernel: the same for all of its containers and network namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Machine(u64);

impl Machine {
    /// This process's; one that is like no other if the kernel does not tell.
    pub fn own() -> Self {
        let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let Some(hash) = blake3::hash(&boot).as_bytes().first_chunk().copied().filter(|_| !boot.is_empty())
        else {
            return Self(0);
        };
        Self(u64::from_be_bytes(hash).max(1))
    }

    /// Whether both are certainly one.
    pub fn is(self, other: Self) -> bool {
        self == other && self.0 != 0
    }
}

/// A rank's business card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    pub secret: Secret,
    /// Which machine it is on.
    pub machine: Machine,
    /// Where it listens, best first.
    pub addresses: Vec<SocketAddr>,
}

impl Card {
    pub fn encode(&self) -> Vec<u8> {
        let mut card = [&MARK[..], &self.secret.0, &self.machine.0.to_be_bytes()].concat();
        for address in self.addresses.iter().take(ADDRESSES) {
            match address.ip() {
                IpAddr::V4(ip) => {
                    card.push(4);
                    card.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    card.push(6);
                    card.extend(ip.octets());
                }
            }
            card.extend(address.port().to_be_bytes());
        }
        debug_assert!(card.len() <= MOST);
        card
    }

    pub fn decode(card: &[u8]) -> Option<Self> {
        if card.len() > MOST {
            return None;
        }
        let (secret, rest) = card.strip_prefix(&MARK)?.split_first_chunk::<32>()?;
        let (machine, mut rest) = rest.split_first_chunk::<8>()?;
        let mut addresses = Vec::new();
        while let Some((family, after)) = rest.split_first() {
            let (ip, after): (IpAddr, _) = match family {
                4 => after.split_first_chunk::<4>().map(|(ip, after)| (Ipv4Addr::from(*ip).into(), after))?,
                6 => {
                    after.split_first_chunk::<16>().map(|(ip, after)| (Ipv6Addr::from(*ip).into(), after))?
                }
                _ => return None,
            };
            let (port, after) = after.split_first_chunk::<2>()?;
            addresses.push(SocketAddr::new(ip, u16::from_be_bytes(*port)));
            rest = after;
        }
        let possible = (1..=ADDRESSES).contains(&addresses.len());
        possible.then_some(Self {
            secret: Secret(*secret),
            machine: Machine(u64::from_be_bytes(*machine)),
            addresses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(addresses: &[&str]) -> Card {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Card { secret: Secret([9; 32]), machine: Machine(5), addresses }
    }

    #[test]
    fn cards_come_back() {
        for card in [
            card(&["127.0.0.1:1"]),
            card(&["10.1.0.2:65535", "[fd00::2]:77", "172.17.0.1:2000"]),
            card(&["[fd00::2]:77"; ADDRESSES]),
        ] {
            assert!(card.encode().len() <= MOST);
            assert_eq!(Card::decode(&card.encode()), Some(card));
        }
    }

    #[test]
    fn machines_that_do_not_tell_are_not_one() {
        let own = Machine::own();
        assert!(own.is(Machine::own()) && !own.is(Machine(own.0 ^ 1)));
        assert!(!Machine(0).is(Machine(0)));
    }

    #[test]
    fn what_is_no_card_is_refused() {
        let good = card(&["10.1.0.2:65535", "[fd00::2]:77"]).encode();
        for len in (0..good.len()).filter(|len| *len != MARK.len() + 32 + 8 + 7) {
            assert_eq!(Card::decode(&good[..len]), None, "{len} bytes");
        }
        assert_eq!(Card::decode(&[&good[..], &[0]].concat()), None);
        assert_eq!(Card::decode(&card(&[]).encode()), None);
        let nine = [&good[..], &[4; 7].repeat(7)].concat();
        assert_eq!(Card::decode(&nine), None);
        assert_eq!(Card::decode(&[7; 250]), None);
    }
}
