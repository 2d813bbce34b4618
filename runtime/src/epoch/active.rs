//! Post, start, complete, wait: synchronisation of some ranks with some others (MPI-4.1 §12.5.2).
//!
//! A post is one signal to each origin, a complete one to each target: a word raised where memory is shared, else a message.
//! Nothing else is sent, and nothing is kept that grows with the job.

use crate::protocol::pscw::Call;
use crate::protocol::wire::Kind;
use crate::window::Core;
use crate::{Assert, Class, Result};

/// The ranks of a group, if they are ranks of the window, each once.
pub(super) fn check_group(core: &Core, operation: &'static str, group: &[usize]) -> Result<Box<[usize]>> {
    let mut ranks: Box<[usize]> = group.into();
    ranks.sort_unstable();
    for rank in &*ranks {
        if *rank >= core.peers.len() {
            let message =
                format!("the group names rank {rank}, the window has ranks 0 to {}", core.peers.len() - 1);
            return Err(core.error(Class::Rank, operation, message));
        }
    }
    if let Some(twice) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("the group names rank {} twice: name each rank once", twice[0]);
        return Err(core.error(Class::Group, operation, message));
    }
    Ok(ranks)
}

/// Tells the ranks of a group: by a word where memory is shared, else by a message, before the first of which `before` is
/// called.
fn tell(core: &Core, operation: &'static str, call: Call, group: &[usize], before: impl Fn()) -> Result<()> {
    let mut result = Ok(());
    let mut sent = false;
    for rank in group {
        // All are told, whatever happens to one.
        let told = core.raise_call(operation, *rank, call).and_then(|raised| {
            if raised {
                return Ok(());
            }
            if !std::mem::replace(&mut sent, true) {
                before();
            }
            send(core, operation, call, *rank)
        });
        result = result.and(told);
    }
    result
}

#[inline(never)]
fn send(core: &Core, operation: &'static str, call: Call, rank: usize) -> Result<()> {
    let (engine, peer) = (&core.member.engine, &core.peers[rank]);
    if rank == core.rank() {
        core.exposure.count_call(call, peer.world);
        return Ok(());
    }
    let mut header = engine.header(if call == Call::Post { Kind::Post } else { Kind::Complete });
    header.window = peer.number;
    engine.send(operation, peer.world, &header, &[]).map_err(|e| core.name(e))
}

/// The first rank of a group that has not completed its accesses.
#[inline]
fn not_completed(core: &Core, group: &[usize]) -> Option<usize> {
    group.iter().copied().find(|rank| !core.has_called(*rank, Call::Complete))
}

/// Opens an exposure epoch to the ranks of `group`.
pub(super) fn post(core: &Core, group: &[usize], assert: Assert) -> Result<()> {
    core.epochs.open_post(core.rank()).map_err(|e| core.name(e))?;
    let posted = (|| {
        if !assert.has(Assert::NOSTORE) {
            core.publish("post")?;
        }
        if assert.has(Assert::NOCHECK) { Ok(()) } else { tell(core, "post", Call::Post, group, || ()) }
    })();
    if posted.is_err() {
        core.epochs.close_post();
    }
    posted
}

/// Waits until every rank of `group` has completed its accesses, and closes the exposure epoch.
pub(super) fn wait(core: &Core, group: &[usize]) -> Result<()> {
    let what = || match not_completed(core, group) {
        Some(rank) => format!("rank {} to call complete", core.peers.world(rank)),
        None => "nobody".into(),
    };
    let waited = core.member.engine.wait_raised(
        "wait",
        &what,
        || (),
        |_| not_completed(core, group).is_none().then_some(Ok(())),
    );
    close_post(core, group);
    waited.map_err(|e| core.name(e))?;
    core.refresh("wait")
}

/// [`wait`] if it would not block; whether it did.
pub(super) fn test(core: &Core, group: &[usize]) -> Result<bool> {
    core.member.engine.look()?;
    if not_completed(core, group).is_some() {
        return Ok(false);
    }
    close_post(core, group);
    core.refresh("test").map(|()| true)
}

/// Closes the exposure epoch; completes that have not come are not awaited any more.
pub(super) fn close_post(core: &Core, group: &[usize]) {
    group.iter().for_each(|rank| core.pair(*rank).consumed.consume(Call::Complete));
    core.epochs.close_post();
}

/// Waits until `target` has posted its window to this rank.
#[inline(never)]
pub(super) fn await_post(core: &Core, operation: &'static str, target: usize) -> Result<()> {
    let what = || format!("rank {target} to post its window to this rank");
    let posted = |_| core.has_called(target, Call::Post).then_some(Ok(()));
    let waited = core.member.engine.wait_raised(operation, &what, || (), posted);
    waited.map_err(|e| core.name(e).with_target(target))
}

/// Tells the targets of an access epoch, whose operations are complete, that it has ended. `order` orders stores to mapped memory
/// before what follows, where raising a word does not.
pub(super) fn complete(core: &Core, group: &[usize], checked: bool, order: impl Fn()) -> Result<()> {
    if checked {
        group.iter().for_each(|target| core.pair(*target).consumed.consume(Call::Post));
    }
    tell(core, "complete", Call::Complete, group, order)
}
