//! The agent's part in a window's lock: it holds tickets for ranks of other nodes, and for those that have given up. What such
//! a rank wants the lock for may come with its request: then the agent does that when the lock is granted.

use super::exposure::{Claim, Waiter};
use super::{Engine, Exposure, agent, gathered};
use crate::protocol::lock::{LockKind, Ticket};
use crate::protocol::lock_queue::withdraw;
use crate::protocol::wire::{HEADER_BYTES, Header, Kind, OK, REFUSED};

/// Carries out a message about a lock.
pub(super) fn handle(engine: &Engine, header: &Header, kind: Kind, payload: &[u8]) {
    let ticket = Ticket::from_wire(header.op, header.value);
    let done = engine.exposures.get(header.window).and_then(|exposure| match kind {
        Kind::Lock => enqueue(engine, header, &exposure, (ticket.kind, payload)),
        Kind::Withdraw => give_up(engine, header, &exposure),
        Kind::Abandon => {
            abandon(engine, header.window, &exposure, ticket);
            Some(())
        }
        _ => {
            release(engine, header, &exposure, ticket);
            Some(())
        }
    });
    if done.is_none() && kind != Kind::Withdraw {
        tracing::warn!(origin = header.origin, window = header.window, "dropped a malformed lock message");
        if kind == Kind::Lock {
            agent::reply(engine, header, None);
        }
    }
}

/// Joins the lock's queue for a rank of another node. `None` if the request is malformed.
fn enqueue(
    engine: &Engine,
    header: &Header,
    exposure: &Exposure,
    (kind, operations): (LockKind, &[u8]),
) -> Option<()> {
    let (origin, window) = (header.origin as usize, header.window);
    let most = engine.routes.route(origin).capabilities.max_message - HEADER_BYTES;
    gathered::check(exposure, header.count, operations, most)?;
    let keeps = header.value == 0;
    let claim = Claim { origin, request: header.request, count: header.count, keeps };
    exposure.lock.queue().admit(
        kind,
        || exposure.agent_tickets.lock(),
        |ticket| serve(engine, (window, exposure), ticket, &claim, operations),
        || Waiter { claim, operations: operations.to_vec() },
    );
    recheck(engine, window, exposure);
    Some(())
}

/// A rank of another node has the lock: carries out its operations, and answers. Whether it keeps the lock.
fn serve(
    engine: &Engine,
    (window, exposure): (u32, &Exposure),
    ticket: Ticket,
    claim: &Claim,
    operations: &[u8],
) -> bool {
    // They were checked when they came: this fails if memory has gone since.
    let fetched = gathered::carry_out(exposure, claim.count, operations);
    // Before the answer: what the rank sends then may be carried out by another thread.
    let keeps = claim.keeps && fetched.is_some() && keep(engine, exposure, claim.origin, ticket);
    let mut header = engine.header(Kind::Reply);
    (header.request, header.window) = (claim.request, window);
    (header.op, header.value) = (ticket.code(), u64::from(ticket.number));
    header.status = if fetched.is_some() { OK } else { REFUSED };
    engine.send_later(claim.origin, &header, fetched.as_deref().unwrap_or_default());
    keeps
}

/// A rank gives up its claim. What has been granted is answered already.
fn give_up(engine: &Engine, header: &Header, exposure: &Exposure) -> Option<()> {
    let (origin, request) = (header.origin as usize, header.request);
    let is_it = |waiter: &Waiter| (waiter.claim.origin, waiter.claim.request) == (origin, request);
    withdraw(&mut exposure.agent_tickets.lock(), is_it)?;
    agent::reply(engine, header, None);
    Some(())
}

/// Holds the ticket of a rank that has given up, and releases the lock when the ticket is served.
fn abandon(engine: &Engine, window: u32, exposure: &Exposure, ticket: Ticket) {
    exposure.lock.queue().enqueue_for(&mut exposure.agent_tickets.lock(), ticket, None);
    recheck(engine, window, exposure);
}

/// A rank keeps the lock: that is noted where it may die before others do. Whether it has not.
fn keep(engine: &Engine, exposure: &Exposure, origin: usize, ticket: Ticket) -> bool {
    if !engine.outlives {
        return true;
    }
    let mut granted = exposure.granted.lock();
    // Who takes locks back from the dead looks here after it has made their deaths known.
    let lives = !engine.dead.has(origin);
    if lives {
        granted.push((origin, ticket));
    }
    lives
}

/// Takes back the window's lock from ranks that have died, and their places in its queue.
pub(super) fn recover(engine: &Engine, window: u32, exposure: &Exposure) {
    let mut taken = Vec::new();
    exposure.granted.lock().retain(|(origin, ticket)| {
        let is_dead = engine.dead.has(*origin);
        if is_dead {
            taken.push(*ticket);
        }
        !is_dead
    });
    let is_dead = |waiter: &Waiter| engine.dead.has(waiter.claim.origin);
    while withdraw(&mut exposure.agent_tickets.lock(), is_dead).is_some() {}
    let queue = exposure.lock.queue();
    for ticket in taken {
        tracing::debug!(rank = engine.rank, window, ?ticket, "a lock of a dead rank is released");
        queue.lock.release(ticket);
        queue.changed();
    }
    recheck(engine, window, exposure);
}

/// Whether the lock was granted to that rank, and not taken back from it.
fn give_back(engine: &Engine, exposure: &Exposure, origin: usize, ticket: Ticket) -> bool {
    if !engine.outlives {
        return true;
    }
    let mut granted = exposure.granted.lock();
    let place = granted.iter().position(|grant| *grant == (origin, ticket));
    place.map(|place| granted.swap_remove(place)).is_some()
}

fn release(engine: &Engine, header: &Header, exposure: &Exposure, ticket: Ticket) {
    if !give_back(engine, exposure, header.origin as usize, ticket) {
        return;
    }
    let queue = exposure.lock.queue();
    queue.lock.release(ticket);
    queue.changed();
    recheck(engine, header.window, exposure);
}

/// The lock of a window has changed: grants it to the tickets that are next.
pub(crate) fn agent_recheck(engine: &Engine, window: u32) {
    on_lock(engine, window, |exposure| recheck(engine, window, exposure));
}

/// This rank abandons the wait for its own lock.
pub(crate) fn agent_abandon(engine: &Engine, window: u32, ticket: Ticket) {
    on_lock(engine, window, |exposure| abandon(engine, window, exposure, ticket));
}

fn on_lock(engine: &Engine, window: u32, act: impl FnOnce(&Exposure)) {
    if let Some(exposure) = engine.exposures.get(window) {
        act(&exposure);
    }
}

fn recheck(engine: &Engine, window: u32, exposure: &Exposure) {
    exposure.lock.queue().grant(
        || exposure.agent_tickets.lock(),
        |ticket, Waiter { claim, operations }| serve(engine, (window, exposure), ticket, &claim, &operations),
    );
}
