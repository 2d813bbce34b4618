//! Taking and releasing a target's lock: on its words where these are mapped, else by its agent.

use std::cell::RefCell;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use crate::Result;
use crate::engine::{Idle, LockWords, Noted, Step, agent_abandon, agent_recheck};
use crate::protocol::gathered::Gathered;
use crate::protocol::lock::{LockKind, Ticket};
use crate::protocol::lock_queue::LockQueue;
use crate::protocol::wire::{Header, Kind};
use crate::waits::{Awaits, Subject};
use crate::window::{Core, Peer};

/// Polls of the lock between two looks at the clock.
const POLLS_PER_LOOK: u32 = 64;

/// Takes the lock of `target`; waits in a fair queue.
pub(super) fn acquire(core: &Core, target: usize, peer: &Peer, kind: LockKind) -> Result<Ticket> {
    match core.lock_words("lock", target, peer)? {
        Some(words) => enter(core, target, peer, words, words.lock().draw(kind)),
        None => claim(core, "lock", (target, peer), kind, None, true).map(|(ticket, _)| ticket),
    }
}

/// Waits until a ticket is served. A reader that enters admits the next.
#[inline(never)]
pub(super) fn enter(
    core: &Core,
    target: usize,
    peer: &Peer,
    words: &LockWords,
    ticket: Ticket,
) -> Result<Ticket> {
    let queue = words.queue();
    if !queue.lock.try_enter(ticket) {
        wait_turn(core, target, peer, &queue, ticket)?;
    }
    if ticket.kind == LockKind::Shared
        && let Err(error) = changed(core, "lock", target, peer, &queue)
    {
        queue.lock.release(ticket);
        queue.changed();
        return Err(error);
    }
    Ok(ticket)
}

/// Releases the lock of `target`. Everything before it is visible to the next holder of the lock.
pub(super) fn release(core: &Core, target: usize, peer: &Peer, ticket: Ticket) -> Result<()> {
    if let Some(words) = core.lock_words("unlock", target, peer)? {
        let queue = words.queue();
        queue.lock.release(ticket);
        return changed(core, "unlock", target, peer, &queue);
    }
    let engine = &core.member.engine;
    engine.send("unlock", peer.world, &about(core, peer, Kind::Unlock, ticket), &[])
}

/// A message about a ticket.
fn about(core: &Core, peer: &Peer, kind: Kind, ticket: Ticket) -> Header {
    let mut header = core.member.engine.header(kind);
    header.window = peer.number;
    header.op = ticket.code();
    header.value = u64::from(ticket.number);
    header
}

/// Wakes the waiters: the lock has changed.
pub(super) fn changed(
    core: &Core,
    operation: &'static str,
    target: usize,
    peer: &Peer,
    queue: &LockQueue<'_, AtomicU32>,
) -> Result<()> {
    if queue.changed() { tell_agent(core, operation, target, peer) } else { Ok(()) }
}

/// Has the target's agent check the lock: it holds tickets.
#[inline(never)]
fn tell_agent(core: &Core, operation: &'static str, target: usize, peer: &Peer) -> Result<()> {
    let engine = &core.member.engine;
    if target == core.rank() {
        agent_recheck(engine, core.number);
        return Ok(());
    }
    let mut header = engine.header(Kind::Wake);
    header.window = peer.number;
    engine.send(operation, peer.world, &header, &[])
}

/// Waits until a ticket is served: polls for a while, then sleeps on the word that will change. The holder of the lock may
/// be waiting for this core.
fn wait_turn(
    core: &Core,
    target: usize,
    peer: &Peer,
    queue: &LockQueue<'_, AtomicU32>,
    ticket: Ticket,
) -> Result<()> {
    let engine = &core.member.engine;
    let start = Instant::now();
    let mut idle = Idle::default();
    loop {
        for _ in 0..POLLS_PER_LOOK {
            if queue.lock.try_enter(ticket) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if engine.idle(&mut idle) == Step::Sleep {
            break;
        }
    }
    let what = || awaits(core, (target, peer), ticket.kind, Some(ticket.number));
    let noted = RefCell::new(Noted::default());
    let waited = queue.sleep_until(ticket, || {
        engine.check_wait("lock", &what, start.elapsed())?;
        noted.borrow_mut().note(engine, "lock", &what, start.elapsed());
        Ok(())
    });
    waited.map_err(|error| {
        abandon(core, target, peer, ticket);
        core.name(error).with_target(target)
    })
}

/// What a rank that waits for a lock waits for.
fn awaits(core: &Core, (target, peer): (usize, &Peer), kind: LockKind, ticket: Option<u32>) -> Awaits {
    let (exclusive, name) = match kind {
        LockKind::Exclusive => (true, "exclusive"),
        LockKind::Shared => (false, "shared"),
    };
    let owner = u32::try_from(peer.world).unwrap_or(u32::MAX);
    let text = format!("the {name} lock of rank {target} of window {}", core.number);
    Awaits::new(text, Subject::Lock { owner, window: peer.number, exclusive, ticket }, [])
}

/// Has the target's agent hold the ticket until it has been served: others wait behind it.
#[cold]
fn abandon(core: &Core, target: usize, peer: &Peer, ticket: Ticket) {
    let engine = &core.member.engine;
    if target == core.rank() {
        agent_abandon(engine, core.number, ticket);
    } else {
        // Without waiting for space in the queue: this rank has waited long enough.
        engine.send_later(peer.world, &about(core, peer, Kind::Abandon, ticket), &[]);
    }
}

/// Asks the target's agent for the lock, and to carry out operations as soon as it has it: what these fetch. The agent releases
/// the lock behind them unless this rank `keeps` it.
pub(super) fn claim(
    core: &Core,
    operation: &'static str,
    (target, peer): (usize, &Peer),
    kind: LockKind,
    operations: Option<&Gathered>,
    keeps: bool,
) -> Result<(Ticket, Vec<u8>)> {
    let engine = &core.member.engine;
    let mut header = about(core, peer, Kind::Lock, Ticket { number: 0, kind });
    header.value = u64::from(!keeps);
    header.count = operations.map_or(0, Gathered::count);
    let payload = operations.map_or(&[][..], Gathered::payload);
    let _quietly = engine.quietly();
    let request = engine.request(operation, peer.world, header, payload).map_err(|e| core.name(e))?;
    let what = || awaits(core, (target, peer), kind, None);
    if let Err(error) = engine.await_reply_of(operation, target, &request, &what) {
        // The lock may have come meanwhile. If it comes yet it is given back, and what it was wanted for is not done.
        let over = if keeps { request.give_up() } else { request.outcome().is_none() };
        if over {
            let mut header = about(core, peer, Kind::Withdraw, Ticket { number: 0, kind });
            header.request = request.number();
            engine.send_later(peer.world, &header, &[]);
        }
        if over || request.outcome() == Some(false) {
            return Err(core.name(error));
        }
    }
    // It was granted behind everything that was sent to the target before.
    peer.state.settle();
    Ok((Ticket { number: request.value() as u32, kind }, request.take_data()))
}
