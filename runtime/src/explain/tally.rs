//! What a rank has counted on all its windows, those that are gone, too: for `transom top`, and for tools of MPI.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Counters, Explanation, Path};
use crate::waits::Traffic;

/// Whether windows are counted from now on, whatever their hints say.
static ALL: AtomicBool = AtomicBool::new(false);

/// Has all windows counted that this process makes from now on, as `TRANSOM_EXPLAIN=count` does.
pub fn count_windows_from_now_on() {
    ALL.store(true, Ordering::Relaxed);
}

/// The counters of a rank.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    live: Vec<Arc<Counters>>,
    /// Of windows that are no longer.
    gone: Option<Counters>,
}

impl Tally {
    /// The counters of a new window, if it is to be counted.
    pub fn open(&self, wanted: bool) -> Option<Arc<Counters>> {
        let counters = Counters::new(wanted || ALL.load(Ordering::Relaxed))?;
        self.known.lock().live.push(counters.clone());
        Some(counters)
    }

    /// Their window goes.
    pub fn close(&self, counters: &Arc<Counters>) {
        let mut known = self.known.lock();
        known.live.retain(|live| !Arc::ptr_eq(live, counters));
        known.gone.get_or_insert_default().add_all(counters);
    }

    /// All together; `None` if no window was counted.
    fn sum(&self) -> Option<Counters> {
        let known = self.known.lock();
        let mut all = known.live.iter().map(Arc::as_ref).chain(&known.gone).peekable();
        all.peek()?;
        let sum = Counters::default();
        all.for_each(|counters| sum.add_all(counters));
        Some(sum)
    }

    /// All together.
    pub fn explanation(&self) -> Explanation {
        self.sum().map_or_else(Explanation::off, |sum| sum.explanation())
    }

    /// The same by path, with the transport in its name where that says more; `None` if no window was counted. `network` is
    /// the transport that is not shared memory.
    pub fn traffic(&self, network: &str) -> Option<Vec<Traffic>> {
        let sum = self.sum()?;
        let ways = Path::ALL.iter().flat_map(|path| [(*path, false), (*path, true)]);
        let all = ways.map(|(path, remote)| {
            let count = sum.by_way(path, remote);
            let path = name(path, if remote { network } else { "shm" });
            Traffic { path, operations: count.operations, bytes: count.bytes }
        });
        Some(all.filter(|traffic| traffic.operations > 0).collect())
    }
}

/// How people know a path over a transport.
fn name(path: Path, transport: &str) -> String {
    match path {
        Path::Direct | Path::Cpu | Path::Stripe => path.text().to_owned(),
        // What the transport of shared memory does itself is cross-memory attach.
        Path::Transport if transport == "shm" => "attach".to_owned(),
        Path::Transport => transport.to_owned(),
        _ => format!("{transport} {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Kind, Reason};

    #[test]
    fn windows_that_are_gone_are_told_of_once() {
        let tally = Tally::default();
        assert!(tally.open(false).is_none() && tally.traffic("tcp").is_none());
        assert!(!tally.explanation().is_counted());
        let (one, two) = (tally.open(true).unwrap(), tally.open(true).unwrap());
        assert_eq!(tally.traffic("tcp"), Some(Vec::new()));
        one.add(Kind::Put, (Path::Direct, false), Reason::Mapped, 8);
        one.add(Kind::Get, (Path::Transport, false), Reason::Remote, 100);
        two.add(Kind::Put, (Path::Transport, true), Reason::Remote, 5);
        two.add(Kind::Accumulate, (Path::Agent, true), Reason::Provider, 8);
        tally.close(&one);
        two.add(Kind::Put, (Path::Direct, false), Reason::Mapped, 8);
        let traffic = |path: &str, operations, bytes| Traffic { path: path.into(), operations, bytes };
        let expected = [
            traffic("direct", 2, 16),
            traffic("attach", 1, 100),
            traffic("tcp", 1, 5),
            traffic("tcp agent", 1, 8),
        ];
        assert_eq!(tally.traffic("tcp").unwrap(), expected);
        tally.close(&two);
        assert_eq!(tally.traffic("tcp").unwrap(), expected);
        assert_eq!(tally.explanation().total().operations, 5);
    }
}
