//! A peer that speaks for itself: the handshake and the records, byte by byte, as ARCHITECTURE.md has them.

use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a business card says.
pub struct Card {
    pub secret: [u8; 32],
    pub addresses: Vec<SocketAddr>,
}

/// Reads a card with IPv4 addresses.
pub fn read_card(card: &[u8]) -> Card {
    assert_eq!(card[..4], *b"TCP\x02");
    let addresses = card[44..].chunks(7).map(|address| {
        assert_eq!(address[0], 4, "not IPv4");
        SocketAddr::from((
            [address[1], address[2], address[3], address[4]],
            u16::from_be_bytes([address[5], address[6]]),
        ))
    });
    Card { secret: card[4..36].try_into().unwrap(), addresses: addresses.collect() }
}

/// Makes a card with IPv4 addresses.
pub fn write_card(secret: [u8; 32], addresses: &[SocketAddr]) -> Vec<u8> {
    let mut card = [&b"TCP\x02"[..], &secret, &[0; 8]].concat();
    for address in addresses {
        let SocketAddr::V4(v4) = address else { panic!("not IPv4") };
        card.push(4);
        card.extend(v4.ip().octets());
        card.extend(v4.port().to_be_bytes());
    }
    card
}

/// The first step of the handshake.
pub fn hello(from: u32, to: u32, nonce: [u8; 32]) -> Vec<u8> {
    [&b"transom\x01"[..], &from.to_le_bytes(), &to.to_le_bytes(), &nonce].concat()
}

/// What a side proves itself with.
pub fn proof(hello: &[u8], answer: &[u8], secrets: [&[u8; 32]; 2], role: &[u8]) -> [u8; 32] {
    let mut key = blake3::Hasher::new_derive_key("transom tcp handshake 1: key of a pair of ranks");
    key.update(secrets[0]).update(secrets[1]);
    let mut hasher = blake3::Hasher::new_keyed(key.finalize().as_bytes());
    hasher.update(hello).update(answer).update(role);
    *hasher.finalize().as_bytes()
}

/// Connects as rank `from`, with its secret, to rank `to`; as the lower rank it chooses the connection.
pub fn connect(card: &Card, secret: &[u8; 32], from: u32, to: u32) -> Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&card.addresses[0], Duration::from_secs(5))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let hello = hello(from, to, [from as u8; 32]);
    stream.write_all(&hello)?;
    let mut answer = [0; 64];
    stream.read_exact(&mut answer)?;
    let (nonce, theirs) = answer.split_at(32);
    assert_eq!(theirs, proof(&hello, nonce, [secret, &card.secret], b"called"));
    stream.write_all(&proof(&hello, nonce, [secret, &card.secret], b"caller"))?;
    if from < to {
        stream.write_all(b"go!\n")?;
    }
    let mut last = [0; 4];
    stream.read_exact(&mut last)?;
    assert_eq!(last, if from < to { *b"yes\n" } else { *b"go!\n" });
    Ok(stream)
}

/// A record's head.
pub fn head(kind: u8, len: u32, served: u32, number: u32) -> Vec<u8> {
    [&[kind, 0, 0, 0][..], &len.to_le_bytes(), &served.to_le_bytes(), &number.to_le_bytes()].concat()
}

/// A place behind a head.
pub fn place(key: u64, offset: u64) -> Vec<u8> {
    [key.to_le_bytes(), offset.to_le_bytes()].concat()
}
