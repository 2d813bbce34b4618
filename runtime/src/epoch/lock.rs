//! Taking and releasing a target's lock: on its words where they are in sight, else by its agent.

use std::time::Instant;

use std::sync::atomic::{AtomicU32, Ordering};

use transom_transport::{TransportError, futex};

use crate::engine::{LockWords, agent_recheck};
use crate::protocol::lock::{LockKind, Ticket, TicketLock};
use crate::protocol::wire::Kind;
use crate::window::{Core, Peer};
use crate::{Error, Result};

/// Polls of the lock between two looks at the clock.
const POLLS_PER_LOOK: u32 = 64;
/// Longest sleep without a look at the deadline and at failures.
const NAP: std::time::Duration = std::time::Duration::from_millis(50);

/// Takes the lock of `target`; waits in a fair queue.
#[inline]
pub(super) fn acquire(core: &Core, target: usize, peer: &Peer, kind: LockKind) -> Result<Ticket> {
    let failed = |e: TransportError| core.name(Error::transport("lock", &e)).with_target(target);
    let Some(words) = core.lock_words("lock", target, peer)? else {
        return request(core, target, peer, kind);
    };
    let lock = words.lock().map_err(failed)?;
    let ticket = lock.draw(kind);
    if !lock.try_enter(ticket) {
        let sleepers = words.sleepers().map_err(failed)?;
        wait_turn(core, target, &lock, sleepers, ticket)?;
    }
    if kind == LockKind::Shared {
        changed(core, "lock", target, peer, words)?;
    }
    Ok(ticket)
}

/// Releases the lock of `target`. Everything before it is visible to whoever takes the lock next.
#[inline]
pub(super) fn release(core: &Core, target: usize, peer: &Peer, ticket: Ticket) -> Result<()> {
    let failed = |e: TransportError| core.name(Error::transport("unlock", &e)).with_target(target);
    if let Some(words) = core.lock_words("unlock", target, peer)? {
        words.lock().map_err(failed)?.release(ticket);
        return changed(core, "unlock", target, peer, words);
    }
    let engine = &core.member.engine;
    let mut header = engine.header(Kind::Unlock);
    header.window = peer.number;
    header.op = u8::from(ticket.kind == LockKind::Exclusive);
    header.value = u64::from(ticket.number);
    engine.send("unlock", peer.world, &header, &[])
}

/// Tells whoever waits that the lock has changed.
#[inline]
fn changed(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    words: &LockWords,
) -> Result<()> {
    let failed = |e: TransportError| core.name(Error::transport(operation, &e)).with_target(target);
    if !words.changed().map_err(failed)? {
        return Ok(());
    }
    let engine = &core.member.engine;
    if peer.world == engine.rank {
        agent_recheck(engine, core.number);
        return Ok(());
    }
    let mut header = engine.header(Kind::Wake);
    header.window = peer.number;
    engine.send(operation, peer.world, &header, &[])
}

/// Waits for a ticket's turn: polls for a while, then sleeps on the word that will change.
fn wait_turn(
    core: &Core,
    target: usize,
    lock: &TicketLock<'_, AtomicU32>,
    sleepers: &AtomicU32,
    ticket: Ticket,
) -> Result<()> {
    let engine = &core.member.engine;
    let what = || format!("the {:?} lock of rank {target}", ticket.kind);
    let start = Instant::now();
    while start.elapsed() < engine.spin() {
        for _ in 0..POLLS_PER_LOOK {
            if lock.try_enter(ticket) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }
    sleepers.fetch_add(1, Ordering::SeqCst);
    let result = loop {
        let word = lock.watched(ticket);
        let seen = word.load(Ordering::SeqCst);
        if lock.try_enter(ticket) {
            break Ok(());
        }
        if let Err(error) = engine.check_wait("lock", &what, start.elapsed()) {
            break Err(core.name(error).with_target(target));
        }
        futex::sleep_on(word, seen, NAP);
    };
    sleepers.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Asks the target's agent for the lock.
fn request(core: &Core, target: usize, peer: &Peer, kind: LockKind) -> Result<Ticket> {
    let engine = &core.member.engine;
    let mut header = engine.header(Kind::Lock);
    header.window = peer.number;
    header.op = u8::from(kind == LockKind::Exclusive);
    let request = engine.request("lock", peer.world, header, &[])?;
    engine.await_reply("lock", target, &request).map_err(|e| core.name(e))?;
    Ok(Ticket { number: request.value() as u32, kind })
}
