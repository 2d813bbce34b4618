//! The message header: every message between ranks starts with one.
//!
//! A receiver trusts nothing in it but the token, and checks every number before use.

use transom_transport::Payload;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The job's secret, in every message. A message without it is not of the job and is dropped.
pub type Token = [u8; 16];

/// What a message asks for. Numbers as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A part of a collective's data: `offset` its sequence number, `op` the collective, `count` the round, `value`
    /// the whole length, `compare` where this part starts, `window` and `request` the communicator's context. If the status is
    /// [`CARRIES`], there is no data: the payload is operations to be carried out before ([`super::gathered`]). If it is
    /// [`INLINE`], all of the data is in the header.
    Collective = 0,
    /// Accumulate the payload at `offset`; or, if `count` is not 0, at so many runs ([`super::runs`]). If the status is
    /// [`CONFIRM`], say [`Kind::Applied`]; likewise with puts and notifications.
    Accumulate = 1,
    /// Accumulate as above, reply with what was there.
    GetAccumulate = 2,
    /// Accumulate `value`, reply with what was there.
    FetchOp = 3,
    /// Compare with `compare`, store `value`, reply with what was there.
    CompareSwap = 4,
    /// Take the window's lock, `op` being 1 for exclusive, and carry out the `count` operations of the payload
    /// ([`super::gathered`]); if `value` is 1, release it. Replied to then, with the ticket and what they fetch.
    Lock = 5,
    /// Release the window's lock; `op` as above, `value` the ticket.
    Unlock = 6,
    /// Reply when everything sent before is applied; or, if the status is [`CONFIRM`], say [`Kind::Applied`].
    Flush = 7,
    /// Answer to a request: `value`, or the payload.
    Reply = 8,
    /// A lock was released by a rank that shares memory with you: grant it to the next ticket.
    Wake = 9,
    /// My window's memory is about to be freed: access it no more, then reply.
    Revoke = 10,
    /// Write the payload at `offset`, where the transport cannot; or, if `count` is not 0, at so many runs.
    Put = 11,
    /// Reply with `count` bytes at `offset`, where the transport cannot; or, if `value` is not 0, with so many runs.
    Get = 12,
    /// Accumulate `count` bytes at `offset`, which you get from byte `compare` of the region whose key is the payload, then
    /// reply.
    AccumulatePull = 13,
    /// My window is posted to you.
    Post = 14,
    /// I have completed my accesses to your window. Carry out the `count` operations of the payload before
    /// ([`super::gathered`]).
    Complete = 15,
    /// Write the payload at `offset`, then count a notification of number `compare`.
    Notify = 16,
    /// Reply with the attached region that holds `count` bytes at address `offset`.
    FindRegion = 17,
    /// My region at address `offset` is about to be detached: forget it, then reply.
    ForgetRegion = 18,
    /// I have given up waiting for the window's lock: hold my ticket, and release the lock when the ticket is served; as
    /// [`Kind::Unlock`].
    Abandon = 19,
    /// I have signalled you in shared memory while you slept: check your signals.
    Ring = 20,
    /// I have been waiting for a while in collective `op`, of sequence number `offset`, for ranks that signal in shared
    /// memory: if you are in another one, say so. Context as in a collective's data.
    Waiting = 21,
    /// The message that asked for this is applied, or refused, and all before it are over: its `request`, the origin's number of
    /// the target, and its `value`, the message's number.
    Applied = 22,
    /// I have given up waiting for the reply to my [`Kind::Lock`] of number `request`: refuse it, unless it has been granted.
    Withdraw = 23,
    /// Carry out the `count` operations of the payload ([`super::gathered`]), which fetch nothing.
    Apply = 24,
    /// Are you alive? Then say [`Kind::Here`].
    Ask = 25,
    /// I am alive.
    Here = 26,
    /// A communicator is revoked, whose context is as in a collective's data; the payload is its members.
    RevokeContext = 27,
    /// An eager message: `offset` its tag, the payload its bytes; `window` and `request` are the communicator's context. If
    /// `op` is 1, say [`Kind::Done`] to number `value` when it is received. If the status is [`INLINE`], its bytes are in the
    /// header.
    Eager = 32,
    /// A message of `count` bytes waits here under number `value`; tag and context as above (rendezvous). If there is a
    /// payload, it is the key of a region to get it from; else ask for it by [`Kind::ClearToSend`].
    RequestToSend = 33,
    /// Send your message of number `value` in segments for my number `compare`.
    ClearToSend = 34,
    /// Bytes from `offset` on of a message that is your number `value`.
    Segment = 35,
    /// Your message of number `value` has been received; or cannot be, if the status is [`REFUSED`].
    Done = 36,
    /// Forget my message of number `value` unless a receive has matched it, and then say [`Kind::Recalled`].
    Recall = 37,
    /// Your message of number `value` is forgotten.
    Recalled = 38,
    /// A message of `count` bytes that comes in parts, the first of which is the payload: my number `value`; tag and context as of
    /// [`Kind::Eager`].
    Parts = 39,
    /// The next part of my message of number `value`, from byte `offset` on.
    Part = 40,
    /// I get your message of number `value`, of `count` bytes: if you have time, put parts of `offset` bytes each, from its last one on.
    /// Claim them in my line `window`, for its use `compare`. The payload is the keys of my lines, so many bytes as `ty` says, and
    /// of the buffer.
    Join = 41,
}

impl Kind {
    /// The kind that a byte names.
    pub fn from_wire(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Collective,
            1 => Self::Accumulate,
            2 => Self::GetAccumulate,
            3 => Self::FetchOp,
            4 => Self::CompareSwap,
            5 => Self::Lock,
            6 => Self::Unlock,
            7 => Self::Flush,
            8 => Self::Reply,
            9 => Self::Wake,
            10 => Self::Revoke,
            11 => Self::Put,
            12 => Self::Get,
            13 => Self::AccumulatePull,
            14 => Self::Post,
            15 => Self::Complete,
            16 => Self::Notify,
            17 => Self::FindRegion,
            18 => Self::ForgetRegion,
            19 => Self::Abandon,
            20 => Self::Ring,
            21 => Self::Waiting,
            22 => Self::Applied,
            23 => Self::Withdraw,
            24 => Self::Apply,
            25 => Self::Ask,
            26 => Self::Here,
            27 => Self::RevokeContext,
            32 => Self::Eager,
            33 => Self::RequestToSend,
            34 => Self::ClearToSend,
            35 => Self::Segment,
            36 => Self::Done,
            37 => Self::Recall,
            38 => Self::Recalled,
            39 => Self::Parts,
            40 => Self::Part,
            41 => Self::Join,
            _ => return None,
        })
    }
}

/// [`Header::status`] of a reply to a request that was carried out.
pub const OK: u8 = 0;
/// [`Header::status`] of a reply to a request that the target refused.
pub const REFUSED: u8 = 1;
/// [`Header::status`] of a message that is to be confirmed by [`Kind::Applied`].
pub const CONFIRM: u8 = 2;
/// [`Header::status`] of a collective's message that carries operations.
pub const CARRIES: u8 = 3;

/// [`Header::status`] of an eager message whose bytes, so many as `ty` says, are in `count` and `compare`; or of a collective's data
/// that is in `value` and `compare`.
pub const INLINE: u8 = 4;

/// The header, 64 bytes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// The job's secret.
    pub token: Token,
    /// [`Kind`].
    pub kind: u8,
    /// Reduction operation, collective, or lock type.
    pub op: u8,
    /// Element type.
    pub ty: u8,
    /// Of a reply: [`OK`] or [`REFUSED`]. Of others: [`CONFIRM`], [`CARRIES`] or nothing.
    pub status: u8,
    /// Rank of the sender.
    pub origin: u32,
    /// The target's number of the window.
    pub window: u32,
    /// The origin's number of the request.
    pub request: u32,
    /// Byte offset in the target's window.
    pub offset: u64,
    /// Bytes, or a round.
    pub count: u64,
    /// Operand or result.
    pub value: u64,
    /// Second operand.
    pub compare: u64,
}

impl Header {
    /// The context of a message between ranks of a communicator.
    pub fn context(&self) -> u64 {
        u64::from(self.window) << 32 | u64::from(self.request)
    }

    /// The same header, of a message that is to be confirmed by that number, if by one; `target` is the origin's number of the
    /// target.
    pub fn confirmed_by(self, target: u32, number: Option<u64>) -> Self {
        match number {
            Some(value) => Self { status: CONFIRM, request: target, value, ..self },
            None => self,
        }
    }

    /// The same header of an eager message, or of a collective's data, with its bytes, if these fit.
    #[inline]
    fn with_inline(self, bytes: &[u8]) -> Option<Self> {
        let (mut words, len) = ([0; INLINE_BYTES], bytes.len());
        words.get_mut(..len)?.copy_from_slice(bytes);
        let [first, compare] = zerocopy::transmute!(words);
        let header = Self { status: INLINE, ty: len as u8, compare, ..self };
        Some(match self.kind == Kind::Collective as u8 {
            true => Self { value: first, ..header },
            false => Self { count: first, ..header },
        })
    }

    /// Such a message as it is sent: with its bytes in the header and none behind it, or as they are.
    #[inline]
    pub fn carrying(self, bytes: &[u8]) -> (Self, &[u8]) {
        self.with_inline(bytes).map_or((self, bytes), |header| (header, &[]))
    }

    /// The bytes that are in the header of such a message, and how many; none if there are more than fit.
    #[inline]
    pub fn inline(&self) -> Option<([u8; INLINE_BYTES], usize)> {
        let len = usize::from(self.ty);
        let first = if self.kind == Kind::Collective as u8 { self.value } else { self.count };
        (len <= INLINE_BYTES).then(|| (zerocopy::transmute!([first, self.compare]), len))
    }

    /// What `with` makes of the part of a collective's data that such a message has: of so many bytes in all, from which one on, and the
    /// part.
    #[inline]
    pub fn with_part<R>(&self, payload: Payload<'_>, with: impl FnOnce(u64, u64, Payload<'_>) -> R) -> R {
        if self.status == INLINE
            && let Some((bytes, len)) = self.inline()
        {
            return with(len as u64, 0, Payload::Here(&bytes[..len]));
        }
        with(self.value, self.compare, payload)
    }

    /// The same header with a context.
    pub fn in_context(self, context: u64) -> Self {
        Self { window: (context >> 32) as u32, request: context as u32, ..self }
    }
}

/// Most bytes of an eager message in its header.
pub const INLINE_BYTES: usize = 16;

/// Bytes of a header.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// Splits a message into header and payload, if it carries `token`.
pub fn parse<'a>(token: &Token, message: &'a [u8]) -> Option<(Header, Kind, &'a [u8])> {
    let (header, payload) = Header::read_from_prefix(message).ok()?;
    let kind = Kind::from_wire(header.kind)?;
    // All bytes are compared at once, so that the time says nothing about where two tokens differ.
    let differ = u128::from_ne_bytes(header.token) ^ u128::from_ne_bytes(*token);
    (differ == 0).then_some((header, kind, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn header_has_no_padding_and_fits_a_cache_line() {
        assert_eq!(HEADER_BYTES, 64);
    }

    proptest! {
        #[test]
        fn a_strangers_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse(&[7; 16], &bytes).is_none());
        }
    }

    #[test]
    fn short_messages_are_in_their_header() {
        for (len, kind) in (0..=INLINE_BYTES).flat_map(|len| [(len, Kind::Eager), (len, Kind::Collective)]) {
            let bytes: Vec<u8> = (1..).take(len).collect();
            let header = Header { kind: kind as u8, count: 77, value: 99, ..Header::default() };
            let with = header.with_inline(&bytes).unwrap();
            let (there, count) = with.inline().unwrap();
            assert_eq!((with.status, &there[..count]), (INLINE, &bytes[..]));
            let kept = if kind == Kind::Eager { with.value == 99 } else { with.count == 77 };
            assert!(kept, "{kind:?} needs it");
        }
        assert!(Header::default().with_inline(&[0; INLINE_BYTES + 1]).is_none());
        assert!(Header { ty: 17, ..Header::default() }.inline().is_none());
    }

    #[test]
    fn a_message_with_the_token_is_taken_apart() {
        let header = Header { token: [7; 16], kind: Kind::Put as u8, offset: 9, ..Header::default() };
        let message = [header.as_bytes(), b"data"].concat();
        let (header, kind, payload) = parse(&[7; 16], &message).unwrap();
        assert_eq!((header.offset, kind, payload), (9, Kind::Put, &b"data"[..]));
        assert!(parse(&[8; 16], &message).is_none());
        assert!(parse(&[7; 16], &message[..63]).is_none());
    }
}
