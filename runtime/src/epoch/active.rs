//! Post, start, complete, wait: synchronisation of some ranks with some others (MPI-4.1 §12.5.2).
//!
//! A post is one message to each origin, a complete one to each target. Nothing else is sent, and nothing is kept that
//! grows with the job.

use super::table::Epochs;
use crate::protocol::wire::Kind;
use crate::window::Core;
use crate::{Assert, Class, Result};

/// The ranks of a group, if they are ranks of the window, each once.
pub(super) fn check_group(core: &Core, operation: &'static str, group: &[usize]) -> Result<Box<[usize]>> {
    let mut ranks = group.to_vec();
    ranks.sort_unstable();
    for rank in &ranks {
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
    Ok(ranks.into())
}

fn tell(core: &Core, operation: &'static str, kind: Kind, group: &[usize]) -> Result<()> {
    let engine = &core.member.engine;
    let mut result = Ok(());
    for rank in group {
        let peer = &core.peers[*rank];
        if *rank == core.rank() {
            let mut matching = core.exposure.matching.lock();
            match kind {
                Kind::Post => matching.posted(peer.world),
                _ => matching.completed(peer.world),
            }
            continue;
        }
        let mut header = engine.header(kind);
        header.window = peer.number;
        // All are told, whatever happens to one.
        result = result.and(engine.send(operation, peer.world, &header, &[]).map_err(|e| core.name(e)));
    }
    result
}

/// Ranks of the job of a group of the window's.
fn origins(core: &Core, group: &[usize]) -> Vec<usize> {
    group.iter().map(|rank| core.peers[*rank].world).collect()
}

/// Opens an exposure epoch to the ranks of `group`.
pub(super) fn post(core: &Core, group: &[usize], assert: Assert) -> Result<()> {
    core.epochs.with(|epochs| epochs.open_post(core.rank())).map_err(|e| core.name(e))?;
    let posted = (|| {
        if !assert.has(Assert::NOSTORE) {
            core.publish("post")?;
        }
        if assert.has(Assert::NOCHECK) { Ok(()) } else { tell(core, "post", Kind::Post, group) }
    })();
    if posted.is_err() {
        core.epochs.with(Epochs::close_post);
    }
    posted
}

/// Waits until every rank of `group` has completed its accesses, and closes the exposure epoch.
pub(super) fn wait(core: &Core, group: &[usize]) -> Result<()> {
    let origins = origins(core, group);
    let matching = &core.exposure.matching;
    let what = || match matching.lock().not_completed(&origins) {
        Some(origin) => format!("rank {origin} to call complete"),
        None => "nobody".into(),
    };
    let waited = core.member.engine.wait_until("wait", &what, None, || {
        matching.lock().not_completed(&origins).is_none().then_some(Ok(()))
    });
    close_post(core, group);
    waited.map_err(|e| core.name(e))?;
    core.refresh("wait")
}

/// [`wait`] if it would not block; whether it did.
pub(super) fn test(core: &Core, group: &[usize]) -> Result<bool> {
    let origins = origins(core, group);
    core.member.engine.look()?;
    if core.exposure.matching.lock().not_completed(&origins).is_some() {
        return Ok(false);
    }
    close_post(core, group);
    core.refresh("test").map(|()| true)
}

/// Closes the exposure epoch; completes that have not come are not awaited any more.
pub(super) fn close_post(core: &Core, group: &[usize]) {
    core.exposure.matching.lock().consume_completes(&origins(core, group));
    core.epochs.with(Epochs::close_post);
}

/// Waits until `target` has posted its window to this rank.
#[cold]
pub(super) fn await_post(core: &Core, operation: &'static str, target: usize) -> Result<()> {
    let world = core.peers[target].world;
    let what = || format!("rank {target} to post its window to this rank");
    let posted = || core.exposure.matching.lock().is_posted(world).then_some(Ok(()));
    let waited = core.member.engine.wait_until(operation, &what, None, posted);
    waited.map_err(|e| core.name(e).with_target(target))
}

/// Tells the targets of an access epoch, whose operations are complete, that it has ended.
pub(super) fn complete(core: &Core, group: &[usize], checked: bool) -> Result<()> {
    if checked {
        let mut matching = core.exposure.matching.lock();
        group.iter().for_each(|target| matching.consume_post(core.peers[*target].world));
    }
    tell(core, "complete", Kind::Complete, group)
}
