//! Puts and gets between layouts by lists: one transfer for each run of the target's memory, however many pieces it has here.

use transom_transport::{Lists, Moves, Part};

use super::Layout;
use super::mapped::Layouts;
use super::place::Place;
use super::request::Deferred;
use super::transfer::{list, piece};
use crate::Result;
use crate::datatype::{Datatype, zip_runs};
use crate::memory::LocalBuffer;
use crate::window::Core;

/// So many transfers are cheaper than a message that the target's agent must take apart.
const FEW: usize = 16;
/// Others are if each moves so many bytes on average.
const LONG: usize = 256;

/// What one transfer to a target takes, if it takes lists, and such are better than a message.
pub(super) fn limits(core: &Core, place: &Place<'_>, there: &Layout<'_>) -> Option<(Moves, Lists)> {
    let moves = core.member.engine.routes.route(place.peer.world).capabilities.moves?;
    let lists = moves.lists?;
    let Layout { count, datatype } = *there;
    let bytes = count.checked_mul(datatype.size())?;
    let dense = Datatype::of::<u8>();
    let mut runs = zip_runs(count, datatype, bytes, &dense).ok()?.map(|(_, _, bytes)| bytes);
    // The first few stand for the rest.
    let first: usize = runs.by_ref().take(FEW).sum();
    (first >= FEW * LONG || runs.next().is_none()).then_some((moves, lists))
}

/// Pieces that follow each other at the target.
struct Run {
    /// How many parts a longer list may have.
    most: usize,
    moves: Moves,
    lists: Lists,
    /// Bytes from the place to the first.
    ahead: usize,
    bytes: usize,
    parts: Vec<Part>,
}

impl Run {
    fn new((moves, lists): (Moves, Lists), most: usize) -> Self {
        Self { most, moves, lists, ahead: 0, bytes: 0, parts: Vec::new() }
    }

    /// Takes one more piece, if one transfer can move it with the others.
    fn push(&mut self, ahead: usize, part: Part) -> bool {
        let bytes = self.bytes + part.len;
        let fits = bytes <= self.moves.copied || bytes <= self.lists.bytes && self.parts.len() < self.most;
        if self.parts.is_empty() {
            self.ahead = ahead;
        } else if ahead != self.ahead + self.bytes || !fits {
            return false;
        }
        self.bytes = bytes;
        self.parts.push(part);
        true
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.bytes = 0;
    }
}

fn part(offset: i64, len: usize) -> Part {
    // Layouts of local buffers start at 0 or later (layout::check_local).
    Part { offset: usize::try_from(offset).unwrap_or(usize::MAX), len }
}

/// Calls `each` for the runs of all pieces.
fn runs(
    place: &Place<'_>,
    (here, there): Layouts<'_>,
    mut run: Run,
    mut each: impl FnMut(&Run) -> Result<()>,
) -> Result<()> {
    for (at, to, bytes) in zip_runs(here.count, here.datatype, there.count, there.datatype)? {
        let (ahead, part) = (place.ahead(to), part(at, bytes));
        if !run.push(ahead, part) {
            each(&run)?;
            run.clear();
            run.push(ahead, part);
        }
    }
    if run.parts.is_empty() { Ok(()) } else { each(&run) }
}

/// Starts a put or a get of a layout of a buffer.
pub(super) fn transfer(
    core: &Core,
    place: &Place<'_>,
    local: LocalBuffer<'_>,
    layouts: Layouts<'_>,
    (moves, lists): (Moves, Lists),
    deferred: Option<&Deferred>,
) -> Result<()> {
    let most = match local {
        LocalBuffer::Origin(_) => lists.put,
        LocalBuffer::Result(_) => lists.get,
    };
    runs(place, layouts, Run::new((moves, lists), most), |run| match run.parts[..] {
        [Part { offset, len }] => piece(core, place, local, (offset, run.ahead, len), deferred),
        _ => list(core, place, (local.owner(), deferred), |route, context| {
            let remote = (&*place.remote, place.offset + run.ahead);
            local.transfer_list(route.transport, remote, &run.parts, context)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let lists = Lists { put: 3, get: 1, bytes: 10_000 };
        Run::new((Moves { inline: 10, copied: 100, lists: Some(lists) }, lists), 3)
    }

    #[test]
    fn short_lists_have_any_number_of_parts() {
        let mut run = run();
        assert!((0..50).all(|i| run.push(7 + 2 * i, Part { offset: 4 * i, len: 2 })));
        assert!(!run.push(107, Part { offset: 900, len: 1 }));
        assert_eq!((run.ahead, run.bytes, run.parts.len()), (7, 100, 50));
    }

    #[test]
    fn long_lists_are_bounded() {
        let mut run = run();
        assert!(
            run.push(0, Part { offset: 0, len: 4000 }) && run.push(4000, Part { offset: 5000, len: 4000 })
        );
        assert!(!run.push(8000, Part { offset: 10_000, len: 2001 }), "too many bytes");
        assert!(!run.push(8001, Part { offset: 10_000, len: 1 }), "a gap at the target");
        assert!(run.push(8000, Part { offset: 10_000, len: 1 }));
        assert!(!run.push(8001, Part { offset: 10_100, len: 1 }), "too many parts");
        run.clear();
        assert!(run.push(8001, Part { offset: 10_100, len: 20_000 }), "one piece of any size");
    }
}
