//! Operations between layouts with many pieces in one message, which the target's agent takes apart; and accumulates of several
//! runs, each of which goes its own way.

use transom_transport::{DataType, ReduceOp};

use super::description::Accumulate;
use super::mapped::{self, Layouts, index, leaves, range};
use super::message::{batch_capacity, wrong_length};
use super::place::Place;
use super::request::Deferred;
use super::{Layout, device, message};
use crate::Result;
use crate::datatype::zip_runs;
use crate::memory::ResultBuffer;
use crate::protocol::runs::Batch;
use crate::protocol::wire::Kind;
use crate::window::{Core, Domain};

/// Sends what lies in `data` as the first layout says.
pub(super) fn put(core: &Core, place: &Place<'_>, data: &[u8], (here, there): Layouts<'_>) -> Result<()> {
    let mut batch = Batch::new(batch_capacity(core, place.peer));
    for (at, to, bytes) in zip_runs(here.count, here.datatype, there.count, there.datatype)? {
        let data = data.get(range(at, bytes)).ok_or_else(|| leaves(core, place))?;
        let mut done = 0;
        while done < bytes {
            let fits = batch.fits(bytes - done, 1);
            if fits == 0 {
                send(core, place, Kind::Put, None, &mut batch)?;
                continue;
            }
            let offset = place.agent_offset() + (place.ahead(to) + done) as u64;
            batch.push(offset, fits, &data[done..done + fits]);
            done += fits;
        }
    }
    send(core, place, Kind::Put, None, &mut batch)
}

/// Asks for what is to lie in `result` as the first layout says. It is there when the call returns, unless it is for `deferred`.
pub(super) fn get(
    core: &Core,
    place: &Place<'_>,
    result: &mut ResultBuffer<'_>,
    (here, there): Layouts<'_>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let mut batch = Batch::new(batch_capacity(core, place.peer));
    let mut wanted = Vec::new();
    for (at, from, bytes) in zip_runs(here.count, here.datatype, there.count, there.datatype)? {
        let mut done = 0;
        while done < bytes {
            let fits = batch.fits(bytes - done, 1);
            if fits == 0 {
                fetch(core, place, None, &mut batch, &mut wanted, fetched(deferred, result))?;
                continue;
            }
            batch.push(place.agent_offset() + (place.ahead(from) + done) as u64, fits, &[]);
            wanted.push((index(at) + done, fits));
            done += fits;
        }
    }
    fetch(core, place, None, &mut batch, &mut wanted, fetched(deferred, result))
}

fn fetched<'a>(deferred: Option<&'a Deferred>, result: &'a mut ResultBuffer<'_>) -> Fetched<'a> {
    match deferred {
        Some(deferred) if deferred.has_reply_buffer() => Fetched::Deferred(deferred),
        _ => Fetched::Now(result.bytes_mut()),
    }
}

/// Sends what a batch holds.
fn send(
    core: &Core,
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
    message::send(core, place, &header, &payload).map_err(|e| core.name(e))
}

/// Where what is fetched goes.
enum Fetched<'a> {
    /// To here, before the call returns.
    Now(&'a mut [u8]),
    /// When it comes.
    Deferred(&'a Deferred),
}

/// Asks for what a batch names, or for what an accumulate finds there, and puts it where it is wanted.
fn fetch(
    core: &Core,
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
        Fetched::Deferred(deferred) => {
            return deferred.request(core, place, header, &payload, (wanted, bytes));
        }
    };
    let request = engine.request(place.operation, place.peer.world, header, &payload)?;
    engine
        .await_reply(place.operation, (place.target, place.peer.world), &request)
        .map_err(|e| core.name(e))?;
    let data = request.take_data();
    if data.len() != bytes {
        return Err(wrong_length(core, place));
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

/// Accumulates a stream of operands to a layout of several runs. What was there goes to `fetched`, which is as long; without that, to
/// `deferred`, if that is given: what is not at hand when it comes.
pub(super) fn accumulate(
    core: &Core,
    place: &Place<'_>,
    layout: &Layout<'_>,
    what: Accumulate<'_>,
    mut result: Option<&mut [u8]>,
    deferred: Option<&Deferred>,
) -> Result<()> {
    let Accumulate { op, ty, operands } = what;
    if let (Some(deferred), None) = (deferred, &result)
        && (place.is_mapped() || core.domain == Domain::Device)
    {
        let mut old = vec![0; operands.len()];
        accumulate(core, place, layout, what, Some(&mut old), None)?;
        deferred.write(0, &old);
        return Ok(());
    }
    let mut batch = Batch::new(batch_capacity(core, place.peer));
    let (mut done, mut wanted) = (0, Vec::new());
    for run in layout.datatype.elements(layout.count)? {
        let (mut ahead, end) = (place.ahead(run.offset), done + run.count * ty.size());
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
            mapped::update(core, place, memory, ahead, what, fetched)?;
            done = end;
            continue;
        }
        while done < end {
            let fits = batch.fits(end - done, ty.size());
            if fits == 0 {
                let into = deferred.map(Fetched::Deferred).or(result.as_deref_mut().map(Fetched::Now));
                flush(core, place, (op, ty), &mut batch, &mut wanted, into)?;
                continue;
            }
            batch.push(place.agent_offset() + ahead as u64, fits, &operands[done..done + fits]);
            wanted.push((done, fits));
            (done, ahead) = (done + fits, ahead + fits);
        }
    }
    let into = deferred.map(Fetched::Deferred).or(result.map(Fetched::Now));
    flush(core, place, (op, ty), &mut batch, &mut wanted, into)
}

/// Sends a batch of accumulates, or of fetching ones whose results are wanted at these places.
fn flush(
    core: &Core,
    place: &Place<'_>,
    what: (ReduceOp, DataType),
    batch: &mut Batch,
    wanted: &mut Vec<(usize, usize)>,
    result: Option<Fetched<'_>>,
) -> Result<()> {
    match result {
        Some(result) => fetch(core, place, Some(what), batch, wanted, result),
        None => {
            wanted.clear();
            send(core, place, Kind::Accumulate, Some(what), batch)
        }
    }
}
