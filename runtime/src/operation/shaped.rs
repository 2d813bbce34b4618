//! Operations between layouts: piece by piece where the target's memory is mapped or pieces are large, by lists of pieces
//! where the transport takes such, else many pieces in one message.

use std::sync::Arc;

use transom_transport::{DataType, ReduceOp};

use super::atomic::Accumulate;
use super::later::Later;
use super::shape::Layout;
use super::transfer::{Place, get_piece, message_room, put_piece};
use super::{device, lists};
use crate::datatype::zip_runs;
use crate::engine::Countdown;
use crate::explain::{Path, Reason};
use crate::memory::{OriginBuffer, ResultBuffer};
use crate::protocol::runs::Batch;
use crate::protocol::wire::Kind;
use crate::window::Core;
use crate::{Class, Result};

/// Pieces of at least this many bytes on average are transfers of their own.
const LARGE_PIECE: usize = 1024;

/// A place in a target's window, at which a layout lies.
#[derive(Debug)]
pub(crate) struct Shaped<'a, 'p> {
    /// Where the layout's first byte is.
    pub place: &'p Place<'a>,
    /// That byte, relative to the layout's address.
    pub low: i64,
    pub layout: Layout<'p>,
}

impl Shaped<'_, '_> {
    /// Bytes from the place to a byte of the layout.
    pub(super) fn ahead(&self, offset: i64) -> usize {
        // The layout has no byte before its first.
        usize::try_from(offset - self.low).unwrap_or(0)
    }
}

impl Layout<'_> {
    /// Bytes of data.
    fn bytes(&self) -> usize {
        self.count.saturating_mul(self.datatype.size())
    }
}

fn index(offset: i64) -> usize {
    // Layouts of local buffers start at 0 or later (shape::check_local).
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn local<'a>(
    core: &Core,
    operation: &'static str,
    data: &'a [u8],
    at: i64,
    bytes: usize,
) -> Result<&'a [u8]> {
    let start = index(at);
    data.get(start..start.saturating_add(bytes))
        .ok_or_else(|| core.error(Class::Count, operation, "a layout leaves its buffer"))
}

/// Whether pieces are worth a transfer each: the first few stand for the rest.
fn large(from: &Layout<'_>, to: &Layout<'_>) -> bool {
    const LOOK: usize = 16;
    let Ok(pieces) = zip_runs(from.count, from.datatype, to.count, to.datatype) else { return false };
    let (count, bytes) =
        pieces.take(LOOK).fold((0, 0), |(count, sum), (_, _, bytes)| (count + 1, sum + bytes));
    bytes >= count * LARGE_PIECE
}

/// Starts a put from a layout of `origin`. Its parts that read `origin` after the call are added to `count`, if it is given.
pub(crate) fn put(
    core: &Core,
    target: &Shaped<'_, '_>,
    origin: &OriginBuffer<'_>,
    from: &Layout<'_>,
    count: Option<&Arc<Countdown>>,
) -> Result<()> {
    const NAME: &str = "put";
    let place = target.place;
    let pieces = zip_runs(from.count, from.datatype, target.layout.count, target.layout.datatype)?;
    if let Some(memory) = &place.remote.direct {
        core.took_mapped(place, Path::Direct, target.layout.bytes());
        return pieces.into_iter().try_for_each(|(at, to, bytes)| {
            let data = local(core, NAME, origin.bytes(), at, bytes)?;
            let copied = memory.copy_in(place.offset + target.ahead(to), data);
            copied.map_err(|e| core.failed(NAME, place.target, &e))
        });
    }
    if let Some(limits) = lists::lists(core, target) {
        core.took(place, Path::List, Reason::Layout, target.layout.bytes());
        return lists::put(core, target, origin, from, limits, count);
    }
    let rma = core.member.engine.routes.route(place.peer.world).capabilities.rma;
    if rma && large(from, &target.layout) {
        core.took(place, Path::Pieces, Reason::Layout, target.layout.bytes());
        return pieces.into_iter().try_for_each(|(at, to, bytes)| {
            put_piece(core, place, origin, (index(at), target.ahead(to), bytes), count)
        });
    }
    core.took(place, Path::Packed, Reason::Layout, target.layout.bytes());
    let mut batch = Batch::new(message_room(core, place.peer));
    for (at, to, bytes) in pieces {
        let data = local(core, NAME, origin.bytes(), at, bytes)?;
        let mut done = 0;
        while done < bytes {
            let fits = batch.fits(bytes - done, 1);
            if fits == 0 {
                send(core, NAME, place, Kind::Put, None, &mut batch)?;
                continue;
            }
            let offset = place.agent_offset() + (target.ahead(to) + done) as u64;
            batch.push(offset, fits, &data[done..done + fits]);
            done += fits;
        }
    }
    send(core, NAME, place, Kind::Put, None, &mut batch)
}

/// Starts a get to a layout of `result`. Many small pieces are there when the call returns, unless it is for `later`.
pub(crate) fn get(
    core: &Core,
    target: &Shaped<'_, '_>,
    result: &mut ResultBuffer<'_>,
    to: &Layout<'_>,
    later: Option<&Later>,
) -> Result<()> {
    const NAME: &str = "get";
    let place = target.place;
    let pieces = zip_runs(to.count, to.datatype, target.layout.count, target.layout.datatype)?;
    if let Some(memory) = &place.remote.direct {
        core.took_mapped(place, Path::Direct, target.layout.bytes());
        let data = result.bytes_mut();
        return pieces.into_iter().try_for_each(|(at, from, bytes)| {
            let start = index(at);
            let room = data.get_mut(start..start.saturating_add(bytes));
            let room = room.ok_or_else(|| core.error(Class::Count, NAME, "a layout leaves its buffer"))?;
            let copied = memory.copy_out(place.offset + target.ahead(from), room);
            copied.map_err(|e| core.failed(NAME, place.target, &e))
        });
    }
    if let Some(limits) = lists::lists(core, target) {
        core.took(place, Path::List, Reason::Layout, target.layout.bytes());
        return lists::get(core, target, result, to, limits, later.map(|later| &later.count));
    }
    let rma = core.member.engine.routes.route(place.peer.world).capabilities.rma;
    if rma && large(to, &target.layout) {
        let count = later.map(|later| &later.count);
        core.took(place, Path::Pieces, Reason::Layout, target.layout.bytes());
        return pieces.into_iter().try_for_each(|(at, from, bytes)| {
            get_piece(core, place, result, (index(at), target.ahead(from), bytes), count)
        });
    }
    core.took(place, Path::Packed, Reason::Layout, target.layout.bytes());
    let mut batch = Batch::new(message_room(core, place.peer));
    let mut wanted = Vec::new();
    for (at, from, bytes) in pieces {
        let mut done = 0;
        while done < bytes {
            let fits = batch.fits(bytes - done, 1);
            if fits == 0 {
                fetch(core, NAME, place, None, &mut batch, &mut wanted, fetched(later, result))?;
                continue;
            }
            batch.push(place.agent_offset() + (target.ahead(from) + done) as u64, fits, &[]);
            wanted.push((index(at) + done, fits));
            done += fits;
        }
    }
    fetch(core, NAME, place, None, &mut batch, &mut wanted, fetched(later, result))
}

fn fetched<'a>(later: Option<&'a Later>, result: &'a mut ResultBuffer<'_>) -> Fetched<'a> {
    later.map_or_else(|| Fetched::Now(result.bytes_mut()), Fetched::Later)
}

/// Sends what a batch holds; a flush confirms that it was applied.
fn send(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    kind: Kind,
    what: Option<(ReduceOp, DataType)>,
    batch: &mut Batch,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let engine = &core.member.engine;
    let (count, payload, _) = batch.take();
    let mut header = engine.header(kind);
    header.window = place.peer.number;
    header.count = count as u64;
    if let Some((op, ty)) = what {
        (header.op, header.ty) = (op as u8, ty as u8);
    }
    engine.send(operation, place.peer.world, &header, &payload).map_err(|e| core.name(e))?;
    place.peer.state.sent();
    Ok(())
}

/// Where what is fetched goes.
pub(crate) enum Fetched<'a> {
    /// To here, before the call returns.
    Now(&'a mut [u8]),
    /// When it comes.
    Later(&'a Later),
}

/// Asks for what a batch names, or for what an accumulate finds there, and puts it where it is wanted.
fn fetch(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    what: Option<(ReduceOp, DataType)>,
    batch: &mut Batch,
    wanted: &mut Vec<(usize, usize)>,
    result: Fetched<'_>,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let engine = &core.member.engine;
    let (count, payload, bytes) = batch.take();
    let mut header = engine.header(Kind::Get);
    header.value = count as u64;
    if let Some((op, ty)) = what {
        header = engine.header(Kind::GetAccumulate);
        header.count = count as u64;
        (header.op, header.ty) = (op as u8, ty as u8);
    }
    header.window = place.peer.number;
    let wanted = std::mem::take(wanted);
    let result = match result {
        Fetched::Now(result) => result,
        Fetched::Later(later) => {
            return later.request(core, operation, place, header, &payload, (wanted, bytes));
        }
    };
    let request = engine.request(operation, place.peer.world, header, &payload)?;
    engine.await_reply(operation, place.target, &request).map_err(|e| core.name(e))?;
    let data = request.take_data();
    if data.len() != bytes {
        return Err(core.error(Class::Count, operation, "the target's reply is of another length"));
    }
    let mut at = 0;
    for (start, len) in wanted {
        if let Some(to) = result.get_mut(start..start + len) {
            to.copy_from_slice(&data[at..at + len]);
        }
        at += len;
    }
    Ok(())
}

/// Accumulates a stream of operands to a layout of several runs; with `result`, fetches what was there as a stream: what is
/// not at hand for `later`, if that is given, else before the call returns.
pub(crate) fn accumulate(
    core: &Core,
    target: &Shaped<'_, '_>,
    what: Accumulate<'_>,
    mut result: Option<&mut [u8]>,
    later: Option<&Later>,
) -> Result<()> {
    let fetches = result.is_some() || later.is_some();
    let operation = if fetches { "get_accumulate" } else { "accumulate" };
    let Accumulate { op, ty, operands } = what;
    let place = target.place;
    match &place.remote.direct {
        Some(memory) => core.took_updates(target, memory, what)?,
        None => core.took(place, Path::Agent, Reason::Layout, operands.len()),
    }
    let mut batch = Batch::new(message_room(core, place.peer));
    let (mut done, mut wanted) = (0, Vec::new());
    for run in target.layout.datatype.elements(target.layout.count)? {
        let (mut ahead, end) = (target.ahead(run.offset), done + run.count * ty.size());
        if let Some(words) = core.words(place, ty, ahead)? {
            let fetched = result.as_mut().and_then(|result| result.get_mut(done..end));
            let what = Accumulate { op, ty, operands: &operands[done..end] };
            match fetched {
                Some(fetched) => device::update(core, place, words, what, Some(fetched))?,
                None => device::accumulate(core, place, words, what)?,
            }
            done = end;
            continue;
        }
        if let Some(memory) = &place.remote.direct {
            let fetched = result.as_mut().and_then(|result| result.get_mut(done..end));
            let what = Accumulate { op, ty, operands: &operands[done..end] };
            super::atomic::update(core, operation, place, memory, ahead, what, fetched)?;
            done = end;
            continue;
        }
        while done < end {
            let fits = batch.fits(end - done, ty.size());
            if fits == 0 {
                let into = later.map(Fetched::Later).or(result.as_deref_mut().map(Fetched::Now));
                flush(core, operation, place, (op, ty), &mut batch, &mut wanted, into)?;
                continue;
            }
            batch.push(place.agent_offset() + ahead as u64, fits, &operands[done..done + fits]);
            wanted.push((done, fits));
            (done, ahead) = (done + fits, ahead + fits);
        }
    }
    let into = later.map(Fetched::Later).or(result.map(Fetched::Now));
    flush(core, operation, place, (op, ty), &mut batch, &mut wanted, into)
}

/// Sends a batch of accumulates, or of fetching ones whose results are wanted at these places.
fn flush(
    core: &Core,
    operation: &'static str,
    place: &Place<'_>,
    what: (ReduceOp, DataType),
    batch: &mut Batch,
    wanted: &mut Vec<(usize, usize)>,
    result: Option<Fetched<'_>>,
) -> Result<()> {
    match result {
        Some(result) => fetch(core, operation, place, Some(what), batch, wanted, result),
        None => {
            wanted.clear();
            send(core, operation, place, Kind::Accumulate, Some(what), batch)
        }
    }
}
