//! The program's own memory under a window: shared in place with the ranks of this node, where that can be.

use std::sync::Arc;

use transom_shm::{Caution, InPlace, Quiet};
use transom_transport::{Span, limits};

use super::options::{Hints, MemoryModel, Word};
use crate::job::Member;
use crate::{Communicator, memory};

/// The hint `transom_created`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) enum CreatedHint {
    /// Shared, where nothing speaks against it.
    #[default]
    Auto,
    /// Shared, where it can be.
    Share,
    /// Peers reach it by cross-memory attach, or by messages where the kernel refuses that.
    Attach,
}

pub(super) const CREATED: &str = "transom_created";
/// What became of that: no hint, but told among them.
pub(super) const CREATED_AS: &str = "transom_created_as";

impl Word for CreatedHint {
    const KEY: &'static str = CREATED;
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("share", Self::Share), ("attach", Self::Attach)];
}

/// Memory of the program's, as peers of this node reach it.
#[derive(Debug)]
pub(crate) struct Created {
    /// Why it is not shared, if it is not.
    pub attached: Option<String>,
    /// How peers reach it then.
    by: &'static str,
    /// Until nobody accesses it from elsewhere any more.
    _in_place: Option<InPlace>,
}

impl Created {
    /// Shares `memory` in place, if it is to be and can be. The second is the memory from now on.
    pub fn new(comm: &Communicator, memory: Span, wanted: CreatedHint) -> (Self, Span) {
        let member = comm.member();
        let routes = &member.engine.routes;
        let mut ways = neighbours(comm).map(|peer| routes.route(peer).capabilities.rma);
        let by = if ways.all(|rma| rma) { "attach" } else { "messages" };
        if let Some(reason) = reason_against(comm, wanted).filter(|_| !memory.is_empty()) {
            // Known all the same: what is written by cross-memory attach cannot be shared just then.
            let in_place = reason.attached.then(|| InPlace::attach(&memory));
            return (Self { attached: Some(reason.text.into()), by, _in_place: in_place }, memory);
        }
        if memory.is_empty() {
            return (Self { attached: None, by, _in_place: None }, memory);
        }
        let pinning = routes.transports().iter().any(|t| !t.capabilities().registration_is_free);
        let insist = wanted == CreatedHint::Share;
        let caution = Caution { edges: pinning && !insist, held: !insist };
        let quiet: Arc<dyn Quiet> = Arc::new(member.engine.quiet());
        let (in_place, shared) = memory::share_in_place(&memory, caution, &quiet);
        let (attached, memory) = match shared {
            Ok(shared) => (None, shared),
            Err(reason) => (Some(reason), memory),
        };
        (Self { attached, by, _in_place: Some(in_place) }, memory)
    }

    /// What became of the memory, in words.
    pub fn text(&self) -> String {
        match &self.attached {
            None => "share".into(),
            Some(reason) => format!("{}: {reason}", self.by),
        }
    }
}

/// Whether peers may map what is attached to a dynamic window.
pub(super) fn shares_attached(comm: &Communicator, hints: &Hints) -> bool {
    hints.model == MemoryModel::Separate || reason_against(comm, hints.created).is_none()
}

/// Other ranks of the window that share memory with this one, by their number in the job.
fn neighbours(comm: &Communicator) -> impl Iterator<Item = usize> {
    let others = (0..comm.size()).filter(|rank| *rank != comm.rank());
    let routes = &comm.member().engine.routes;
    others.map(|rank| comm.channel().job_rank(rank)).filter(|rank| routes.shares_memory(*rank))
}

/// Why memory is not shared.
struct Against {
    text: &'static str,
    /// Peers reach it by cross-memory attach.
    attached: bool,
}

fn reason_against(comm: &Communicator, wanted: CreatedHint) -> Option<Against> {
    let Member { engine, .. } = &**comm.member();
    match wanted {
        _ if neighbours(comm).next().is_none() => {
            Some(Against { text: "no other rank of the window shares memory", attached: false })
        }
        CreatedHint::Attach => Some(Against { text: "as asked for", attached: true }),
        CreatedHint::Auto if engine.in_one_process() => {
            Some(Against { text: "the ranks are threads of one process", attached: true })
        }
        CreatedHint::Auto if limits::is_under_valgrind() => {
            Some(Against { text: "valgrind has its own account of memory", attached: true })
        }
        CreatedHint::Auto | CreatedHint::Share => None,
    }
}
