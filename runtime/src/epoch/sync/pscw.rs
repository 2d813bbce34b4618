//! Post, start, complete, wait: synchronisation of some ranks with some others (MPI-4.1 §12.5.2).
//!
//! A post is one signal to each origin, a complete one to each target: in shared memory, or by a message where there is
//! none. Nothing else is sent, and nothing is kept that grows with the job.

use smallvec::SmallVec;

use super::By;
use super::group::FEW;
use super::table::Accessing;
use crate::operation;
use crate::protocol::pscw::Call;
use crate::protocol::wire::Kind;
use crate::waits::{Awaits, Subject};
use crate::window::Core;
use crate::{Assert, Class, Result};

/// Calls `work` with the ranks of a group, ascending, if they are ranks of the window, each once.
#[inline]
pub(crate) fn with_group<R>(
    core: &Core,
    operation: &'static str,
    group: &[usize],
    work: impl FnOnce(&[usize]) -> Result<R>,
) -> Result<R> {
    if let [rank] = group
        && *rank < core.peers.len()
    {
        return work(group);
    }
    let mut ranks: SmallVec<[usize; FEW]> = SmallVec::from_slice(group);
    check_group(core, operation, &mut ranks)?;
    work(&ranks)
}

/// Sorts the ranks of a group, if they are ranks of the window, each once.
#[inline(never)]
fn check_group(core: &Core, operation: &'static str, ranks: &mut [usize]) -> Result<()> {
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
    Ok(())
}

/// Signals the ranks of a group: in shared memory, else by a message, before the first of which `before` is called.
fn tell(core: &Core, operation: &'static str, call: Call, group: &[usize], before: impl Fn()) -> Result<()> {
    let mut result = Ok(());
    let mut sent = false;
    for rank in group {
        // All are signalled, whatever happens to one.
        let told = core.signal_call(operation, *rank, call).and_then(|signalled| {
            if signalled {
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
    let carried = if call == Call::Complete { core.take_carried(rank) } else { None };
    let sent = match carried {
        None => engine.send(operation, peer.world, &header, &[]),
        Some(carried) => {
            header.count = carried.count();
            operation::send_counted(core, operation, peer, false, (&header, carried.payload()))
        }
    };
    sent.map_err(|e| core.name(e))
}

/// The first rank of a group that has not completed its accesses.
#[inline]
fn not_completed(core: &Core, group: &[usize]) -> Option<usize> {
    group.iter().copied().find(|rank| !core.has_called(*rank, Call::Complete))
}

impl Core {
    /// Opens an access epoch to the ranks of `group`, each from its post on.
    pub(crate) fn start(&self, group: &[usize], assert: Assert, by: By) -> Result<()> {
        assert.check("start").map_err(|e| self.name(e))?;
        with_group(self, "start", group, |group| {
            self.access.open.open_start().map_err(|e| self.name(e))?;
            self.begin_whole(group, assert, by);
            Ok(())
        })
    }

    /// Completes the operations of the epoch, and tells its targets that it has ended.
    pub(crate) fn complete_start(&self, by: By) -> Result<()> {
        if !self.is_open(Accessing::Start, by) {
            let message = "no access epoch of start is open: call start first";
            return Err(self.error(Class::RmaSync, "complete", message));
        }
        let result = self.complete_touched("complete", true);
        self.end_whole(|_, _| ());
        let checked = self.access.opened.checked();
        let told = self.access.started.take(self.access.open.is_serial(), |group| {
            self.access.open.close_access();
            if checked {
                group.iter().for_each(|target| self.signals(*target).consumed.consume(Call::Post));
            }
            tell(self, "complete", Call::Complete, group, || self.order_stores())
        });
        result.and(told.unwrap_or_else(|| {
            // Of an empty group nothing was kept.
            self.access.open.close_access();
            Ok(())
        }))
    }

    /// Waits until `target` has posted its window to this rank.
    #[inline(never)]
    pub(super) fn await_post(&self, operation: &'static str, target: usize) -> Result<()> {
        let what = || {
            let text = format!("rank {target} to post window {} to this rank", self.number);
            Awaits::new(text, Subject::Post, [self.peers.world(target)])
        };
        let signals = self.signals(target);
        let posted = |_| self.has_signalled(target, signals, Call::Post).then_some(Ok(()));
        let waited = self.member.engine.wait_signalled(operation, &what, || (), posted);
        waited.map_err(|e| self.name(e).with_target(target))
    }

    /// Opens an exposure epoch to the ranks of `group`.
    pub(crate) fn post(&self, group: &[usize], assert: Assert) -> Result<()> {
        self.access.open.open_post(self.rank()).map_err(|e| self.name(e))?;
        let published = if assert.has(Assert::NOSTORE) { Ok(()) } else { self.publish("post") };
        let posted = published.and_then(|()| {
            if assert.has(Assert::NOCHECK) {
                return Ok(());
            }
            tell(self, "post", Call::Post, group, || ())
        });
        posted.inspect_err(|_| self.access.open.close_post())
    }

    /// Waits until every rank of `group` has completed its accesses, and closes the exposure epoch.
    pub(crate) fn wait(&self, group: &[usize]) -> Result<()> {
        let what = || {
            let missing = group.iter().filter(|rank| !self.has_called(**rank, Call::Complete));
            let worlds: Vec<usize> = missing.map(|rank| self.peers.world(*rank)).collect();
            let who = worlds.first().map_or_else(|| "nobody".into(), |rank| format!("rank {rank}"));
            let others = worlds.len().saturating_sub(1);
            let others = if others == 0 { String::new() } else { format!(" and {others} others") };
            let text = format!("{who}{others} to call complete on window {}", self.number);
            Awaits::new(text, Subject::Complete, worlds)
        };
        let completed = |_| not_completed(self, group).is_none().then_some(Ok(()));
        let waited = self.member.engine.wait_signalled("wait", &what, || (), completed);
        self.close_post(group);
        waited.map_err(|e| self.name(e))?;
        self.refresh("wait")
    }

    /// [`Core::wait`] if it would not block; whether it did.
    pub(crate) fn test(&self, group: &[usize]) -> Result<bool> {
        self.member.engine.try_progress()?;
        if not_completed(self, group).is_some() {
            return Ok(false);
        }
        self.close_post(group);
        self.refresh("test").map(|()| true)
    }

    /// Closes the exposure epoch; completes that have not come are not awaited any more.
    pub(crate) fn close_post(&self, group: &[usize]) {
        group.iter().for_each(|rank| self.signals(*rank).consumed.consume(Call::Complete));
        self.access.open.close_post();
    }

    /// Calls `work` with the group of the exposure epoch that calls opened, which ends, or [goes on](Core::keep_posted).
    #[inline]
    pub(crate) fn take_posted<R>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&[usize]) -> Result<R>,
    ) -> Result<R> {
        let taken = self.access.posted.take(self.access.open.is_serial(), work);
        taken.unwrap_or_else(|| {
            Err(self.error(Class::RmaSync, operation, "no exposure epoch is open: call post first"))
        })
    }

    /// Calls opened an exposure epoch to `group`, or it goes on.
    pub(crate) fn keep_posted(&self, group: &[usize]) {
        self.access.posted.keep(group);
    }
}
