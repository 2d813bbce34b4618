//! Chooses the way of an operation, once, and says why to the window's counters (`explain/`).

use transom_transport::{Lists, Moves, Span};

use super::description::{Accumulate, Action, Description};
use super::device::{self, Words};
use super::list;
use super::place::{Place, is_one_run};
use super::transfer::are_large;
use crate::explain::{Kind, Path, Reason};
use crate::window::Core;
use crate::{Layout, Result};

/// Bytes of the widest element that atomics of CPUs and network cards know.
const WIDEST: usize = 8;
/// Operands that would take more messages than these are fetched by the target.
const MESSAGES: usize = 4;
/// But not where a message takes so many bytes: that it comes unasked spares a round trip.
const LONG_MESSAGE: usize = 128 << 10;

/// How an operation is carried out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Way<'a> {
    /// By loads, stores and atomics of this thread.
    Mapped(&'a Span),
    /// By atomics of the network device.
    Device(Words<'a>),
    /// By one transfer of the transport, or a few of the longest.
    Transfer,
    /// By transfers with a list of pieces each.
    List((Moves, Lists)),
    /// By a transfer for each piece.
    Pieces,
    /// By messages with many pieces each.
    Packed,
    /// By a message whose bytes the target's agent stores or sends.
    Message,
    /// By messages upon which the target's agent gets the operands.
    Pull,
    /// By messages that the target's agent applies.
    Agent,
}

impl Way<'_> {
    /// Whether what is done may be done before a message to the same target that was sent earlier.
    pub fn overtakes_messages(self) -> bool {
        matches!(self, Self::Device(_) | Self::Transfer | Self::List(_) | Self::Pieces)
    }
}

impl Core {
    /// The way of an operation to a place.
    pub(super) fn choose<'a>(&'a self, place: &'a Place<'a>, operation: &Description<'_>) -> Result<Way<'a>> {
        let bytes = operation.bytes();
        if place.is_left() {
            return Ok(self.choose_left(place, operation));
        }
        match (&operation.action, &operation.layout) {
            (Action::Put { from: Some(here), .. } | Action::Get { to: Some(here), .. }, Some(there)) => {
                Ok(self.choose_for_layouts(place, here, there))
            }
            (Action::Put { .. } | Action::Get { .. }, _) => Ok(self.choose_transfer(place, operation)),
            (Action::Accumulate { what, .. }, Some(layout))
                if !is_one_run(self, place.operation, layout)? =>
            {
                self.choose_for_runs(place, layout, *what)
            }
            (Action::Accumulate { what, fetched }, _) => {
                if let Some(words) = self.words(place, what.ty, 0)? {
                    let path = device::path(Some(what.op), what.ty);
                    self.count_path(place, path, Reason::Provider, bytes);
                    return Ok(Way::Device(words));
                }
                self.choose_update(place, what.ty.size(), (bytes, fetched.is_none()))
            }
            (Action::CompareSwap { ty, .. }, _) => {
                if let Some(words) = self.words(place, *ty, 0)? {
                    self.count_path(place, Path::Hardware, Reason::Provider, bytes);
                    return Ok(Way::Device(words));
                }
                self.choose_update(place, ty.size(), (bytes, false))
            }
            (Action::Notify { .. }, _) => {
                if place.is_mapped() {
                    self.count_mapped(place, Path::Direct, bytes);
                } else if message_takes(self, place, bytes) {
                    self.count_path(place, Path::Message, Reason::Size, bytes);
                } else {
                    self.count_transfer(place, true, bytes);
                }
                Ok(Way::Message)
            }
        }
    }

    /// Memory that was detached: the target's agent does everything.
    fn choose_left<'a>(&self, place: &'a Place<'a>, operation: &Description<'_>) -> Way<'a> {
        let (way, path) = match (&operation.action, &operation.layout) {
            (Action::Put { from: Some(_), .. } | Action::Get { to: Some(_), .. }, Some(_)) => {
                (Way::Packed, Path::Packed)
            }
            (Action::Put { .. } | Action::Get { .. } | Action::Notify { .. }, _) => {
                (Way::Message, Path::Message)
            }
            (Action::Accumulate { .. } | Action::CompareSwap { .. }, _) => (Way::Agent, Path::Agent),
        };
        self.count_path(place, path, Reason::Detached, operation.bytes());
        way
    }

    fn choose_transfer<'a>(&self, place: &'a Place<'a>, operation: &Description<'_>) -> Way<'a> {
        let bytes = operation.bytes();
        if let Some(memory) = &place.remote.direct {
            self.count_mapped(place, Path::Direct, bytes);
            return Way::Mapped(memory);
        }
        if !self.member.engine.routes.route(place.peer.world).capabilities.rma {
            self.count_path(place, Path::Message, Reason::Provider, bytes);
            return Way::Message;
        }
        self.count_transfer(place, !operation.fetches(), bytes);
        Way::Transfer
    }

    fn choose_for_layouts<'a>(&self, place: &'a Place<'a>, here: &Layout<'_>, there: &Layout<'_>) -> Way<'a> {
        let bytes = there.count.saturating_mul(there.datatype.size());
        if let Some(memory) = &place.remote.direct {
            self.count_mapped(place, Path::Direct, bytes);
            return Way::Mapped(memory);
        }
        let rma = self.member.engine.routes.route(place.peer.world).capabilities.rma;
        let (way, path) = match list::limits(self, place, there) {
            Some(limits) => (Way::List(limits), Path::List),
            None if rma && are_large(here, there) => (Way::Pieces, Path::Pieces),
            None => (Way::Packed, Path::Packed),
        };
        self.count_path(place, path, Reason::Layout, bytes);
        way
    }

    /// Several runs of elements: each goes its own way, and one that needs a lock tells for all.
    fn choose_for_runs<'a>(
        &self,
        place: &'a Place<'a>,
        layout: &Layout<'_>,
        what: Accumulate<'_>,
    ) -> Result<Way<'a>> {
        let bytes = what.operands.len();
        let Some(memory) = &place.remote.direct else {
            self.count_path(place, Path::Agent, Reason::Layout, bytes);
            return Ok(Way::Packed);
        };
        if self.counters.is_some() {
            let size = what.ty.size();
            let mut runs = layout.datatype.elements(layout.count)?;
            let aligned = runs.all(|run| is_aligned(place, memory, place.ahead(run.offset), size));
            self.count_cell(place, size, aligned, bytes);
        }
        Ok(Way::Mapped(memory))
    }

    /// Elements of `size` bytes that no device updates. `pulls`: many may be fetched by the target.
    fn choose_update<'a>(
        &self,
        place: &'a Place<'a>,
        size: usize,
        (bytes, pulls): (usize, bool),
    ) -> Result<Way<'a>> {
        if let Some(memory) = &place.remote.direct {
            if self.counters.is_some() {
                self.count_cell(place, size, is_aligned(place, memory, 0, size), bytes);
            }
            return Ok(Way::Mapped(memory));
        }
        let rma = self.member.engine.routes.route(place.peer.world).capabilities.rma;
        let message = super::message::capacity(self, place.peer);
        if pulls && rma && message < LONG_MESSAGE && bytes > MESSAGES * message {
            return Ok(Way::Pull);
        }
        self.count_agent(place, size, bytes);
        Ok(Way::Agent)
    }

    /// The operation at `place` takes `path`, because of `reason`.
    #[inline]
    pub(super) fn count_path(&self, place: &Place<'_>, path: Path, reason: Reason, bytes: usize) {
        if let Some(counters) = &self.counters {
            let network = self.member.engine.routes.to(place.peer.world).name() != "shm";
            counters.add(Kind::of(place.operation), (path, network), reason, bytes);
        }
    }

    /// It is done on mapped memory.
    #[inline]
    fn count_mapped(&self, place: &Place<'_>, path: Path, bytes: usize) {
        let reason = if place.target == self.rank() { Reason::Loopback } else { Reason::Mapped };
        self.count_path(place, path, reason, bytes);
    }

    /// The transport to the target moves `bytes` bytes there, or from there.
    fn count_transfer(&self, place: &Place<'_>, put: bool, bytes: usize) {
        if self.counters.is_none() {
            return;
        }
        let (path, reason) = match self.member.engine.routes.route(place.peer.world).capabilities.moves {
            None => (Path::Transport, Reason::Remote),
            Some(moves) if put && bytes <= moves.inline => (Path::Inline, Reason::Size),
            Some(moves) if bytes <= moves.copied => (Path::Bounce, Reason::Size),
            Some(_) => (Path::ZeroCopy, Reason::Size),
        };
        self.count_path(place, path, reason, bytes);
    }

    fn count_cell(&self, place: &Place<'_>, size: usize, aligned: bool, bytes: usize) {
        if size > WIDEST {
            self.count_path(place, Path::Stripe, Reason::Type, bytes);
        } else if !aligned {
            self.count_path(place, Path::Stripe, Reason::Alignment, bytes);
        } else {
            self.count_mapped(place, Path::Cpu, bytes);
        }
    }

    /// Elements of `size` bytes are updated by the target's agent.
    #[inline]
    pub(super) fn count_agent(&self, place: &Place<'_>, size: usize, bytes: usize) {
        let other = self.domain != crate::window::Domain::Cpu;
        let reason = if size > WIDEST || other { Reason::Type } else { Reason::Provider };
        self.count_path(place, Path::Agent, reason, bytes);
    }
}

/// Whether one message takes so many bytes.
pub(super) fn message_takes(core: &Core, place: &Place<'_>, bytes: usize) -> bool {
    bytes <= super::message::capacity(core, place.peer)
}

/// Whether an element of `size` bytes, so many bytes ahead of a place in mapped memory, lies at a multiple of its size.
fn is_aligned(place: &Place<'_>, memory: &Span, ahead: usize, size: usize) -> bool {
    memory.address().wrapping_add(place.offset + ahead).is_multiple_of(size)
}
