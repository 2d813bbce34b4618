//! Nonblocking sends, which own their buffers (MPI-4.1 §3.7).

use std::sync::Arc;
use std::task::Waker;

use transom_transport::Region;

use super::send::{Mode, Sending, awaited, recalled, refused};
use crate::comm::{Awaited, Channel};
use crate::engine::two_sided::{Answer, Buffer, OnAnswer, SegmentedSend};
use crate::engine::{Engine, Promise};
use crate::waits::Awaits;
use crate::{Communicator, Request, Result};

/// The buffer of a send, which the receiver may get. The region is dropped first.
struct SendBuffer<B: Buffer> {
    region: Option<Box<dyn Region>>,
    exposed: B::Exposed,
}

impl<B: Buffer> SendBuffer<B> {
    fn take(self) -> B {
        drop(self.region);
        B::take(self.exposed)
    }
}

/// The callback of the receiver's answer: the buffer is returned, or sent in segments first.
fn answered<B: Buffer>(sending: &Sending<'_>, buffer: SendBuffer<B>, promise: Arc<Promise<B>>) -> OnAnswer {
    let Sending { operation, dest, to, .. } = *sending;
    Box::new(move |engine, answer| {
        if answer != Answer::Recalled {
            engine.note_answer();
        }
        let buffer = buffer.take();
        match answer {
            Answer::Done(true) => promise.complete(engine, Ok(buffer)),
            Answer::Done(false) => promise.complete(engine, Err(refused(engine, operation, dest))),
            Answer::Recalled => promise.complete(engine, Err(recalled(engine, operation, dest))),
            Answer::ClearToSend(number) => {
                let then = Box::new(move |engine: &Engine, result| promise.complete(engine, result));
                engine.start_transfer(Box::new(SegmentedSend {
                    operation,
                    peer: to,
                    number,
                    buffer,
                    at: 0,
                    then,
                }));
            }
        }
    })
}

/// Starts to send `data`, which comes back.
pub(super) fn isend<B: Buffer>(
    comm: &Communicator,
    operation: &'static str,
    (dest, tag): (usize, i32),
    data: B,
    mode: Mode,
) -> Request<B> {
    let done = |result| Request::done(comm.member(), operation, result);
    let sending = match Sending::new(comm.channel(), operation, dest, tag) {
        Ok(Some(sending)) => sending,
        Ok(None) => return done(Ok(data)),
        Err(error) => return done(Err(error)),
    };
    let bytes = data.bytes();
    if mode == Mode::Standard && sending.is_own() {
        let sent = sending.copied(bytes).map(|copy| sending.deliver(copy, None));
        return done(sent.map(|()| data));
    }
    let short = !sending.is_own() && sending.is_short(bytes.len());
    if mode == Mode::Standard && (short || sending.is_in_parts(bytes.len())) {
        let sent = if short { sending.send_in_order(None, bytes) } else { send_parts(&sending, bytes) };
        return match sent {
            Ok(()) if sending.engine().awaits_room(sending.to) => leaving(comm, &sending, data),
            sent => done(sent.map(|()| data)),
        };
    }
    let promise = Promise::new();
    match answered_send(&sending, data, promise.clone()) {
        Ok(number) => {
            let send = (comm.channel().clone(), operation, sending.to, Some(number));
            Request::new(comm.member(), operation, Sent { promise, send, dest, tag })
        }
        Err(error) => done(Err(error)),
    }
}

/// The request of a send that waits for room in the receiver's queue: as a blocking one, so that no program has more on its way than that.
fn leaving<B: Buffer>(comm: &Communicator, sending: &Sending<'_>, data: B) -> Request<B> {
    let promise = Promise::new();
    let left = promise.clone();
    sending.engine().when_left(sending.to, move |engine| left.complete(engine, Ok(data)));
    let send = (comm.channel().clone(), sending.operation, sending.to, None);
    Request::new(
        comm.member(),
        sending.operation,
        Sent { promise, send, dest: sending.dest, tag: sending.tag },
    )
}

fn send_parts(sending: &Sending<'_>, bytes: &[u8]) -> Result<()> {
    let mut parts = sending.parts(bytes).peekable();
    while let Some((header, part)) = parts.next() {
        let more = parts.peek().is_some();
        sending.engine().send_in_order_before(sending.operation, sending.to, &header, part, more)?;
    }
    Ok(())
}

/// Starts a send that the receiver answers; returns its number.
fn answered_send<B: Buffer>(sending: &Sending<'_>, data: B, promise: Arc<Promise<B>>) -> Result<u64> {
    let engine = sending.engine();
    let bytes = data.bytes().len();
    if sending.is_own() || sending.is_short(bytes) {
        let copy = sending.copied(data.bytes())?;
        let buffer = SendBuffer { region: None, exposed: data.expose().0 };
        let number = engine.two_sided.await_answer(sending.to, None, answered(sending, buffer, promise));
        let sent = if sending.is_own() {
            sending.deliver(copy, Some(number));
            Ok(())
        } else {
            sending.send_in_order(Some(number), &copy)
        };
        return ended(sending, number, sent);
    }
    let (exposed, span) = data.expose();
    let region = sending.register(&span, engine.waits_for_sends());
    let key = region.as_ref().map(|region| region.key().0).unwrap_or_default();
    let shown = region.as_ref().map(|_| span);
    let then = answered(sending, SendBuffer { region, exposed }, promise);
    let number = engine.two_sided.await_answer(sending.to, shown, then);
    let header = sending.request_to_send(number, bytes);
    ended(sending, number, engine.send_in_order(sending.operation, sending.to, &header, &key))
}

/// A send that could not be started awaits no answer.
fn ended(sending: &Sending<'_>, number: u64, sent: Result<()>) -> Result<u64> {
    if sent.is_err() {
        sending.engine().two_sided.end_send(sending.to, number);
    }
    sent.map(|()| number)
}

/// Ends a send of memory that the program wants back: a receiver that lives may be getting it, and says when it has it, or that it will not.
#[cold]
fn give_back(
    channel: &Channel,
    (operation, to, number): (&'static str, usize, u64),
    is_over: impl Fn() -> bool,
) {
    let engine = &channel.engine;
    if engine.dead.has(to) && engine.two_sided.end_send(to, number).is_some() {
        return;
    }
    let _ = engine.recall(operation, to, number);
    let what =
        || Awaits::target(format!("rank {to} of the job to have what is sent to it"), to).on_channel(channel);
    let given = engine.wait_until(operation, &what, None, || is_over().then_some(Ok(())));
    if given.is_err() {
        engine.two_sided.end_send(to, number);
    }
}

/// A send under way.
struct Sent<B> {
    promise: Arc<Promise<B>>,
    /// The call, the receiver in the job, and the send's number; none if it only waits for room.
    send: (Arc<Channel>, &'static str, usize, Option<u64>),
    dest: usize,
    tag: i32,
}

impl<B: Buffer> Awaited<B> for Sent<B> {
    fn is_done(&self) -> bool {
        self.promise.is_complete()
    }

    fn take(&self) -> Option<Result<B>> {
        self.promise.take()
    }

    fn register(&self, waker: &Waker) -> bool {
        self.promise.register(waker)
    }

    fn cancel(&self) -> bool {
        let (channel, operation, to, number) = &self.send;
        let engine = &channel.engine;
        let Some(number) = number.filter(|_| !self.promise.is_complete()) else { return false };
        // A send whose receiver cannot be asked goes on.
        let _ = engine.recall(operation, *to, number);
        *to == engine.rank && self.promise.is_complete()
    }

    fn leave(&self) {
        let (channel, operation, to, number) = &self.send;
        let engine = &channel.engine;
        if let Some(number) = number.filter(|_| B::LENT && !self.promise.is_complete() && engine.dead.any()) {
            give_back(channel, (operation, *to, number), || self.promise.is_complete());
        }
    }

    fn what(&self) -> Awaits {
        match self.send {
            (.., Some(_)) => awaited(&self.send.0, self.dest, self.tag),
            (.., to, None) => Awaits::room(format!("room in the message queue of rank {to} of the job"), to),
        }
    }
}
