//! The handshake of a new connection: both ends prove that they know the secrets of both ranks, by keyed hashes over two
//! nonces. Pure: bytes in, bytes out.
//!
//! 1. Who connects says hello: who it is, whom it wants, a nonce.
//! 2. Who is called answers with a nonce and its proof.
//! 3. Who connects sends its proof.
//! 4. The lower rank of the two sends a go on one connection, and closes all others to that peer: both may have connected at
//!    once, and there is to be one.
//! 5. If the lower rank is who connects, the other confirms that: it may have let go of the connection, as one of too many
//!    strangers.
//!
//! Records follow. Each step is read with its exact length, so nothing behind it is.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::card::Secret;

/// What a hello begins with: a mark and a version.
const MARK: [u8; 8] = *b"transom\x01";
/// What the lower rank chooses a connection with.
pub(crate) const GO: [u8; 4] = *b"go!\n";
/// What the higher rank confirms that with.
pub(crate) const HERE: [u8; 4] = *b"yes\n";

pub(crate) type Nonce = [u8; 32];
pub(crate) type Proof = [u8; 32];

/// Makes nonces that nobody can foresee.
#[derive(Debug)]
pub(crate) struct Nonces {
    key: Secret,
    count: u64,
}

impl Nonces {
    pub fn new(key: Secret) -> Self {
        Self { key, count: 0 }
    }

    /// A nonce that there was not yet.
    pub fn fresh(&mut self) -> Nonce {
        self.count += 1;
        *blake3::keyed_hash(&self.key.0, &self.count.to_le_bytes()).as_bytes()
    }
}

/// The first step.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Hello {
    mark: [u8; 8],
    pub from: U32,
    pub to: U32,
    pub nonce: Nonce,
}

/// The second.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Answer {
    pub nonce: Nonce,
    pub proof: Proof,
}

/// The longest step.
pub(crate) const LONGEST: usize = size_of::<Answer>();

impl Hello {
    pub const BYTES: usize = size_of::<Self>();

    pub fn new(from: usize, to: usize, nonce: Nonce) -> Self {
        Self { mark: MARK, from: (from as u32).into(), to: (to as u32).into(), nonce }
    }

    /// Who says it, if it is one, for this rank.
    pub fn read(bytes: &[u8], rank: usize) -> Option<(usize, Self)> {
        let hello = Self::read_from_bytes(bytes).ok().filter(|hello| hello.mark == MARK)?;
        (hello.to.get() as usize == rank).then_some((hello.from.get() as usize, hello))
    }

    /// What both ends hash.
    pub fn proofs(&self, answer: &Nonce, from: &Secret, to: &Secret) -> Proofs {
        Proofs { hello: *self, answer: *answer, from: *from, to: *to }
    }
}

/// The proofs of one connection.
#[derive(Debug)]
pub(crate) struct Proofs {
    hello: Hello,
    answer: Nonce,
    from: Secret,
    to: Secret,
}

impl Proofs {
    /// Of who was called.
    pub fn called(&self) -> Proof {
        self.hash(b"called")
    }

    /// Of who connects.
    pub fn caller(&self) -> Proof {
        self.hash(b"caller")
    }

    /// A hash over ranks and nonces, with a key of both secrets.
    fn hash(&self, role: &[u8; 6]) -> Proof {
        let key = blake3::Hasher::new_derive_key("transom tcp handshake 1: key of a pair of ranks")
            .update(&self.from.0)
            .update(&self.to.0)
            .finalize();
        let mut hasher = blake3::Hasher::new_keyed(key.as_bytes());
        hasher.update(self.hello.as_bytes()).update(&self.answer).update(role);
        *hasher.finalize().as_bytes()
    }
}

/// Whether two proofs are equal, found out in a time that does not depend on where they differ.
pub(crate) fn equal(proof: &Proof, expected: &Proof) -> bool {
    blake3::Hash::from(*proof) == blake3::Hash::from(*expected)
}

/// A step that is being received.
#[derive(Debug)]
pub(crate) struct Step {
    bytes: [u8; LONGEST],
    len: usize,
    have: usize,
}

impl Step {
    /// One of `len` bytes.
    pub fn new(len: usize) -> Self {
        Self { bytes: [0; LONGEST], len: len.min(LONGEST), have: 0 }
    }

    /// Where its missing bytes go.
    pub fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.have..self.len]
    }

    /// So many more bytes have come: all of it, if it is complete.
    pub fn take(&mut self, bytes: usize) -> Option<&[u8]> {
        self.have = (self.have + bytes).min(self.len);
        (self.have == self.len).then_some(&self.bytes[..self.len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRETS: (Secret, Secret) = (Secret([1; 32]), Secret([2; 32]));

    #[test]
    fn a_proof_is_of_one_connection_direction_and_pair() {
        let hello = Hello::new(3, 4, [5; 32]);
        let proofs = hello.proofs(&[6; 32], &SECRETS.0, &SECRETS.1);
        let all = [
            proofs.called(),
            proofs.caller(),
            hello.proofs(&[7; 32], &SECRETS.0, &SECRETS.1).caller(),
            hello.proofs(&[6; 32], &SECRETS.1, &SECRETS.0).caller(),
            hello.proofs(&[6; 32], &SECRETS.0, &SECRETS.0).caller(),
            Hello::new(3, 4, [8; 32]).proofs(&[6; 32], &SECRETS.0, &SECRETS.1).caller(),
            Hello::new(3, 5, [5; 32]).proofs(&[6; 32], &SECRETS.0, &SECRETS.1).caller(),
            Hello::new(2, 4, [5; 32]).proofs(&[6; 32], &SECRETS.0, &SECRETS.1).caller(),
        ];
        for (i, proof) in all.iter().enumerate() {
            assert!(all.iter().enumerate().all(|(j, other)| equal(proof, other) == (i == j)), "proof {i}");
        }
    }

    #[test]
    fn a_hello_is_for_one_rank() {
        let hello = Hello::new(3, 4, [5; 32]);
        assert_eq!(Hello::read(hello.as_bytes(), 4).map(|(from, _)| from), Some(3));
        assert!(Hello::read(hello.as_bytes(), 3).is_none());
        assert!(Hello::read(&hello.as_bytes()[1..], 4).is_none());
        assert!(Hello::read(Hello { mark: *b"transom\x02", ..hello }.as_bytes(), 4).is_none());
    }

    #[test]
    fn nonces_differ() {
        let (mut these, mut those) = (Nonces::new(SECRETS.0), Nonces::new(SECRETS.1));
        let all = [these.fresh(), these.fresh(), those.fresh(), those.fresh()];
        assert!(all.iter().enumerate().all(|(i, nonce)| !all[..i].contains(nonce)));
    }

    #[test]
    fn a_step_may_come_in_pieces() {
        let mut step = Step::new(GO.len());
        step.rest()[..3].copy_from_slice(&GO[..3]);
        assert_eq!(step.take(3), None);
        step.rest().copy_from_slice(&GO[3..]);
        assert_eq!(step.take(1), Some(&GO[..]));
    }
}
